# Work over time at a server, whose rounds tell how much it was from one moment to another.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import bisect
from collections.abc import Iterable

from joulemark.storage.work import Work
from joulemark.units import NS_PER_S

WRITTEN = Work._fields.index("written_bytes")
LEAST = 0.5  # of a byte or an operation: less comes of rounding


class Course:
    """Even within a round, and none where no round is."""

    def __init__(self, rounds: Iterable[tuple[int, int, Work]]):
        """rounds: begin and end in ns, and what was done; in order."""
        self._base_ns = 0  # times are s since then: floats are too coarse for those since 1970
        self._at_s: list[float] = []
        self._done: list[list[float]] = []  # of each kind until then, and seconds in rounds
        self._area: list[float] = []  # byte seconds: the integral of what was written
        for begin_ns, end_ns, work in rounds:
            if not self._at_s:
                self._base_ns = begin_ns
            begin_s, end_s = self._since(begin_ns), self._since(end_ns)
            self._add(begin_s, [0.0] * (len(work) + 1))
            self._add(end_s, [*map(float, work), end_s - max(begin_s, self._at_s[-1])])

    def _since(self, at_ns: int) -> float:
        return (at_ns - self._base_ns) / NS_PER_S

    def _add(self, at_s: float, more: list[float]) -> None:
        if not self._at_s:
            self._at_s, self._done, self._area = [at_s], [more], [0.0]
            return
        before = self._done[-1]
        done = [a + b for a, b in zip(before, more)]
        if at_s <= self._at_s[-1]:  # a clock went back: that it was done is kept
            self._done[-1] = done
            return
        mean = (before[WRITTEN] + done[WRITTEN]) / 2
        self._area.append(self._area[-1] + mean * (at_s - self._at_s[-1]))
        self._at_s.append(at_s)
        self._done.append(done)

    def covers(self, begin_ns: int, end_ns: int) -> bool:
        """Whether rounds tell of all that time."""
        if not self._at_s:
            return False
        begin_s, end_s = self._since(begin_ns), self._since(end_ns)
        seen_s = self._until(end_s)[0][-1] - self._until(begin_s)[0][-1]
        return seen_s >= (end_s - begin_s) - 1e-3

    def between(self, begin_ns: int, end_ns: int, late_s: float) -> list[float]:
        """What the server worked on then: of writes, evenly over late_s since they came."""
        if not self._at_s:
            return [0.0] * len(Work._fields)
        ends_s = self._since(begin_ns), self._since(end_ns)
        before, after = (self._until(at_s)[0] for at_s in ends_s)
        found = [b - a for a, b in zip(before[:-1], after)]
        if late_s:
            before, after = (
                (self._until(at_s)[1] - self._until(at_s - late_s)[1]) / late_s for at_s in ends_s
            )
            found[WRITTEN] = after - before
        return [amount if amount >= LEAST else 0.0 for amount in found]

    def _until(self, at_s: float) -> tuple[list[float], float]:
        """What was done, and the area."""
        after = bisect.bisect_right(self._at_s, at_s)
        if not after:
            return [0.0] * len(self._done[0]), 0.0
        done, area, since_s = self._done[after - 1], self._area[after - 1], at_s
        since_s -= self._at_s[after - 1]
        if after < len(self._at_s):
            part = since_s / (self._at_s[after] - self._at_s[after - 1])
            done = [a + part * (b - a) for a, b in zip(done, self._done[after])]
        mean = (self._done[after - 1][WRITTEN] + done[WRITTEN]) / 2
        return done, area + mean * since_s
