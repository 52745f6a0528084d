# What a chart of lines shows, whoever draws it: matplotlib, or a page's own SVG.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from joulemark import units
from joulemark.bench.stats import Value

HOLLOW = "Hollow: predicted or ESTIMATED by a model, not measured"
ESTIMATED = " (estimated)"  # behind the name of a line that is
PARTLY_HOLLOW = "Hollow: some or all of it ESTIMATED by a model"
PUBLISHED = "published: PRACE-1IP D9.3.3; caution: scales and optimisation differ"
LINEAR_SPAN = 20  # a wider range of values is drawn on a logarithmic axis
MANY_DECADES = 1000  # a still wider one has room for the powers of ten alone

SIZES, WORKERS, VALUES = "sizes", "workers", "values"


@dataclass(frozen=True)
class Line:
    """Points of (across, up) in SI units; of many lines, those of a family have one marker."""

    label: str
    points: Sequence[tuple[Value, Value]]
    family: str = ""
    estimated: bool = False
    ideal: Sequence[tuple[float, float]] = ()  # what it would be without any loss
    name: str = ""  # where the label says more than it, such as a kernel's table

    @property
    def identity(self) -> str:
        """By which it looks the same in all figures of a command."""
        return self.name or self.label


@dataclass(frozen=True)
class Axis:
    """What is along it. unit: of SI, which gets its prefix, or a word that does not, such as %."""

    label: str
    unit: str = ""
    kind: str = VALUES
    from_zero_to: float | None = None  # at least so far

    @property
    def is_scaled(self) -> bool:
        return self.kind == VALUES and self.unit != "" and not self.unit.startswith("%")

    def exponent(self, values: Sequence[float]) -> int:
        """Of the prefix under which the values read well."""
        return units.best_exponent(list(values)) if self.is_scaled else 0

    def text(self, exponent: int) -> str:
        unit = units.prefix(exponent) + self.unit
        return f"{self.label} [{unit}]" if unit else self.label


@dataclass(frozen=True)
class Chart:
    """What lines are drawn on."""

    title: str
    across: Axis
    up: Axis
    notes: tuple[str, ...] = ()  # the lowest first


Figures = Iterable[tuple[str, Chart, list[Line]]]  # each with the name of its file


def error_bars(lines: Sequence[Line]) -> str:
    """What those mean that are drawn: none to be seen is no small error."""
    values = [[value for point in line.points for value in point] for line in lines]
    has = {
        part: [any(getattr(value, part) is not None for value in of_line) for of_line in values]
        for part in ("interval", "uncertainty")
    }
    bars = []
    if any(has["interval"]):
        bars.append("error bars: 95 % over jobs (of one, runs or repetitions), Student's t")
    if any(has["uncertainty"]):
        bars.append(f"wide{'' if bars else ' error bars'}: instrument, k=2")
    if not bars:
        return "no error bars: the errors are not known"
    if not all(map(any, zip(*has.values()))):
        bars.append("line without: unknown")
    return "; ".join(bars)


def decimal(size: float) -> str:
    """2000, 20 k, 2 M, 1 T: a count on an axis."""
    steps = ((1e12, 1e12, "T"), (1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k"))
    for least, step, suffix in steps:
        if size >= least:
            return f"{size / step:g} {suffix}"
    return f"{size:g}"
