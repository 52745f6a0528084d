# What some jobs used on each of their nodes, by the nodes' own records.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from joulemark import units
from joulemark.accounting import usage
from joulemark.accounting.jobrecord import NS_PER_S
from joulemark.layout import ESTIMATE_MARK, Text
from joulemark.store.nodes import node_records
from joulemark.store.session import Session
from joulemark.store.sums import Use

LEGEND = "Nodes have the energy of the jobs above alone; power: energy over these jobs' time."


@dataclass(frozen=True)
class NodeUse:
    """The sums of a node's jobs, and how long those ran whose energy is known."""

    group: usage.Group
    seconds: float


def by_node(session: Session, rows: list[dict]) -> list[NodeUse]:
    """Of these job rows, the most energy first."""
    accounts: dict[str, list[dict]] = {}
    for row in rows:
        for _, record in node_records(session, row["Cluster"], row["Job"], {}):
            accounts.setdefault(record["node"], []).extend(_of_run(record, row))
    found = [
        NodeUse(usage.summed({"node": node}, list(map(_use, own))), _seconds(own))
        for node, own in accounts.items()
        if own
    ]
    return sorted(found, key=lambda one: (-(one.group.energy_uj or 0), one.group.keys["node"]))


def _of_run(record: dict, row: dict) -> Iterator[dict]:
    """The job's account in it, where it belongs to this run of the job."""
    for account in record["accounts"]:
        if account["step"] == "job" and row["Start_ns"] <= account["start_ns"] < row["End_ns"]:
            yield account


def _use(account: dict) -> Use:
    known = account["energy_uj"] is not None
    found = {**dict.fromkeys(Use._fields, 0), "jobs": 1}
    found.update(dict.fromkeys(("energy_uj", "overhead_uj", "carbon_g", "cost")))
    if known:
        found["energy_jobs"], found["energy_uj"] = 1, account["energy_uj"]
        found["systematic_uj"] = account["uncertainty_systematic_uj"]
        found["random_uj2"] = account["uncertainty_random_uj"] ** 2
        found["estimated"] = int(account["estimated"])
    return Use(**found)


def _seconds(accounts: list[dict]) -> float:
    known = (account for account in accounts if account["energy_uj"] is not None)
    return sum(account["end_ns"] - account["start_ns"] for account in known) / NS_PER_S


def as_text(found: list[NodeUse]) -> Text:
    """The columns of `report usage`, and mean power."""
    text = usage.as_text([one.group for one in found], ["node"])
    body = [(kind, [*cells, *_power(one)]) for (kind, cells), one in zip(text.body, found)]
    return replace(text, heads=[*text.heads, "Power [W]", "+-"], body=body)


def _power(one: NodeUse) -> list[str]:
    if not one.seconds:
        return ["-", ""]
    mark = ESTIMATE_MARK if one.group.estimated_jobs else ""
    joules = (one.group.energy_j, one.group.energy_error_j)
    value, error = (units.cell(value / one.seconds, 0, "W") for value in joules)
    return [mark + value, error]


def notes(found: list[NodeUse]) -> list[str]:
    """What must be known to read the table."""
    return [LEGEND, *usage.notes([one.group for one in found])]
