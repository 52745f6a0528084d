# The site's store: one SQLite file with every node's record and the job records made from them.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import time
from pathlib import Path

from joulemark.errors import UserError

BUSY_TIMEOUT_S = 30.0

# Energies are exact integers in microjoules (_uj); names are sacct's own where it has the field.
MIGRATIONS = [
    """
    CREATE TABLE node_record (
        cluster TEXT NOT NULL, job INTEGER NOT NULL, node TEXT NOT NULL,
        complete INTEGER NOT NULL, end_ns INTEGER NOT NULL, body TEXT NOT NULL,
        PRIMARY KEY (cluster, job, node)) WITHOUT ROWID;
    CREATE TABLE job_node (
        cluster TEXT NOT NULL, job INTEGER NOT NULL, node TEXT NOT NULL,
        PRIMARY KEY (cluster, job, node)) WITHOUT ROWID;
    CREATE TABLE job_record (
        Cluster TEXT NOT NULL, JobIDRaw TEXT NOT NULL, Job INTEGER NOT NULL, Step TEXT NOT NULL,
        Uid INTEGER NOT NULL, NNodes INTEGER NOT NULL, Nodes TEXT NOT NULL,
        Start_ns INTEGER, End_ns INTEGER, ElapsedRaw INTEGER,
        ConsumedEnergyRaw INTEGER, ConsumedEnergy_uj INTEGER,
        EnergyCPU_uj INTEGER, EnergyDRAM_uj INTEGER, EnergyGPU_uj INTEGER, EnergyRest_uj INTEGER,
        EnergyIdle_uj INTEGER, EnergyOverhead_uj INTEGER,
        AveWatts REAL, PeakWatts REAL,
        UncertaintySystematic_uj REAL, UncertaintyRandom_uj REAL, UncertaintyJoules REAL,
        Method TEXT, Estimated INTEGER NOT NULL, Samples INTEGER NOT NULL,
        GapSeconds REAL NOT NULL, SplitPolicy TEXT NOT NULL, Missing TEXT, Regions TEXT NOT NULL,
        PRIMARY KEY (Cluster, JobIDRaw)) WITHOUT ROWID;
    CREATE INDEX job_record_job ON job_record (Cluster, Job);
    """,
]


@contextlib.contextmanager
def _explained(path: Path):
    """Turns SQLite's errors into one line that says what is safe and what to do."""
    try:
        yield
    except sqlite3.Error as error:
        raise UserError(
            f"{path}: the store cannot be used: {error}. No record is lost: they wait in "
            "record_dir and record_dir/merged. If the file is damaged, move it away and run "
            "`joulemark merge --rebuild`"
        ) from None


@contextlib.contextmanager
def writing(path: Path):
    """A connection inside one write transaction: all of it is stored, or nothing."""
    with _explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.closing(_connect(str(path))) as connection:
            _migrate(connection, path)
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.rollback()
                raise
            connection.commit()


@contextlib.contextmanager
def reading(path: Path):
    """A read-only connection, for users who may not write beside the store too."""
    if not path.exists():
        raise UserError(f"{path}: no store yet: it is made by the first `joulemark merge`")
    with _explained(path), contextlib.closing(_open_reader(path)) as connection:
        yield connection


def _connect(target: str, **options) -> sqlite3.Connection:
    connection = sqlite3.connect(target, timeout=BUSY_TIMEOUT_S, isolation_level=None, **options)
    connection.row_factory = sqlite3.Row
    return connection


def _open_reader(path: Path) -> sqlite3.Connection:
    """WAL's side files cannot be made by a reader; with no writer about, none is needed."""
    uri = path.absolute().as_uri()
    connection = _connect(f"{uri}?mode=ro", uri=True)
    try:
        connection.execute("SELECT 1 FROM job_record LIMIT 1")
    except sqlite3.OperationalError:
        connection.close()
        if _has_wal(path) or not os.access(path, os.R_OK):
            raise
        connection = _connect(f"{uri}?mode=ro&immutable=1", uri=True)
    return connection


def _has_wal(path: Path) -> bool:
    wal = f"{path}-wal"
    return os.path.exists(wal) and os.path.getsize(wal) > 0


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    version = _version(connection)
    if version > len(MIGRATIONS):
        raise UserError(
            f"{path}: written by a newer joulemark (store version {version}, "
            f"this one knows {len(MIGRATIONS)}): update joulemark"
        )
    if version == len(MIGRATIONS):
        return
    _use_wal(connection)
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(
        "CREATE TABLE IF NOT EXISTS migration (version INTEGER PRIMARY KEY, applied TEXT NOT NULL)"
    )
    for number, script in enumerate(MIGRATIONS, 1):
        if number > _version(connection):
            for statement in filter(str.strip, script.split(";")):
                connection.execute(statement)
            connection.execute("INSERT INTO migration VALUES (?, datetime('now'))", (number,))
    connection.commit()


def _use_wal(connection: sqlite3.Connection) -> None:
    """SQLite waits for no lock in this one statement, so a first merge beside another must."""
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _version(connection: sqlite3.Connection) -> int:
    known = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'migration'").fetchone()
    if not known:
        return 0
    return connection.execute("SELECT coalesce(max(version), 0) FROM migration").fetchone()[0]


# How much a stored record says: nothing came, the node says why there is no energy, the energy.
GUESS, EXCUSE, COMPLETE = range(3)


def put_node(connection: sqlite3.Connection, record: dict, guess: bool = False) -> None:
    """Keeps the more complete of two records of a job on a node, whatever order they come in.

    guess: the record is the merge's own word for a node that sent none.
    """
    key = (record["cluster"], record["JobIDRaw"], record["node"])
    old = connection.execute(
        "SELECT complete, end_ns, body FROM node_record WHERE (cluster, job, node) = (?, ?, ?)",
        key,
    ).fetchone()
    new = (
        COMPLETE if record["missing"] is None else GUESS if guess else EXCUSE,
        max((account["end_ns"] for account in record["accounts"]), default=0),
        json.dumps(record, sort_keys=True, separators=(",", ":")),
    )
    if old is None or new > tuple(old):
        connection.execute(
            "INSERT OR REPLACE INTO node_record VALUES (?, ?, ?, ?, ?, ?)", (*key, *new)
        )


def put_expected_nodes(connection: sqlite3.Connection, cluster: str, job: int, nodes) -> None:
    """The nodes that Slurm says a job ran on; a requeued job's earlier nodes drop out."""
    connection.execute("DELETE FROM job_node WHERE (cluster, job) = (?, ?)", (cluster, job))
    connection.executemany(
        "INSERT INTO job_node VALUES (?, ?, ?)", [(cluster, job, node) for node in sorted(nodes)]
    )


def node_records(connection: sqlite3.Connection, cluster: str, job: int) -> list[dict]:
    """The records of a job, one a node: of the nodes Slurm named, or of all if it named none."""
    rows = connection.execute(
        "SELECT body FROM node_record AS r WHERE (cluster, job) = (?1, ?2) AND ("
        " node IN (SELECT node FROM job_node WHERE (cluster, job) = (?1, ?2)) OR"
        " NOT EXISTS (SELECT 1 FROM job_node WHERE (cluster, job) = (?1, ?2))) ORDER BY node",
        (cluster, job),
    )
    return [json.loads(row["body"]) for row in rows]


def complete_nodes(connection: sqlite3.Connection, cluster: str, job: int) -> set[str]:
    """The nodes whose complete record is stored already."""
    rows = connection.execute(
        "SELECT node FROM node_record WHERE (cluster, job, complete) = (?, ?, ?)",
        (cluster, job, COMPLETE),
    )
    return {row["node"] for row in rows}


def put_job(connection: sqlite3.Connection, cluster: str, job: int, rows: list[dict]) -> bool:
    """Replaces a job's rows (itself and its steps); says whether anything changed."""
    if job_rows(connection, cluster, job) == {row["JobIDRaw"]: row for row in rows}:
        return False
    connection.execute("DELETE FROM job_record WHERE (Cluster, Job) = (?, ?)", (cluster, job))
    for row in rows:
        marks = ", ".join("?" * len(row))
        connection.execute(
            f"INSERT INTO job_record ({', '.join(row)}) VALUES ({marks})", tuple(row.values())
        )
    return True


def job_rows(connection: sqlite3.Connection, cluster: str, job: int) -> dict[str, dict]:
    """A job's row and those of its steps, by JobIDRaw."""
    rows = connection.execute(
        "SELECT * FROM job_record WHERE (Cluster, Job) = (?, ?)", (cluster, job)
    )
    return {row["JobIDRaw"]: dict(row) for row in rows}
