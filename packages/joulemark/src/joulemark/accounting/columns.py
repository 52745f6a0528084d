# The columns that `joulemark sacct` adds to sacct's own: names, widths, and what a cell says.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Callable, Optional

from joulemark import units
from joulemark.accounting.jobrecord import few
from joulemark.layout import ESTIMATE_MARK
from joulemark.units import UJ_PER_J

COVERAGE = """\
EnergyError, OverheadError, StorageError, CarbonError and CostError are half an interval with k=2
(95 %), the +- of their figure. EnergySystematic and EnergyRandom are standard uncertainties, k=1:
EnergyError = 2 sqrt(EnergySystematic^2 + EnergyRandom^2)."""


@dataclass(frozen=True)
class Column:
    """One column; `cell` makes its text from a job record, exact for scripts, short for eyes."""

    name: str
    width: int
    help: str
    cell: Callable[[dict, bool], str]


# An interval and whose it is: for eyes a figure has no digit that they leave unknown; an error
# has two.
OF_ENERGY = ("UncertaintyJoules", "ConsumedEnergy_uj")
OF_OVERHEAD = ("OverheadJoules", "EnergyOverhead_uj")
OF_STORAGE = ("StorageJoules", "EnergyStorage_uj")
Whose = Optional[tuple[str, str]]


def _joules(key: str, whose: Whose = OF_ENERGY) -> Callable[[dict, bool], str]:
    def cell(row: dict, exact: bool) -> str:
        value_uj = row[key]
        if value_uj is None:
            return ""
        whole, part = divmod(value_uj, UJ_PER_J)
        text = f"{whole}.{part:06d}" if exact else _short(row, value_uj / UJ_PER_J, whose)
        return _marked(row, text, exact)

    return cell


def _real(key: str, whose: Whose = OF_ENERGY, scale: int = 1) -> Callable[[dict, bool], str]:
    def cell(row: dict, exact: bool) -> str:
        if row[key] is None:
            return ""
        value = row[key] / scale
        return _marked(row, f"{value:.6f}" if exact else _short(row, value, whose), exact)

    return cell


def _short(row: dict, value: float, whose: Whose) -> str:
    error = value
    if whose:
        error_j, energy_uj = (row[name] or 0 for name in whose)
        error = value * error_j * UJ_PER_J / energy_uj if energy_uj else 0.0
    places = min(1 if abs(value) >= 100 else 3, units.decimals(value, abs(error)))
    return f"{round(value, places):.{max(0, places)}f}"


def _faults(row: dict, exact: bool) -> str:
    return "; ".join(map(fault_text, json.loads(row["Faults"])))


def fault_text(fault: dict) -> str:
    """`pdu stuck 3 times, 12.5 s on n1, n2`; AdminComment has no more than `pdu stuck`."""
    if "count" not in fault:
        return f"{fault['instrument']} {fault['what']}"
    times = "once" if fault["count"] == 1 else f"{fault['count']} times"
    where = few(fault["nodes"])
    return f"{fault['instrument']} {fault['what']} {times}, {fault['seconds']:.1f} s on {where}"


def _marked(row: dict, text: str, exact: bool) -> str:
    """For eyes; a program reads a number, and the column Estimated."""
    return ESTIMATE_MARK + text if row["Estimated"] and not exact else text


def _text(key: str) -> Callable[[dict, bool], str]:
    return lambda row, exact: "" if row[key] is None else str(row[key])


def _estimated(row: dict, exact: bool) -> str:
    if row["ConsumedEnergy_uj"] is None:
        return ""
    return "estimated" if row["Estimated"] else "measured"


def seen(row: dict, key: str) -> float | int | None:
    """Samples or GapSeconds; None, not 0, where no node told anything."""
    is_untold = row["ConsumedEnergy_uj"] is None and row["Samples"] == 0
    return None if is_untold else row[key]


def _samples(row: dict, exact: bool) -> str:
    samples = seen(row, "Samples")
    return "" if samples is None else str(samples)


def _gap(row: dict, exact: bool) -> str:
    gap_s = seen(row, "GapSeconds")
    if gap_s is None:
        return ""
    return f"{gap_s:.6f}" if exact else f"{gap_s:.1f}"


COLUMNS = (
    Column("Energy", 12, "energy to solution in J", _joules("ConsumedEnergy_uj")),
    Column("EnergyError", 11, "its uncertainty, +- J with k=2", _real("UncertaintyJoules", None)),
    Column("AveWatts", 9, "mean power in W of what was measured, not charged", _real("AveWatts")),
    Column("PeakWatts", 9, "sum of the nodes' peaks in W: an upper bound", _real("PeakWatts")),
    Column("EnergyCPU", 11, "part of Energy used by CPUs, J", _joules("EnergyCPU_uj")),
    Column("EnergyDRAM", 11, "part of Energy used by memory, J", _joules("EnergyDRAM_uj")),
    Column("EnergyGPU", 11, "part of Energy used by GPUs, J", _joules("EnergyGPU_uj")),
    Column("EnergyRest", 11, "part of Energy used by all else, J", _joules("EnergyRest_uj")),
    Column(
        "EnergyIdle", 11, "part of Energy that idle nodes use too, J", _joules("EnergyIdle_uj")
    ),
    Column(
        "EnergyOverhead",
        14,
        "share of cooling and such, J, not in Energy",
        _joules("EnergyOverhead_uj", OF_OVERHEAD),
    ),
    Column("OverheadError", 13, "its uncertainty, +- J with k=2", _real("OverheadJoules", None)),
    Column(
        "EnergySystematic",
        16,
        "systematic part of EnergyError, k=1, J",
        _real("UncertaintySystematic_uj", None, UJ_PER_J),
    ),
    Column(
        "EnergyRandom",
        12,
        "random part of EnergyError, k=1, J",
        _real("UncertaintyRandom_uj", None, UJ_PER_J),
    ),
    Column("Carbon", 11, "CO2 equivalent of Energy in g, at its mean power", _real("Carbon_g")),
    Column("CarbonError", 11, "its uncertainty, +- g with k=2", _real("CarbonError_g", None)),
    Column(
        "CarbonOverhead",
        14,
        "CO2 equivalent of EnergyOverhead, g",
        _real("CarbonOverhead_g", OF_OVERHEAD),
    ),
    Column("Cost", 10, "price of Energy, at its mean power", _real("Cost")),
    Column("CostError", 10, "its uncertainty, +- with k=2", _real("CostError", None)),
    Column("CostOverhead", 12, "price of EnergyOverhead", _real("CostOverhead", OF_OVERHEAD)),
    Column("Currency", 8, "of Cost", _text("Currency")),
    Column(
        "EnergyStorage",
        13,
        "of storage servers, above their idle, J, not in Energy",
        _joules("EnergyStorage_uj", OF_STORAGE),
    ),
    Column("StorageError", 12, "its uncertainty, +- J with k=2", _real("StorageJoules", None)),
    Column("BytesRead", 14, "from storage servers, not from caches", _text("BytesRead")),
    Column("BytesWritten", 14, "to storage servers", _text("BytesWritten")),
    Column("MetadataOps", 11, "requests to metadata servers", _text("MetadataOps")),
    Column("EnergyMethod", 12, "counter, integrated, model or mixed", _text("Method")),
    Column("Estimated", 9, "`estimated` (by a model) or `measured`", _estimated),
    Column("EnergySamples", 13, "how often it was charged; a slow meter brings less", _samples),
    Column("GapSeconds", 10, "time without a reading, on the node with most, s", _gap),
    Column("SplitPolicy", 30, "how a shared node's energy was split", _text("SplitPolicy")),
    Column("EnergyMissing", 30, "nodes whose record is missing, and why", _text("Missing")),
    Column("Faults", 30, "what was wrong with instruments meanwhile", _faults),
    Column("EnergyNotes", 30, "what nodes say about the figures", _text("Notes")),
    Column("Run", 4, "how often Slurm had started the job before", _text("Run")),
)
BY_NAME = {column.name.lower(): column for column in COLUMNS}
