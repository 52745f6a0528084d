# Sums of jobs whose users are not told apart, for those who study how a machine is used.
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Beside what sacct tells, a job's times and energy name it, and how many jobs of which size
somebody has names him, whatever he is called. So there are no jobs and no users here: a row is the
sum of jobs alike of LEAST_USERS users or more."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping
from math import sqrt

from joulemark.accounting.jobrecord import interval_j

LEAST_USERS = 5
KEYS = ("cluster", "month", "estimated", "partition")  # of rows; groups have sizes, too
SIZES = ("energy_uj", "time_s", "nodes")  # alike within a factor of two
COUNTS = ("jobs", "incomplete_jobs")
SUMS = ("nodes", "time_s", "node_seconds", "energy_j", "energy_error_j")
DIGITS = 3  # of sums: their difference to an export of a job less is not its energy alone
COLUMNS = (*KEYS, *COUNTS, *SUMS)


class Group:
    """Jobs whose keys begin alike."""

    def __init__(self):
        self.users: set[Hashable] = set()
        self.sums: Counter = Counter()

    def add(self, users: set[Hashable], sums: Mapping) -> None:
        """What some of them used, and whose they are."""
        self.users |= users
        self.sums.update(sums)


def rows(batches: Iterable[list[dict]]) -> tuple[list[dict], int]:
    """Of `report jobs`' records; and how many jobs are in no row."""
    groups: dict[tuple, Group] = {}
    names: defaultdict[Hashable, set[str]] = defaultdict(set)
    left_out = 0
    for record in (record for batch in batches for record in batch):
        cluster, uid, user = whose = (record["cluster"], record["uid"], record["user"])
        if user:
            names[cluster, uid].add(user)
            names[uid].add(user)
        if None in (record["energy_uj"], record["day"], record["time_s"]):
            left_out += 1
            continue
        groups.setdefault(key_of(record), Group()).add({whose}, _used(record))
    for group in groups.values():
        group.users = _people(names, group.users)
    left_out += widen(groups)
    made = [_row(key, group.sums) for key, group in groups.items()]
    made.sort(key=lambda row: ([str(row[name]) for name in KEYS], -row["jobs"]))
    return made, left_out


def _people(names: Mapping[Hashable, set[str]], users: set[tuple]) -> set[Hashable]:
    """Two that may be one are one: a name is the same user's on all clusters, his uid may not be;
    of whom Slurm named nobody other jobs tell who he may be, on his own cluster surely."""
    people: set[Hashable] = {user for *_, user in users if user}
    may_be = [
        names.get((cluster, uid)) or names.get(uid) or {uid}
        for cluster, uid, user in users
        if not user
    ]
    for others in sorted(may_be, key=lambda one: (len(one), sorted(map(str, one)))):
        if not others & people:
            people |= {min(others, key=str)}
    return people


def key_of(record: dict) -> tuple:
    """What matters most comes first."""
    month = record["day"][: len("2026-11")]
    sizes = (int(record[name]).bit_length() for name in SIZES)
    return (record["cluster"], month, record["estimated"], record["partition"], *sizes)


def widen(groups: dict[tuple, Group]) -> int:
    """Joins groups of too few users by their keys without the end; how many jobs are in none at
    last."""
    for length in range(len(KEYS + SIZES), -1, -1):
        for key in [key for key in groups if len(key) == length]:
            if len(groups[key].users) >= LEAST_USERS:
                continue
            few = groups.pop(key)
            if not key:
                return few.sums["jobs"]
            groups.setdefault(key[:-1], Group()).add(few.users, few.sums)
    return 0


def _used(record: dict) -> dict:
    return {
        **{"jobs": 1, "incomplete_jobs": int(record["incomplete"])},
        **{name: record[name] for name in ("nodes", "time_s", "energy_j")},
        "node_seconds": record["nodes"] * record["time_s"],
        "systematic_uj": record["energy_systematic_uj"],
        "random_uj2": record["energy_random_uj"] ** 2,
    }


def _row(key: tuple, sums: Counter) -> dict:
    sums["energy_error_j"] = interval_j(sums["systematic_uj"], sqrt(sums["random_uj2"]))
    return {
        **dict.fromkeys(KEYS),
        **dict(zip(KEYS, key)),
        **{name: sums[name] for name in COUNTS},
        **{name: type(sums[name])(float(f"{sums[name]:.{DIGITS}g}")) for name in SUMS},
    }
