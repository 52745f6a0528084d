# The figure of `joulemark report profile`.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

from pathlib import Path

from matplotlib import pyplot
from matplotlib.patches import Patch

from joulemark.layout import ESTIMATED
from joulemark.plots.chart import COLOURS, STYLE, WARNING, legend_below
from joulemark.profile.rows import Row
from joulemark.profile.spans import Span

ROW_INCHES = 1.7
SPANS_MOST = 2000  # of a row; more are thinner than a pixel, so neighbours are joined
REGIONS_MOST = 12  # in the legend


def draw(rows: list[Row], path: Path, overlay: bool) -> None:
    """A row a mapping, one above the other; or all in one, as Mont-Blanc's figure 9."""
    with pyplot.rc_context(STYLE):
        count = 1 if overlay else len(rows)
        height = 4.2 + 0.17 * len(rows) if overlay else 1.2 + ROW_INCHES * count
        canvas, grid = pyplot.subplots(
            count, 1, sharex=True, sharey=True, squeeze=False, figsize=(8, height)
        )
        axes = [line[0] for line in grid]
        if overlay:
            _draw_overlay(axes[0], rows)
        else:
            _draw_rows(axes, rows)
        axes[-1].set_xlabel("Time [s]", loc="left")
        axes[-1].set_xlim(0, max(row.seconds for row in rows))
        axes[0].set_ylim(0, 1.05 * max(max(row.powers_w, default=0.0) for row in rows) or 1)
        if any(row.estimated for row in rows):
            canvas.suptitle(ESTIMATED, color=WARNING, fontsize=9, weight="bold")
        canvas.savefig(path, dpi=150)
        pyplot.close(canvas)


def _draw_overlay(axes, rows: list[Row]) -> None:
    for index, row in enumerate(rows):
        label = f"{row.label} ({row.mean_w:.4g} W mean)"
        axes.stairs(
            row.powers_w, row.times_s, baseline=None, color=_colour(index), label=_plain(label)
        )
    axes.set_ylabel("Power [W]")
    legend_below(axes, *axes.get_legend_handles_labels(), columns=1)


def _draw_rows(axes: list, rows: list[Row]) -> None:
    names = list(dict.fromkeys(span.name for row in rows for span in row.spans))
    colours = {name: _colour(index) for index, name in enumerate(names)}
    for one, row in zip(axes, rows):
        one.stairs(row.powers_w, row.times_s, baseline=None, color="black", linewidth=1)
        for span in _joined(row):
            # A region within another is a narrower band.
            one.axvspan(
                span.begin_s,
                span.end_s,
                ymax=max(1 - 0.15 * span.depth, 0.1),
                color=colours[span.name],
                alpha=0.25,
                linewidth=0,
            )
        title = f"{row.label}: {row.energy_j:.4g} J, {row.mean_w:.4g} W mean"
        one.set_title(_plain(title), fontsize=9, loc="left")
        one.set_ylabel("Power [W]")
    shown = names[:REGIONS_MOST]
    if shown:
        keys = [Patch(color=colours[name], alpha=0.25, label=_plain(name)) for name in shown]
        below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.3)}
        axes[-1].legend(handles=keys, ncol=min(len(keys), 4), fontsize=8, **below)


def _colour(index: int) -> str:
    return COLOURS[index % len(COLOURS)]


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
