# An axis' ticks at 1, 2 and 5 times powers of ten, of workers at powers of two, and where its
# values lie between them.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from joulemark.plots.model import LINEAR_SPAN, MANY_DECADES, VALUES, WORKERS, Axis

STEPS_MOST = 6  # of a linear axis
DECADES_MOST = 8  # with a tick each


@dataclass(frozen=True)
class Scale:
    """begin, end: the places of the first and the last tick, such as pixels."""

    ticks: list[float]
    is_log: bool
    begin: float
    end: float

    @classmethod
    def of(cls, axis: Axis, values: Sequence[float], begin: float, end: float) -> Scale:
        """From 0, or logarithmic where that is the axis' kind or the values are far apart."""
        least, most = min(values), max([*values, axis.from_zero_to or 0])
        is_wide = axis.kind != VALUES or most > LINEAR_SPAN * least
        if axis.from_zero_to is None and least > 0 and is_wide:
            log = _log2 if axis.kind == WORKERS else _log
            return cls(log(least, most), True, begin, end)
        return cls(_linear(most), False, begin, end)

    def at(self, value: float) -> float:
        """Its place; what is below the first tick or above the last has that one's."""
        low, high = self.ticks[0], self.ticks[-1]
        value = min(max(value, low), high)
        part = math.log(value / low, high / low) if self.is_log else value / high
        return round(self.begin + part * (self.end - self.begin), 1)


def _linear(most: float) -> list[float]:
    power = 10.0 ** math.floor(math.log10(most / STEPS_MOST)) if most > 0 else 1.0
    step = next(n * power for n in (1, 2, 5, 10) if most <= STEPS_MOST * n * power)
    return [step * index for index in range(max(math.ceil(most / step - 1e-9), 1) + 1)]


def _log2(least: float, most: float) -> list[float]:
    """They enclose the values."""
    first = math.floor(math.log2(least))
    last = max(math.ceil(math.log2(most)), first + 1)
    step = math.ceil((last - first) / DECADES_MOST)
    return [2.0**power for power in range(first, last + step, step)]


def _log(least: float, most: float) -> list[float]:
    """They enclose the values."""
    first, last = math.floor(math.log10(least)), math.ceil(math.log10(most) + 1e-9)
    if most > MANY_DECADES * least:
        step = math.ceil((last - first) / DECADES_MOST)
        return [10.0**power for power in range(first, last + step, step)]
    marks = [n * 10.0**power for power in range(first, last + 1) for n in (1, 2, 5)]
    low = max(mark for mark in marks if mark <= least * (1 + 1e-9))
    high = next(mark for mark in marks if mark >= most * (1 - 1e-9) and mark > low)
    return [mark for mark in marks if low <= mark <= high]
