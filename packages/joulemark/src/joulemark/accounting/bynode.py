# What jobs used on each node, by the nodes' own records.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from joulemark.accounting import usage
from joulemark.layout import Text
from joulemark.store.node_sums import NodeUse
from joulemark.store.sums import Use

KEYS = ["cluster", "node"]
LEGEND = (
    "What jobs used there, whatever a correction made of it; what no job used is not in it, "
    "nor a job of which the node told no times. "
    "Power a job: energy over the jobs' time, two at once having two seconds in a second; it "
    "compares nodes that run as many jobs at once, not what nodes draw."
)


@dataclass(frozen=True)
class Node:
    """The sums of a node's jobs, and how long those ran whose energy is known."""

    group: usage.Group
    seconds: float

    @property
    def keys(self) -> dict[str, str]:
        """Cluster and node."""
        return self.group.keys

    @property
    def job_power_w(self) -> float | None:
        """The mean of a job there; of a node that runs one at a time, its own while it does."""
        return self.group.energy_j / self.seconds if self.seconds else None

    @property
    def job_power_error_w(self) -> float | None:
        """k=2."""
        return self.group.energy_error_j / self.seconds if self.seconds else None


def by_node(found: Iterable[NodeUse]) -> list[Node]:
    """The most energy first."""
    nodes = [
        Node(usage.summed({"cluster": one.cluster, "node": one.node}, [_use(one)]), one.seconds)
        for one in found
    ]
    return sorted(nodes, key=lambda one: (-(one.group.energy_uj or 0), *one.keys.values()))


def _use(one: NodeUse) -> Use:
    """As `report usage` has it; nodes have neither overhead nor a price."""
    known = {name: value for name, value in one._asdict().items() if name in Use._fields}
    counts = {"jobs": one.jobs, "energy_jobs": one.energy_jobs}
    return usage.of_one(**known)._replace(**counts)


def groups(found: list[Node]) -> list[usage.Group]:
    """The sums, named by the cluster too where there are several."""
    names = KEYS if len({one.keys["cluster"] for one in found}) > 1 else KEYS[1:]
    return [replace(one.group, keys={name: one.keys[name] for name in names}) for one in found]


def as_text(found: list[Node]) -> Text:
    """The columns of `report usage`, and the mean power of a job."""
    sums = groups(found)
    text = usage.as_text(sums, list(sums[0].keys) if sums else KEYS[1:])
    body = [(kind, [*cells, *_power(one)]) for (kind, cells), one in zip(text.body, found)]
    return replace(text, heads=[*text.heads, "Power a job [W]", "+-"], body=body)


def _power(one: Node) -> list[str]:
    if one.job_power_w is None:
        return ["-", ""]
    return list(usage.with_error(one.job_power_w, one.job_power_error_w, "W", one.group))


RECORDED = ("jobs", "energy_jobs", "estimated_jobs", "energy_j", "energy_uj", "energy_error_j")


def as_records(found: list[Node]) -> list[dict]:
    """Plain numbers for programs; what is not known is null, its error too."""
    return [
        {
            **{key: record[key] for key in (*KEYS, *RECORDED)},
            "job_seconds": one.seconds,
            "job_power_w": one.job_power_w,
            "job_power_error_w": one.job_power_error_w,
        }
        for one, record in zip(found, usage.as_records([one.group for one in found]))
    ]


def columns() -> list[str]:
    """The keys of as_records() also where there is no node."""
    return list(as_records([Node(usage.summed(dict.fromkeys(KEYS, ""), []), 0.0)])[0])


def notes(found: list[Node]) -> list[str]:
    """What must be known to read the table."""
    return [LEGEND, *usage.notes([one.group for one in found])]
