# What is drawn with matplotlib, which no other room imports.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import importlib

from joulemark import progress


def draw_lines(*what) -> None:
    """As chart.draw_all()."""
    _call("chart", "draw_all", *what)


def draw_bars(*what) -> None:
    """As bars.draw()."""
    _call("bars", "draw", *what)


def draw_profile(*what) -> None:
    """As profile.draw()."""
    _call("profile", "draw", *what)


def _call(module: str, function: str, *what) -> None:
    """Loads matplotlib, which takes a second, of a first time many."""
    with progress.shown("drawing"):
        getattr(importlib.import_module(f"joulemark.plots.{module}"), function)(*what)
