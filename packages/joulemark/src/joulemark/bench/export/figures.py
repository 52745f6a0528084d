# What every export carries: a run's figures in SI units, and what tells the run from others.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from joulemark.bench import stats
from joulemark.bench.cooked import Measurement
from joulemark.bench.manifest import Manifest

OF_ENERGY = ("energy_j", "energy_uncertainty_j", "power_w", "efficiency")
MEASURED, ESTIMATED = "measured", "estimated"
FAILURE = "the result failed its verification"
UNKNOWN = "unknown"  # where a format must have a name


@dataclass(frozen=True)
class Figure:
    """Of one iteration, under the name that it has in our own CSV and JSON."""

    name: str
    unit: str
    value: float


def figures(one: Measurement) -> list[Figure]:
    """Those that are known: none of a run that failed its verification, for it has no numbers."""
    operation = one.unit.partition("/")[0]
    known = {
        "time_s": ("s", one.time_s),
        "time_spread_s": ("s", one.time_spread_s),
        "operations": (operation, one.operations),
        "performance": (one.unit, one.performance),
    }
    if one.energy_j:
        known["energy_j"] = ("J", one.energy_j)
        known["energy_uncertainty_j"] = ("J", one.energy_uncertainty_j)
        known["power_w"] = ("W", stats.power_w(one))
        known["efficiency"] = (f"{operation}/J", stats.efficiency(one))
    return [
        Figure(name, unit, value) for name, (unit, value) in known.items() if value is not None
    ]


def energy_source(one: Measurement) -> str:
    """`measured` or `estimated`; empty: no energy is known."""
    if not one.energy_j:
        return ""
    return ESTIMATED if one.estimated else MEASURED


def unit_told(figure: Figure, one: Measurement) -> str:
    """For formats that lay figures side by side by their unit: no estimate beside a joule that
    was measured."""
    is_estimate = figure.name in OF_ENERGY and one.estimated
    return f"{figure.unit} ({ESTIMATED})" if is_estimate else figure.unit


def cluster(one: Measurement) -> str:
    """The node's name without its number, as Adiak finds it."""
    return re.sub(r"\d+$", "", one.node.partition(".")[0]) or UNKNOWN


def manifest(one: Measurement) -> dict[str, str]:
    """What is told of the program, what it was asked for, and its system."""
    told = {**(one.manifest or Manifest())._asdict(), "options": one.options}
    return {key: value for key, value in told.items() if value}


def first_start_s(runs: Iterable[Measurement]) -> float:
    """Of runs that were loaded, which have one."""
    return min(one.start_s for one in runs)


def as_file_name(*parts: str | int) -> str:
    """Joined by `-`, without what means something to a shell or a file system."""
    name = "-".join(re.sub(r"[^A-Za-z0-9_.+-]+", "_", str(part)) for part in parts)
    return re.sub(r"^[.-]|^$", "_", name)
