# What a benchmark found: figures with their peers and goals, for people or as JSON lines.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Figure:
    """One line of the result. peer: what it is compared with, by name or value."""

    name: str
    value: float
    unit: str
    peer: str | float | None = None
    goal: str = ""
    met: bool | None = None  # None: it has no goal
    spread: tuple[float, float] | None = None  # lowest and highest of what the value sums up


def at_most(
    name: str, value: float, unit: str, limit: float, peer: str | float | None = None
) -> Figure:
    return Figure(name, value, unit, peer, f"<= {limit:g}", value <= limit)


def line_of(figure: Figure) -> str:
    line = f"{figure.name:36} {figure.value:12.3f} {figure.unit:24}"
    if figure.spread:
        line += " [{:.3f}, {:.3f}]".format(*figure.spread)
    if isinstance(figure.peer, (int, float)):
        line += f" (peer: {figure.peer:g})"
    if figure.met is not None:
        line += f" goal {figure.goal}: {'met' if figure.met else 'NOT MET'}"
    return line.rstrip()


def show(figures: Iterable[Figure], as_json: bool) -> bool:
    """Prints each as it comes. Were all goals met?"""
    met = True
    for figure in figures:
        print(json.dumps(asdict(figure)) if as_json else line_of(figure), flush=True)
        met = met and figure.met is not False
    return met
