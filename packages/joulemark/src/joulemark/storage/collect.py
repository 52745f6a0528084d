# `joulemark io collect`: what jobs did, read for as long as it runs.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
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
    left_out: list[str] = field(default_factory=list)  # what the last round could not read
    _has_told: bool = False

    def round(self, is_asked: bool = False) -> None:
        """Reads and writes once; is_asked: by who ends a target next, where all is done."""
        targets = self.source.targets()
        if self._gains is None:
            self._begin(targets)
        if self.source.comes_back:
            self._gains.keep(targets)
        else:
            self._gains.end(targets, lambda gone: self.job_of(self.source.name(gone)) != NOBODY)
        left_out = set(targets)
        began_ns, now_s, least_s = time.time_ns(), _boot_s(), self.source.life_s
        for target, entries, expiry_s in self.source.read(targets):
            least_s = min(least_s, expiry_s or least_s)
            self._gains.read(target, entries, now_s, self._read_s, expiry_s, is_asked)
            left_out.remove(target)
        for target in left_out:
            self._gains.leave_out(target)
        # After the reading: what is in it was done before.
        now_ns = max(time.time_ns(), self._from_ns + 1)
        self.left_out = [self.source.name(target) for target in sorted(left_out)]
        self._write(now_ns, began_ns, now_s, least_s)
        self._from_ns, self._read_s = now_ns, now_s

    def _begin(self, targets: dict[str, Any]) -> None:
        kept = self.journal.last()
        if kept is None:
            self._gains, self._from_ns = Gains(), 0
            self._gains.begin(targets)
            return
        is_same_boot = kept["boot"] == self.journal.boot
        self._gains = Gains.of(kept["targets"], is_same_boot)
        self._from_ns = kept["time_ns"]
        self._read_s = kept["read_s"] if is_same_boot else 0.0

    def _write(self, now_ns: int, began_ns: int, now_s: float, least_s: float) -> None:
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
        kept = {"read_s": now_s, "began_ns": began_ns, "left_out": self.left_out}
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
        except OSError as error:
            collector.forget()
            output.tell([f"{error.filename or 'io'}: {error.strerror or error}: tried again"])
        cost_s = time.process_time() - began_s
        is_asked = bool(signal.sigtimedwait([ASK], max(period_s, cost_s / MOST_LOAD)))


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
        kept = journal.kept() or {}
        if kept.get("began_ns", 0) > asked_ns:
            return kept.get("left_out", [])
        time.sleep(0.02)


def boot_id(root: Path) -> str:
    """Another one whenever the server has been started anew."""
    return (root / "proc/sys/kernel/random/boot_id").read_text().strip()


def _boot_s() -> float:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) / NS_PER_S
