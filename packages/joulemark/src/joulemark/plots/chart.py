# Draws charts of lines by matplotlib: how every figure of measurements looks.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import math
import sys
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.ticker import (
    FixedLocator,
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    NullFormatter,
    NullLocator,
)
from matplotlib.transforms import ScaledTranslation

from joulemark.bench.stats import Value
from joulemark.errors import UserError
from joulemark.plots.model import (
    HOLLOW,
    LINEAR_SPAN,
    MANY_DECADES,
    VALUES,
    WORKERS,
    Axis,
    Chart,
    Figures,
    Line,
    decimal,
)

# Okabe and Ito's colours: told apart by every kind of eye, and in print.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "osD^vPX<>*d"  # as many as neither colours nor dashes share a factor with
DASHES = ("-", "--", "-.", ":", (0, (7, 1, 1, 1, 1, 1)))
WARNING, GREY = "#B00020", "#555555"
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
    "svg.hashsalt": "joulemark",
}
UNDATED = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
WIDE_SPAN = 5000  # a wider range of sizes has room for the powers of ten alone
LONGEST_NOTE = 115  # letters of a line above the axes
LONG_LABEL, LONGEST_LABEL = 42, 95  # letters of half a legend's line, and of a whole one
LINEAR_TICKS_MOST, BINARY_TICKS_MOST, DECADES_MOST = 9, 20, 12
LETTER = 0.015  # of an axis' length, at most
BELOW_INCHES = -0.5  # where the ticks' and the axis' own words end


def draw_all(charts: Figures, options, out: str) -> None:
    """Draws each below the folder that the option `out` names, as --figures
    says, and prints the paths, on stderr where stdout has something else."""
    folder = Path(getattr(options, out))
    is_alone = out == "out" or options.out is not None
    figures = list(charts)
    looks = styles(lines for _, _, lines in figures)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, chart, lines in figures:
            path = folder / f"{name}.{options.figures or 'png'}"
            draw(chart, lines, looks, path)
            print(path, file=sys.stdout if is_alone else sys.stderr)
    except OSError as error:
        raise UserError(f"--{out} {folder}: {error.strerror}") from None


def draw(chart: Chart, lines: Sequence[Line], looks: dict[str, dict], path: Path) -> None:
    """Writes the chart as the path's suffix says; looks: as styles() has them."""
    legend = legend_inches([line.label for line in lines])
    with pyplot.rc_context(STYLE):
        canvas, axes = pyplot.subplots(figsize=(7.2, 4.4 + legend))
        points = [point for line in lines for point in line.points]
        exponents = [
            axis.exponent([point[index].mean for point in points])
            for index, axis in enumerate((chart.across, chart.up))
        ]
        for line in lines:
            scales = (10.0**exponent for exponent in exponents)
            _draw_line(axes, line, looks[line.identity], *scales)
        x, y = (
            [point[index].mean / 10.0**exponent for point in points]
            for index, exponent in enumerate(exponents)
        )
        _scale(axes.xaxis, axes.set_xscale, axes.set_xlim, chart.across, x)
        _scale(axes.yaxis, axes.set_yscale, axes.set_ylim, chart.up, y)
        axes.set_xlabel(chart.across.text(exponents[0]), loc="left")
        axes.set_ylabel(chart.up.text(exponents[1]))
        is_hollow = any(line.estimated for line in lines)
        write_titles(axes, chart.title, chart.notes, HOLLOW if is_hollow else None)
        _add_legend(axes, lines)
        save(canvas, path)


def save(canvas, path: Path) -> None:
    """Writes a figure as its suffix says: of the same data the same bytes."""
    canvas.savefig(path, dpi=200, metadata=UNDATED.get(path.suffix.lower()))
    pyplot.close(canvas)


def styles(figures: Iterable[Sequence[Line]]) -> dict[str, dict]:
    """Of the lines' identities, the same in all figures.

    Few have a colour and a marker each; of many, a family's have one marker. Without colours,
    marker and dash tell 5 of a family apart, and 55 families.
    """
    family_of = {line.identity: line.family for lines in figures for line in lines}
    if len(family_of) <= len(COLOURS):
        own = zip(family_of, COLOURS, MARKERS)
        return {one: {"color": colour, "marker": marker} for one, colour, marker in own}
    members: dict[str, int] = {}
    names = list(family_of.values())
    families = list(dict.fromkeys(names))
    taken = set()
    found = {}
    for one, name in family_of.items():
        family, member = families.index(name), members.get(name, 0)
        members[name] = member + 1
        colour = COLOURS[(names.index(name) + member) % len(COLOURS)]
        marker = MARKERS[family % len(MARKERS)]
        # The first dash that its marker has not yet; of such ones, one that its colour has not.
        dash = min(
            (DASHES[(family + 2 * member + step) % len(DASHES)] for step in range(len(DASHES))),
            key=lambda dash: [
                look in taken for look in ((marker, dash), (colour, dash), (colour, marker, dash))
            ],
        )
        taken |= {(marker, dash), (colour, dash), (colour, marker, dash)}
        found[one] = {"color": colour, "marker": marker, "linestyle": dash}
    return found


def _draw_line(axes, line: Line, style: dict, x_scale: float, y_scale: float) -> None:
    x, y = (
        [point[index].mean / scale for point in line.points]
        for index, scale in enumerate((x_scale, y_scale))
    )
    colour = style["color"]
    if line.ideal:
        ideal = [(x / x_scale, y / y_scale) for x, y in line.ideal]
        axes.plot(*zip(*ideal), color=colour, linestyle=":", linewidth=1, alpha=0.7)
    for part, look in (
        ("uncertainty", {"elinewidth": 5, "capsize": 0, "alpha": 0.3}),
        ("interval", {"elinewidth": 0.9, "capsize": 2.5}),
    ):
        bars = {
            f"{name}err": _bars([point[index] for point in line.points], part, scale)
            for index, (name, scale) in enumerate((("x", x_scale), ("y", y_scale)))
        }
        if any(bars.values()):
            axes.errorbar(x, y, **bars, fmt="none", ecolor=colour, **look)
    face = "white" if line.estimated else colour
    axes.plot(x, y, label=line.label, markersize=5, markerfacecolor=face, linewidth=1.4, **style)


def _bars(values: Sequence[Value], part: str, scale: float) -> list[list[float]] | None:
    """A bar must not reach zero, which a logarithmic axis does not have."""
    errors = [(getattr(value, part) or 0.0) / scale for value in values]
    lower = [min(error, value.mean / scale * 0.999) for error, value in zip(errors, values)]
    return [lower, errors] if any(errors) else None


# -- axes ----------------------------------------------------------------------------------------


def _scale(axis, set_scale, set_limits, one: Axis, values: list[float]) -> None:
    if one.kind != VALUES:
        counts = sorted(set(values))
        _scale_counts(axis, set_scale, one, counts)
        if len(counts) == 1:  # or matplotlib shows two decades around it
            set_limits(counts[0] / 2, counts[0] * 2)
    elif one.from_zero_to is None and max(values) > LINEAR_SPAN * min(values):
        set_scale("log")
        # A long error bar may leave the figure below, where a logarithm has no end.
        set_limits(min(values) / 2, None)
        wide = max(values) > MANY_DECADES * min(values)
        axis.set_major_locator(LogLocator(10, (1,) if wide else (1, 2, 5), numticks=DECADES_MOST))
        axis.set_minor_formatter(NullFormatter())
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    else:
        tick_evenly(axis)
        set_limits(0, max(one.from_zero_to or 0, 1.05 * axis.get_data_interval()[1]))


def tick_evenly(axis) -> None:
    """At 1, 2 or 5 times a power of ten."""
    axis.set_major_locator(MaxNLocator(LINEAR_TICKS_MOST, steps=(1, 2, 5, 10)))


def _scale_counts(axis, set_scale, one: Axis, counts: list[float]) -> None:
    """Sizes and workers: logarithmic, with ticks at their own powers."""
    is_binary = all(count == int(count) and int(count) & (int(count) - 1) == 0 for count in counts)
    set_scale("log", base=2 if is_binary else 10)
    if one.kind == WORKERS:
        has_own = not is_binary and _have_room(counts)
        ticks = FixedLocator(counts) if has_own else LogLocator(2, numticks=BINARY_TICKS_MOST)
        axis.set_major_locator(ticks)
        axis.set_major_formatter(FuncFormatter(lambda count, _: f"{count:.0f}"))
        axis.set_minor_locator(NullLocator())
    elif is_binary:
        axis.set_major_formatter(FuncFormatter(lambda size, _: _binary(size)))
    elif counts[-1] < 10 * counts[0] and _have_room(counts):
        axis.set_major_locator(FixedLocator(counts))
        axis.set_major_formatter(FuncFormatter(lambda size, _: decimal(size)))
        axis.set_minor_locator(NullLocator())
    else:
        steps = (1, 2, 5) if counts[-1] < WIDE_SPAN * counts[0] else (1,)
        axis.set_major_locator(LogLocator(10, steps, numticks=DECADES_MOST))
        axis.set_major_formatter(FuncFormatter(lambda size, _: decimal(size)))
    axis.set_minor_formatter(NullFormatter())


def _have_room(counts: list[float]) -> bool:
    """Whether each can have its number below a logarithmic axis."""
    whole = math.log(counts[-1] / counts[0])
    return all(
        math.log(count / before) >= whole * LETTER * (len(f"{count:.0f}") + 1)
        for before, count in zip(counts, counts[1:])
    )


def _binary(size: float) -> str:
    for step, suffix in ((1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki")):
        if size >= step:
            return f"{size / step:g} {suffix}"
    return f"{size:g}"


# -- texts ---------------------------------------------------------------------------------------


def write_titles(axes, title: str, notes: Sequence[str], warning: str | None) -> None:
    """Above the axes: the title, then the notes upwards from what warns."""
    said = [(warning, WARNING)] if warning else []
    said += [(note, GREY) for note in notes]
    lines = [
        (line, colour)
        for text, colour in said
        for line in reversed(textwrap.wrap(text, LONGEST_NOTE))
    ]
    for index, (text, colour) in enumerate(lines):
        place = {"xytext": (0, 6 + 12 * index), "textcoords": "offset points"}
        axes.annotate(text, (0, 1), xycoords="axes fraction", color=colour, fontsize=8, **place)
    axes.set_title(title, loc="left", fontweight="bold", pad=8 + 12 * len(lines))


def legend_inches(labels: Sequence[str]) -> float:
    """Of its height."""
    return 0.17 * math.ceil(sum(map(_rows, labels)) / _columns(labels))


def _columns(labels: Sequence[str]) -> int:
    return 1 if len(labels) == 1 or max(map(len, labels)) > LONG_LABEL else 2


def _rows(label: str) -> int:
    return math.ceil(len(label) / LONGEST_LABEL)


def _add_legend(axes, lines: Sequence[Line]) -> None:
    handles, labels = axes.get_legend_handles_labels()
    if any(line.ideal for line in lines):
        handles.append(pyplot.Line2D([], [], color=GREY, linestyle=":", linewidth=1))
        labels.append("ideal")
    legend_below(axes, handles, labels)


def legend_below(axes, handles: list, labels: list[str]) -> None:
    """Below the axes, where it hides no point."""
    below = ScaledTranslation(0, BELOW_INCHES, axes.figure.dpi_scale_trans)
    axes.legend(
        handles,
        [textwrap.fill(label, LONGEST_LABEL) for label in labels],
        loc="upper left",
        bbox_to_anchor=(0, 0),
        bbox_transform=axes.transAxes + below,
        ncol=_columns(labels),
        fontsize=8,
        borderaxespad=0,
        handlelength=4,
    )
