# What joulemarkctl tells of a job on one node, and sums over nodes and jobs with their errors.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from joulemark.units import NS_PER_S, UJ_PER_J, known_sum


@dataclass(frozen=True)
class Reading:
    """A job's energy on a node so far; errors are k=1."""

    node: str
    time_ns: int  # of the node's own clock
    seconds: float
    energy_uj: int
    systematic_uj: float
    common_uj: float
    random_uj: float
    ends_uj: float
    estimated: bool
    max_hz: float
    cpu_uj: int | None
    gpu_uj: int | None

    @classmethod
    def parse(cls, line: str) -> Reading | None:
        """None: it is something else that was said, or no instrument has shown a value."""
        words = dict(word.partition("=")[::2] for word in line.split())
        if words.get("known") == "0":
            return None
        try:
            return cls(
                words["node"],
                int(words["time_ns"]),
                float(words["seconds"]),
                int(words["energy_uj"]),
                *(float(words[f"{name}_uj"]) for name in ("systematic", "common", "random")),
                float(words["ends_uj"]),
                words["estimated"] == "1",
                float(words["max_hz"]),
                *(int(words[name]) if name in words else None for name in ("cpu_uj", "gpu_uj")),
            )
        except (KeyError, ValueError):
            return None


@dataclass(frozen=True)
class Sum:
    """Energy and power of a job, or of several; errors are k=1, by how they add up."""

    energy_j: float = 0.0
    mean_w: float | None = None
    power_w: float | None = None
    cpu_w: float | None = None
    gpu_w: float | None = None
    systematic_j: float = 0.0
    random_j: float = 0.0
    systematic_w: float = 0.0
    random_w: float = 0.0
    estimated: bool = False

    @property
    def error_j(self) -> float:
        """k=2."""
        return 2 * math.hypot(self.systematic_j, self.random_j)

    @property
    def error_w(self) -> float | None:
        """k=2, of the power now."""
        return None if self.power_w is None else 2 * math.hypot(self.systematic_w, self.random_w)


def total(sums: Iterable[Sum]) -> Sum:
    """Over jobs: systematic errors add up, others in quadrature."""
    sums = list(sums)
    return Sum(
        energy_j=sum(one.energy_j for one in sums),
        **{
            name: known_sum(getattr(one, name) for one in sums)
            for name in ("mean_w", "power_w", "cpu_w", "gpu_w")
        },
        systematic_j=sum(one.systematic_j for one in sums),
        random_j=math.hypot(*(one.random_j for one in sums)),
        systematic_w=sum(one.systematic_w for one in sums),
        random_w=math.hypot(*(one.random_w for one in sums)),
        estimated=any(one.estimated for one in sums),
    )


@dataclass
class Pair:
    """The last two readings of one count that are of different moments, each with `time_ns` and
    energies in uJ; None: not told yet."""

    last: Any = None
    heard_s: float = 0.0  # time.monotonic() of when anything came last
    before: Any = None

    def take(self, reading: Any, now_s: float) -> bool:
        """Whether it goes on with the last one: another moment, and no other count, as of a node
        that has booted since, or whose ledger began anew."""
        self.heard_s, last = now_s, self.last
        if last and reading.time_ns == last.time_ns:
            return False
        goes_on = last is not None and reading.time_ns > last.time_ns
        if goes_on and None not in (reading.energy_uj, last.energy_uj):
            goes_on = reading.energy_uj >= last.energy_uj
        self.last, self.before = reading, last if goes_on else None
        return goes_on

    def rate(self, name: str) -> float | None:
        """Of a field in uJ, in W."""
        if self.before is None:
            return None
        new, old = getattr(self.last, name), getattr(self.before, name)
        if new is None or old is None:
            return None
        return (new - old) / UJ_PER_J / self.between_s

    @property
    def between_s(self) -> float:
        """From the one to the other."""
        return (self.last.time_ns - self.before.time_ns) / NS_PER_S


class OnNode(Pair):
    """Of a job on a node."""

    @property
    def random_w(self) -> float:
        """Of the power between the two: what came to the error, and that of both ends."""
        if self.before is None:
            return 0.0
        new, old = self.last, self.before
        grown = _square(new.common_uj, new.random_uj) - _square(old.common_uj, old.random_uj)
        return math.sqrt(max(0.0, grown + 2 * old.ends_uj**2)) / UJ_PER_J / self.between_s


def _square(*parts: float) -> float:
    return sum(part * part for part in parts)


def of_job(all_nodes: Iterable[OnNode], heard: list[OnNode]) -> Sum:
    """Over a job's nodes: what is alike on them adds up.

    Those that are heard have a power now, once each of them has told twice. The error of the
    power is taken for alike on all: nodes of a job work together.
    """
    last = [one.last for one in all_nodes]
    rated = heard if all(one.before for one in heard) else []
    common_j = sum(one.common_uj for one in last) / UJ_PER_J
    random_j = math.hypot(*(one.random_uj for one in last)) / UJ_PER_J
    return Sum(
        energy_j=sum(one.energy_uj for one in last) / UJ_PER_J,
        mean_w=known_sum(
            one.energy_uj / UJ_PER_J / one.seconds if one.seconds > 0 else None for one in last
        ),
        power_w=known_sum(one.rate("energy_uj") for one in rated),
        cpu_w=known_sum(one.rate("cpu_uj") for one in rated),
        gpu_w=known_sum(one.rate("gpu_uj") for one in rated),
        systematic_j=sum(one.systematic_uj for one in last) / UJ_PER_J,
        random_j=math.hypot(common_j, random_j),
        systematic_w=sum(one.rate("systematic_uj") or 0.0 for one in rated),
        random_w=sum(one.random_w for one in rated),
        estimated=any(one.estimated for one in last),
    )
