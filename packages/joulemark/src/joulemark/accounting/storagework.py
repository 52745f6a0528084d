# What a job read, wrote and asked of storage servers, by the lines of `joulemark io collect`.
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A line tells of a round, some 30 s. A job is in it by its number, so what is read here is its
own to the byte; only of which of its runs a round is that saw two of them is not known: the
earlier's. Servers still work for a job that has ended, so lines of SETTLE_NS are awaited.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from joulemark.accounting.runs import Run
from joulemark.accounting.timed import Timed
from joulemark.storage.journal import FOLDER
from joulemark.storage.work import Work
from joulemark.units import NS_PER_S

# A client writes dirty pages back within half a minute, and a job_stats entry is there for longer.
SETTLE_NS = 120 * NS_PER_S
COLUMNS = ("BytesRead", "BytesWritten", "MetadataOps")
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
            shown = text.decode("utf-8", "backslashreplace").strip()[:60]
            raise ValueError(f"{shown!r} is no line of `joulemark io collect`")
        time_ns, from_ns, *_, unread = map(int, found.groups()[:6])
        return Round(time_ns, from_ns, unread, found[7])


class Storage:
    """All servers that have lines."""

    def __init__(self, record_dir: Path):
        self._servers = [Server(path) for path in sorted((record_dir / FOLDER).glob("*.jsonl"))]
        self._asked: tuple[int, int] | None = None
        self._found: tuple[dict[str, Work], list[str]] = ({}, [])

    def of(self, row: dict, run: Run) -> tuple[dict, list[str]]:
        """COLUMNS of a job's row or a step's, and what is to be said of the job's."""
        if not self._servers:
            return NONE, []
        job = run.records[0]["JobIDRaw"]
        if (job, run.number) != self._asked:  # a job's row comes first, then its steps'
            self._asked, self._found = (job, run.number), self._of_run(job, row, run)
        steps, notes = self._found
        if row["Step"] != "job":
            return dict(zip(COLUMNS, steps[row["Step"]])) if row["Step"] in steps else NONE, []
        total = Work()
        for work in steps.values():
            total = total.plus(work)
        return dict(zip(COLUMNS, total)), notes

    def may_grow(self, end_ns: int) -> bool:
        """Whether lines of a job that ended then may still come."""
        lasts = (server.last_line() for server in self._servers)
        return any(line.time_ns < end_ns + SETTLE_NS for line in lasts if line)

    def _of_run(self, job: int, row: dict, run: Run) -> tuple[dict[str, Work], list[str]]:
        start_ns, end_ns = row["Start_ns"], row["End_ns"]
        until_ns = min(end_ns + SETTLE_NS, run.next_ns or end_ns + SETTLE_NS)
        steps: dict[str, Work] = {}
        notes = []
        for server in self._servers:
            lines, bad = server.about(start_ns, until_ns)
            rounds = [one for one in lines if start_ns < one.time_ns and one.from_ns < until_ns]
            if run.number:  # the round that saw an earlier run end is that one's
                rounds = [one for one in rounds if one.from_ns >= start_ns]
            for one in rounds:
                for step, work in one.steps(job).items():
                    steps[step] = steps.get(step, Work()).plus(work)
            notes += _notes(server.name, rounds, start_ns, end_ns, len(bad))
        return steps, notes


def _notes(server: str, rounds: list[Round], start_ns: int, end_ns: int, n_bad: int) -> list[str]:
    seen_ns = sum(max(0, min(one.time_ns, end_ns) - max(one.from_ns, start_ns)) for one in rounds)
    notes = []
    if seen_ns < end_ns - start_ns:
        lacking_s, all_s = (
            ns / NS_PER_S for ns in (end_ns - start_ns - seen_ns, end_ns - start_ns)
        )
        notes.append(f"{server}: what it did in {lacking_s:.1f} of {all_s:.1f} s is not known")
    if unread := sum(one.unread for one in rounds):
        notes.append(f"{server}: entries of jobs that may have been gone unread: {unread}")
    if n_bad:
        notes.append(f"{server}: unsound lines: {n_bad}")
    return notes
