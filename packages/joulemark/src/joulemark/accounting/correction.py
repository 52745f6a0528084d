# A job's charge as somebody corrected it: all its runs' rows shrink or grow by one share.
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What was measured stays in the nodes' records and in the steps' rows, and is in the note. Mean
and peak power are the job's, not its charge's, and stay."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

from joulemark.layout import Text
from joulemark.store.corrections import Correction
from joulemark.units import NS_PER_S, UJ_PER_J

PARTS = ("EnergyCPU_uj", "EnergyDRAM_uj", "EnergyGPU_uj", "EnergyRest_uj")
WHOLE = ("EnergyIdle_uj", "EnergyOverhead_uj")
REAL = (
    *("UncertaintySystematic_uj", "UncertaintyRandom_uj", "UncertaintyJoules"),
    *("OverheadSystematic_uj", "OverheadRandom_uj", "OverheadJoules"),
    *("Carbon_g", "CarbonError_g", "CarbonOverhead_g", "Cost", "CostError", "CostOverhead"),
)
# Another energy of the nodes says nothing of what servers drew.
STORAGE = ("EnergyStorage_uj", "StorageSystematic_uj", "StorageRandom_uj", "StorageJoules")


def apply(runs: Sequence[dict], found: Sequence[Correction]) -> None:
    """Changes the rows of a job's runs to what the last correction says, and notes it."""
    known = [row for row in runs if row["ConsumedEnergy_uj"] is not None]
    if not found or not known:
        return
    last, before_uj = found[-1], 0
    share = last.share_of(sum(row["ConsumedEnergy_uj"] for row in known))
    if last.energy_uj is None:
        for row in runs:  # its nodes may be silent where servers told
            _scale(row, share, STORAGE[:1], STORAGE[1:])
            if row["ConsumedEnergy_uj"] is None and row["EnergyStorage_uj"] is not None:
                _add_note(row, _note(last, f"{100 * share:g} %", "its storage's energy"))
    for row in known:
        measured_uj = row["ConsumedEnergy_uj"]
        (charged_uj,) = _shared([measured_uj], share, before_uj)
        parts = [name for name in PARTS if row[name] is not None]
        row.update(zip(parts, _shared([row[name] for name in parts], share, before_uj)))
        _scale(row, share, WHOLE, REAL)
        row["ConsumedEnergy_uj"] = charged_uj
        row["ConsumedEnergyRaw"] = (charged_uj + UJ_PER_J // 2) // UJ_PER_J
        _add_note(row, note(last, measured_uj, charged_uj))
        before_uj += measured_uj


def _scale(row: dict, share: float, whole: Sequence[str], real: Sequence[str]) -> None:
    row.update({name: round(row[name] * share) for name in whole if row[name] is not None})
    row.update({name: row[name] * share for name in real if row[name] is not None})


def _shared(parts_uj: Sequence[int], share: float, before_uj: int) -> list[int]:
    """The share of each, rounded so that they add up, to what is before them, too."""
    ends = [round((before_uj + sum(parts_uj[:end])) * share) for end in range(len(parts_uj) + 1)]
    return [end - begin for begin, end in zip(ends, ends[1:])]


def note(one: Correction, measured_uj: int, charged_uj: int) -> str:
    """`charged 50 % of 1234.0 J: the node failed (root, 2026-11-26)`"""
    return _note(one, _charge(one, charged_uj), f"{measured_uj / UJ_PER_J:.1f} J")


def _note(one: Correction, charged: str, of: str) -> str:
    when = time.strftime("%Y-%m-%d", time.gmtime(one.made_ns // NS_PER_S))
    return f"charged {charged} of {of}: {one.why} ({one.author}, {when})"


def _add_note(row: dict, text: str) -> None:
    row["Notes"] = "; ".join(filter(None, [row["Notes"], text]))


def _charge(one: Correction, energy_uj: int | None) -> str:
    return f"{100 * one.share:g} %" if one.energy_uj is None else f"{energy_uj / UJ_PER_J:g} J"


def as_text(found: Sequence[Correction]) -> Text:
    """The audit trail."""
    heads = ["Cluster", "Raw id", "No.", "Made [UTC]", "By", "Charged", "Why"]
    body = [("value", [str(cell) for cell in _cells(one)]) for one in found]
    return Text("Corrections", heads, body)


def _cells(one: Correction) -> list:
    made = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(one.made_ns // NS_PER_S))
    why = json.dumps(one.why, ensure_ascii=False)[1:-1]  # on one line
    return [one.cluster, one.job, one.number, made, one.author, _charge(one, one.energy_uj), why]


def as_records(found: Sequence[Correction]) -> list[dict]:
    """For programs."""
    return [dict(zip(columns(), one)) for one in found]


def columns() -> list[str]:
    """The keys of as_records(): a job's number has its name in all reports."""
    return ["job_id_raw" if name == "job" else name for name in Correction._fields]
