# `joulemark report plot`: performance, efficiency and energy efficiency against size.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

from dataclasses import dataclass
from typing import Callable

from joulemark import units
from joulemark.bench.stats import Row, Series, Value
from joulemark.plots.model import (
    ESTIMATED,
    PUBLISHED,
    SIZES,
    Axis,
    Chart,
    Figures,
    Line,
    error_bars,
)

# What the size of a benchmark, or of a published kernel, counts.
ACROSS = {
    **dict.fromkeys(
        ("jm-stream", "copy", "scale", "sum", "triad"),
        "Vector length [elements]",
    ),
    **dict.fromkeys(("mod2am", "mod2as"), "Matrix dimension"),
    "mod2f": "Points of the transform",
    **dict.fromkeys(("jm-linpack", "hpl", "linpack"), "Unknowns"),
    "hydro": "Cells of a side",
}
SIZE = "Size"
OTHER_PEAKS = "published and predicted lines are no part of this peak: not drawn"


@dataclass(frozen=True)
class Figure:
    """One of a kernel's three figures."""

    name: str
    heading: str
    up: Axis
    value: Callable[[Row], Value | None]
    of_energy: bool = False
    of_our_peak: bool = False

    def has(self, one: Series) -> bool:
        """Others' machines have their own peaks, which `joulemark compare` draws them by."""
        return not (self.of_our_peak and one.is_of_others)


def charts(series: list[Series], peak_giga: float | None) -> Figures:
    """Each kernel's figures: name, chart and lines."""
    for kernel in dict.fromkeys((one.benchmark, one.kernel) for one in series):
        same = [one for one in series if (one.benchmark, one.kernel) == kernel]
        for figure in figures(same, peak_giga):
            lines = [_line(one, same, figure) for one in same if figure.has(one)]
            if lines := [line for line in lines if line.points]:
                name = same[0].name.replace(" ", "-").replace("/", "_")
                yield f"{name}-{figure.name}", _chart(same, figure, lines), lines


def figures(series: list[Series], peak_giga: float | None) -> list[Figure]:
    """Of one kernel; without a peak, efficiency is of the best that was measured."""
    operation = series[0].unit.partition("/")[0]
    performances = [row.performance.mean for one in series for row in one.rows if row.performance]
    peak = peak_giga * 1e9 if peak_giga else max(performances, default=0)
    of_what = "peak" if peak_giga else "best measured"
    unit = f"{units.prefix(exponent := units.best_exponent([peak]))}{operation}/s"
    part = f"Efficiency [% of {of_what}, {peak / 10.0**exponent:.4g} {unit}]"
    return [
        Figure(
            "performance",
            "performance",
            Axis("Performance", f"{operation}/s"),
            lambda row: row.performance,
        ),
        Figure(
            "efficiency",
            "efficiency",
            Axis(part),
            lambda row: row.performance and row.performance.scaled(100 / peak),
            of_our_peak=bool(peak_giga),
        ),
        Figure(
            "energy-efficiency",
            "energy efficiency",
            Axis("Energy efficiency", f"{operation}/J"),
            lambda row: row.efficiency,
            of_energy=True,
        ),
    ]


def _chart(series: list[Series], figure: Figure, lines: list[Line]) -> Chart:
    drawn = [one for one in series if figure.has(one)]
    machines = {f"{one.machine} ({one.target})" for one in drawn}
    failed = sum(not row.verified for one in drawn for row in one.rows)
    return Chart(
        title=f"{series[0].name}: {figure.heading}",
        across=Axis(ACROSS.get(series[0].benchmark, SIZE), kind=SIZES),
        up=figure.up,
        notes=(
            *([PUBLISHED] if any(one.is_of_others for one in drawn) else []),
            *([OTHER_PEAKS] if len(drawn) < len(series) else []),
            error_bars(lines) + (f"; {failed} failed, not drawn" if failed else ""),
            f"{len(machines)} machines" if len(machines) > 1 else machines.pop(),
        ),
    )


def _line(one: Series, series: list[Series], figure: Figure) -> Line:
    """Of what was verified and is known."""
    estimated = one.predicted or (figure.of_energy and one.estimated)
    found = [(Value(row.size), figure.value(row)) for row in one.rows]
    is_of_one_machine = len({other.machine for other in series}) == 1
    return Line(
        label=_label(one, series, estimated),
        points=[(size, value) for size, value in found if value],
        family=one.variant if is_of_one_machine else one.machine,
        estimated=estimated,
        name=_name(one, series),
    )


def _name(one: Series, series: list[Series]) -> str:
    """Without what one figure alone says: the kernel's table, or whether it is estimated."""
    if one.is_of_others:
        return f"{one.machine}, {one.variant.partition('(table')[0]}, {one.threads} threads"
    return _label(one, series, estimated=False)


def _label(one: Series, series: list[Series], estimated: bool) -> str:
    """The variant, and of the rest only what differs between the lines."""
    if one.is_of_others:
        return f"{one.machine.partition(':')[0]} {one.variant}"
    parts = [one.variant, "1 thread" if one.threads == 1 else f"{one.threads} threads"]
    ours = [other for other in series if not other.is_of_others]  # of others nobody told nodes
    if len({(other.ranks, other.nodes) for other in ours}) > 1:
        parts.append(one.place)
    if len({other.target for other in ours}) > 1:
        parts.append(one.target)
    if len({(other.target, other.machine) for other in series}) > 1:
        parts.append(one.machine)
    return ", ".join(filter(None, (*parts, one.apart))) + (ESTIMATED if estimated else "")
