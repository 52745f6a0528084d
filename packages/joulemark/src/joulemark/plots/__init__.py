# What is drawn with matplotlib, which no other room imports and which takes a second to load.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

from joulemark import progress


def draw_lines(charts, options, key: str) -> None:
    """As chart.draw_all()."""
    with progress.shown("drawing"):
        from joulemark.plots import chart

        chart.draw_all(charts, options, key)


def draw_bars(groups, by, path: str, notes) -> None:
    """As bars.draw()."""
    with progress.shown("drawing"):
        from joulemark.plots import bars

        bars.draw(groups, by, path, notes)


def draw_profile(rows: list, path, overlay: bool) -> None:
    """As profile.draw()."""
    with progress.shown("drawing"):
        from joulemark.plots import profile

        profile.draw(rows, path, overlay=overlay)
