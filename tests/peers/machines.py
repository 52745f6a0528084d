"""Folders of sysfs as real machines have them, whose counters a test makes run and wrap."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import os
from pathlib import Path

from tests.cluster import Waited, wait_for
from tests.peers.joulemarkd import Daemon


def write_files(folder: Path, files: dict[str, object]) -> None:
    """One file a name, each with a line's end, as the kernel writes them."""
    for name, value in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{value}\n")


class Counter:
    """A file of microjoules that runs from `start_uj` and begins anew behind `range_uj`.

    The number is written in place and in one piece, for the reader keeps the file open.
    """

    def __init__(self, path: Path, range_uj: int, start_uj: int) -> None:
        self.range_uj, self.start_uj, self.total_uj = range_uj, start_uj, 0
        self.file = os.open(path, os.O_CREAT | os.O_WRONLY)
        self.advance(0)

    def advance(self, energy_uj: int) -> None:
        self.total_uj += energy_uj
        raw_uj = (self.start_uj + self.total_uj) % (self.range_uj + 1)
        os.pwrite(self.file, b"%020d\n" % raw_uj, 0)

    @property
    def wraps(self) -> int:
        return (self.start_uj + self.total_uj) // (self.range_uj + 1)


class Rapl:
    """/sys/class/powercap with zones {"intel-rapl:0:1": (name, max_energy_range_uj)}; limits: of
    their power, which Intel's have and AMD's have not."""

    def __init__(
        self,
        folder: Path,
        zones: dict[str, tuple[str, int]],
        before_wrap_uj: int,
        limits: bool = True,
    ) -> None:
        self.root = folder / "class" / "powercap"
        self.counters: dict[str, Counter] = {}
        self.root.mkdir(parents=True)
        for zone, (name, range_uj) in zones.items():
            control, *numbers = zone.split(":")
            place = folder / "devices" / "virtual" / "powercap" / control
            if not place.exists():
                write_files(place, {"enabled": 1})
                (self.root / control).symlink_to(place)
            for depth in range(len(numbers)):
                place /= ":".join([control, *numbers[: depth + 1]])
            write_files(place, {"name": name, "max_energy_range_uj": range_uj, "enabled": 1})
            constraint = {"name": "long_term", "power_limit_uw": 0, "time_window_us": 999424}
            set_to = {f"constraint_0_{key}": value for key, value in constraint.items()}
            if limits:
                write_files(place, set_to)
            start_uj = range_uj - before_wrap_uj
            self.counters[zone] = Counter(place / "energy_uj", range_uj, start_uj)
            (self.root / zone).symlink_to(place)


INTEL_CLIENT = {
    "intel-rapl:0": ("package-0", 262143328850),
    "intel-rapl:0:0": ("core", 262143328850),
    "intel-rapl:0:1": ("uncore", 262143328850),
    "intel-rapl:0:2": ("dram", 262143328850),
    "intel-rapl:1": ("psys", 262143328850),
    "intel-rapl-mmio:0": ("package-0", 262143328850),
}
INTEL_SERVER = {
    "intel-rapl:0": ("package-0", 262143328850),
    "intel-rapl:0:0": ("dram", 65712999613),
    "intel-rapl:1": ("package-1", 262143328850),
    "intel-rapl:1:0": ("dram", 65712999613),
}
AMD = {
    "intel-rapl:0": ("package-0", 65532610987),
    "intel-rapl:0:0": ("core", 65532610987),
}


class Books:
    """Compares a daemon's books with counters: each must have the gain to the microjoule.

    The daemon's first reading may fall on any of the totals that the counters had until it showed
    its first gain; these are whole joules, and the later gains are not.
    """

    PATIENCE_S, NUDGES = 0.5, 60

    def __init__(self, daemon: Daemon, counters: dict[str, Counter]) -> None:
        self.daemon, self.counters = daemon, counters
        self.begins_uj = [0]
        wait_for(self._begun, what="the books to show a first gain", poll_s=0.2)

    def _begun(self) -> bool:
        if all(total_uj > 0 for total_uj in self.daemon.books().values()):
            return True
        for counter in self.counters.values():
            counter.advance(1_000_000)
        self.begins_uj.append(self.begins_uj[-1] + 1_000_000)
        return False

    def missing_uj(self) -> dict[str, int]:
        """What the books lack of each counter's gain since the test began."""
        totals = self.daemon.books()
        assert totals.keys() == self.counters.keys()
        return {name: counter.total_uj - totals[name] for name, counter in self.counters.items()}

    def agree(self) -> bool:
        return all(missing_uj in self.begins_uj for missing_uj in self.missing_uj().values())

    def seen(self) -> bool:
        return all(missing <= self.begins_uj[-1] for missing in self.missing_uj().values())

    def check(self) -> None:
        """Where a reading came late the last power stood in for it: the next gain settles that."""
        for _ in range(self.NUDGES):
            try:
                wait_for(self.agree, self.PATIENCE_S)
                return
            except Waited:
                for counter in self.counters.values():
                    counter.advance(1_234_567)
        raise AssertionError(f"the books lack {self.missing_uj()} uJ, not one of {self.begins_uj}")
