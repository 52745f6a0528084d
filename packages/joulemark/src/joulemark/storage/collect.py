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
from joulemark.storage.names import NOBODY
from joulemark.storage.work import Work, add, total
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
    _read_s: float = 0.0  # the last round, since the server's boot
    _has_told: bool = False

    def round(self) -> None:
        """Reads and writes once."""
        places = self.targets()
        if self._gains is None:
            self._begin(places)
        self._gains.keep(places)
        now_s, least_s = _boot_s(), float("inf")
        for target, place in places.items():
            try:
                text = (place / "job_stats").read_bytes()
            except OSError as error:  # a target that fails over to another server
                output.tell([f"{error.filename}: {error.strerror}: left out of this round"])
                continue
            expiry_s = _expiry_s(place)
            least_s = min(least_s, expiry_s or least_s)
            self._gains.read(target, text, now_s, self._read_s, expiry_s)
        # After the reading: what is in it was done before.
        now_ns = max(time.time_ns(), self._from_ns + 1)
        self._write(now_ns, now_s, least_s)
        self._from_ns, self._read_s = now_ns, now_s

    def _begin(self, places: dict[str, Path]) -> None:
        kept = self.journal.last()
        if kept is None:
            self._gains, self._from_ns = Gains(), 0
            self._gains.begin(places)
            return
        is_same_boot = kept["boot"] == self.journal.boot
        self._gains = Gains.of(kept["targets"], is_same_boot)
        self._from_ns = kept["time_ns"]
        self._read_s = kept["read_s"] if is_same_boot else 0.0

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
        self.journal.add(line, now_s, self._gains.kept())

    def _tell(self, found: dict[str, Work], jobs: dict[str, Work]) -> None:
        """Once, where all that works here is nobody's."""
        if found and not jobs.keys() - {NOBODY} and not self._has_told:
            self._has_told = True
            name = output.printable(next(iter(found)))
            output.tell(
                [
                    f"no name is of a job of this cluster, such as '{name}': set the clients' "
                    "jobid_var=session, or say their jobid_name with --names"
                ]
            )

    def forget(self) -> None:
        """After a line that could not be written: to go on as a new process would."""
        self._gains = None

    def targets(self) -> dict[str, Path]:
        """Those that are here now, `mdt.lustre-MDT0000`."""
        place = self.root / "proc/fs/lustre"
        found = [path.parent for kind in KINDS for path in place.glob(f"{kind}/*/job_stats")]
        return {f"{one.parent.name}.{one.name}": one for one in sorted(found)}


def run(collector: Collector, period_s: float) -> None:
    """Until a signal; its processor time is bounded."""
    while True:
        began_s = time.process_time()
        try:
            collector.round()
        except OSError as error:
            collector.forget()
            output.tell([f"{error.filename or 'io'}: {error.strerror or error}: tried again"])
        cost_s = time.process_time() - began_s
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
