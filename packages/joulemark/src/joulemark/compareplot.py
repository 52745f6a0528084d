# `joulemark compare --plot`: the comparison as figures like 64 to 114 of PRACE-1IP D9.3.3.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from joulemark import plot
from joulemark.compare import PREDICTED, QUANTITIES, Quantity, Side
from joulemark.errors import UserError
from joulemark.plot import pyplot

SIZES = {
    **dict.fromkeys(("copy", "scale", "sum", "triad"), "Vector length [elements]"),
    **dict.fromkeys(("mod2am", "mod2as"), "Matrix dimension"),
    "mod2f": "Points of the transform",
    "linpack": "Unknowns",
    "hydro": "Cells of a side",
}
SOURCE = "published: PRACE-1IP D9.3.3; caution: scales and optimisation differ"


def draw_all(groups: dict[str, list[Side]], out: Path) -> Iterator[Path]:
    """Draws each kernel's figures; yields the paths of the PNG files."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, sides in groups.items():
            for quantity in QUANTITIES:
                if any(_points(side, quantity) for side in sides):
                    yield _draw(name, sides, quantity, out)
    except OSError as error:
        raise UserError(f"--plot {out}: {error.strerror}") from None


def _points(side: Side, quantity: Quantity) -> list[tuple[int, float, float]]:
    """(size, value, error); the errors of what was published stand in its tables."""
    scale = 0.01 if quantity.name == "efficiency" else plot.GIGA
    rows = [(row, quantity.value(side, row)) for row in side.series.rows if row.verified]
    return [(row.size, value / scale, 0.0) for row, value in rows if value]


def _draw(name: str, sides: list[Side], quantity: Quantity, out: Path) -> Path:
    unit = quantity.unit(sides[0].series.unit.partition("/")[0])
    with pyplot.rc_context(plot.STYLE):
        canvas, axes = pyplot.subplots(figsize=(7.2, 4.8))
        drawn = []
        any_hollow = False
        for index, side in enumerate(sides):
            points = _points(side, quantity)
            if points:
                hollow = _is_hollow(side, quantity)
                any_hollow |= hollow
                plot.draw_line(axes, points, side.name, index, hollow)
                drawn += points
        plot.scale_axes(axes, drawn)
        plot.write_title(axes, f"{name}: {quantity.heading}", any_hollow)
        axes.set_xlabel(SIZES.get(name, plot.SIZE), loc="left")
        axes.set_ylabel(
            quantity.heading.capitalize() + f" [{unit if unit == '%' else 'G' + unit}]"
        )
        axes.legend(loc="best", fontsize=8)
        canvas.text(0.995, 0.005, SOURCE, ha="right", fontsize=7, color="#555555")
        path = out / f"compare-{name}-{quantity.name}.png"
        canvas.savefig(path, dpi=200)
        pyplot.close(canvas)
    return path


def _is_hollow(side: Side, quantity: Quantity) -> bool:
    """Whether it is no measurement."""
    estimated = quantity.name == "energy-efficiency" and side.series.estimated
    return estimated or side.origin == PREDICTED
