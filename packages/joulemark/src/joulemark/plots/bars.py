# `joulemark report usage --plot`: bars of energy with their k=2 error bars, overhead on top.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import textwrap
from pathlib import Path

from matplotlib.patches import Patch

from joulemark import units
from joulemark.accounting import usage
from joulemark.errors import UserError
from joulemark.plots.chart import (
    COLOURS,
    STYLE,
    legend_below,
    pyplot,
    save,
    tick_evenly,
    write_titles,
)
from joulemark.plots.model import PARTLY_HOLLOW

MOST_BARS = 40
LONGEST_NAME = 24  # letters in a row


def draw(groups: list[usage.Group], by: list[str], path: str, left_out: list[str]) -> None:
    """Writes one figure; of very many groups the greatest are drawn, and it says so."""
    known = [one for one in groups if one.energy_j is not None]
    if not known:
        raise UserError("--plot: no job in this time has an energy")
    shown = known
    if len(known) > MOST_BARS:
        least = sorted(one.energy_j for one in known)[-MOST_BARS]
        shown = [one for one in known if one.energy_j >= least][:MOST_BARS]
    scale = 10.0 ** (exponent := units.best_exponent([one.energy_j for one in shown]))
    with pyplot.rc_context(STYLE):
        legend = 0.5 if any(one.overhead_j for one in shown) else 0.0
        names = [_name(one) for one in shown]
        rows = max(name.count("\n") for name in names) + 1
        notes = [*usage.bar_notes(groups, shown, "greatest"), *left_out]
        height = 1.2 + 0.17 * len(notes) + legend + (0.11 + 0.17 * rows) * len(shown)
        canvas, axes = pyplot.subplots(figsize=(6.4, height))
        places = list(range(len(shown)))
        _draw_bars(axes, shown, places, scale)
        axes.set_yticks(places, names)
        axes.set_ylim(len(shown) - 0.4, -0.6)  # the first on top
        tick_evenly(axes.xaxis)
        axes.set_xlabel(f"Energy [{units.prefix(exponent)}J]", loc="left")
        hollow = PARTLY_HOLLOW if any(one.estimated_jobs for one in shown) else None
        write_titles(axes, f"Energy by {', '.join(by)}", notes, hollow)
        try:
            save(canvas, Path(path))
        except OSError as error:
            raise UserError(f"--plot {path}: {error.strerror}") from None


def _name(one: usage.Group) -> str:
    """A row a key, of a long one several, and the marks of what its energy lacks."""
    *keys, last = one.keys.values()
    rows = (*keys, last + usage.bar_marks(one))
    return "\n".join(textwrap.fill(row, LONGEST_NAME) for row in rows)


def _draw_bars(axes, shown: list[usage.Group], places: list[int], scale: float) -> None:
    values = [one.energy_j / scale for one in shown]
    errors = [one.energy_error_j / scale for one in shown]
    colour = COLOURS[0]
    axes.barh(
        places,
        values,
        xerr=errors,
        color=["white" if one.estimated_jobs else colour for one in shown],
        edgecolor=colour,
        capsize=2.5,
        error_kw={"elinewidth": 0.9},
    )
    overheads = [(one.overhead_j or 0) / scale for one in shown]
    if any(overheads):
        axes.barh(places, overheads, left=values, color=COLOURS[4])
        keys = [Patch(color=colour), Patch(color=COLOURS[4])]
        is_partial = any(one.overhead_jobs < one.jobs for one in shown)
        known = ", of the jobs that have a known one" if is_partial else ""
        names = ["energy of jobs, with its error", f"overhead (not in it{known})"]
        legend_below(axes, keys, names)
