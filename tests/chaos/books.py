"""What must hold whatever was killed: no joule is charged twice, what is lost is stated."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster import Cluster, Node
from tests.e2e.waveform import NS

UJ = 1_000_000
ROUNDING_UJ = 1_000  # a replayed counter is exact to 2 uJ each time it is read afresh

Integral = Callable[[int, int], float]  # true joules between two moments of Unix time, ns


@dataclass(frozen=True)
class Charge:
    """What a job was charged on one node, from start to end."""

    job: int
    start_ns: int
    end_ns: int
    energy_uj: int
    gap_s: float


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
    """Over every interval that was looked at, a ledger gains at most what was truly used."""
    faults = []
    for before, after in zip(snapshots, snapshots[1:]):
        gained_uj = after.total_uj - before.total_uj
        most_uj = true_j(before.real_ns, after.real_ns) * UJ + ROUNDING_UJ
        if gained_uj > most_uj:
            seconds = (after.real_ns - before.real_ns) / NS
            faults.append(f"in {seconds:.3f} s {gained_uj} uJ came in, {most_uj:.0f} uJ were used")
        if gained_uj < 0:
            faults.append(f"the total fell by {-gained_uj} uJ")
    return faults


def unbalanced(snapshots: Iterable[Snapshot]) -> list[str]:
    return [
        f"the parts sum to {shot.parts_uj} uJ, the total is {shot.total_uj} uJ"
        for shot in snapshots
        if shot.parts_uj != shot.total_uj
    ]


def charged_twice(charges: Iterable[Charge], true_j: Integral) -> list[str]:
    """Jobs that ran at one time share what was used meanwhile; they are never charged more."""
    faults = []
    for group in _overlapping(charges):
        start_ns = min(charge.start_ns for charge in group)
        end_ns = max(charge.end_ns for charge in group)
        charged_uj = sum(charge.energy_uj for charge in group)
        most_uj = true_j(start_ns, end_ns) * UJ + ROUNDING_UJ * len(group)
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
    stated_j = charge.gap_s * most_w
    if lost_j <= stated_j + 1e-3:
        return []
    return [f"job {charge.job}: {lost_j:.3f} J are lost, the gap stated is {charge.gap_s:.3f} s"]


# -- where they come from ------------------------------------------------------------------------


def charges(cluster: Cluster, node: str) -> dict[int, Charge]:
    """Every job's charge on a node by its last record, which takes an earlier one's place."""
    found: dict[int, Charge] = {}
    for record in records(cluster, node):
        for account in record["accounts"]:
            if account["step"] == "job":
                found[record["JobIDRaw"]] = Charge(
                    record["JobIDRaw"],
                    account["start_ns"],
                    account["end_ns"],
                    account["energy_uj"],
                    account["gap_seconds"],
                )
    return found


def records(cluster: Cluster, node: str) -> list[dict]:
    """Merged and waiting, oldest first."""
    folder = cluster.state / "records"
    paths = [*folder.glob(f"*.{node}.json"), *(folder / "merged").glob(f"*.{node}.json*")]
    return [json.loads(path.read_text()) for path in sorted(paths, key=_age)]


def _age(path: Path) -> int:
    return path.stat().st_mtime_ns


@dataclass
class Watch:
    """Takes snapshots of every node's ledger while the cluster is being beaten."""

    nodes: Sequence[Node]
    every_s: float = 0.3
    taken: dict[str, list[Snapshot]] = field(default_factory=dict)

    def __enter__(self) -> Watch:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self.look()

    def _run(self) -> None:
        while not self._stop.wait(self.every_s):
            self.look()

    def look(self) -> None:
        for node in self.nodes:
            shot, before = snapshot(node.ledger), self.taken.setdefault(node.name, [])
            if shot and (not before or shot.real_ns > before[-1].real_ns):
                before.append(shot)
