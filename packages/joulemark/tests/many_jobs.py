# Fills a store with up to a million jobs: copies of one that a real merge made, with other
# numbers, times, energies, payers and nodes.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence

from joulemark import store
from joulemark.store import jobs, nodes
from joulemark.store.place import Place

PATTERN = 12  # the job that is copied
USERS = 200
FIRST_DAY, DAYS = 20_000, 400  # of a million jobs: those of ten thousand take whole days
MADE_HERE = 10_000  # job records, and copied by the database
REPORTED_NODES = 1000
DAY_NS = 86_400 * 10**9
MEAN_S = 5400  # of a job: one in sixteen sees midnight


def fill(place: Place, start: int, end: int) -> None:
    """Job records start to end, into a store that has a real merge's of PATTERN on a node."""
    if start < MADE_HERE:
        _make(place, start, min(end, MADE_HERE))
    if end > MADE_HERE:
        _copy(place, max(start, MADE_HERE), end)


def _make(place: Place, start: int, end: int) -> None:
    with store.writing(place) as session:
        found = jobs.job_rows(session, "demo", PATTERN)
        (pattern,) = (row for row in found if row["Step"] == "job")
        if start == 0:
            names = ("id", "Cluster", "Uid", "UserName", "Account", "PartitionName", "Currency")
            payers = [
                (100 + n, "demo", n, f"user{n}", f"project{n % 20}", f"part{n % 3}", "EUR")
                for n in range(USERS)
            ]
            session.insert("payer", names, payers)
        rows = list(_varied(pattern, start, end))
        session.insert("job_run", jobs.NAMES, rows)
        session.insert("node_run", nodes.COLUMNS, map(_node_row, rows))


def _copy(place: Place, start: int, end: int) -> None:
    """By the database, from those before start, some days later: to send it so many takes long."""
    for later in range(start, end, start):
        days = later * DAYS // 1_000_000
        month, last_month = (_month_sql(f"({name} + {days})") for name in ("Day", "LastDay"))
        energy = f"({{}} * 31 + Job * 1000003 + {later}) % 1000000000000 + 1"
        of_job = {
            **dict.fromkeys(("Job", "job"), f"Job + {later}"),
            **{name: f"{name} + {days}" for name in ("Day", "LastDay")},
            **{name: f"{name} + {days * DAY_NS}" for name in ("Start_ns", "End_ns", "end_ns")},
            "Month": month,
            "LastMonth": f"CASE WHEN {last_month} > {month} THEN {last_month} END",
            **{name: energy.format(name) for name in ("ConsumedEnergy_uj", "energy_uj")},
        }
        with store.writing(place) as session:
            for table, names in (("job_run", jobs.NAMES), ("node_run", nodes.COLUMNS)):
                values = ", ".join(of_job.get(name, name) for name in names)
                session.run(
                    f"INSERT INTO {table} ({', '.join(names)}) SELECT {values} FROM {table}"
                    f" WHERE Cluster = 'demo' AND Job >= 1000 AND Job < {1000 + start}"
                )


def _varied(pattern: dict, start: int, end: int) -> Iterator[list]:
    """Copies of a record with other numbers, times, energies and payers."""
    dice = random.Random(start)
    values = [pattern[name] for name in jobs.NAMES]
    at = {name: jobs.NAMES.index(name) for name in jobs.NAMES}
    for number in range(start, end):
        row = list(values)
        day = FIRST_DAY + number * DAYS // 1_000_000
        energy_uj = dice.randrange(1, 10**12)
        row[at["Job"]] = 1000 + number
        row[at["Payer"]] = 100 + dice.randrange(USERS)
        row[at["Day"]], row[at["Month"]] = day, _month(day)
        start_ns = row[at["Start_ns"]] = day * DAY_NS + dice.randrange(DAY_NS)
        end_ns = row[at["End_ns"]] = start_ns + int(dice.expovariate(1 / MEAN_S) * 1e9) + 1
        last_day = (end_ns - 1) // DAY_NS
        row[at["LastDay"]] = last_day if last_day > day else None
        row[at["LastMonth"]] = _month(last_day) if _month(last_day) > _month(day) else None
        row[at["ConsumedEnergy_uj"]] = energy_uj
        row[at["EnergyOverhead_uj"]] = energy_uj // 7
        row[at["EnergyStorage_uj"]] = energy_uj // 11
        row[at["StorageSystematic_uj"]] = row[at["StorageRandom_uj"]] = energy_uj / 100
        row[at["BytesRead"]], row[at["BytesWritten"]] = energy_uj // 13, energy_uj // 17
        row[at["MetadataOps"]] = energy_uj // 10**6
        row[at["Carbon_g"]], row[at["CarbonError_g"]] = energy_uj / 1e10, energy_uj / 1e12
        row[at["Cost"]], row[at["CostError"]] = energy_uj / 1e13, energy_uj / 1e15
        yield row


def _node_row(row: Sequence) -> tuple:
    """The job's record on its node, without its text, which no report reads."""
    known = dict(zip(jobs.NAMES, row))
    node, energy_uj = f"n{known['Job'] % REPORTED_NODES}", known["ConsumedEnergy_uj"]
    seconds = (known["End_ns"] - known["Start_ns"]) / 1e9
    key = (known["Cluster"], known["Job"], node, 0)
    rank = (nodes.COMPLETE, known["End_ns"], "0" * 32)
    return *key, *rank, "", energy_uj, energy_uj / 100, energy_uj / 1e6, seconds, 0


def _month(day: int) -> int:
    year, month = time.gmtime(day * 86_400)[:2]
    return year * 100 + month


def _month_sql(day: str) -> str:
    """_month() of an expression."""
    days = range(FIRST_DAY, FIRST_DAY + DAYS + 31)
    last = {_month(number): number for number in days}
    return "CASE {} END".format(" ".join(f"WHEN {day} <= {n} THEN {m}" for m, n in last.items()))
