# `joulemark report jobs`: job records as a table for people.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

from joulemark.accounting import columns
from joulemark.layout import LEGEND_ESTIMATED, Text

SHOWN = (
    *("Energy", "EnergyError", "AveWatts", "EnergyOverhead", "OverheadError"),
    *("Carbon", "CarbonError", "Cost", "CostError", "Currency", "Faults"),
)
ALWAYS = ("Energy", "EnergyError", "AveWatts")
UNITS = {"AveWatts": "W", "Carbon": "g", "CarbonError": "g", "Cost": "", "CostError": ""}
UNITS.update({"Currency": "", "Faults": ""})
# What a narrow terminal is not shown, the first ones first; job, user and energy always are.
OPTIONAL = (
    *(("Faults",), ("Carbon", "CarbonError"), ("Cost", "CostError", "Currency")),
    *(("EnergyOverhead", "OverheadError"), ("Partition",), ("Nodes",), ("Account",)),
    ("AveWatts",),
)
LEGEND = (
    "Energy in J; Error: +- with k=2. Overhead is not in Energy, carbon and cost are of Energy."
)


def as_text(rows: list[dict]) -> Text:
    """One line a job; columns that are empty for all are left out."""
    cells = {
        name: [columns.BY_NAME[name.lower()].cell(row, False) for row in rows] for name in SHOWN
    }
    shown = [name for name in SHOWN if name in ALWAYS or any(cells[name])]
    names = ["Job", "User", "Account", "Partition", "Nodes", *shown]
    heads = names[: -len(shown)]
    heads += [f"{name} [{unit}]" if (unit := UNITS.get(name, "J")) else name for name in shown]
    body = [
        ("value", [*_who(row), *(cells[name][index] for name in shown)])
        for index, row in enumerate(rows)
    ]
    groups = (tuple(names.index(name) for name in group if name in names) for group in OPTIONAL)
    optional = tuple(filter(None, groups))
    return Text("Jobs by energy", heads, body, optional)


def _who(row: dict) -> list[str]:
    run = f" (run {row['Run']})" if row["Run"] else ""
    user = row["UserName"] or f"uid {row['Uid']}"
    place = [row[name] or "-" for name in ("Account", "PartitionName")]
    return [f"{row['JobIDRaw']}{run}", user, *place, str(row["NNodes"])]


def notes(rows: list[dict]) -> list[str]:
    """What must be known to read the table."""
    lacking = [f"Job {row['JobIDRaw']} lacks {row['Missing']}." for row in rows if row["Missing"]]
    estimated = [LEGEND_ESTIMATED] if any(row["Estimated"] for row in rows) else []
    return [LEGEND, *estimated, *lacking]
