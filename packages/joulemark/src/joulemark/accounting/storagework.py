# What a job read, wrote and asked of storage servers, by the lines of `joulemark io collect`, and
# what they drew for it.
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A line tells of a round, some 30 s. A job is in it by its number, so what is read here is its
own to the byte; only of which of its runs a round is that saw two of them is not known: the
earlier's. Servers still work for a job that has ended: its columns stay empty until lines of
SETTLE_NS have come. Of its steps those count that it had: what else has its name is another's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from joulemark import output
from joulemark.accounting.course import Course
from joulemark.accounting.jobrecord import few
from joulemark.accounting.runs import Run
from joulemark.accounting.shared import Channel, Part, charged
from joulemark.accounting.storagepower import History, Models, part_of
from joulemark.storage.journal import FOLDER, OF_NODES
from joulemark.storage.work import COLUMNS as WORK
from joulemark.storage.work import Work, add, total
from joulemark.timed import SHOWN, Timed
from joulemark.units import NS_PER_S

# A client writes dirty pages back within half a minute, and a job_stats entry is there for longer.
SETTLE_NS = 120 * NS_PER_S
# A server that has been silent for so long is waited for no more.
PATIENCE_NS = 3600 * NS_PER_S
ENERGY = ("EnergyStorage_uj", "StorageSystematic_uj", "StorageRandom_uj", "StorageJoules")
COLUMNS = (*WORK, *ENERGY)
NONE = dict.fromkeys(COLUMNS)
LINE = re.compile(
    rb'\{"time_ns": (\d+), "from_ns": (\d+), "total": \[(\d+), (\d+), (\d+)\], "unread": (\d+), '
    rb'"jobs": \{(.*)\}\}\s*',
    re.S,
)


@dataclass(frozen=True)
class Round:
    """What all jobs did at a server from from_ns to time_ns; which did what is read when asked."""

    time_ns: int
    from_ns: int
    total: Work
    unread: int
    jobs: bytes

    def steps(self, job: int) -> dict[str, Work]:
        """A job's; "" is what is known of no step."""
        found = re.findall(rb'"%d\.(\w*)": \[(\d+), (\d+), (\d+)\]' % job, self.jobs)
        return {step.decode(): Work(*map(int, numbers)) for step, *numbers in found}


class Server(Timed[Round]):
    """A server's lines."""

    def parse(self, text: bytes) -> Round:
        found = LINE.fullmatch(text)
        if not found:
            shown = text.decode("utf-8", "backslashreplace").strip()[:SHOWN]
            raise ValueError(f"{shown!r} is no line of `joulemark io collect`")
        time_ns, from_ns, *total, unread = map(int, found.groups()[:6])
        return Round(time_ns, from_ns, Work(*total), unread, found[7])


# By server: begin and end in ns, and what a job did.
Rounds = dict[Server, list[tuple[int, int, Work]]]


@dataclass(frozen=True)
class _Found:
    """Of one run of a job."""

    steps: dict[str, Work]
    energy: dict
    notes: list[str]


class Storage:
    """All servers that have lines, the nodes whose mounts have, and the channels that tell what
    servers draw. A node's lines are of the jobs that it ran, a server's of any."""

    def __init__(self, record_dir: Path, channels: Sequence[Channel], now_ns: int):
        self._models = Models(record_dir)
        self._now_ns = now_ns
        self._lasts: dict[Server | Channel, int] = {}  # when their last lines were
        self._unread: dict[str, str] = {}  # files whose lines cannot be read, and why
        paths = sorted((record_dir / FOLDER).glob("*.jsonl"))
        self._servers = [one for one in map(Server, paths) if self._has_lines(one)]
        self._channels = [one for one in channels if self._has_lines(one)]
        self._nodes_folder = record_dir / OF_NODES
        self._has_nodes = self._nodes_folder.is_dir()  # else a great job need not ask ten thousand
        self._nodes: dict[str, Server | None] = {}  # those that were asked for
        self._bad: dict[Server, set[int]] = {}
        self._found: _Found | None = None  # of the run whose rows are asked for

    def _has_lines(self, file: Server | Channel) -> bool:
        try:
            line = file.last_line()
        except OSError as error:
            self._unread[file.name] = f"{output.printable(str(file.path))}: {error.strerror}"
            return False
        if line:
            self._lasts[file] = line.time_ns
        return bool(line)

    def _node(self, name: str) -> Server | None:
        """Whose mounts are read, if they are."""
        if name not in self._nodes:
            path = f"{self._nodes_folder}/{name}.jsonl"
            node = Server(Path(path)) if os.path.exists(path) else None
            self._nodes[name] = node if node and self._has_lines(node) else None
        return self._nodes[name]

    def _of_nodes(self, names: Iterable[str]) -> tuple[list[Server], list[str]]:
        """Those of a run, and the names of others where some of its nodes' mounts are read."""
        if not self._has_nodes:
            return [], []
        found = {name: self._node(name) for name in sorted(names)}
        known = [one for one in found.values() if one]
        return known, [name for name, one in found.items() if known and not one]

    def of(self, row: dict, run: Run) -> tuple[dict, list[str]]:
        """COLUMNS of a job's row, which comes first, or of its steps', and what is to be said of
        the job's; energy is the job's alone."""
        step = row["Step"]
        if step == "job":
            nodes, lacking = self._of_nodes({*run.nodes(), *run.silent})
            files = [*self._servers, *nodes]
            is_known = files and not self._waits(row["End_ns"], files)
            self._found = self._of_run(row, run, files, lacking) if is_known else None
        found = self._found
        if found is None:
            return NONE, []
        if step != "job":
            are_told = "" not in found.steps or step in found.steps
            work = found.steps.get(step, Work()) if are_told else ()
            return {**NONE, **dict(zip(WORK, work))}, []
        whole = total(found.steps.values())
        return {**NONE, **dict(zip(WORK, whole)), **found.energy}, found.notes

    def may_grow(self, end_ns: int, nodes: Iterable[str]) -> bool:
        """Whether lines of a job that ended then, and ran there, may still come."""
        return self._waits(end_ns, [*self._servers, *self._of_nodes(nodes)[0]]) or any(
            self._waits_for(channel, end_ns) for channel in self._channels
        )

    def tell(self) -> None:
        """On stderr what is wrong with lines of jobs' times: of a server's the first."""
        output.tell(f"{said}: what jobs did there is not known" for said in self._unread.values())
        for server, bad in self._bad.items():
            output.tell([f"{server.wrong(min(bad))}; unsound lines of its: {len(bad)}"])

    def _waits_for(self, channel: Channel, end_ns: int) -> bool:
        nodes = [one for one in map(self._node, sorted(channel.nodes())) if one]
        return self._waits(end_ns, [channel, *nodes])

    def _waits(self, end_ns: int, files: Iterable[Server | Channel]) -> bool:
        """Of those that are not silent, one has not told of all that belongs to a job."""
        oldest_ns = self._now_ns - PATIENCE_NS
        return any(oldest_ns < self._lasts[one] < end_ns + SETTLE_NS for one in files)

    def _of_run(
        self, row: dict, run: Run, files: list[Server], lacking: list[str]
    ) -> _Found | None:
        """lacking: names of what else should have told of it."""
        start_ns, end_ns = row["Start_ns"], row["End_ns"]
        until_ns = min(end_ns + SETTLE_NS, run.next_ns or end_ns + SETTLE_NS)
        # Rounds that begin before are an earlier run's.
        from_ns = min(start_ns, run.before_ns + SETTLE_NS) if run.before_ns else 0
        job = run.records[0]["JobIDRaw"]
        had = {account["step"] for record in run.records for account in record["accounts"]} | {""}
        own: Rounds = {}
        steps: dict[str, Work] = {}
        unread, n_bad = 0, 0
        lacking = list(lacking)
        for server in files:
            lines, bad = server.about(start_ns, until_ns)
            rounds = [one for one in lines if start_ns < one.time_ns and one.from_ns < until_ns]
            seen_ns = sum(
                _overlap_ns(one.from_ns, one.time_ns, start_ns, end_ns) for one in rounds
            )
            lacking += [server.name] if seen_ns < end_ns - start_ns else []
            unread += sum(one.unread for one in rounds)
            if bad:
                self._bad.setdefault(server, set()).update(bad)
                n_bad += len(bad)
            if rounds:
                theirs = [one for one in rounds if one.from_ns >= from_ns]
                own[server] = [_own(one, job, had, steps) for one in theirs]
        if not own:
            return None
        notes = [f"not all that {few(lacking)} did is known"] if lacking else []
        notes += [f"entries that may have been gone unread: {unread}"] if unread else []
        notes += [f"unsound lines: {n_bad}"] if n_bad else []
        notes = [f"storage servers: {', '.join(notes)}"] if notes else []
        parts = []
        for channel in (one for one in self._channels if not self._waits_for(one, end_ns)):
            part, note = self._of_channel(channel, own, start_ns, end_ns, until_ns)
            parts += [part] if part else []
            notes += [f"{channel.name}: {note}"] if note else []
        return _Found(steps, charged(parts, ENERGY) if parts else {}, notes)

    def _of_channel(
        self,
        channel: Channel,
        own: Rounds,
        start_ns: int,
        end_ns: int,
        until_ns: int,
    ) -> tuple[Part | None, str | None]:
        """A job's part, and what is to be said of it."""
        by_name = {one.name: one for one in own}
        found = {name: by_name.get(name) or self._node(name) for name in sorted(channel.nodes())}
        silent = [name for name, one in found.items() if one is None]
        if silent:
            return None, f"no energy of storage: what {few(silent)} did is not known"
        servers = [one for one in found.values() if one]

        def courses_of(begin_ns: int, end_ns: int) -> list[Course]:
            return [_course(server, begin_ns, end_ns) for server in servers]

        rounds = [one for server in servers for one in own.get(server, [])]
        work = total(work for *_, work in rounds)
        model = self._models.of(channel, work, end_ns, until_ns, courses_of)
        if model is None:
            return None, "no energy of storage: its history is too short"
        begin_ns = min([start_ns, *(begin_ns for begin_ns, *_ in rounds)])
        history = History.of(channel, begin_ns, until_ns, courses_of)
        times = [(one.first.time_ns, one.last.time_ns) for one in history.segments]
        seen_ns = sum(_overlap_ns(*time, start_ns, end_ns) for time in times)
        if not seen_ns:
            return None, "no energy of storage: nothing is known of that time"
        note = None
        if seen_ns < end_ns - start_ns:
            all_ns = end_ns - start_ns
            lacking_s, all_s = (ns / NS_PER_S for ns in (all_ns - seen_ns, all_ns))
            note = f"{lacking_s:.1f} of {all_s:.1f} s not covered"
        return part_of(history, model, [Course(own.get(one, [])) for one in servers]), note


def _course(server: Server, begin_ns: int, end_ns: int) -> Course:
    lines, _ = server.about(begin_ns, end_ns)
    return Course((one.from_ns, one.time_ns, one.total) for one in lines)


def _own(one: Round, job: int, had: set[str], steps: dict[str, Work]) -> tuple[int, int, Work]:
    """A round of what a job did, which is added to those of its steps that it had."""
    works = {step: work for step, work in one.steps(job).items() if step in had}
    for step, work in works.items():
        add(steps, step, work)
    return one.from_ns, one.time_ns, total(works.values())


def _overlap_ns(begin_ns: int, until_ns: int, start_ns: int, end_ns: int) -> int:
    return max(0, min(until_ns, end_ns) - max(begin_ns, start_ns))
