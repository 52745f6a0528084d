# `joulemark merge`: node records -> store -> job records; EpilogSlurmctld runs it.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from joulemark import jobrecord, records, store
from joulemark.config import Config
from joulemark.errors import UserError

POLL_S = 0.02
# A file this old belongs to no merge that still waits: a node that came back wrote it.
LEFT_BEHIND_S = 60.0


@dataclass
class Request:
    """What to merge: one job's nodes, or, with no job, everything that is there."""

    job: int | None = None
    nodes: list[str] = field(default_factory=list)
    wait_s: float = 30.0
    rebuild: bool = False
    print_comment: bool = False


def run(config: Config, request: Request) -> int:
    """Merges, prints `<jobid>\\t<comment>` for each changed job; 1 if a file was rejected."""
    if not config.record_dir.is_dir():
        raise UserError(f"{config.record_dir}: no such folder: is record_dir right?")
    if request.job is not None:
        _wait_for_nodes(config, request)
    good, rejected = _read_all(config, _pending(config, request))
    lines = _store(config, request, list(good.values()))
    for path in good:
        if path.parent == config.record_dir:
            _move(path, config.record_dir / "merged")
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 1 if rejected else 0


def _wait_for_nodes(config: Config, request: Request) -> None:
    stored = _stored_nodes(config, request.job)
    awaited = [
        config.record_dir / records.file_name(config.cluster, request.job, node)
        for node in request.nodes
        if node not in stored
    ]
    deadline = time.monotonic() + request.wait_s
    while not all(path.exists() for path in awaited) and time.monotonic() < deadline:
        time.sleep(POLL_S)


def _stored_nodes(config: Config, job: int) -> set[str]:
    if not config.store.exists():
        return set()
    with store.writing(config.store) as connection:
        return store.complete_nodes(connection, config.cluster, job)


def _pending(config: Config, request: Request) -> list[Path]:
    """The files to merge now: the job's own and those left behind, or all."""
    found = sorted(config.record_dir.glob("[!.]*.json"))
    if request.rebuild:
        found += sorted((config.record_dir / "merged").glob("*.json*"))
    if request.job is None:
        return found
    own = f"{config.cluster}.{request.job}."
    return [path for path in found if path.name.startswith(own) or _left_behind(path)]


def _left_behind(path: Path) -> bool:
    try:
        return time.time() - path.stat().st_mtime > LEFT_BEHIND_S
    except FileNotFoundError:
        return False


def _read_all(config: Config, paths: list[Path]) -> tuple[dict[Path, dict], int]:
    """Good records by path, and how many bad ones went to record_dir/rejected."""
    good: dict[Path, dict] = {}
    rejected = 0
    for path in paths:
        try:
            good[path] = records.read(path)
        except FileNotFoundError:
            continue  # another merge was faster
        except records.RecordError as error:
            _reject(config, path, error)
            rejected += 1
    return good, rejected


def _reject(config: Config, path: Path, error: records.RecordError) -> None:
    """Keeps the file for the administrator, with its reason beside it."""
    folder = config.record_dir / "rejected"
    kept = _move(path, folder)
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S%z")
    with open(folder / "rejected.log", "a", encoding="utf-8") as log:
        for problem in error.problems:
            line = f"{problem} (kept as {kept})"
            print(f"joulemark: {line}", file=sys.stderr)
            log.write(f"{stamp} {line}\n")


def _move(path: Path, folder: Path) -> Path:
    """Moves a file without ever overwriting another one's content."""
    folder.mkdir(exist_ok=True)
    target = folder / path.name
    number = 1
    try:
        while target.exists() and target.read_bytes() != path.read_bytes():
            number += 1
            target = folder / f"{path.name}.{number}"
        os.replace(path, target)
    except FileNotFoundError:
        pass  # another merge moved it
    return target


def _store(config: Config, request: Request, found: list[dict]) -> list[str]:
    """One transaction: records in, job records out; returns the lines to print."""
    jobs = {(record["cluster"], record["JobIDRaw"]) for record in found}
    with store.writing(config.store) as connection:
        for record in found:
            store.put_node(connection, record)
        if request.job is not None:
            jobs.add((config.cluster, request.job))
            _add_missing(connection, config, request)
        return [
            line
            for cluster, job in sorted(jobs)
            if (line := _update_job(connection, cluster, job, request))
        ]


def _add_missing(connection, config: Config, request: Request) -> None:
    if not request.nodes:
        return
    store.put_expected_nodes(connection, config.cluster, request.job, request.nodes)
    why = f"no record came within {request.wait_s:g} s of the job's end"
    for node in request.nodes:
        record = records.missing_record(config.cluster, request.job, node, why)
        store.put_node(connection, record, guess=True)


def _update_job(connection, cluster: str, job: int, request: Request) -> str | None:
    found = store.node_records(connection, cluster, job)
    if not found:
        return None
    rows = jobrecord.summarise(found)
    changed = store.put_job(connection, cluster, job, rows)
    if not changed and not (request.print_comment and job == request.job):
        return None
    missing = [record["node"] for record in found if record["missing"] is not None]
    return f"{job}\t{jobrecord.comment(rows[0], missing)}"
