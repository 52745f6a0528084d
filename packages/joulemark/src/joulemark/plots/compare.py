# `joulemark compare --plot`: the comparison as figures like 64 to 114 of PRACE-1IP D9.3.3.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

from joulemark.bench.compare import OF_MEMORY, PREDICTED, QUANTITIES, Quantity, Side
from joulemark.bench.stats import Value
from joulemark.plots.kernels import ACROSS, SIZE
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


def charts(groups: dict[str, list[Side]]) -> Figures:
    """Each kernel's figures: name, chart and lines."""
    for name, sides in groups.items():
        for quantity in QUANTITIES:
            lines = [_line(side, quantity) for side in sides]
            if lines := [line for line in lines if line.points]:
                rate = sides[0].series.unit
                of_memory = quantity.name == "efficiency" and rate == "B/s"
                yield (
                    f"compare-{name}-{quantity.name}",
                    Chart(
                        title=f"{name}: {quantity.heading}",
                        across=Axis(ACROSS.get(name, SIZE), kind=SIZES),
                        up=Axis(
                            quantity.heading.capitalize(), quantity.unit(rate.partition("/")[0])
                        ),
                        notes=(*([OF_MEMORY] if of_memory else []), PUBLISHED, error_bars(lines)),
                    ),
                    lines,
                )


def _line(side: Side, quantity: Quantity) -> Line:
    factor = 100 if quantity.name == "efficiency" else 1  # a part is drawn as per cent
    rows = [(row, quantity.value(side, row)) for row in side.series.rows if row.verified]
    estimated = quantity.name == "energy-efficiency" and side.series.estimated
    is_predicted = side.origin == PREDICTED  # which its name says
    return Line(
        label=side.name + (ESTIMATED if estimated and not is_predicted else ""),
        points=[
            (Value(row.size), value.scaled(factor)) for row, value in rows if value and value.mean
        ],
        family=side.owner,
        estimated=estimated or is_predicted,
        name=side.name,
    )
