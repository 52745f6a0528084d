# `joulemark export reframe`: a run report of ReFrame's, and a session in its database of results.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
import uuid
from datetime import datetime, timezone

from joulemark import __version__
from joulemark.bench.cooked import Measurement
from joulemark.bench.export import figures
from joulemark.errors import UsageError, UserError

REPORT_VERSION = "4.2"  # data_version of ReFrame 4.9's and 4.10's reports
DATABASE_VERSION = "1.0"
NAMESPACE = uuid.UUID("3a3c4e0e-6c59-4f5e-8d5b-6a0f2f3d9b11")  # of our sessions' ids
PARAMETERS = ("kernel", "variant", "size", "threads", "ranks", "nodes")
# ReFrame's own, where nothing is told
PARTITION, ENVIRONMENT = "default", "builtin"
SUCCESS, ERROR = "pass", "fail"

TABLES = (
    "CREATE TABLE sessions(uuid TEXT PRIMARY KEY, session_start_unix REAL, "
    "session_end_unix REAL, json_blob TEXT, report_file TEXT)",
    "CREATE TABLE testcases(name TEXT, system TEXT, partition TEXT, environ TEXT, "
    "job_completion_time_unix REAL, session_uuid TEXT, uuid TEXT, "
    "FOREIGN KEY(session_uuid) REFERENCES sessions(uuid) ON DELETE CASCADE)",
    "CREATE TABLE metadata(schema_version TEXT)",
)


def report(measurements: list[Measurement]) -> dict:
    """A session in which each run was a test; the same runs are the same session."""
    cases = [_case(one) for one in measurements]
    session = str(uuid.uuid5(NAMESPACE, json.dumps(cases, sort_keys=True)))
    for index, case in enumerate(cases):
        case.update(session_uuid=session, run_index=0, uuid=f"{session}:0:{index}")
    failures = sum(case["result"] == ERROR for case in cases)
    counts = {
        "num_cases": len(cases),
        "num_failures": failures,
        "num_aborted": 0,
        "num_skipped": 0,
    }
    return {
        "session_info": {**_times(measurements), **counts, "uuid": session},
        "runs": [{**counts, "run_index": 0, "testcases": cases}],
        "restored_cases": [],
    }


def _times(measurements: list[Measurement]) -> dict:
    """Of a session there is the begin of each run alone."""
    starts_s = [one.start_s for one in measurements]
    first_s, last_s = min(starts_s), max(starts_s)
    return {
        "data_version": REPORT_VERSION,
        # ReFrame finds this object's end by its first brace
        "hostname": figures.as_file_name(measurements[0].node or figures.UNKNOWN),
        "time_start": _told(first_s),
        "time_start_unix": first_s,
        "time_end": _told(last_s),
        "time_end_unix": last_s,
        "time_elapsed": last_s - first_s,
        "exporter": f"joulemark {__version__}",
    }


def _told(time_s: float) -> str:
    return f"{datetime.fromtimestamp(time_s, timezone.utc):%Y%m%dT%H%M%S%z}"


def _case(one: Measurement) -> dict:
    parameters = [f"%{key}={getattr(one, key)}" for key in PARAMETERS]
    parameters += [f"%{word}" for word in one.options.split()]  # ReFrame averages runs of one name
    name = " ".join([one.benchmark, *parameters])
    system, partition = figures.cluster(one), one.target or PARTITION
    manifest = figures.manifest(one)
    verdict = {"result": SUCCESS, "fail_phase": None, "fail_reason": None}
    if not one.verified:
        verdict = {"result": ERROR, "fail_phase": "sanity", "fail_reason": figures.FAILURE}
    return {
        "name": name,
        "display_name": name,
        "unique_name": f"{one.benchmark}_{hashlib.sha256(name.encode()).hexdigest()[:8]}",
        "filename": f"joulemark/{one.benchmark}",
        "system": system,
        "partition": partition,
        "environ": manifest.get("compiler", ENVIRONMENT).replace(" ", "-"),
        **verdict,
        "perfvalues": {
            f"{system}:{partition}:{each.name}": _perfvalue(
                each.value, figures.unit_told(each, one)
            )
            for each in figures.figures(one)
        },
        "scheduler": "slurm" if one.job else "local",
        "jobid": one.job or None,
        "job_nodelist": [one.node] if one.node else [],
        "job_completion_time": _told(one.start_s),
        "job_completion_time_unix": one.start_s,
        "time_total": None,
        "num_tasks": one.ranks,
        "num_cpus_per_task": one.threads,
        "benchmark": one.benchmark,
        **{key: getattr(one, key) for key in (*PARAMETERS, "target", "cpu", "device")},
        "energy_source": figures.energy_source(one),
        **manifest,
    }


def _perfvalue(value: float, unit: str) -> list:
    """With no reference that it had to meet."""
    return [value, 0, None, None, unit, SUCCESS]


def store(session: dict, path: str) -> None:
    """Into the database, which is made where there is none; a session that is there stays."""
    try:
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
            database.execute("BEGIN IMMEDIATE")
            _prepare(database, path)
            _insert(database, session)
            database.execute("COMMIT")
    except sqlite3.Error as error:
        # else it is no database, or another one's
        kind = UserError if isinstance(error, sqlite3.OperationalError) else UsageError
        raise kind(f"--database {path}: {error}: name ReFrame's results.db") from None


def _prepare(database: sqlite3.Connection, path: str) -> None:
    if not database.execute("SELECT * FROM sqlite_master").fetchone():
        for table in TABLES:
            database.execute(table)
        database.execute("INSERT INTO metadata VALUES (?)", [DATABASE_VERSION])
    if not database.execute("SELECT * FROM sqlite_master WHERE name = 'metadata'").fetchone():
        raise UsageError(f"--database {path}: no table metadata: name ReFrame's results.db")
    versions = [version for (version,) in database.execute("SELECT schema_version FROM metadata")]
    if versions != [DATABASE_VERSION]:
        raise UsageError(
            f"--database {path}: schema_version {', '.join(versions)}: "
            f"known is {DATABASE_VERSION}, that of ReFrame 4.9 and 4.10"
        )


def _insert(database: sqlite3.Connection, session: dict) -> None:
    info = session["session_info"]
    row = [info["uuid"], info["time_start_unix"], info["time_end_unix"], json.dumps(session), None]
    added = database.execute("INSERT OR IGNORE INTO sessions VALUES (?, ?, ?, ?, ?)", row)
    if not added.rowcount:
        return
    keys = ("name", "system", "partition", "environ", "job_completion_time_unix", "session_uuid")
    database.executemany(
        "INSERT INTO testcases VALUES (?, ?, ?, ?, ?, ?, ?)",
        [[case[key] for key in (*keys, "uuid")] for case in session["runs"][0]["testcases"]],
    )
