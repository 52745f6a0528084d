# `joulemark io collect`: what jobs did, read for as long as it runs.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from joulemark import output
from joulemark.storage.gains import Gains
from joulemark.storage.journal import Held, Journal
from joulemark.storage.names import NOBODY
from joulemark.storage.source import Source
from joulemark.storage.work import Work, add, total
from joulemark.units import NS_PER_S

ANSWER_S = 60.0
MOST_LOAD = 0.01  # of a core: a round that costs more waits longer for the next
ASK = signal.SIGUSR1  # for a round now, of who waits for it


@dataclass
class Collector:
    """Reads all targets of its source; a round ends in a line."""

    source: Source
    journal: Journal
    job_of: Callable[[str], str]  # JOB.STEP of a name, "" of others'
    _gains: Gains | None = None
    _from_ns: int = 0  # when the last line ended
    _read_s: float = 0.0  # the last round, since the server's boot
    # Of the last round that was asked for, when it began, and of what of jobs it could not read.
    _answer: tuple[int, list[str]] = (0, [])
    _has_told: bool = False

    def round(self, is_asked: bool = False) -> None:
        """Reads and writes once; is_asked: by who ends a target next, where all is done."""
        targets = self.source.targets()
        if self._gains is None:
            self._begin(targets)
        if self.source.comes_back:
            self._gains.keep(targets)
        else:
            self._gains.end(targets)
        left_out = set(targets)
        began_ns, now_s, least_s = time.time_ns(), _boot_s(), self.source.life_s
        for target, entries, expiry_s in self.source.read(targets):
            least_s = min(least_s, expiry_s or least_s)
            self._gains.read(target, entries, now_s, self._read_s, expiry_s, is_asked)
            left_out.remove(target)
        left_out &= self.source.targets().keys()  # what has gone meanwhile is looked at next time
        for target in left_out:
            self._gains.leave_out(target, self.source.name(target))
        # After the reading: what is in it was done before.
        now_ns = max(time.time_ns(), self._from_ns + 1)
        if is_asked:
            self._answer = (began_ns, self._of_jobs(left_out))
        self._write(now_ns, now_s, least_s)
        self._from_ns, self._read_s = now_ns, now_s

    @property
    def left_out(self) -> list[str]:
        """Of the last round that was asked for: what of jobs it could not read."""
        return self._answer[1]

    def _begin(self, targets: dict[str, Any]) -> None:
        kept = self.journal.last()
        is_same_boot = kept is not None and kept["boot"] == self.journal.boot
        self._gains = Gains.of(kept["targets"], is_same_boot) if kept else Gains()
        self._gains.is_jobs = lambda name: self.job_of(name) != NOBODY
        if kept is None:
            self._from_ns = 0
            self._gains.begin(targets)
            return
        self._from_ns = kept["time_ns"]
        self._read_s = kept["read_s"] if is_same_boot else 0.0

    def _of_jobs(self, targets: Iterable[str]) -> list[str]:
        """Names of those that one who asks may wait for."""
        names = {target: self.source.name(target) for target in sorted(targets)}
        return [
            name or target
            for target, name in names.items()
            if not name or self.job_of(name) != NOBODY
        ]

    def _write(self, now_ns: int, now_s: float, least_s: float) -> None:
        """The first line of all says since when we look. What came and went in a time without
        rounds has left no trace where it is longer than entries live, or before a boot: of that
        time a line does not tell."""
        found, unread = self._gains.drained()
        jobs: dict[str, Work] = {}
        for name, work in found.items():
            add(jobs, self.job_of(name), work)
        self._tell(found, jobs)
        seen_s = min(now_s, least_s)
        from_ns = (
            max(self._from_ns, now_ns - round(seen_s * NS_PER_S)) if self._from_ns else now_ns
        )
        line = {"time_ns": now_ns, "from_ns": from_ns, "total": total(jobs.values())}
        line |= {"unread": unread, "jobs": jobs}
        kept = {"read_s": now_s, "answer": self._answer}
        self.journal.add(line, {**kept, "targets": self._gains.kept()})

    def _tell(self, found: dict[str, Work], jobs: dict[str, Work]) -> None:
        """Once, where all that works here is nobody's."""
        if self.source.whose and found and not jobs.keys() - {NOBODY} and not self._has_told:
            self._has_told = True
            name = output.printable(next(iter(found)))
            what = f"no name is of a job of this cluster, such as '{name}'"
            output.tell([f"{what}: {self.source.whose}"])

    def forget(self) -> None:
        """After a line that could not be written: to go on as a new process would."""
        self._gains = None


def run(collector: Collector, period_s: float) -> None:
    """Until a signal; its processor time is bounded. ASK must be blocked."""
    is_asked = False
    while True:
        began_s = time.process_time()
        try:
            collector.round(is_asked)
            is_asked = False
        except OSError as error:
            collector.forget()
            output.tell([f"{error.filename or 'io'}: {error.strerror or error}: tried again"])
        cost_s = time.process_time() - began_s
        is_asked |= bool(signal.sigtimedwait([ASK], max(period_s, cost_s / MOST_LOAD)))


def once(collector: Collector) -> list[str]:
    """One round that begins from now on: where a process collects, by that; and waits for its end.
    Returns what of it could not be read."""
    journal, asked = collector.journal, set()
    asked_ns, deadline_s = time.time_ns(), time.monotonic() + ANSWER_S
    while True:
        try:
            with journal.locked():
                collector.round(is_asked=True)
                return collector.left_out
        except Held as held:
            if time.monotonic() > deadline_s:
                raise
            if held.pid and held.pid not in asked:
                asked.add(held.pid)
                with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
                    os.kill(held.pid, ASK)
        began_ns, left_out = (journal.kept() or {}).get("answer", (0, []))
        if began_ns > asked_ns:
            return left_out
        time.sleep(0.02)


def boot_id(root: Path) -> str:
    """Another one whenever the server has been started anew."""
    return (root / "proc/sys/kernel/random/boot_id").read_text().strip()


def _boot_s() -> float:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) / NS_PER_S
