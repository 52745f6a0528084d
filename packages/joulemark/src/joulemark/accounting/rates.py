# What a kilowatt-hour emits or costs: a number, or a file of values over time.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import bisect
import math
from pathlib import Path

from joulemark.accounting import sitefile
from joulemark.errors import UsageError
from joulemark.units import NS_PER_S, UJ_PER_J

UJ_PER_KWH = 3_600_000_000_000
J_PER_KWH = UJ_PER_KWH / UJ_PER_J


class Constant:
    """The same at all times."""

    def __init__(self, value: float):
        self._value = value

    def mean(self, start_ns: int, end_ns: int) -> float:
        """Of a time; None is not known."""
        return self._value

    def may_grow(self, end_ns: int) -> bool:
        """Whether values that concern a time up to end_ns may still be added."""
        return False


class Series:
    """Values that hold from their time to the next one; the last as long as the one before."""

    def __init__(self, path: Path):
        times, values = _read(path)
        self._starts_ns = [round(time * NS_PER_S) for time in times]
        self._values = values
        self._starts_ns.append(2 * self._starts_ns[-1] - self._starts_ns[-2])
        self._until = [0.0]  # integral of the value over time in ns
        for first, last, value in zip(self._starts_ns, self._starts_ns[1:], values):
            self._until.append(self._until[-1] + value * (last - first))

    def mean(self, start_ns: int, end_ns: int) -> float | None:
        """The mean over the time; None where the file does not cover all of it."""
        if start_ns < self._starts_ns[0] or end_ns > self._starts_ns[-1]:
            return None
        if start_ns >= end_ns:
            return self._values[min(self._index(start_ns), len(self._values) - 1)]
        return (self._integral(end_ns) - self._integral(start_ns)) / (end_ns - start_ns)

    def may_grow(self, end_ns: int) -> bool:
        return end_ns > self._starts_ns[-1]

    def _index(self, time_ns: int) -> int:
        return max(0, bisect.bisect_right(self._starts_ns, time_ns) - 1)

    def _integral(self, time_ns: int) -> float:
        index = min(self._index(time_ns), len(self._values) - 1)
        return self._until[index] + self._values[index] * (time_ns - self._starts_ns[index])


def of(setting: float | Path | None) -> Constant | Series | None:
    """The rate that the configuration names."""
    if setting is None:
        return None
    return Series(setting) if isinstance(setting, Path) else Constant(setting)


def _read(path: Path) -> tuple[list[float], list[float]]:
    times: list[float] = []
    values: list[float] = []
    for index, (number, row) in enumerate(sitefile.rows(path)):
        if index == 0 and row[0] == "time":
            continue
        time, value = _parsed(path, number, row)
        if times and time <= times[-1]:
            raise UsageError(f"{path}:{number}: {row[0]}: must be after the line before")
        times.append(time)
        values.append(value)
    if len(times) < 2:
        raise UsageError(
            f"{path}: has {len(times)} values: must have two or more, for the last holds as long "
            "as the one before"
        )
    return times, values


def _parsed(path: Path, number: int, row: list[str]) -> tuple[float, float]:
    try:
        time, value = _time(f"{path}:{number}", row[0].strip()), float(row[1])
        if math.isfinite(time) and math.isfinite(value):
            return time, value
    except (ValueError, IndexError):
        pass
    raise UsageError(
        f"{path}:{number}: {','.join(row)}: must be `time,value`, such as "
        "2026-11-21T10:00:00Z,312.5 or 1795255200,312.5"
    )


def _time(where: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        from joulemark.times import from_iso  # few files have such a time

        time = from_iso(text)
        if time.tzinfo is None:
            raise UsageError(
                f"{where}: {text}: of which time zone? write {time.isoformat()}Z for UTC, or with "
                f"its offset {time.isoformat()}+01:00"
            ) from None
        return time.timestamp()
