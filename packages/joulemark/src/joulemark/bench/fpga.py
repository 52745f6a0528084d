# JKU's stream multiplier on an FPGA: time and energy of a matrix product by its published model.
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""PRACE-1IP D9.3.3, section 6.1.2: t = t_startup + N^3 / (tiles * f) + t_drainage.

The two constants together, and the powers, are fitted to table 25 (1 to 8 tiles at 250 MHz):
static and dynamic power are linear in the tiles, dynamic power also in the clock. Other tiles and
clocks are extrapolated. The report's own figures stand in CAVEAT: they are lower.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass

from joulemark.bench import published
from joulemark.bench.stats import Row, Series, Value
from joulemark.errors import UsageError

TABLE, TABLE_CLOCK_HZ = 25, 250e6
NAME = "JKU"
SIZES = (32, 50, 100, 200, 500, 1000, 2000)
CAVEAT = (
    "a MODEL (section 6.1.2 and table 25), not a measurement: of 49 tiles at 100 MHz the report "
    "measured at most 4.8 GF/s, and 0.92 GF/J at 32 x 32; it predicts about 8 GF/s at 2000, and "
    "about 5 GF/J of 64 tiles at 400 MHz"
)


@dataclass(frozen=True)
class Multiplier:
    """A multiplier of so many tiles; the defaults are the one that worked."""

    tiles: int = 49
    clock_hz: float = 100e6

    @property
    def peak(self) -> float:
        """A multiplication and an addition a tile and cycle, F/s."""
        return 2 * self.tiles * self.clock_hz

    def time_s(self, n: int) -> float:
        """Of one product of n x n matrices."""
        return _fit().overhead_s + n**3 / (self.tiles * self.clock_hz)

    def power_w(self) -> float:
        """Of the FPGA alone."""
        fit = _fit()
        dynamic_w = fit.dynamic_w.at(self.tiles) * self.clock_hz / TABLE_CLOCK_HZ
        return fit.static_w.at(self.tiles) + dynamic_w


@dataclass(frozen=True)
class Line:
    """y = start + slope * x."""

    start: float
    slope: float

    def at(self, x: float) -> float:
        """y at x."""
        return self.start + self.slope * x


@dataclass(frozen=True)
class Fit:
    """What table 25 tells: times in seconds, powers in watts by the number of tiles."""

    overhead_s: float  # t_startup + t_drainage
    size: float  # n of the matrices, which the report does not state
    static_w: Line
    dynamic_w: Line


@functools.lru_cache(maxsize=1)
def _fit() -> Fit:
    found = {"time": [], "static_power": [], "dynamic_power": []}
    for figure in published.figures():
        if figure.table == TABLE:
            found[figure.quantity].append((figure.threads, figure.value))
    time = _least_squares([(1 / tiles, seconds) for tiles, seconds in found["time"]])
    return Fit(
        overhead_s=time.start,
        size=(time.slope * TABLE_CLOCK_HZ) ** (1 / 3),
        static_w=_least_squares(found["static_power"]),
        dynamic_w=_least_squares(found["dynamic_power"]),
    )


def _least_squares(points: list[tuple[float, float]]) -> Line:
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    covariance = sum((x - mean_x) * (y - mean_y) for x, y in points)
    slope = covariance / sum((x - mean_x) ** 2 for x, _ in points)
    return Line(mean_y - slope * mean_x, slope)


def parse(text: str) -> Multiplier:
    """`JKU` is the one that worked, `JKU:64@400` has 64 tiles at 400 MHz."""
    found = re.fullmatch(r"JKU(?::([1-9]\d{0,4})@([1-9]\d{0,4}))?", text)
    if not found:
        raise UsageError(f"--with {text}: must be JKU or JKU:TILES@MHZ such as JKU:64@400")
    return Multiplier(int(found[1]), float(found[2]) * 1e6) if found[1] else Multiplier()


def series(multiplier: Multiplier, sizes: Iterable[int] = SIZES) -> Series:
    """Its predicted products, as a series beside measured ones."""
    mhz = multiplier.clock_hz / 1e6
    return Series(
        benchmark="mod2am",
        kernel="mod2am",
        variant=f"model, {multiplier.tiles} tiles, {mhz:g} MHz",
        threads=multiplier.tiles,
        ranks=1,
        target="model",
        cpu=f"{NAME}: {published.prototypes()[NAME].device}",
        unit="F/s",
        device="",
        rows=tuple(_row(multiplier, n) for n in sorted(set(sizes))),
        predicted=True,
    )


def _row(multiplier: Multiplier, n: int) -> Row:
    time_s, power_w = multiplier.time_s(n), multiplier.power_w()
    flops = 2 * n**3
    return Row(
        size=n,
        runs=1,
        verified=True,
        estimated=True,
        time_s=Value(time_s),
        power_w=Value(power_w),
        energy_j=Value(power_w * time_s),
        performance=Value(flops / time_s),
        efficiency=Value(flops / (power_w * time_s)),
    )
