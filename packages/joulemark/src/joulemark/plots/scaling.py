# `joulemark report scaling --plot`: over workers, and performance against power (figures 87 to 89,
# 103 to 110 and 112 of PRACE-1IP D9.3.3).
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

from dataclasses import dataclass
from typing import Callable

from joulemark.bench.scaling import Point, Scaling
from joulemark.bench.stats import Value
from joulemark.plots.model import (
    ESTIMATED,
    PUBLISHED,
    WORKERS,
    Axis,
    Chart,
    Figures,
    Line,
    decimal,
    error_bars,
)

EXACT_BELOW = 10**6  # a greater size is a rounded word in a label
IDEAL_STEPS = 48  # the axis of workers is logarithmic, where what is proportional is a curve


@dataclass(frozen=True)
class Figure:
    """What is drawn over what."""

    name: str
    heading: str
    across: Callable[[Scaling, Point], Value | None]
    up: Callable[[Scaling, Point], Value | None]
    across_axis: Axis | None  # None: the workers
    up_axis: Callable[[str], Axis]  # of the operation: F, B, U
    ideal: Callable[[float, float], float] | None = None  # of the first point's, and the gain
    of_energy: bool = False


def _workers(_: Scaling, point: Point) -> Value:
    return Value(point.workers)


def _percent_of_first(one: Scaling, point: Point) -> Value | None:
    value = one.parallel_efficiency(point)
    return value and value.scaled(100)


FIGURES = (
    Figure(
        "performance",
        "performance",
        _workers,
        lambda _, point: point.row.performance,
        None,
        lambda unit: Axis("Performance", f"{unit}/s"),
        ideal=lambda first, gain: first * gain,
    ),
    Figure(
        "parallel-efficiency",
        "parallel efficiency",
        _workers,
        _percent_of_first,
        None,
        lambda _: Axis("Parallel efficiency", "% of the first point's", from_zero_to=105),
        ideal=lambda first, _: first,
    ),
    Figure(
        "energy-efficiency",
        "energy efficiency",
        _workers,
        lambda _, point: point.row.efficiency,
        None,
        lambda unit: Axis("Energy efficiency", f"{unit}/J"),
        of_energy=True,
    ),
    Figure(
        "power",
        "performance against power",
        lambda _, point: point.row.power_w,
        lambda _, point: point.row.performance,
        Axis("Power", "W"),
        lambda unit: Axis("Performance", f"{unit}/s"),
        of_energy=True,
    ),
)


def charts(found: list[Scaling], kernel: str) -> Figures:
    """A kernel's figures, those of other units or workers apart: name, chart and lines."""
    groups: dict[tuple[str, str, str], list[Scaling]] = {}
    for one in found:
        groups.setdefault((one.series.kernel, one.series.unit, one.worker), []).append(one)
    workers_of: dict[str, set[str]] = {}
    units_of: dict[tuple[str, str], set[str]] = {}
    for name, unit, worker in groups:
        workers_of.setdefault(name, set()).add(worker)
        units_of.setdefault((name, worker), set()).add(unit)
    for (name, unit, worker), same in groups.items():
        published = [PUBLISHED] if any(one.prototype for one in same) else []
        shown = name or kernel
        if len(workers_of[name]) > 1:
            shown += f"-{worker}"
        if len(units_of[name, worker]) > 1:
            shown += f"-{unit.replace('/', '_')}"
        for figure in FIGURES:
            lines = [_line(one, figure) for one in same]
            if lines := [line for line in lines if line.points]:
                chart = Chart(
                    title=f"{name or kernel}: {figure.heading}",
                    across=figure.across_axis or Axis(worker.capitalize(), kind=WORKERS),
                    up=figure.up_axis(unit.partition("/")[0]),
                    notes=(*published, error_bars(lines)),
                )
                yield f"scaling-{shown}-{figure.name}", chart, lines


def _line(one: Scaling, figure: Figure) -> Line:
    pairs = [(figure.across(one, point), figure.up(one, point)) for point in one.points]
    points = [(x, y) for x, y in pairs if x and y and x.mean and y.mean]
    label, estimated = _label(one), figure.of_energy and one.series.estimated
    return Line(
        label=label + (ESTIMATED if estimated else ""),
        points=points,
        family=one.prototype or one.series.variant,
        estimated=estimated,
        ideal=_ideal(points, figure),
        name=one.prototype or label,
    )


def _ideal(points: list[tuple[Value, Value]], figure: Figure) -> list[tuple[float, float]]:
    if figure.ideal is None or len(points) < 2:
        return []
    first, up = points[0][0].mean, points[0][1].mean
    most = max(x.mean for x, _ in points) / first
    gains = (most ** (step / IDEAL_STEPS) for step in range(IDEAL_STEPS + 1))
    return [(first * gain, figure.ideal(up, gain)) for gain in gains]


def _label(one: Scaling) -> str:
    sizes = sorted({point.row.size for point in one.points})
    least, most = (
        str(size) if size < EXACT_BELOW else decimal(size) for size in (sizes[0], sizes[-1])
    )
    size = f"size {least}" if len(sizes) == 1 else f"sizes {least} to {most}"
    return f"{one.name}, {one.kind}, {size}"
