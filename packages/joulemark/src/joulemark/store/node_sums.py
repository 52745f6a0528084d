# Sums over the records of each node, made by the database from one index, which holds no bodies.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from joulemark.store.schema import KEPT_NODE, KEPT_NODE_KEY
from joulemark.store.session import Session
from joulemark.store.sums import Chosen, clusters, halves, rows_of, unpruned, whole
from joulemark.store.zones import Zones


class NodeUse(NamedTuple):
    """What jobs used on a node; seconds and estimated are of those whose energy is known."""

    cluster: str
    node: str
    jobs: int  # runs of jobs, to be exact
    energy_jobs: int
    energy_uj: int | None
    systematic_uj: float
    random_uj2: float
    seconds: float  # of jobs: two at once have two in a second
    estimated: int


UNKNOWN_NS = 0  # the end of an excuse that knows no times: of which run and day nobody can tell
FARTHEST_DAY = 106_750  # from 1970 on, whose nanoseconds a database's whole number can say
_FIELDS = tuple(KEPT_NODE)[len(KEPT_NODE_KEY) :]  # NodeUse's, but for the energy's halves
_CONVERT = (int, int, int, int, float, float, float, int)


def node_uses(session: Session, chosen: Chosen) -> list[NodeUse]:
    """Of each node, by cluster and name; of the jobs that ended on the days that were chosen.

    A record without times, which may be an excuse beside the whole one of the same run, counts
    for none.
    """
    zones, found = Zones(session), []
    for cluster in chosen.clusters or clusters(session):
        sums: dict[str, list] = {}
        rows = unpruned(
            session,
            lambda cluster=cluster: [
                *_of_records(session, cluster, chosen, zones),
                *_of_pruned(session, cluster, chosen),
            ],
        )
        for node, *numbers in rows:
            _add(sums, node, _numbers(numbers))
        found += [NodeUse(cluster, node, *_known(sums[node])) for node in sorted(sums)]
    return found


def _of_records(session: Session, cluster: str, chosen: Chosen, zones: Zones) -> list[tuple]:
    """A moment is the end of what was before it, so that midnight is of the day before."""
    begins = [
        None if day is None else zones[cluster].begin_ns(_within_reach(day))
        for day in (chosen.first_day, chosen.end_day)
    ]
    bounds = (("end_ns > ?", UNKNOWN_NS), *zip(("end_ns > ?", "end_ns <= ?"), begins))
    table = f"node_run{session.by_index.format('node_run_use')}"
    return _rows(session, f"SELECT node, {_sums(session)} FROM {table}", cluster, bounds)


def _within_reach(day: int) -> int:
    return max(-FARTHEST_DAY, min(day, FARTHEST_DAY))


def _of_pruned(session: Session, cluster: str, chosen: Chosen) -> list[tuple]:
    sums = ", ".join(f"SUM({name})" for name in _FIELDS)
    bounds = zip(("day >= ?", "day < ?"), (chosen.first_day, chosen.end_day))
    return _rows(session, f"SELECT node, {sums} FROM kept_node", cluster, bounds)


def _rows(session: Session, select: str, cluster: str, bounds: Iterable) -> list[tuple]:
    known = [("cluster = ?", cluster), *(one for one in bounds if one[1] is not None)]
    where = " AND ".join(text for text, _ in known)
    return session.rows(f"{select} WHERE {where} GROUP BY node", [value for _, value in known])


def keep(session: Session, jobs: list[tuple[str, int]], zones: Zones) -> None:
    """Adds what is to be pruned, jobs that are sorted, to what is kept of each node and day."""
    sums: dict[tuple, list] = {}
    each = "cluster, job, node, end_ns"
    select = f"SELECT {each}, {_sums(session)} FROM node_run WHERE end_ns > {UNKNOWN_NS}"
    for cluster, _, node, end_ns, *numbers in rows_of(session, jobs, select, f" GROUP BY {each}"):
        key = (cluster, node, zones[cluster].day(end_ns - 1))
        _add(sums, key, _numbers(numbers))
    where = " AND ".join(f"{name} = ?" for name in KEPT_NODE_KEY)
    for key in list(sums):
        for row in session.rows(f"SELECT {', '.join(_FIELDS)} FROM kept_node WHERE {where}", key):
            _add(sums, key, row)
    rows = [(*key, *numbers) for key, numbers in sums.items()]
    session.upsert("kept_node", tuple(KEPT_NODE), KEPT_NODE_KEY, rows)


def _sums(session: Session) -> str:
    """SQL of the fields of records."""
    energy = (f"SUM({session.addend.format(half)})" for half in halves("energy_uj"))
    rest = (f"SUM({name})" for name in _FIELDS[4:])
    return ", ".join(("COUNT(*)", "COUNT(energy_uj)", *energy, *rest))


def _numbers(row: Sequence) -> list[int | float]:
    """The fields; nothing is 0, and a database's Decimals become what Python calculates with."""
    return [convert(value or 0) for convert, value in zip(_CONVERT, row)]


def _add(sums: dict, key, numbers: Iterable) -> None:
    before = sums.get(key)
    sums[key] = [a + b for a, b in zip(before, numbers)] if before else list(numbers)


def _known(numbers: list) -> list:
    """NodeUse's fields; the energy of no job's is not known, and not 0."""
    jobs, energy_jobs, high, low, *rest = numbers
    return [jobs, energy_jobs, whole(high, low) if energy_jobs else None, *rest]
