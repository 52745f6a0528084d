# Accounts' energy budgets: what is left of each, and whose jobs wait until there is one again.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from joulemark import units
from joulemark.accounting import sitefile, usage
from joulemark.accounting.rates import J_PER_KWH
from joulemark.errors import UsageError
from joulemark.layout import Text
from joulemark.store import sums
from joulemark.store.days import EPOCH
from joulemark.store.session import Session

EXAMPLE = "account,kWh,from,until, such as blue,5000,2026-01-01,2026-12-31"
LEGEND = (
    "Used: energy of the jobs of the account and of those below it, as Slurm's accounts are now, "
    "in these days, both included, on all clusters of the store; +-: k=2. Overhead is not in it."
)
LEGEND_UNDATED = (
    "3+1: one more of unknown time and energy is in the sum of no budget; each budget of its "
    "account that has begun shows it."
)
Parents = Mapping[tuple[str, str], str]  # of a cluster's account the one above it


@dataclass(frozen=True)
class Budget:
    """What an account may use from a first to a last day."""

    account: str
    energy_j: float
    first: date
    last: date

    def is_of(self, day: date) -> bool:
        return self.first <= day <= self.last


@dataclass(frozen=True)
class State:
    """A budget, and what was used of it."""

    budget: Budget
    used: usage.Group
    undated_jobs: int  # of unknown time: they ended, and may be of these days
    is_known: bool  # its account is: to Slurm or to the store

    @property
    def part(self) -> float:
        """Of the budget; 1: all."""
        return (self.used.energy_j or 0.0) / self.budget.energy_j


def read(path: Path | None) -> list[Budget]:
    """The budgets of a site; a line that is none is refused, with what it should be."""
    if path is None:
        raise UsageError(
            f"budgets: missing in joulemark.yaml: add the path of a file of {EXAMPLE}"
        )
    known = {number: _budget(f"{path}:{number}", row) for number, row in sitefile.rows(path)}
    _refuse_twice(path, known)
    return list(known.values())


def _budget(where: str, row: list[str]) -> Budget:
    try:
        account, kwh, first, last = (cell.strip() for cell in row)
        found = Budget(
            account,
            float(kwh) * J_PER_KWH,
            date.fromisoformat(first),
            date.fromisoformat(last),
        )
    except ValueError:
        found = None
    is_sound = found and found.account and 0 < found.energy_j < math.inf
    if not is_sound or found.first > found.last:
        raise UsageError(f"{where}: {','.join(row)}: must be {EXAMPLE}")
    return found


def _refuse_twice(path: Path, found: Mapping[int, Budget]) -> None:
    """found: by their lines."""
    by_account: dict[str, list[tuple[int, Budget]]] = {}
    for number, one in found.items():
        for line, other in by_account.setdefault(one.account, []):
            if one.first <= other.last and other.first <= one.last:
                days = f"from {max(one.first, other.first)} to {min(one.last, other.last)}"
                raise UsageError(
                    f"{path}:{number}: {one.account}: {days} line {line} has a budget of it, too: "
                    "let one end before the other begins"
                )
        by_account[one.account].append((number, one))


def states(
    session: Session, budgets: Iterable[Budget], parents: Parents, today: date
) -> list[State]:
    """Of each budget, by the store's figures, asked once for budgets of the same days."""
    uses: dict[tuple[int, int], dict[str, list[sums.Use]]] = {}
    undated, found = _charged(sums.undated(session, sums.Chosen()), parents), []
    known = {*(account for _, account in parents), *sums.accounts(session)}
    for one in budgets:
        days = one.first.toordinal() - EPOCH, one.last.toordinal() - EPOCH + 1
        if days not in uses:
            uses[days] = _charged(sums.uses(session, None, sums.Chosen(*days)), parents)
        used = usage.summed({}, uses[days].get(one.account, []))
        may_have = undated.get(one.account, []) if one.first <= today else []
        jobs = sum(use.jobs for use in may_have)
        found.append(State(one, used, jobs, one.account in known))
    return found


def _charged(uses: Iterable[sums.Use], parents: Parents) -> dict[str, list[sums.Use]]:
    """To each account its own and those of the accounts below it."""
    found: dict[str, list[sums.Use]] = {}
    for use in uses:
        for account in _and_above(use.cluster, use.account, parents):
            found.setdefault(account, []).append(use)
    return found


def _and_above(cluster: str, account: str, parents: Parents) -> Iterator[str]:
    """An account and those above it; of one that the cluster does not know, it alone."""
    while account:
        yield account
        account = parents.get((cluster, account), "")


def over(found: Iterable[State], today: date) -> set[str]:
    """Accounts that have used up the budget of today."""
    return {one.budget.account for one in found if one.budget.is_of(today) and one.part >= 1}


def unknown(found: Iterable[State], today: date) -> list[str]:
    """A line for each account that is most likely mistyped, but of budgets that have ended."""
    names = (one.budget.account for one in found if one.budget.last >= today and not one.is_known)
    return [
        f"account {name}: neither Slurm nor the store has it, so that nothing is charged to its "
        "budget: write it as `sacctmgr show account` does"
        for name in dict.fromkeys(names)
    ]


def unmeasured(found: Iterable[State], today: date) -> list[str]:
    """A line for each budget of today of which no job's energy is known: 0 % used, as it looks."""
    return [
        f"account {one.budget.account}: no energy is known of its {jobs} "
        f"{'job' if jobs == 1 else 'jobs'}, so that nobody knows what is used: see `joulemark "
        "doctor`"
        for one in found
        if one.budget.is_of(today) and not one.used.energy_jobs and (jobs := one.used.jobs)
    ]


def warnings(found: Iterable[State], levels: Iterable[float], today: date) -> list[str]:
    """A line for each budget of today of which a level is reached: the highest one."""
    lines = []
    for one in found:
        reached = [level for level in levels if one.part >= level]
        if reached and one.budget.is_of(today):
            used, level = f"{_percent(one, 0)} %{_partial(one)}", f"{100 * max(reached):g} %"
            kwh = f"{one.budget.energy_j / J_PER_KWH:g} kWh"
            lines.append(f"account {one.budget.account}: {used} of {kwh} are used (level {level})")
    return lines


def partial(found: Iterable[State], today: date) -> dict[str, str]:
    """By account, what the sum of today's budget lacks."""
    return {one.budget.account: _partial(one) for one in found if one.budget.is_of(today)}


def _partial(one: State) -> str:
    """The table's (2 of 3), where no legend tells what it means."""
    known, count = one.used.energy_jobs, one.used.jobs
    return f" ({known} of {count} jobs)" if known < count else ""


def as_text(found: Iterable[State]) -> Text:
    """For people."""
    heads = ["Account", "From", "Until", "Jobs", "Budget [kWh]", "Used [kWh]", "+-", "Used [%]"]
    body = [("value", _cells(one)) for one in found]
    return Text("Budgets", heads, body)


def _cells(one: State) -> list[str]:
    budget, group = one.budget, one.used
    jobs = f"{group.jobs}{f'+{one.undated_jobs}' if one.undated_jobs else ''}"
    jobs += "*" if group.incomplete_jobs else ""
    kwh = f"{budget.energy_j / J_PER_KWH:g}"
    start = [budget.account, str(budget.first), str(budget.last), jobs, kwh]
    if group.energy_j is None:
        return [*start, "-", "", "-"]
    wh = (1000 * joules / J_PER_KWH for joules in (group.energy_j, group.energy_error_j))
    used, error = usage.with_error(*wh, "Wh", group, 3)
    known = usage.of_all(group.energy_jobs, group.jobs)
    return [*start, used + known, error, _percent(one, 1) + known]


def _percent(one: State, places: int) -> str:
    """An estimate's has no digit that its error leaves unknown."""
    error_j = one.used.energy_error_j if one.used.estimated_jobs else 0.0
    known = units.fixed(100 * one.part, places, 100 * error_j / one.budget.energy_j)
    return usage.estimate_mark(one.used) + known


def notes(found: list[State]) -> list[str]:
    """What must be known to read the table."""
    groups = [one.used for one in found]
    estimated = [usage.LEGEND_SOME_ESTIMATED] if any(one.estimated_jobs for one in groups) else []
    undated = [LEGEND_UNDATED] if any(one.undated_jobs for one in found) else []
    return [LEGEND, *estimated, *usage.lacks(groups, ["energy_jobs"]), *undated]


def as_records(found: list[State]) -> list[dict]:
    """For programs, in SI units."""
    return [
        {
            "account": one.budget.account,
            "from": str(one.budget.first),
            "until": str(one.budget.last),
            "budget_j": one.budget.energy_j,
            **{"jobs": one.used.jobs, "energy_jobs": one.used.energy_jobs},
            "undated_jobs": one.undated_jobs,
            **{"used_j": record["energy_j"], "used_error_j": record["energy_error_j"]},
            "part": None if record["energy_j"] is None else one.part,
            "estimated": one.used.estimated_jobs > 0,
            "incomplete": one.used.incomplete_jobs > 0,
        }
        for one, record in zip(found, usage.as_records([one.used for one in found]))
    ]
