# `joulemark report usage`: who used how much energy, with its error, overhead, carbon and cost.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import datetime
import math
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace

from joulemark import units
from joulemark.accounting.jobrecord import interval_j
from joulemark.errors import UsageError
from joulemark.layout import ESTIMATE_MARK, Text
from joulemark.storage.work import Work
from joulemark.store.session import Session
from joulemark.store.sums import KNOWN_OF, Chosen, Use, clusters, undated
from joulemark.units import UJ_PER_J, known_sum

LEGEND = (
    "Jobs: runs of jobs. +-: uncertainty, k=2; the systematic parts of a group's jobs add up. "
    "Overhead (shared channels) and Storage (file servers' work) are not in Energy; carbon and "
    "cost are of Energy alone. "
    "-: not known."
)
LEGEND_SOME_ESTIMATED = f"{ESTIMATE_MARK}: of some or all jobs a model estimated the energy."
LEGEND_PARTIAL = "(2 of 3): the sum of 2 of 3 jobs; of the other it is not known."
LEGEND_DAYS = (
    "Days and months are {}; a job of several is counted in each, its energy split by time."
)
LEGEND_INCOMPLETE = "*: nodes' records are missing: the energy is more than this."
COUNTS = tuple(dict.fromkeys(KNOWN_OF.values()))
LEFT_OUT = "Jobs of unknown time and energy, of none of these days: {}."
EPOCH = datetime.date(1970, 1, 1)


@dataclass(frozen=True)
class Cost:
    """Money of one currency."""

    value: float | None
    error: float | None
    jobs: int = 0  # whose cost it is


@dataclass(frozen=True)
class Group:
    """Sums over the jobs that share the keys; None: not known."""

    keys: dict[str, str]
    jobs: int
    energy_j: float | None
    energy_uj: int | None
    energy_error_j: float
    overhead_j: float | None
    overhead_uj: int | None
    overhead_error_j: float
    storage_j: float | None
    storage_uj: int | None
    storage_error_j: float
    read_bytes: int | None
    written_bytes: int | None
    metadata_ops: int | None
    carbon_g: float | None
    carbon_error_g: float
    costs: dict[str, Cost]  # by currency, which a site may change
    estimated_jobs: int
    incomplete_jobs: int
    energy_jobs: int  # of jobs: those whose energy is in the sum; likewise the rest
    overhead_jobs: int
    storage_jobs: int
    work_jobs: int
    carbon_jobs: int
    cost_jobs: int


def days(since: str | None, until: str | None) -> tuple[int | None, int | None]:
    """The days of --since and --until (which is meant too), as numbers since 1970."""
    first, last = (_day(name, text) for name, text in (("--since", since), ("--until", until)))
    if first is not None and last is not None and first > last:
        raise UsageError(f"--since {since}: is later than --until {until}")
    return first, None if last is None else last + 1


def _day(name: str, text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return (datetime.date.fromisoformat(text) - EPOCH).days
    except ValueError:
        raise UsageError(f"{name}: '{text}' is not a day such as 2026-11-21") from None


def named_clusters(names: str | None) -> tuple[str, ...]:
    """Of --clusters."""
    return tuple(filter(None, (names or "").split(",")))


def chosen_clusters(session: Session, names: str | None) -> tuple[str, ...]:
    """Of --clusters; none: all."""
    wanted = named_clusters(names)
    known = clusters(session)
    for name in wanted:
        if name not in known:
            there = f"there are: {', '.join(known)}" if known else "there are no jobs"
            raise UsageError(f"--clusters: the store has no jobs of '{name}'; {there}")
    return wanted


def group(found: Iterable[Use], by: list[str]) -> list[Group]:
    """Sums by the keys, the most energy first, or in the order of time."""
    sums: dict[tuple, list[Use]] = {}
    for use in found:
        sums.setdefault(tuple(_key(use, key) for key in by), []).append(use)
    groups = [summed(dict(zip(by, values)), parts) for values, parts in sums.items()]
    if {"month", "day"} & set(by):
        return sorted(groups, key=lambda one: [one.keys[key] for key in sorted(by, key=_order)])
    return sorted(groups, key=lambda one: (-(one.energy_uj or 0), list(one.keys.values())))


def _order(key: str) -> bool:
    return key not in ("month", "day")


def _key(use: Use, key: str) -> str:
    if key == "month":
        return "unknown" if use.month is None else f"{use.month // 100}-{use.month % 100:02}"
    if key == "day":
        known = use.day is not None
        return (EPOCH + datetime.timedelta(days=use.day)).isoformat() if known else "unknown"
    if key == "user":
        return use.user or f"uid {use.uid}"
    return getattr(use, key) or "unknown"


def of_one(**known) -> Use:
    """What one job, step or node used; what is not given, or None, is not known."""
    found = {**dict.fromkeys(Use._fields, 0), **dict.fromkeys(KNOWN_OF), "jobs": 1}
    found.update((key, value) for key, value in known.items() if value is not None)
    found.update((jobs, int(found[key] is not None)) for key, jobs in KNOWN_OF.items())
    return Use(**found)


def summed(keys: dict[str, str], parts: list[Use]) -> Group:
    """One group of all of them."""
    energy_uj = known_sum(part.energy_uj for part in parts)
    overhead_uj, storage_uj = (
        known_sum(getattr(part, name) for part in parts) for name in ("overhead_uj", "storage_uj")
    )
    return Group(
        keys=keys,
        jobs=sum(part.jobs for part in parts),
        energy_j=_in_j(energy_uj),
        energy_uj=energy_uj,
        energy_error_j=_error_j(parts, "systematic_uj", "random_uj2"),
        overhead_j=_in_j(overhead_uj),
        overhead_uj=overhead_uj,
        overhead_error_j=_error_j(parts, "overhead_systematic_uj", "overhead_random_uj2"),
        storage_j=_in_j(storage_uj),
        storage_uj=storage_uj,
        storage_error_j=_error_j(parts, "storage_systematic_uj", "storage_random_uj2"),
        **{name: known_sum(getattr(part, name) for part in parts) for name in Work._fields},
        carbon_g=known_sum(part.carbon_g for part in parts),
        carbon_error_g=math.fsum(part.carbon_error_g for part in parts),
        costs=_costs(parts),
        estimated_jobs=sum(part.estimated for part in parts),
        incomplete_jobs=sum(part.incomplete for part in parts),
        **{name: sum(getattr(part, name) for part in parts) for name in COUNTS},
    )


def _costs(parts: list[Use]) -> dict[str, Cost]:
    known: dict[str, list[Use]] = {}
    for part in parts:
        if part.cost is not None:
            known.setdefault(part.currency, []).append(part)
    return {
        currency: Cost(
            math.fsum(part.cost for part in found),
            math.fsum(part.cost_error for part in found),
            sum(part.cost_jobs for part in found),
        )
        for currency, found in sorted(known.items())
    }


def _in_j(energy_uj: int | None) -> float | None:
    return None if energy_uj is None else energy_uj / UJ_PER_J


def _error_j(parts: list[Use], systematic: str, variance: str) -> float:
    return interval_j(
        math.fsum(getattr(part, systematic) for part in parts),
        math.sqrt(math.fsum(getattr(part, variance) for part in parts)),
    )


def as_records(groups: list[Group]) -> list[dict]:
    """Plain numbers for programs; what is not known is null, its error too."""
    names = [field.name for field in fields(Group) if field.name not in ("keys", "costs")]
    known = {f"{name}_{unit}": name for name, unit in QUANTITIES.values()}
    currencies = sorted({currency for one in groups for currency in one.costs})
    records = []
    for one in groups:
        record = {**one.keys, **{name: getattr(one, name) for name in names}}
        for value, what in known.items():
            if record[value] is None:
                errors = [name for name in names if name.startswith(f"{what}_error")]
                record.update(dict.fromkeys(errors))
        records.append({**record, **_money(one.costs, currencies)})
    return records


def columns(by: list[str]) -> list[str]:
    """The keys of as_records() also where there is no group."""
    return list(as_records([summed(dict.fromkeys(by, ""), [])])[0])


def _money(costs: dict[str, Cost], currencies: list[str]) -> dict:
    """What is of one currency; where the report has several, each in columns of its own, too."""
    unknown = Cost(None, None)
    ((only, cost),) = costs.items() if len(costs) == 1 else [(None, unknown)]
    found = {"cost": cost.value, "cost_error": cost.error, "currency": only}
    for currency in currencies if len(currencies) > 1 else ():
        cost = costs.get(currency, unknown)
        found |= {
            f"cost_{currency}": cost.value,
            f"cost_error_{currency}": cost.error,
            f"cost_jobs_{currency}": cost.jobs,
        }
    return found


# Of the table; in Group the fields are NAME_UNIT, NAME_error_UNIT and NAME_jobs.
QUANTITIES = {
    **{"Energy": ("energy", "j"), "Overhead": ("overhead", "j"), "Storage": ("storage", "j")},
    "CO2e": ("carbon", "g"),
}
METERED = ("overhead", "storage")  # whatever of the energy is an estimate
WORK = {"Read": "read_bytes", "Written": "written_bytes", "Metadata ops": "metadata_ops"}
UNITS = {"j": "J", "g": "g"}
ALWAYS = 3  # jobs, and energy with its error


def as_text(groups: list[Group], by: list[str]) -> Text:
    """A table for people: one prefix a column."""
    heads, columns = [*map(str.capitalize, by), "Jobs"], []
    for head, (name, suffix) in QUANTITIES.items():
        known = [value for one in groups if (value := _value(one, name, suffix)) is not None]
        if known or head == "Energy":
            exponent, unit = units.best_exponent(known), UNITS[suffix]
            heads += [f"{head} [{units.prefix(exponent)}{unit}]", "+-"]
            columns.append((name, suffix, exponent))
    has_costs = any(one.costs for one in groups)
    heads += ["Cost", "+-"] if has_costs else []
    has_work = any(one.work_jobs for one in groups)
    works = [_work_column(groups, *one) for one in WORK.items()] if has_work else []
    heads += [head for head, *_ in works]
    body = []
    for one in groups:
        row = [*one.keys.values(), f"{one.jobs}{'*' if one.incomplete_jobs else ''}"]
        for column in columns:
            row += cells(one, *column)
        row += _cost_cells(one) if has_costs else []
        row += [work_cell(one, name, exponent) for _, name, exponent in works]
        body.append(("value", row))
    first = len(by) + ALWAYS  # from the right; whose energy it is always shows
    last = len(heads) - len(works)
    optional = [(at,) for at in range(len(heads) - 1, last - 1, -1)]
    optional += [(at, at + 1) for at in range(last - 2, first - 1, -2)]
    return Text(f"Energy by {', '.join(by)}", heads, body, tuple(optional))


def _value(one: Group, name: str, suffix: str) -> float | None:
    return getattr(one, f"{name}_{suffix}")


def cells(one: Group, name: str, suffix: str, exponent: int = 0) -> list[str]:
    """A sum, of how many jobs it is where that is not all, and its error."""
    found, error = _value(one, name, suffix), _value(one, f"{name}_error", suffix)
    if found is None:
        return ["-", ""]
    if name in METERED:
        one = replace(one, estimated_jobs=0)
    value, error = with_error(found, error, UNITS[suffix], one, exponent)
    return [value + of_all(getattr(one, f"{name}_jobs"), one.jobs), error]


def _work_column(groups: list[Group], head: str, name: str) -> tuple[str, str, int | None]:
    """Its head, of bytes with a prefix, whose exponent is the last."""
    if not name.endswith("_bytes"):
        return head, name, None
    exponent = units.best_exponent([getattr(one, name) or 0 for one in groups])
    return f"{head} [{units.prefix(exponent)}B]", name, exponent


def work_cell(one: Group, name: str, exponent: int | None = None) -> str:
    """What the jobs did at storage servers, and of how many jobs it is known where that is not
    all; exponent: of the column's prefix, without one bytes have their own."""
    total = getattr(one, name)
    if total is None:
        return "-"
    if exponent is not None:
        text = units.cell(total, exponent, "B")
    else:
        text = units.rough(total, 0, "B") if total and name.endswith("_bytes") else str(total)
    return text + of_all(one.work_jobs, one.jobs)


def estimate_mark(one: Group) -> str:
    """Of sums in which a model's estimates are."""
    return ESTIMATE_MARK if one.estimated_jobs else ""


def with_error(
    value: float, error: float, unit: str, one: Group, exponent: int = 0
) -> tuple[str, str]:
    """Of a group's energy, or what is made of it: an estimate has its mark, and no digit that the
    error leaves unknown."""
    least = error if one.estimated_jobs else 0.0
    text, error_text = (units.cell(number, exponent, unit, least) for number in (value, error))
    return estimate_mark(one) + text, error_text


def told(value: float | None, unit: str, one: Group) -> str:
    """Likewise what is as sure as the group's energy, such as its power."""
    if value is None:
        return "-"
    error = value * one.energy_error_j / one.energy_j if one.energy_j else 0.0
    return with_error(value, error, unit, one)[0]


def of_all(known: int, count: int) -> str:
    """Else the sum of some could pass for that of all."""
    return f" ({known} of {count})" if known < count else ""


def _cost_cells(one: Group) -> list[str]:
    if not one.costs:
        return ["-", ""]
    values = (f"{money(cost.value)} {currency}" for currency, cost in one.costs.items())
    return [
        estimate_mark(one) + " + ".join(values) + of_all(one.cost_jobs, one.jobs),
        " + ".join(money(cost.error) for cost in one.costs.values()),
    ]


def money(value: float) -> str:
    """A small job's cost is not nothing: 0.50, 0.012, 0.00021."""
    told = float(f"{value:.2g}")
    if told == 0 or abs(told) >= 0.1:
        return f"{value:.2f}"
    return f"{told:.{1 - math.floor(math.log10(abs(told)))}f}".rstrip("0")


def notes(groups: list[Group], zones: Iterable[str] = ()) -> list[str]:
    """What must be known to read the table; zones: whose days were asked for."""
    days = [LEGEND_DAYS.format(", ".join(sorted(set(zones))))] if zones else []
    estimated = [LEGEND_SOME_ESTIMATED] if any(one.estimated_jobs for one in groups) else []
    return [LEGEND, *days, *estimated, *lacks(groups)]


def lacks(groups: list[Group], counts: Iterable[str] = COUNTS) -> list[str]:
    """What the marks of sums mean that lack something; counts: of the sums that are shown."""
    partial = [LEGEND_PARTIAL] if any(is_partial(one, counts) for one in groups) else []
    incomplete = [LEGEND_INCOMPLETE] if any(one.incomplete_jobs for one in groups) else []
    return [*partial, *incomplete]


def bar_marks(one: Group) -> str:
    """Behind the name of a bar of energy: what it lacks."""
    return of_all(one.energy_jobs, one.jobs) + ("*" if one.incomplete_jobs else "")


def bar_notes(groups: list[Group], shown: list[Group], which: str) -> list[str]:
    """Beside bars: what they are, which of the groups they are, and what they lack."""
    known = sum(one.energy_j is not None for one in groups)
    note = "error bars: k=2"
    note += f"; the {which} {len(shown)} of {known}" if len(shown) < known else ""
    note += f"; not drawn, of unknown energy: {len(groups) - known}" if known < len(groups) else ""
    return [note, *lacks(shown, ["energy_jobs"])]


def left_out(session: Session, chosen: Chosen) -> list[str]:
    """What of these jobs some days cannot have."""
    if (chosen.first_day, chosen.end_day) == (None, None):
        return []
    count = sum(use.jobs for use in undated(session, chosen))
    return [LEFT_OUT.format(count)] if count else []


def is_partial(one: Group, counts: Iterable[str]) -> bool:
    return any(0 < getattr(one, name) < one.jobs for name in counts)
