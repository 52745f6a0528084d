# `joulemark report scaling --plot`: over workers, and performance against power (figures 87 to 89,
# 103 to 110 and 112 of PRACE-1IP D9.3.3).
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

from joulemark import plot
from joulemark.errors import UserError
from joulemark.plot import pyplot
from joulemark.scaling import Point, Scaling


@dataclass(frozen=True)
class Figure:
    """What is drawn over what."""

    name: str
    heading: str
    across: Callable[[Scaling, Point], float | None]
    up: Callable[[Scaling, Point], float | None]
    across_label: str
    up_label: Callable[[str], str]  # of the operation: F, B, U
    is_part: bool = False  # of the first point's, from 0


def _workers(_: Scaling, point: Point) -> int:
    return point.workers


def _performance(_: Scaling, point: Point) -> float | None:
    return point.row.performance.mean / plot.GIGA if point.row.performance else None


def _efficiency(_: Scaling, point: Point) -> float | None:
    return point.row.efficiency.mean / plot.GIGA if point.row.efficiency else None


def _power(_: Scaling, point: Point) -> float | None:
    return point.row.power_w.mean if point.row.power_w else None


def _percent_of_first(one: Scaling, point: Point) -> float | None:
    value = one.parallel_efficiency(point)
    return None if value is None else 100 * value


WORKERS = "Nodes, ranks or threads"
FIGURES = (
    Figure("performance", "performance", _workers, _performance, WORKERS, "G{}/s".format),
    Figure(
        "parallel-efficiency",
        "parallel efficiency",
        _workers,
        _percent_of_first,
        WORKERS,
        lambda _: "% of the first point's",
        is_part=True,
    ),
    Figure(
        "energy-efficiency", "energy efficiency", _workers, _efficiency, WORKERS, "G{}/J".format
    ),
    Figure(
        "power", "performance against power", _power, _performance, "Power [W]", "G{}/s".format
    ),
)


def draw_all(found: list[Scaling], kernel: str, out: Path) -> Iterator[Path]:
    """Draws a kernel's figures, those of different units apart; yields the paths."""
    by_unit: dict[tuple[str, str], list[Scaling]] = {}
    for one in found:
        by_unit.setdefault((one.series.kernel, one.series.unit), []).append(one)
    try:
        out.mkdir(parents=True, exist_ok=True)
        for (name, _), same in by_unit.items():
            for figure in FIGURES:
                if any(_points(one, figure) for one in same):
                    yield _draw(name or kernel, same, figure, out)
    except OSError as error:
        raise UserError(f"--plot {out}: {error.strerror}") from None


def _points(one: Scaling, figure: Figure) -> list[tuple[float, float, float]]:
    pairs = [(figure.across(one, point), figure.up(one, point)) for point in one.points]
    return [(x, y, 0.0) for x, y in pairs if x and y]


def _draw(name: str, found: list[Scaling], figure: Figure, out: Path) -> Path:
    unit = found[0].series.unit.partition("/")[0]
    with pyplot.rc_context(plot.STYLE):
        canvas, axes = pyplot.subplots(figsize=(7.2, 4.8))
        drawn = []
        any_hollow = False
        for index, one in enumerate(found):
            points = _points(one, figure)
            if points:
                hollow = one.series.estimated and figure.name in ("energy-efficiency", "power")
                any_hollow |= hollow
                plot.draw_line(axes, points, _label(one), index, hollow)
                drawn += points
        plot.scale_axes(axes, drawn)
        if figure.is_part:
            axes.set_ylim(0, max(105, 1.05 * max(value for _, value, _ in drawn)))
        plot.write_title(axes, f"{name}: {figure.heading}", any_hollow)
        axes.set_xlabel(figure.across_label, loc="left")
        axes.set_ylabel(
            f"{figure.heading.partition(' against')[0].capitalize()} [{figure.up_label(unit)}]"
        )
        axes.legend(loc="best", fontsize=7)
        path = out / f"scaling-{name}-{figure.name}.png"
        canvas.savefig(path, dpi=200)
        pyplot.close(canvas)
    return path


def _label(one: Scaling) -> str:
    sizes = sorted({point.row.size for point in one.points})
    size = f"size {sizes[0]}" if len(sizes) == 1 else f"sizes {sizes[0]} to {sizes[-1]}"
    return f"{one.title}\n{one.kind}, over {one.worker}, {size}"
