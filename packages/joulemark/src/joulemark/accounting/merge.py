# `joulemark merge`: node records -> store -> job records.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import contextlib
import gc
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from joulemark import folders, output, progress, store
from joulemark.accounting import (
    charges,
    comment,
    correction,
    forking,
    jobrecord,
    noderecord,
)
from joulemark.accounting.runs import Run, runs_of
from joulemark.config import Config
from joulemark.errors import UsageError, UserError
from joulemark.profile import hdf5
from joulemark.stamp import Stamp, stamp
from joulemark.store import corrections, jobs, nodes, retention, zones

POLL_S = 0.02
STORED_EVERY_S = 1.0
# A file this old belongs to no merge that still waits: a node that came back wrote it.
LEFT_BEHIND_S = 60.0
WORTH_A_HELPER = 2000  # files: fewer take less time than a second process
FILES_AT_ONCE = 250  # read together, and stored together
TOO_GREAT = 1 << 63  # for a database's whole number: each record's are less, their sum need not be
AT_HAND = 20_000  # records of some kB each; a rebuild has any number, and the store has them, too


@dataclass(frozen=True, eq=False)
class JobRun:
    """One start of a job, as Slurm told of it."""

    job: int
    slurm: nodes.SlurmRun
    end_ns: int = 0  # when Slurm told; 0: nobody knows


@dataclass(frozen=True)
class Request:
    """What to merge: these runs of jobs, or, with none, everything that is there."""

    runs: tuple[JobRun, ...] = ()
    rebuild: bool = False
    rebuild_since_s: float = 0.0  # only of what was merged since then, in Unix time
    print_comment: bool = False

    @property
    def jobs(self) -> set[int]:
        """Empty: all."""
        return {run.job for run in self.runs}


def run(config: Config, request: Request, wait_s: float) -> int:
    """Merges once the nodes' records are there, prints what has changed; 1 if one was rejected."""
    deadline = time.monotonic() + wait_s
    arrivals, runs = Arrivals(config), request.runs
    with progress.shown("waiting for nodes' records"):
        while len(arrivals.whole(runs)) < len(runs) and time.monotonic() < deadline:
            time.sleep(POLL_S)
    rejected = merge(config, request, _print)
    sys.stdout.flush()  # comments need not wait for profiles
    hdf5.merge(config, request.jobs)
    return 1 if rejected else 0


def renew(session: store.Session, config: Config, job: int) -> list[str]:
    """Makes a job's record anew from what is stored, now that one more correction is, too; its
    factors stay those of its merge. Returns what `joulemark merge` would print of it."""
    charge = charges.Charges(config)
    line = _Update(session, config, Request(), charge, {}, is_corrected=True).job(job)
    charge.tell()
    return [line] if line else []


def _print(lines: list[str]) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))


def merge(config: Config, request: Request, tell: Callable[[list[str]], None]) -> int:
    """How many files were rejected; waits for none. What has changed is told, a line a job, before
    it is kept: told twice is better than never."""
    gc.disable()  # ten thousand records are a million objects without a cycle among them
    try:
        return _merge(config, request, tell)
    finally:
        gc.enable()


class Arrivals:
    """Of which runs all nodes' records are there, or stored already."""

    def __init__(self, config: Config):
        if not config.record_dir.is_dir():
            raise UsageError(f"{config.record_dir}: no such folder: is record_dir right?")
        self._config = config
        self._names: dict[JobRun, dict[str, str]] = {}  # its nodes by their records' names
        self._stored: dict[JobRun, set[str]] = {}
        self._asked_s = 0.0

    def whole(self, runs: Sequence[JobRun]) -> list[JobRun]:
        """Looks the folder up once a call, not each, and the store once a second."""
        present = set(os.listdir(self._config.record_dir))
        lacking = {run: lacks for run in runs if (lacks := self._lacking(run, present))}
        if lacking and time.monotonic() - self._asked_s > STORED_EVERY_S:
            self._stored = _stored_nodes(self._config, list(lacking))
            self._asked_s = time.monotonic()
        return [
            run
            for run in runs
            if run not in lacking or not lacking[run] - self._stored.get(run, set())
        ]

    def _lacking(self, run: JobRun, present: set[str]) -> set[str]:
        if run not in self._names:
            cluster = self._config.cluster
            self._names[run] = {
                noderecord.file_name(cluster, run.job, node): node for node in run.slurm.nodes
            }
        return {node for name, node in self._names[run].items() if name not in present}


def _stored_nodes(config: Config, runs: Sequence[JobRun]) -> dict[JobRun, set[str]]:
    if not runs or (config.store.kind == "sqlite" and not config.store.path.exists()):
        return {}
    with store.writing(config.store) as session:
        return {
            run: nodes.complete_nodes(session, config.cluster, run.job, run.slurm.restart)
            for run in runs
        }


def _merge(config: Config, request: Request, tell: Callable[[list[str]], None]) -> int:
    """How many files were rejected.

    Two transactions: when the first has kept the records, their files can be moved while the
    second makes the job records. What ends in between leaves jobs pending for the next merge.
    What would be refused is so before both: a rebuild would be carried out by the next, unasked.
    """
    charge = charges.Charges(config)
    paths = _pending(config, request)
    with forking.Helper((_read_some, _move_merged), len(paths) >= WORTH_A_HELPER) as helper:
        batches = helper.each(_read_some, paths, FILES_AT_ONCE)
        read = progress.counted(batches, "records read", len(paths), of=len)
        if not helper.is_there:  # else nobody reads while others wait for the store
            read = list(read)
        with store.writing(config.store) as session:
            kept = _keep(session, config, read)
            changed = _note(session, config, request, kept.jobs)
            session.commit()
            helper.start(_move_merged, kept.waiting)
            session.begin()
            with progress.shown("putting jobs' days right"):
                zones.set_zone(session, config.cluster, config.timezone)
            tell(_Update(session, config, request, charge, kept.records).jobs(changed))
        charge.tell()
        with progress.shown("moving merged records"):
            helper.result()
    return kept.rejected


def _waits(config: Config, path: str) -> bool:
    """Not in merged/ already."""
    return os.path.dirname(path) == _top(config)


def _top(config: Config) -> str:
    return str(config.record_dir)


def _pending(config: Config, request: Request) -> list[str]:
    """The files to merge now: the job's own and those left behind, or all."""
    found = _record_files(_top(config), request.jobs, config.cluster)
    if request.rebuild:
        merged = (config.record_dir / "merged").glob("*.json*")
        merged = progress.counted(merged, "merged records found")
        found += sorted(str(path) for path in merged if _came(path, request.rebuild_since_s))
    return found


def _came(path: Path, since_s: float) -> bool:
    """A merge's moving changes a file's ctime; its mtime is the node's."""
    if not since_s:
        return True
    try:
        return path.lstat().st_ctime >= since_s
    except FileNotFoundError:  # `store prune` was faster
        return False


def _record_files(folder: str, jobs: set[int], cluster: str) -> list[str]:
    asked = tuple(f"{cluster}.{job}." for job in jobs)
    with os.scandir(folder) as entries:
        return sorted(
            entry.path
            for entry in entries
            if noderecord.is_record(entry.name)
            and not entry.name.startswith(".")
            and (not jobs or entry.name.startswith(asked) or _left_behind(entry))
        )


def _left_behind(entry: os.DirEntry) -> bool:
    try:
        return time.time() - entry.stat().st_mtime > LEFT_BEHIND_S
    except FileNotFoundError:
        return False


def _read_some(paths: list[str]) -> list[tuple]:
    """(path, problems, stamp, record, body, digest) of each file that is still there."""
    found = []
    for path in paths:
        try:
            before, text, record = noderecord.read(path)
        except FileNotFoundError:
            continue  # another merge was faster
        except OSError as error:
            output.tell([f"{path}: {error.strerror}: left to the next merge"])
        except noderecord.RecordError as error:
            found.append((path, error.problems))
        else:
            jobrecord.drop_details(record)
            body, digest = nodes.packed(text), nodes.digest_of(text)
            found.append((path, [], before, record, body, digest))
    return found


def _reject(config: Config, path: str, problems: list[str]) -> None:
    """Keeps the file for the administrator, with its reason beside it."""
    folder = config.record_dir / "rejected"
    kept, log = path, None
    try:
        folders.make(folder, config.record_dir)
        kept = _move(path, folder)
        name = folder / "rejected.log"  # of any bytes that a file's name or a record may have
        log = open(name, "a", encoding="utf-8", errors="backslashreplace")  # noqa: SIM115
        folders.give_to_owner(log.fileno(), config.record_dir)
    except OSError as error:
        problems = [*problems, f"{folder}: {error.strerror}: give it to record_dir's owner"]
    when = time.strftime("%Y-%m-%dT%H:%M:%S%z")
    for problem in problems:
        line = f"{problem} (kept as {kept})"
        output.tell([line])
        if log:
            log.write(f"{when} {line}\n")
    if log:
        log.close()


def _move_merged(read: list[tuple[str, Stamp]]) -> list:
    """Keeps merged files in record_dir/merged, for a rebuild; a newer one of the name waits."""
    for folder in {os.path.dirname(path) for path, _ in read}:
        folders.make(Path(folder, "merged"), Path(folder))
    for path, before in read:
        with contextlib.suppress(FileNotFoundError):  # another merge moved it
            if stamp(os.lstat(path)) == before:
                _move(path, f"{os.path.dirname(path)}/merged")
    return []


def _move(path: str, folder: str | Path) -> str:
    """Moves a file without ever overwriting another one's content."""
    name = noderecord.first_name(os.path.basename(path))
    target = f"{folder}/{name}"
    number = 1
    try:
        while os.path.lexists(target) and not _same(path, target):
            number += 1
            target = f"{folder}/{name}.{number}"
        os.replace(path, target)
    except FileNotFoundError:
        pass  # another merge moved it
    return target


def _same(one: str, other: str) -> bool:
    """Whether both are plain files of one content: what else there is, a pipe, may have no end."""
    try:
        return noderecord.content(one)[1] == noderecord.content(other)[1]
    except noderecord.RecordError:
        return False


@dataclass
class _Kept:
    """What came of the files that were read."""

    jobs: set[tuple[str, int]] = field(default_factory=set)
    records: dict[str, dict] = field(default_factory=dict)  # by digest, AT_HAND of them
    waiting: list[tuple[str, Stamp]] = field(default_factory=list)  # not in merged/ already
    rejected: int = 0


def _keep(session: store.Session, config: Config, batches: Iterable[list]) -> _Kept:
    """Stores the good records of what _read_some() reads, while it reads on."""
    kept, keeper, ends_ns = _Kept(), nodes.Keeper(session), retention.ends(session)
    for batch in batches:
        found = []
        for path, problems, *read in batch:
            if problems:
                _reject(config, path, problems)
                kept.rejected += 1
                continue
            before, record, body, digest = read
            if _waits(config, path):
                kept.waiting.append((path, before))
            one = nodes.Found.of(body, record, digest)
            is_old = one.end_ns <= ends_ns.get(one.job[0], -1)  # else the store need not be asked
            if is_old and retention.is_pruned(session, *one.job, one.end_ns):
                output.tell([f"{path}: of a job that was pruned: left out"])
            else:
                found.append(one)
        keeper.put(found)
        kept.jobs.update(one.job for one in found)
        if len(kept.records) < AT_HAND:
            kept.records.update((one.digest, one.record) for one in found)
    return kept


def _note(
    session: store.Session, config: Config, request: Request, changed: set[tuple[str, int]]
) -> set[int]:
    """Stores what Slurm said; returns the jobs whose records have to be made anew.

    Those of other clusters stay pending: only their own merges know their prices and channels.
    """
    for run in request.runs:
        if retention.is_pruned(session, config.cluster, run.job, run.end_ns):
            output.tell([f"job {run.job}: it was pruned: left out"])
            continue
        changed.add((config.cluster, run.job))
        if run.slurm.nodes or run.slurm.user:
            nodes.put_slurm_run(session, config.cluster, run.job, run.slurm)
    pending = jobs.pending_jobs(session, config.cluster, everything=not request.runs)
    jobs.add_pending(session, changed)
    return pending.union(job for cluster, job in changed if cluster == config.cluster)


class TooGreat(UserError):
    """What a job's nodes say adds up to more than a store can hold."""


def _check_sums(job: int, rows: list[dict]) -> None:
    for row in rows:
        for name, value in row.items():
            if type(value) is int and value >= TOO_GREAT:
                told = jobrecord.few(row["Nodes"].split(","))
                raise TooGreat(
                    f"job {job}: {name}: {value}: must be below 2^63 for the store: see what is "
                    f"wrong with the records of {told}, or with its correction"
                )


@dataclass
class _Update:
    """Makes this cluster's job records from what is stored, all in one transaction."""

    session: store.Session
    config: Config
    request: Request
    charge: charges.Charges
    at_hand: dict[str, dict]  # records by digest, which need not be read again
    is_corrected: bool = False  # that alone: what it was charged before is not computed anew

    def __post_init__(self):
        self._cluster = self.config.cluster
        self._zone = zones.Zones(self.session)[self._cluster]
        self._corrections = corrections.by_job(self.session)
        self._asked = self.request.jobs if self.request.print_comment else set()

    def jobs(self, changed: set[int]) -> list[str]:
        """Renews these jobs' rows; returns the lines to print."""
        order = progress.counted(sorted(changed), "jobs' records made", len(changed))
        return [line for job in order if (line := self._job_or_none(job))]

    def _job_or_none(self, job: int) -> str | None:
        """job(), but a job of which no record can be made keeps no other one from its own."""
        try:
            return self.job(job)
        except TooGreat as error:
            why = error
        except RecursionError:  # at the first reading there was a little more room
            why = f"job {job}: a node's record nests too deep"
        output.tell([f"{why}: left out"])
        jobs.set_pending(self.session, self._cluster, job, False)
        return None

    def job(self, job: int) -> str | None:
        """Renews a job's rows; the line to print if it is another one or was asked for."""
        cluster = self._cluster
        found = nodes.node_records(self.session, cluster, job, self.at_hand)
        runs = runs_of(found, nodes.slurm_runs(self.session, cluster, job))
        if not runs:  # nothing to wait with: what still comes makes it pending anew
            jobs.set_pending(self.session, cluster, job, False)
            return None
        before = self._charges_before(job) if self.is_corrected else {}
        rows = [row for run in runs for row in self._rows(job, run, before)]
        of_job = [row for row in rows if row["Step"] == "job"]
        if made := self._made(job, of_job):
            measured = {row["Run"]: _charge(row) for row in of_job}
            corrections.keep_measured(self.session, made[-1], measured)
            correction.apply(of_job, made)
        _check_sums(job, rows)
        row = next(row for row in rows if row["Run"] == runs[-1].number)
        old = jobs.put_job(self.session, cluster, job, rows)
        if not self.is_corrected:
            jobs.set_pending(self.session, cluster, job, self.charge.may_grow(runs))
        asked = job in self._asked
        if not asked and old and comment.same(row, old[str(job)]):
            return None
        missing = jobrecord.missing_nodes(runs[-1])
        is_whole = runs[-1].slurm.nodes and not missing and row["ConsumedEnergyRaw"] is not None
        joules = row["ConsumedEnergyRaw"] if is_whole else ""
        return f"{job}\t{joules}\t{comment.write(row, missing)}"

    def _made(self, job: int, of_job: list[dict]) -> list[corrections.Correction]:
        """The corrections of these runs."""
        made = self._corrections.get((self._cluster, job), [])
        return corrections.standing(self.session, made, of_job)

    def _charges_before(self, job: int) -> dict[tuple[int, str], dict | None]:
        """By run and step, without any correction; None: not known."""
        rows = jobs.job_rows(self.session, self._cluster, job)
        before = {(row["Run"], row["Step"]): _charge(row) for row in rows}
        of_job = [row for row in rows if row["Step"] == "job"]
        made = self._made(job, of_job)
        if len(made) > 1:  # of_job has what the last but this one made of it
            of_runs = corrections.measured(self.session, made[-2])
            for run in (row["Run"] for row in of_job):
                kept = of_runs.get(run)  # by an earlier joulemark of fewer columns
                before[run, "job"] = {**charges.NONE, **kept} if kept else None
        return before

    def _rows(self, job: int, run: Run, before: dict[tuple[int, str], dict | None]) -> list[dict]:
        rows, cluster = jobrecord.summarise(run), self._cluster
        for row in rows:
            charge = before.get((run.number, row["Step"])) or self.charge.of(row, run)
            row.update(Cluster=cluster, Job=job, Payer=None, **charge)
            row.update(self._zone.columns(row["Start_ns"], row["End_ns"], row["Step"]))
        rows[0]["Payer"] = nodes.payer(
            self.session,
            cluster,
            rows[0]["Uid"],
            run.slurm.user,
            run.slurm.account,
            run.slurm.partition,
            rows[0]["Currency"] or "",
        )
        return rows


def _charge(row: dict) -> dict:
    return {name: row[name] for name in charges.COLUMNS}
