# The line for AdminComment: writes it, and reads it back for who cannot read the store.
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`Energy: 5210.4 J +- 61.2 J (k=2), 120.3 W mean, 2 nodes, counter, gap 0.4 s, CPU 3126.2 J, ...,
faults: pdu stuck; missing: n2`. slurm-plugins/epilog/segment.h has what is around it in
AdminComment. A release passes over figures that it does not know, so that more can be added."""

from __future__ import annotations

import json
import re

from joulemark.accounting.jobrecord import few, interval_j
from joulemark.storage.work import COLUMNS as WORK
from joulemark.store import jobs
from joulemark.units import UJ_PER_J

# Behind the nodes and the method: name, column and unit of a figure; those of the job that are
# not known are left out. Of a price the unit is the row's own currency.
FIGURES = (
    ("CPU", "EnergyCPU_uj", "J"),
    ("DRAM", "EnergyDRAM_uj", "J"),
    ("GPU", "EnergyGPU_uj", "J"),
    ("rest", "EnergyRest_uj", "J"),
    ("idle", "EnergyIdle_uj", "J"),
    ("systematic", "UncertaintySystematic_uj", "J (k=1)"),
    ("random", "UncertaintyRandom_uj", "J (k=1)"),
    ("peak", "PeakWatts", "W"),
    ("overhead", "EnergyOverhead_uj", "J"),
    ("overhead error", "OverheadJoules", "J (k=2)"),
    ("carbon", "Carbon_g", "g"),
    ("carbon error", "CarbonError_g", "g (k=2)"),
    ("carbon of overhead", "CarbonOverhead_g", "g"),
    ("cost", "Cost", ""),
    ("cost error", "CostError", ""),
    ("cost of overhead", "CostOverhead", ""),
    ("storage", "EnergyStorage_uj", "J"),
    ("storage error", "StorageJoules", "J (k=2)"),
    ("read", "BytesRead", "B"),
    ("written", "BytesWritten", "B"),
    ("metadata", "MetadataOps", "ops"),
)

FIRST = ("ConsumedEnergy_uj", "UncertaintyJoules", "AveWatts", "NNodes", "Method", "Estimated")
MADE_OF = (*FIRST, "GapSeconds", *(key for _, key, _ in FIGURES), "Currency", "Faults", "Missing")

ESTIMATED = " (estimated by model)"
GAP, FAULTS, MISSING = "gap", ", faults: ", "; missing: "
# Not compiled here: a merge, which reads none, begins at every job's end.
SEGMENT = r"<joulemark (\d+): ?([^<>]*)>"
VERSION = "1"
NUMBER = r"(-?\d{1,30}(?:\.\d{1,30})?(?:e\+?\d\d|e-\d{1,3})?)"  # that a float can hold
ENERGY = (
    rf"Energy(?P<model>{re.escape(ESTIMATED)})?: {NUMBER} J \+- {NUMBER} J \(k=2\)"
    rf"(?:, {NUMBER} W mean)?, \d+ nodes?, (?P<method>\w+)"
)
FIGURE = rf"(\D+?) {NUMBER}(?: (.*))?"
COLUMN = {name: key for name, key, _ in FIGURES} | {GAP: "GapSeconds"}


def same(one: dict, other: dict) -> bool:
    """Whether all that write() makes its line of is the same in two job rows."""
    return all(one[name] == other[name] for name in MADE_OF)


def write(row: dict, missing_nodes: list[str]) -> str:
    """A job row's line."""
    known = row["ConsumedEnergy_uj"] is not None
    text = _energy(row) if known else "Energy: not measured"
    if row["GapSeconds"] > 0:
        text += f", {GAP} {row['GapSeconds']:.1f} s"
    text += "".join(f", {figure}" for figure in _figures(row))
    faults = json.loads(row["Faults"])
    if faults:
        text += FAULTS + ", ".join(f"{one['instrument']} {one['what']}" for one in faults)
    if missing_nodes:
        text += f"{MISSING}{few(missing_nodes)}"
    return text


def _energy(row: dict) -> str:
    mark = ESTIMATED if row["Estimated"] else ""
    energy_j = row["ConsumedEnergy_uj"] / UJ_PER_J
    mean = f", {row['AveWatts']:.1f} W mean" if row["AveWatts"] is not None else ""
    nodes = "1 node" if row["NNodes"] == 1 else f"{row['NNodes']} nodes"
    return (
        f"Energy{mark}: {energy_j:.1f} J +- {row['UncertaintyJoules']:.1f} J (k=2)"
        f"{mean}, {nodes}, {row['Method']}"
    )


def _figures(row: dict) -> list[str]:
    return [
        f"{name} {_told_number(key, row[key])} {unit or row['Currency']}"
        for name, key, unit in FIGURES
        if row[key] is not None
    ]


def _told_number(key: str, value: float) -> str:
    return str(value) if key in WORK else _number(value / _scale(key))


def _scale(key: str) -> int:
    return UJ_PER_J if key.endswith("_uj") else 1


def _number(value: float) -> str:
    """To 0.1, of small ones four digits."""
    return f"{value:.1f}" if abs(value) >= 100 else f"{value:.4g}"


def read(admin_comment: str, job: int) -> dict | None:
    """A job row with what our part of AdminComment tells, all else None; None: it has none."""
    text = _ours(admin_comment)
    if text is None:
        return None
    text, _, missing = text.partition(MISSING)
    text, _, faults = text.partition(FAULTS)
    return {
        **nothing(job),
        "Missing": missing or None,
        "Faults": json.dumps([_fault(one) for one in faults.split(", ") if one]),
        **_told(text),
    }


def nothing(job: int) -> dict:
    """A job row of which nothing is known."""
    return {
        **dict.fromkeys(jobs.NAMES),
        **{"JobIDRaw": str(job), "Job": job, "Step": "job", "Estimated": 0, "Faults": "[]"},
        "Source": "AdminComment",
    }


def _ours(admin_comment: str) -> str | None:
    """The text of our segment; before there were segments, all of it was ours."""
    segment = re.search(SEGMENT, admin_comment)
    if segment:
        return segment[2] if segment[1] == VERSION else None
    older = admin_comment.startswith(("Energy: ", f"Energy{ESTIMATED}: "))
    return admin_comment if older else None


def _fault(text: str) -> dict[str, str]:
    instrument, _, what = text.partition(" ")
    return {"instrument": instrument, "what": what}


def _told(text: str) -> dict:
    """The columns of the line's figures; of a line that says `not measured` there are few."""
    first = re.match(ENERGY, text)
    row: dict = {}
    if first:
        energy_j, error_j, mean_w = (first[number] for number in (2, 3, 4))
        row = {
            "ConsumedEnergy_uj": round(float(energy_j) * UJ_PER_J),
            "UncertaintyJoules": float(error_j),
            "AveWatts": float(mean_w) if mean_w else None,
            "Method": first["method"],
            "Estimated": int(first["model"] is not None),
            "GapSeconds": 0.0,
        }
    for word in text[first.end() if first else 0 :].split(", "):
        figure = re.fullmatch(FIGURE, word)
        if figure and figure[1] in COLUMN:
            key = COLUMN[figure[1]]
            row[key] = _read_number(key, figure[2])
            if key == "Cost":
                row["Currency"] = figure[3] or ""
    parts = [row.get(key) for key in ("UncertaintySystematic_uj", "UncertaintyRandom_uj")]
    if None not in parts:  # finer than the interval, which of a small job is `+- 0.0 J`
        row["UncertaintyJoules"] = interval_j(*parts)
    return row


def _read_number(key: str, text: str) -> float:
    if key in WORK and text.isdecimal():
        return int(text)
    value = float(text) * _scale(key)
    return round(value) if key.startswith("Energy") else value
