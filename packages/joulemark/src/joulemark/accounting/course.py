# Work over time at a server, whose rounds tell how much it was from one moment to another.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence

from joulemark.storage.work import Work
from joulemark.units import NS_PER_S

WRITTEN = Work._fields.index("written_bytes")


class Course:
    """Even within a round, and none where no round is."""

    def __init__(self, rounds: Iterable[tuple[int, int, Work]]):
        """rounds: begin and end in ns, and what was done; in order."""
        self._at_s: list[float] = []
        self._done: list[Sequence[float]] = []  # of each kind until then
        self._area: list[float] = []  # byte seconds: the integral of what was written
        for begin_ns, end_ns, work in rounds:
            self._add(begin_ns / NS_PER_S, (0,) * len(work))
            self._add(end_ns / NS_PER_S, work)

    def _add(self, at_s: float, more: Sequence[float]) -> None:
        if not self._at_s:
            self._at_s, self._done, self._area = [at_s], [more], [0.0]
        elif at_s > self._at_s[-1]:
            before = self._done[-1]
            done = [a + b for a, b in zip(before, more)]
            mean = (before[WRITTEN] + done[WRITTEN]) / 2
            self._area.append(self._area[-1] + mean * (at_s - self._at_s[-1]))
            self._at_s.append(at_s)
            self._done.append(done)

    def between(self, begin_ns: int, end_ns: int, late_s: float) -> list[float]:
        """What the server worked on then: of writes, evenly over late_s since they came."""
        ends_s = begin_ns / NS_PER_S, end_ns / NS_PER_S
        before, after = (self._until(at_s)[0] for at_s in ends_s)
        found = [b - a for a, b in zip(before, after)]
        if late_s:
            before, after = (
                (self._until(at_s)[1] - self._until(at_s - late_s)[1]) / late_s for at_s in ends_s
            )
            found[WRITTEN] = after - before
        return found

    def _until(self, at_s: float) -> tuple[Sequence[float], float]:
        """What was done, and the area."""
        after = bisect.bisect_right(self._at_s, at_s)
        if not after:
            return (0,) * len(Work._fields), 0.0
        done, area, since_s = self._done[after - 1], self._area[after - 1], at_s
        since_s -= self._at_s[after - 1]
        if after < len(self._at_s):
            part = since_s / (self._at_s[after] - self._at_s[after - 1])
            done = [a + part * (b - a) for a, b in zip(done, self._done[after])]
        mean = (self._done[after - 1][WRITTEN] + done[WRITTEN]) / 2
        return done, area + mean * since_s
