"""What must hold whatever was killed: no joule is charged twice, what is lost is stated."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from tests.cluster import Cluster, Node, meanwhile

UJ = 1_000_000
TICKS = 7  # that are taken together
STAYS = 3  # levels: so long no reading is late
ROUNDING_UJ = 1_000  # a replayed counter is exact to 2 uJ each time it is read afresh

BETWEEN_RUNS_NS = 30 * 10**9  # a node that begins later after all others' end is of another run

Integral = Callable[[int, int], float]  # true joules between two moments of Unix time, ns


@dataclass(frozen=True)
class Charge:
    """What a job was charged on one node, from start to end."""

    job: int
    start_ns: int
    end_ns: int
    energy_uj: int
    gap_s: float
    uncertainty_uj: float = 0.0  # k=2; next to nothing unless the counter answered a tick too late


@dataclass(frozen=True)
class Snapshot:
    """A ledger's sums at its last saved tick."""

    real_ns: int
    total_uj: int
    parts_uj: int  # unallocated, settled and open together
    settled_uj: int = 0  # charged to jobs whose records are written


def snapshot(ledger: Path) -> Snapshot | None:
    """The ledger's sums, read as one; None: there is none that can be read now."""
    sums = (
        "SELECT (SELECT value FROM meta WHERE key = 'real_ns'), sum(total_uj),"
        " sum(unallocated_uj + settled_uj) + (SELECT coalesce(sum(energy_uj), 0) FROM balance"
        " JOIN account ON id = balance.account WHERE kind = 0 AND recorded = 0), sum(settled_uj)"
        " FROM channel"
    )
    uri = f"{(ledger / 'ledger.sqlite').as_uri()}?mode=ro"
    with (
        contextlib.suppress(sqlite3.Error),
        contextlib.closing(sqlite3.connect(uri, uri=True, timeout=5)) as connection,
    ):
        row = connection.execute(sums).fetchone()
        if None not in row:
            return Snapshot(*row)
    return None


# -- laws: each returns what breaks it -----------------------------------------------------------


def gained_more_than_true(snapshots: Sequence[Snapshot], true_j: Integral) -> list[str]:
    """Over every interval that was looked at, a ledger gains at most what was truly used.

    A reading that comes late lets a tick hold the power before and the next one make up for it, so
    a level is the median of a few ticks, and it has risen where it stays above those before: what
    was charged twice would stay.
    """
    faults = []
    for before, after in zip(snapshots, snapshots[1:]):
        if after.total_uj < before.total_uj:
            faults.append(f"the total fell by {before.total_uj - after.total_uj} uJ")
    levels_uj = _levels_uj(snapshots, true_j)
    for i in range(1, len(levels_uj)):
        before_uj, after_uj = max(levels_uj[max(0, i - STAYS) : i]), min(levels_uj[i : i + STAYS])
        if after_uj > before_uj + TICKS * ROUNDING_UJ:
            faults.append(f"{after_uj - before_uj:.0f} uJ more came in than were used")
    return faults


def _levels_uj(snapshots: Sequence[Snapshot], true_j: Integral) -> list[float]:
    """How far the total is above what was used since the start, for each few ticks."""
    if not snapshots:
        return []
    first = snapshots[0]
    above_uj = [
        shot.total_uj - first.total_uj - true_j(first.real_ns, shot.real_ns) * UJ
        for shot in snapshots
    ]
    groups = [above_uj[i : i + TICKS] for i in range(0, len(above_uj), TICKS)]
    return [median(group) for group in groups if len(group) == TICKS or len(groups) == 1]


def unbalanced(snapshots: Iterable[Snapshot]) -> list[str]:
    return [
        f"the parts sum to {shot.parts_uj} uJ, the total is {shot.total_uj} uJ"
        for shot in snapshots
        if shot.parts_uj != shot.total_uj
    ]


def charged_twice(charges: Iterable[Charge], true_j: Integral) -> list[str]:
    """Jobs that ran at one time share what was used meanwhile; they are never charged more.

    But for what their records say that they may be wrong by.
    """
    faults = []
    for group in _overlapping(charges):
        start_ns = min(charge.start_ns for charge in group)
        end_ns = max(charge.end_ns for charge in group)
        charged_uj = sum(charge.energy_uj for charge in group)
        unsure_uj = sum(charge.uncertainty_uj + ROUNDING_UJ for charge in group)
        most_uj = true_j(start_ns, end_ns) * UJ + unsure_uj
        if charged_uj > most_uj:
            jobs = ", ".join(str(charge.job) for charge in group)
            faults.append(f"jobs {jobs}: charged {charged_uj} uJ, {most_uj:.0f} uJ were used")
    return faults


def charged_beyond_the_ledger(charges: Iterable[Charge], last: Snapshot) -> list[str]:
    """Records hold what the ledger has charged to jobs, and no microjoule that it has not."""
    charged_uj = sum(charge.energy_uj for charge in charges)
    if charged_uj <= last.settled_uj:
        return []
    return [f"records sum to {charged_uj} uJ, the ledger has charged {last.settled_uj} uJ to jobs"]


def charged_beyond_the_truth(
    charges: Iterable[Charge], last: Snapshot, used_j: float
) -> list[str]:
    """Records, also those that a ledger forgot, and what is unallocated: no more than used."""
    charged_uj = sum(charge.energy_uj for charge in charges) + last.total_uj - last.settled_uj
    if charged_uj <= used_j * UJ + ROUNDING_UJ:
        return []
    return [f"{charged_uj} uJ are charged or unallocated, {used_j * UJ:.0f} uJ were used"]


def _overlapping(charges: Iterable[Charge]) -> list[list[Charge]]:
    """Groups of charges that hang together in time."""
    groups: list[list[Charge]] = []
    end_ns = 0
    for charge in sorted(charges, key=lambda charge: charge.start_ns):
        if not groups or charge.start_ns >= end_ns:
            groups.append([])
            end_ns = charge.end_ns
        groups[-1].append(charge)
        end_ns = max(end_ns, charge.end_ns)
    return groups


def lost_unstated(
    charge: Charge, span_ns: tuple[int, int], true_j: Integral, most_w: float
) -> list[str]:
    """What a job used while alone on its node, and is not charged, is within its stated gap."""
    lost_j = true_j(*span_ns) - charge.energy_uj / UJ
    stated_j = charge.gap_s * most_w + charge.uncertainty_uj / UJ
    if lost_j <= stated_j + 1e-3:
        return []
    return [f"job {charge.job}: {lost_j:.3f} J are lost, the gap stated is {charge.gap_s:.3f} s"]


# -- where they come from ------------------------------------------------------------------------


def runs(cluster: Cluster) -> dict[int, list[dict[str, int]]]:
    """Every job's runs, each the uJ by node: accounts that overlap are of one, in which a node's
    record that ends last takes the others' place."""
    spans: dict[int, list[tuple[int, int, str, int]]] = {}
    for node in cluster.nodes:
        for record in records(cluster, node):
            for one in record["accounts"]:
                if one["step"] == "job":
                    span = (one["start_ns"], one["end_ns"], node, one["energy_uj"])
                    spans.setdefault(record["JobIDRaw"], []).append(span)
    found: dict[int, list[dict[str, int]]] = {}
    for job, own in spans.items():
        last_ns, by_node = 0, {}
        for start_ns, end_ns, node, energy_uj in sorted(own):
            begins_anew = node in by_node or start_ns > last_ns + BETWEEN_RUNS_NS
            if start_ns >= last_ns and begins_anew:
                by_node = {}
                found.setdefault(job, []).append(by_node)
            if end_ns >= by_node.get(node, (0, 0))[0]:
                by_node[node] = end_ns, energy_uj
            last_ns = max(last_ns, end_ns)
    return {
        job: [{node: uj for node, (_, uj) in one.items()} for one in own]
        for job, own in found.items()
    }


def charges(cluster: Cluster, node: str) -> dict[int, Charge]:
    """Every job's charge on a node by the record that ends last: it takes the others' place."""
    found: dict[int, Charge] = {}
    for record in sorted(records(cluster, node), key=_end_ns):
        for account in record["accounts"]:
            if account["step"] == "job":
                found[record["JobIDRaw"]] = Charge(
                    record["JobIDRaw"],
                    account["start_ns"],
                    account["end_ns"],
                    account["energy_uj"],
                    account["gap_seconds"],
                    account["uncertainty_uj"],
                )
    return found


def _end_ns(record: dict) -> int:
    return max((account["end_ns"] for account in record["accounts"]), default=0)


def records(cluster: Cluster, node: str) -> list[dict]:
    """Merged and waiting, oldest first; listed again where a merge moves one meanwhile."""
    folder = cluster.state / "records"
    while True:
        paths = [*folder.glob(f"*.{node}.json"), *(folder / "merged").glob(f"*.{node}.json*")]
        with contextlib.suppress(FileNotFoundError):
            return [json.loads(path.read_text()) for path in sorted(paths, key=_age)]


def _age(path: Path) -> int:
    return path.stat().st_mtime_ns


@dataclass
class Watch:
    """Takes snapshots of every node's ledger while the cluster is being beaten."""

    nodes: Sequence[Node]
    every_s: float = 0.3
    taken: dict[str, list[Snapshot]] = field(default_factory=dict)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        with meanwhile(self._run):
            yield
        self.look()

    def _run(self, done: threading.Event) -> None:
        while not done.wait(self.every_s):
            self.look()

    def look(self) -> None:
        for node in self.nodes:
            shot, before = snapshot(node.ledger), self.taken.setdefault(node.name, [])
            if shot and before and shot.real_ns == before[-1].real_ns:
                before[-1] = shot  # saved again since that tick: a record has been written
            elif shot and (not before or shot.real_ns > before[-1].real_ns):
                before.append(shot)
