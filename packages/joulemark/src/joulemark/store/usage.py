# Sums over jobs, made by the database from one index: a million jobs, a few numbers out.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from joulemark.store.jobs import SELECT, as_dict
from joulemark.store.session import Session

# A site's microjoules of ten days overflow 63 bits, so that SQLite sums them in two halves.
HALF_BITS = 20


@dataclass(frozen=True)
class Use:
    """What the jobs of one payer used, on one day, in one month or in all."""

    cluster: str
    uid: int
    user: str
    account: str
    partition: str
    currency: str
    month: int | None  # 202611, UTC
    day: int | None  # since 1970, UTC
    jobs: int  # runs of jobs, to be exact
    energy_uj: int | None
    systematic_uj: float
    random_uj2: float
    overhead_uj: int | None
    overhead_systematic_uj: float
    overhead_random_uj2: float
    carbon_g: float | None
    carbon_error_g: float
    cost: float | None
    cost_error: float
    estimated: int
    incomplete: int
    energy_jobs: int  # of jobs: those whose energy is known; likewise the rest
    overhead_jobs: int
    carbon_jobs: int
    cost_jobs: int


def _select(session: Session) -> str:
    def halves(column: str) -> str:
        low = (1 << HALF_BITS) - 1
        parts = (f"{column} >> {HALF_BITS}", f"{column} & {low}")
        return ", ".join(f"SUM({session.addend.format(part)})" for part in parts)

    return ", ".join(
        (
            "COUNT(*)",
            halves("ConsumedEnergy_uj"),
            "SUM(UncertaintySystematic_uj)",
            "SUM(UncertaintyRandom_uj * UncertaintyRandom_uj)",
            halves("EnergyOverhead_uj"),
            "SUM(OverheadSystematic_uj)",
            "SUM(OverheadRandom_uj * OverheadRandom_uj)",
            "SUM(Carbon_g), SUM(CarbonError_g), SUM(Cost), SUM(CostError)",
            f"SUM({session.addend.format('Estimated')})",
            f"SUM({session.addend.format('Incomplete')})",
            "COUNT(ConsumedEnergy_uj), COUNT(EnergyOverhead_uj), COUNT(Carbon_g), COUNT(Cost)",
        )
    )


def uses(
    session: Session, period: str | None, first_day: int | None = None, end_day: int | None = None
) -> list[Use]:
    """One for each payer and period (month, day or none), from first_day to before end_day, UTC.

    The groups are in the order of the index, so that the database sorts nothing.
    """
    names = {"month": ["Month"], "day": ["Month", "Day"], None: []}[period]
    keys = ", ".join(["Payer", *names])
    where, values = _days(first_day, end_day)
    found = session.rows(
        f"SELECT {keys}, {_select(session)} FROM job_run WHERE Payer > 0{where}"
        f" GROUP BY {keys} ORDER BY {keys}",
        values,
    )
    unknown = [None] * (2 - len(names))
    payers = {
        number: row
        for number, *row in session.rows(
            "SELECT id, Cluster, Uid, UserName, Account, PartitionName, Currency FROM payer"
        )
    }
    return [
        Use(*payers[payer], *_sums([*rest[: len(names)], *unknown, *rest[len(names) :]]))
        for payer, *rest in found
    ]


def _days(first_day: int | None, end_day: int | None) -> tuple[str, list[int]]:
    bounds = ((" AND Day >= ?", first_day), (" AND Day < ?", end_day))
    known = [(text, day) for text, day in bounds if day is not None]
    return "".join(text for text, _ in known), [day for _, day in known]


def _sums(row: list) -> list:
    """A database's Decimals become what Python calculates with."""
    month, day, jobs, high, low, *errors, over_high, over_low = row[:9]
    over_errors, (carbon, carbon_error, cost, cost_error, *counts) = row[9:11], row[11:]
    return [
        *(month, day, int(jobs), _whole(high, low), *map(_real, errors)),
        *(_whole(over_high, over_low), *map(_real, over_errors)),
        *(_maybe(carbon), _real(carbon_error), _maybe(cost), _real(cost_error)),
        *map(int, counts),
    ]


def _whole(high, low) -> int | None:
    return None if high is None else (int(high) << HALF_BITS) + int(low)


def _real(value) -> float:
    return float(value or 0)


def _maybe(value) -> float | None:
    return None if value is None else float(value)


BATCH = 5000


def top_jobs(
    session: Session, count: int, first_day: int | None, end_day: int | None
) -> list[dict]:
    """The job rows with the most energy, with UserName, Account and PartitionName."""
    where, values = _days(first_day, end_day)
    rows = session.rows(
        f"{SELECT} WHERE Payer > 0 AND ConsumedEnergy_uj IS NOT NULL{where}"
        f" ORDER BY ConsumedEnergy_uj DESC LIMIT {int(count)}",
        values,
    )
    return _with_payers(session, map(as_dict, rows))


def all_rows(
    session: Session, first_day: int | None, end_day: int | None, steps: bool
) -> Iterator[list[dict]]:
    """Every row in batches, so that a program's memory does not grow with the store."""
    where, values = _days(first_day, end_day)
    kind = "Payer > 0" if not steps else "1 = 1"
    last: tuple = ("", -1, -1, "")
    after = (
        "(Cluster > ? OR (Cluster = ? AND (Job > ? OR (Job = ? AND (Run > ? OR (Run = ? AND"
        " Step > ?))))))"
    )
    while True:
        cluster, job, run, step = last
        rows = session.rows(
            f"{SELECT} WHERE {kind} AND {after}{where}"
            f" ORDER BY Cluster, Job, Run, Step LIMIT {BATCH}",
            (cluster, cluster, job, job, run, run, step, *values),
        )
        if not rows:
            return
        batch = _with_payers(session, map(as_dict, rows))
        yield batch
        last = tuple(batch[-1][name] for name in ("Cluster", "Job", "Run", "Step"))


def _with_payers(session: Session, rows) -> list[dict]:
    names = ("UserName", "Account", "PartitionName")
    known = {
        number: dict(zip(names, rest))
        for number, *rest in session.rows(f"SELECT id, {', '.join(names)} FROM payer")
    }
    nobody = dict.fromkeys(names)
    return [{**row, **known.get(row["Payer"], nobody)} for row in rows]
