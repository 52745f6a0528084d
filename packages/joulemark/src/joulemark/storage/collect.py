# `joulemark io collect`: a Lustre server's job_stats, read for as long as it runs.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from joulemark import output
from joulemark.storage.gains import Gains
from joulemark.storage.journal import Journal
from joulemark.storage.work import Work
from joulemark.units import NS_PER_S

KINDS = ("obdfilter", "mdt")
EXPIRY_S = 600.0  # Lustre's own default of job_cleanup_interval
MOST_LOAD = 0.01  # of a core: a round that costs more waits longer for the next


@dataclass
class Collector:
    """Reads all targets of this server; a round ends in a line."""

    root: Path  # / but in tests
    journal: Journal
    job_of: Callable[[str], str]  # JOB.STEP of a name, "" of others'
    _gains: Gains | None = None
    _from_ns: int = 0  # when the last line ended
    _read_s: float = 0.0  # CLOCK_BOOTTIME

    def round(self) -> float:
        """Reads and writes once; how much processor time it took, s."""
        began_s = time.process_time()
        if self._gains is None:
            self._begin()
        now_ns, now_s = time.time_ns(), _boot_s()
        for path in self._targets():
            target = f"{path.parent.parent.name}.{path.parent.name}"
            try:
                text = path.read_bytes()
            except OSError as error:  # a target that fails over to another server
                output.tell([f"{path}: {error.strerror}: left out of this round"])
                continue
            self._gains.read(target, text, now_s, self._read_s or now_s, _expiry_s(path.parent))
        self._read_s = now_s
        self._write(now_ns)
        return time.process_time() - began_s

    def _begin(self) -> None:
        kept = self.journal.last()
        if kept is None:
            self._gains, self._from_ns = Gains(), 0
        else:
            self._gains = Gains.of(kept["targets"], kept["boot"] == self.journal.boot)
            self._from_ns = kept["time_ns"]

    def _write(self, now_ns: int) -> None:
        """The first round of all says since when we look."""
        found, unread = self._gains.drained()
        jobs: dict[str, Work] = {}
        for name, work in found.items():
            job = self.job_of(name)
            jobs[job] = jobs.get(job, Work()).plus(work)
        total = Work()
        for work in jobs.values():
            total = total.plus(work)
        line = {"time_ns": now_ns, "from_ns": self._from_ns or now_ns, "total": total}
        self.journal.add({**line, "unread": unread, "jobs": jobs}, self._gains.kept())
        self._from_ns = now_ns

    def _targets(self) -> list[Path]:
        place = self.root / "proc/fs/lustre"
        return sorted(path for kind in KINDS for path in place.glob(f"{kind}/*/job_stats"))

    def forget(self) -> None:
        """After a line that could not be written: to go on as a new process would."""
        self._gains = None

    def n_targets(self) -> int:
        """How many there are now."""
        return len(self._targets())


def run(collector: Collector, period_s: float) -> None:
    """Until a signal; the rounds' processor time is bounded."""
    while True:
        cost_s = 0.0
        try:
            cost_s = collector.round()
        except OSError as error:
            collector.forget()
            output.tell([f"{error.filename or ''}: {error.strerror or error}: tried again"])
        time.sleep(max(period_s, cost_s / MOST_LOAD))


def boot_id(root: Path) -> str:
    """Another one whenever the server has been started anew."""
    return (root / "proc/sys/kernel/random/boot_id").read_text().strip()


def _boot_s() -> float:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) / NS_PER_S


def _expiry_s(target: Path) -> float:
    """How long an entry lives without work; newer Lustre has the file in /sys."""
    in_sys = Path(str(target).replace("/proc/fs/lustre/", "/sys/fs/lustre/"))
    for place in (in_sys, target):
        try:
            return float((place / "job_cleanup_interval").read_text())
        except (OSError, ValueError):
            continue
    return EXPIRY_S
