# `joulemark report plot`: performance, efficiency and energy efficiency against size.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from joulemark.stats import Row, Series, Value

# Okabe and Ito's colours: told apart by every kind of eye, and in print.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "osD^vPX"
STYLE = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
}
ESTIMATED = "Energy ESTIMATED by a model, not measured"
HOLLOW = "Dashed, hollow: predicted or ESTIMATED by a model, not measured"
SIZES = {
    "jm-stream": "Vector length [elements]",
    "mod2am": "Matrix dimension",
    "jm-linpack": "Unknowns",
    "hpl": "Unknowns",
}
SIZE = "Size"
GIGA = 1e9
WIDE_SPAN = 5000  # a wider range of sizes has room for the powers of ten alone
LINEAR_SPAN = 20  # a wider range of values is drawn on a logarithmic axis


@dataclass(frozen=True)
class Figure:
    """One of a kernel's three figures."""

    name: str
    heading: str
    label: str
    value: Callable[[Row], Value | None]
    scale: float
    of_energy: bool = False


def draw_all(series: list[Series], out: Path, peak_giga: float | None) -> Iterator[Path]:
    """Draws each kernel's figures; yields the paths of the PNG files."""
    for kernel in dict.fromkeys((one.benchmark, one.kernel) for one in series):
        same = [one for one in series if (one.benchmark, one.kernel) == kernel]
        for figure in _figures(same, peak_giga):
            if any(_points(one, figure) for one in same):
                yield _draw(same, figure, out)


def _figures(series: list[Series], peak_giga: float | None) -> list[Figure]:
    operation = series[0].unit.partition("/")[0]
    performances = [row.performance.mean for one in series for row in one.rows if row.performance]
    best_giga = max(performances, default=0) / GIGA
    peak = peak_giga or best_giga
    of_what = "peak" if peak_giga else "best measured"
    efficiency = f"Efficiency [% of {of_what}, {peak:.4g} G{operation}/s]"
    return [
        Figure("performance", "performance", f"Performance [G{operation}/s]", _performance, GIGA),
        Figure("efficiency", "efficiency", efficiency, _performance, peak * GIGA / 100),
        Figure(
            "energy-efficiency",
            "energy efficiency",
            f"Energy efficiency [G{operation}/J]",
            lambda row: row.efficiency,
            GIGA,
            of_energy=True,
        ),
    ]


def _performance(row: Row) -> Value | None:
    return row.performance


def _points(series: Series, figure: Figure) -> list[tuple[int, float, float]]:
    """(size, value, error) of what was verified and is known."""
    found = [(row.size, figure.value(row)) for row in series.rows]
    return [
        (size, value.mean / figure.scale, _error(value) / figure.scale)
        for size, value in found
        if value
    ]


def _error(value: Value) -> float:
    """Both parts at k=2."""
    return math.hypot(2 * (value.spread or 0), value.uncertainty or 0)


def _draw(series: list[Series], figure: Figure, out: Path) -> Path:
    with pyplot.rc_context(STYLE):
        canvas, axes = pyplot.subplots(figsize=(6.4, 4.2))
        drawn = []
        for index, one in enumerate(series):
            points = _points(one, figure)
            if points:
                estimated = one.predicted or (figure.of_energy and one.estimated)
                draw_line(axes, points, _label(one, series, estimated), index, estimated)
                drawn += points
        scale_axes(axes, drawn)
        _write_texts(canvas, axes, series, figure)
        name = series[0].name.replace(" ", "-").replace("/", "_")
        path = out / f"{name}-{figure.name}.png"
        canvas.savefig(path, dpi=200)
        pyplot.close(canvas)
    return path


def draw_line(axes, points, label: str, index: int, estimated: bool) -> None:
    """Of (size, value, error); estimates are hollow and dashed: they differ at a glance."""
    colour = COLOURS[index % len(COLOURS)]
    sizes, values, errors = zip(*points)
    axes.errorbar(
        sizes,
        values,
        yerr=_bars(values, errors),
        label=label,
        color=colour,
        marker=MARKERS[(index + index // len(COLOURS)) % len(MARKERS)],
        markersize=5,
        markerfacecolor="white" if estimated else colour,
        linestyle="--" if estimated else "-",
        linewidth=1.4,
        elinewidth=0.9,
        capsize=2.5,
    )


def _bars(values, errors):
    """A bar must not reach zero, which a logarithmic axis does not have."""
    lower = [min(error, value * 0.999) for value, error in zip(values, errors)]
    return [lower, errors] if any(errors) else None


def _label(one: Series, series: list[Series], estimated: bool) -> str:
    """The variant, and of the rest only what differs between the lines."""
    if one.is_of_others:
        return f"{one.machine.partition(':')[0]} {one.variant}"
    parts = [one.variant, "1 thread" if one.threads == 1 else f"{one.threads} threads"]
    if len({other.ranks for other in series}) > 1:
        parts.append("1 rank" if one.ranks == 1 else f"{one.ranks} ranks")
    if len({(other.target, other.machine) for other in series}) > 1:
        parts.append(one.machine)
    return ", ".join(parts) + (" (estimated)" if estimated else "")


def scale_axes(axes, points) -> None:
    """Logarithmic sizes, with ticks at their own powers; values as their range asks."""
    sizes = sorted({size for size, _, _ in points})
    values = [value for _, value, _ in points]
    is_binary = all(size == int(size) and int(size) & (int(size) - 1) == 0 for size in sizes)
    axes.set_xscale("log", base=2 if is_binary else 10)
    if is_binary:
        axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: _binary(size)))
    else:
        steps = (1, 2, 5) if sizes[-1] < WIDE_SPAN * sizes[0] else (1,)
        axes.xaxis.set_major_locator(LogLocator(10, subs=steps))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: _decimal(size)))
    axes.xaxis.set_minor_formatter(NullFormatter())
    if max(values) > LINEAR_SPAN * min(values):
        axes.set_yscale("log")
        # A long error bar may leave the figure below, where a logarithm has no end.
        axes.set_ylim(bottom=min(values) / 2)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    else:
        axes.set_ylim(bottom=0)


def _decimal(size: float) -> str:
    for least, step, suffix in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if size >= least:
            return f"{size / step:g} {suffix}"
    return f"{size:g}"


def _binary(size: float) -> str:
    for step, suffix in ((1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki")):
        if size >= step:
            return f"{size / step:g} {suffix}"
    return f"{size:g}"


def _write_texts(canvas, axes, series: list[Series], figure: Figure) -> None:
    first = series[0]
    is_estimate = figure.of_energy and any(one.estimated for one in series)
    axes.set_title(
        f"{first.name}: {figure.heading}",
        loc="left",
        fontweight="bold",
        pad=36 if is_estimate else 22,
    )
    machines = {f"{one.machine} ({one.target})" for one in series}
    above = f"{len(machines)} machines" if len(machines) > 1 else machines.pop()
    write_above(axes, 20 if is_estimate else 6, above, "#555555", fontsize=8)
    if is_estimate:
        write_above(axes, 6, ESTIMATED, "#B00020", fontsize=9, weight="bold")
    axes.set_xlabel(SIZES.get(first.benchmark, "Size"), loc="left")
    axes.set_ylabel(figure.label)
    longest = max(len(text) for text in axes.get_legend_handles_labels()[1])
    axes.legend(loc="best", fontsize=9 if longest < 40 else 7)
    canvas.text(0.995, 0.005, _footnote(series, figure), ha="right", fontsize=7, color="#555555")


def write_title(axes, title: str, any_hollow: bool) -> None:
    """The title of figures that may have measured and estimated lines together."""
    axes.set_title(title, loc="left", fontweight="bold", pad=22 if any_hollow else 6)
    if any_hollow:
        write_above(axes, 6, HOLLOW, "#B00020", fontsize=8)


def write_above(axes, points: int, text: str, color: str, **style) -> None:
    """A line over the axes, so many points above them."""
    style = {"color": color, **style}
    axes.annotate(text, (0, 1), (0, points), "axes fraction", "offset points", **style)


def _footnote(series: list[Series], figure: Figure) -> str:
    text = "error bars: k=2, repetitions" + (" and instrument" if figure.of_energy else "")
    failed = sum(not row.verified for one in series for row in one.rows)
    return text + (f"; {failed} failed, not drawn" if failed else "")
