# The figure of `joulemark report profile`.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import textwrap
from pathlib import Path

from matplotlib.colors import to_rgb
from matplotlib.patches import Patch

from joulemark.layout import ESTIMATED
from joulemark.plots.chart import (
    COLOURS,
    DASHES,
    STYLE,
    WARNING,
    legend_below,
    legend_inches,
    pyplot,
    save,
    tick_evenly,
    write_titles,
)
from joulemark.profile.rows import Row
from joulemark.profile.spans import Span
from joulemark.profile.text import with_error
from joulemark.units import digits

ROW_INCHES = 1.7
LONGEST_TITLE = 100  # letters in a line
SPANS_MOST = 2000  # of a row; more are thinner than a pixel, so neighbours are joined
REGIONS_MOST = 12  # in the legend
HATCHES = ("", "//", "\\\\", "--", "||", "xx", "++")  # told apart in grey print
PALE = 0.25


def draw(rows: list[Row], path: Path, overlay: bool) -> None:
    """A row a mapping, one above the other; or all in one, as Mont-Blanc's figure 9."""
    with pyplot.rc_context(STYLE):
        axes = _draw_overlay(rows) if overlay else _draw_rows(rows)
        axes[-1].set_xlabel("Time [s]", loc="left")
        axes[-1].set_xlim(0, max(row.seconds for row in rows))
        axes[0].set_ylim(0, 1.05 * max(max(row.powers_w, default=0.0) for row in rows) or 1)
        for one in axes:
            one.set_ylabel("Power [W]")
            tick_evenly(one.xaxis)
        save(axes[0].figure, path)


def _draw_overlay(rows: list[Row]) -> list:
    labels = [_plain(_overlay_label(row)) for row in rows]
    _, axes = pyplot.subplots(figsize=(8, 4.4 + legend_inches(labels)))
    for index, (row, label) in enumerate(zip(rows, labels)):
        look = {"color": _of(COLOURS, index), "linestyle": _of(DASHES, index)}
        axes.stairs(row.powers_w, row.times_s, baseline=None, linewidth=1.2, label=label, **look)
    is_estimated = any(row.estimated for row in rows)
    write_titles(
        axes, "Power over time", [], f"(estimated): {ESTIMATED}" if is_estimated else None
    )
    legend_below(axes, *axes.get_legend_handles_labels())
    return [axes]


def _overlay_label(row: Row) -> str:
    mean = with_error(row.mean_w, row.mean_error_w, "W")
    return f"{row.label}: mean {mean}{' (estimated)' if row.estimated else ''}"


def _draw_rows(rows: list[Row]) -> list:
    names = list(dict.fromkeys(span.name for row in rows for span in row.spans))
    looks = {name: _look(index) for index, name in enumerate(names)}
    keys = [Patch(label=_plain(name), **looks[name]) for name in names[:REGIONS_MOST]]
    if len(names) > REGIONS_MOST:
        keys.append(Patch(alpha=0, label=f"and {len(names) - REGIONS_MOST} others"))
    labels = [key.get_label() for key in keys]
    height = 1.2 + ROW_INCHES * len(rows) + (legend_inches(labels) if labels else 0)
    shape = {"sharex": True, "sharey": True, "squeeze": False, "figsize": (8, height)}
    _, grid = pyplot.subplots(len(rows), 1, **shape)
    axes = [line[0] for line in grid]
    for one, row in zip(axes, rows):
        _draw_row(one, row, looks)
    if keys:
        legend_below(axes[-1], keys, labels)
    return axes


def _draw_row(axes, row: Row, looks: dict[str, dict]) -> None:
    axes.stairs(row.powers_w, row.times_s, baseline=None, color="black", linewidth=1)
    for span in _joined(row):
        # A region within another is a narrower band over it, below the grid.
        place = {"ymax": max(1 - 0.15 * span.depth, 0.1), "zorder": 0.1 + 0.01 * span.depth}
        axes.axvspan(span.begin_s, span.end_s, **place, **looks[span.name])
    energy = with_error(row.energy_j, row.uncertainty_j, "J")
    title = f"{row.label}: {energy}, {digits(row.mean_w)} W mean"
    title += f"; {ESTIMATED}" if row.estimated else ""
    colour = {"color": WARNING} if row.estimated else {}
    axes.set_title(textwrap.fill(_plain(title), LONGEST_TITLE), fontsize=9, loc="left", **colour)


def _look(index: int) -> dict:
    """Of a region: a pale colour and a hatch, together its own."""
    colour = to_rgb(_of(COLOURS, index))
    pale = [1 - PALE * (1 - part) for part in colour]
    hatch = _of(HATCHES, index + index // len(HATCHES))
    return {"facecolor": pale, "edgecolor": (*colour, 0.5), "hatch": hatch, "linewidth": 0}


def _of(looks: tuple, index: int):
    return looks[index % len(looks)]


def _plain(text: str) -> str:
    """A region's name is a user's text, not matplotlib's mathematics."""
    return text.replace("$", r"\$")


def _joined(row: Row) -> list[Span]:
    if len(row.spans) <= SPANS_MOST:
        return row.spans
    gap_s = row.seconds / SPANS_MOST
    last: dict[str, Span] = {}
    found = []
    for span in row.spans:
        before = last.get(span.name)
        if before and span.begin_s - before.end_s < gap_s:
            last[span.name] = Span(span.name, before.begin_s, max(before.end_s, span.end_s))
            continue
        if before:
            found.append(before)
        last[span.name] = span
    return found + list(last.values())
