# Sums over jobs, made by the database from one index: a million jobs, a few numbers out.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Callable, NamedTuple, TypeVar

from joulemark.storage.work import COLUMNS as WORK
from joulemark.storage.work import Work
from joulemark.store.days import Zone, month, next_month
from joulemark.store.jobs import NAMES, SELECT, as_dict
from joulemark.store.schema import JOB_RUN_KEY, KEPT, KEPT_KEY
from joulemark.store.session import Session
from joulemark.store.whose import Whose
from joulemark.store.zones import Zones

T = TypeVar("T")

# A site's microjoules of ten days overflow 63 bits, so that SQLite sums them in two halves.
HALF_BITS = 20


class Use(NamedTuple):
    """What the jobs of one payer used, on one day, in one month or in all."""

    cluster: str
    uid: int
    user: str
    account: str
    partition: str
    currency: str
    month: int | None  # 202611, in the cluster's time zone
    day: int | None  # since 1970, likewise
    jobs: int  # runs of jobs, to be exact
    energy_uj: int | None
    systematic_uj: float
    random_uj2: float
    overhead_uj: int | None
    overhead_systematic_uj: float
    overhead_random_uj2: float
    storage_uj: int | None
    storage_systematic_uj: float
    storage_random_uj2: float
    read_bytes: int | None
    written_bytes: int | None
    metadata_ops: int | None
    carbon_g: float | None
    carbon_error_g: float
    cost: float | None
    cost_error: float
    estimated: int
    incomplete: int
    energy_jobs: int  # of jobs: those whose energy is known; likewise the rest
    overhead_jobs: int
    storage_jobs: int
    work_jobs: int  # what they did at storage servers
    carbon_jobs: int
    cost_jobs: int


PERIODS = {"month": ["Month"], "day": ["Month", "Day"], None: []}


class Chosen(NamedTuple):
    """Jobs that began from first_day to before end_day, of these clusters (none: of all), and of
    these people (None: of all)."""

    first_day: int | None = None
    end_day: int | None = None
    clusters: tuple[str, ...] = ()
    whose: Whose | None = None

    def where(self, steps: bool = False) -> tuple[str, list]:
        """SQL after another condition, and its values; steps: on rows of steps, too, which have no
        payer and their own days: their job's row has both."""
        text, values = _days(self.first_day, self.end_day)
        of_people, people = self.whose.where() if self.whose else ("", [])
        text += of_people
        if steps and text:
            keys = (f"whole.{key} = job_run.{key}" for key in ("Cluster", "Job", "Run"))
            of_job = " AND ".join([*keys, "whole.Step = 'job'"])
            text = f" AND EXISTS (SELECT 1 FROM job_run AS whole WHERE {of_job}{text})"
        if self.clusters:
            text += f" AND Cluster IN ({', '.join('?' * len(self.clusters))})"
        return text, [*values, *people, *self.clusters]

    def has(self, use: Use) -> bool:
        """Of its clusters and people, whatever its days."""
        of_clusters = not self.clusters or use.cluster in self.clusters
        return of_clusters and (self.whose is None or self.whose.has(use))


def uses(session: Session, period: str | None, chosen: Chosen) -> list[Use]:
    """One or two for each payer and period (month, day or none), of what was used on its days.

    The database sums the jobs of one period, in the order of its index. Those that saw several,
    or days that nobody asks for, come one by one, in the same statement, and are split by time:
    each part is somewhere, once.
    """
    first_day, end_day = chosen.first_day, chosen.end_day
    rows, kept = unpruned(
        session,
        lambda: (
            session.rows(_statement(session, period, first_day, end_day)),
            _kept_rows(session, first_day, end_day),
        ),
    )
    zones, payers = Zones(session), _payers(session)
    found, split = [], _Split(period, first_day, end_day)
    for (payer, *when, start_ns, end_ns), sums in ((row[:5], _numbers(row[5:])) for row in rows):
        if start_ns is None:
            found.append(Use(*payers[payer], *when, *_known(sums)))
        else:
            split.add(payer, zones[payers[payer][0]], start_ns, end_ns, sums)
    split.add_kept(kept)
    for (payer, *when), sums in split.sums.items():
        found.append(Use(*payers[payer], *when, *_known(sums)))
    return list(filter(chosen.has, found))


def undated(session: Session, chosen: Chosen) -> list[Use]:
    """Of each payer, the jobs of which nobody knows when they ran; they are of no day."""
    payers = _payers(session)
    where, values = chosen._replace(first_day=None, end_day=None, clusters=()).where()
    rows = session.rows(  # found by the index of sums, which knows payers and no clusters
        f"SELECT Payer, {_of_group(session)} FROM job_run"
        f" WHERE Payer IN (SELECT id FROM payer) AND Month IS NULL{where} GROUP BY Payer",
        values,
    )
    found = (Use(*payers[payer], None, None, *_known(_numbers(row))) for payer, *row in rows)
    return list(filter(chosen.has, found))


def _payers(session: Session) -> dict[int, list]:
    """The first fields of Use."""
    names = "Cluster, Uid, UserName, Account, PartitionName, Currency"
    return {number: row for number, *row in session.rows(f"SELECT id, {names} FROM payer")}


def _statement(
    session: Session, period: str | None, first_day: int | None, end_day: int | None
) -> str:
    """Rows of Payer, Month, Day, Start_ns, End_ns and FIELDS; the times are of a single job."""
    keys = ["Payer", *PERIODS[period]]
    when = ", ".join(name if name in keys else f"NULL AS {name}" for name in ("Month", "Day"))
    times = "NULL AS Start_ns, NULL AS End_ns"
    sums = f"SELECT Payer, {when}, {times}, {_of_group(session)} FROM job_run"
    group = f"GROUP BY {', '.join(keys)}"
    if period is None and first_day is None and end_day is None:
        return f"{sums} WHERE Payer > 0 {group}"
    whole, cut, seen = ["Payer > 0"], [], ["LastDay >= 0"]
    if period:
        last = {"day": "LastDay", "month": "LastMonth"}[period]
        whole.append(f"{session.unindexed.format(last)} IS NULL")
        cut.append(f"{last} IS NOT NULL")
    if first_day is not None:
        whole.append(f"Day >= {first_day}")
        cut.append(f"Day < {first_day}")
        seen.append(f"LastDay >= {first_day}")
    if end_day is not None:
        whole.append(f"COALESCE(LastDay, Day) < {end_day}")
        cut.append(f"LastDay >= {end_day}")
        seen.append(f"Day < {end_day}")
    return (
        f"{sums} WHERE {' AND '.join(whole)} {group} UNION ALL"
        f" SELECT Payer, NULL, NULL, Start_ns, End_ns, {_of_one()} FROM job_run"
        f" WHERE {' AND '.join(seen)} AND ({' OR '.join(cut)})"
    )


def _days(first_day: int | None, end_day: int | None) -> tuple[str, list[int]]:
    """SQL of the jobs that began on these days."""
    bounds = ((" AND Day >= ?", first_day), (" AND Day < ?", end_day))
    known = [(text, day) for text, day in bounds if day is not None]
    return "".join(text for text, _ in known), [day for _, day in known]


def clusters(session: Session) -> list[str]:
    """Those whose jobs the store has, or had."""
    return sorted(name for (name,) in session.rows("SELECT DISTINCT Cluster FROM payer"))


def accounts(session: Session) -> list[str]:
    """Likewise."""
    return sorted(name for (name,) in session.rows("SELECT DISTINCT Account FROM payer"))


# What Use has after its keys: of which column, and how a job's parts have it.
WHOLE, SHARE, FLAG, KNOWN = "whole", "share", "flag", "known"
FIELDS = {
    "jobs": (KNOWN, "Payer"),
    "energy_uj": (WHOLE, "ConsumedEnergy_uj"),
    "systematic_uj": (SHARE, "UncertaintySystematic_uj"),
    "random_uj2": (SHARE, "UncertaintyRandom_uj * UncertaintyRandom_uj"),
    "overhead_uj": (WHOLE, "EnergyOverhead_uj"),
    "overhead_systematic_uj": (SHARE, "OverheadSystematic_uj"),
    "overhead_random_uj2": (SHARE, "OverheadRandom_uj * OverheadRandom_uj"),
    "storage_uj": (WHOLE, "EnergyStorage_uj"),
    "storage_systematic_uj": (SHARE, "StorageSystematic_uj"),
    "storage_random_uj2": (SHARE, "StorageRandom_uj * StorageRandom_uj"),
    **{name: (WHOLE, column) for name, column in zip(Work._fields, WORK)},
    "carbon_g": (SHARE, "Carbon_g"),
    "carbon_error_g": (SHARE, "CarbonError_g"),
    "cost": (SHARE, "Cost"),
    "cost_error": (SHARE, "CostError"),
    "estimated": (FLAG, "Estimated"),
    "incomplete": (FLAG, "Incomplete"),
    "energy_jobs": (KNOWN, "ConsumedEnergy_uj"),
    "overhead_jobs": (KNOWN, "EnergyOverhead_uj"),
    "storage_jobs": (KNOWN, "EnergyStorage_uj"),
    "work_jobs": (KNOWN, "BytesRead"),
    "carbon_jobs": (KNOWN, "Carbon_g"),
    "cost_jobs": (KNOWN, "Cost"),
}
KNOWN_OF = {
    **{"energy_uj": "energy_jobs", "overhead_uj": "overhead_jobs", "storage_uj": "storage_jobs"},
    **dict.fromkeys(Work._fields, "work_jobs"),
    **{"carbon_g": "carbon_jobs", "cost": "cost_jobs"},
}
_AT = list(FIELDS).index
_KNOWN_AT = [(_AT(name), _AT(jobs)) for name, jobs in KNOWN_OF.items()]
_KINDS = [kind for kind, _ in FIELDS.values()]
_WHOLES = [at for at, kind in enumerate(_KINDS) if kind == WHOLE]
_CONVERT = [
    convert
    for kind in _KINDS
    for convert in {WHOLE: (int, int), SHARE: (float,)}.get(kind, (int,))
]


def halves(column: str) -> tuple[str, str]:
    """SQL of a whole number's two halves, whose sums fit; whole() puts them together."""
    return f"{column} >> {HALF_BITS}", f"{column} & {(1 << HALF_BITS) - 1}"


def whole(high: int, low: int) -> int:
    """What was in two halves."""
    return (high << HALF_BITS) + low


def _of_group(session: Session) -> str:
    """SQL of the fields of many jobs."""
    texts = []
    for kind, column in FIELDS.values():
        if kind == WHOLE:
            texts += [f"SUM({session.addend.format(half)})" for half in halves(column)]
        elif kind == KNOWN:
            texts.append(f"COUNT({column})")
        else:
            texts.append(f"SUM({session.addend.format(column) if kind == FLAG else column})")
    return ", ".join(texts)


def _of_one() -> str:
    """SQL of the fields of a job."""
    texts = []
    for kind, column in FIELDS.values():
        if kind == WHOLE:
            texts += halves(column)
        else:
            texts.append(
                f"CASE WHEN {column} IS NULL THEN 0 ELSE 1 END" if kind == KNOWN else column
            )
    return ", ".join(texts)


def _numbers(row: Sequence) -> list[int | float]:
    """The fields; a database's Decimals become what Python calculates with, nothing 0."""
    found = [convert(value or 0) for convert, value in zip(_CONVERT, row)]
    for at in _WHOLES:
        found[at] = whole(found[at], found.pop(at + 1))
    return found


def _known(numbers: list) -> list:
    """The sum of no job's is not known, and not 0."""
    found = list(numbers)
    for at, jobs in _KNOWN_AT:
        if not found[jobs]:
            found[at] = None
    return found


def _part(numbers: list, begin: int, until: int, length: int) -> list:
    """Of a job's fields, what the time from begin to until has of the whole length: of a random
    error's square, too, for its moments err each by itself. Whole numbers are cut so that the
    parts of all the time add up to them."""
    share = (until - begin) / length
    return [
        number
        if kind in (FLAG, KNOWN)
        else number * until // length - number * begin // length
        if kind == WHOLE
        else number * share
        for kind, number in zip(_KINDS, numbers)
    ]


def _add(sums: dict[tuple, list], key: tuple, part: list) -> None:
    before = sums.get(key)
    sums[key] = [one + other for one, other in zip(before, part)] if before else part


class _Split:
    """Adds up the parts that jobs have in each period, of those within the bounds."""

    def __init__(self, period: str | None, first_day: int | None, end_day: int | None):
        self.sums: dict[tuple[int, int | None, int | None], list[int | float]] = {}
        self._period, self._first_day, self._end_day = period, first_day, end_day

    def add(
        self, payer: int, zone: Zone, start_ns: int, end_ns: int, numbers: list[int | float]
    ) -> None:
        """A job that saw several days."""
        for *when, part in self.parts(zone, start_ns, end_ns, numbers):
            _add(self.sums, (payer, *when), part)

    def add_kept(self, rows: Iterable[tuple]) -> None:
        """What is left of pruned jobs: those of the same days are counted once in a period."""
        counted = set()
        for payer, first, last, day, *row in rows:
            of_month = month(day) if self._period else None
            when = (of_month, day if self._period == "day" else None)
            part, group = kept_numbers(row), (payer, first, last, *when)
            if group in counted:
                part = [0 if kind in (FLAG, KNOWN) else n for kind, n in zip(_KINDS, part)]
            counted.add(group)
            _add(self.sums, (payer, *when), part)

    def parts(
        self, zone: Zone, start_ns: int, end_ns: int, numbers: list[int | float]
    ) -> Iterator[tuple[int | None, int | None, list[int | float]]]:
        """(month, day, its part) of each period within the bounds that a job saw."""
        for *when, begin_ns, until_ns in self._periods(zone, start_ns, end_ns):
            ends = begin_ns - start_ns, until_ns - start_ns
            yield *when, _part(numbers, *ends, end_ns - start_ns)

    def _periods(self, zone: Zone, start_ns: int, end_ns: int) -> Iterator[tuple]:
        """(month, day, from, until) of those that a time from start_ns to end_ns saw."""
        day, end = zone.day(start_ns), zone.day(end_ns - 1) + 1
        if self._first_day is not None:
            day = max(day, self._first_day)
        if self._end_day is not None:
            end = min(end, self._end_day)
        while day < end:
            then = min(end, self._next(day, end))
            begin_ns = max(start_ns, zone.begin_ns(day))
            until_ns = min(end_ns, zone.begin_ns(then))
            if begin_ns < until_ns:
                of_month = month(day) if self._period else None
                yield of_month, day if self._period == "day" else None, begin_ns, until_ns
            day = then

    def _next(self, day: int, end: int) -> int:
        return {"day": day + 1, "month": next_month(day), None: end}[self._period]


# -- what is left of pruned jobs ------------------------------------------------------------------


def pruned(session: Session) -> list[tuple[str, int]]:
    """Clusters, and of each the end before which jobs are pruned."""
    return session.rows("SELECT Cluster, End_ns FROM pruned ORDER BY Cluster")


def unpruned(session: Session, ask: Callable[[], T]) -> T:
    """What several questions say, between which no job went from one answer to another's."""
    before = pruned(session)
    while True:
        answers, after = ask(), pruned(session)
        if after == before:
            return answers
        before = after


_KEPT_NAMES = KEPT[len(KEPT_KEY) :]
_KEPT_AT = [_AT(name) for name in _KEPT_NAMES]


def _kept_rows(session: Session, first_day: int | None, end_day: int | None) -> list[tuple]:
    where, values = _days(first_day, end_day)
    return session.rows(f"SELECT {', '.join(KEPT)} FROM kept WHERE 1 = 1{where}", values)


def kept_numbers(row: Sequence) -> list[int | float]:
    """The fields of a row of `kept`."""
    numbers: list[int | float] = [0] * len(FIELDS)
    for at, value in zip(_KEPT_AT, row):
        numbers[at] = float(value) if _KINDS[at] == SHARE else int(value)
    return numbers


def kept_row(numbers: Sequence) -> list:
    """Fields as `kept` has them."""
    found = [numbers[at] for at in _KEPT_AT]
    return [str(n) if _KINDS[at] == WHOLE else n for at, n in zip(_KEPT_AT, found)]


def rows_of(
    session: Session, jobs: list[tuple[str, int]], select: str, end: str = ""
) -> Iterator[tuple]:
    """Of jobs, which are sorted: one question for all between the first and the last, and those
    that are none of them are left out. Rows begin with Cluster and Job; end: after the WHERE."""
    first, last, wanted = jobs[0], jobs[-1], set(jobs)
    rows = session.rows(
        f"{select} AND (Cluster > ? OR (Cluster = ? AND Job >= ?))"
        f" AND (Cluster < ? OR (Cluster = ? AND Job <= ?)){end}",
        (first[0], *first, last[0], *last),
    )
    return (row for row in rows if row[:2] in wanted)


class Kept:
    """What jobs add to the sums of each of their days, by payer and the days that they saw."""

    def __init__(self):
        self.sums: dict[tuple[int, int, int, int], list[int | float]] = {}

    def add_jobs(self, session: Session, jobs: list[tuple[str, int]], zones: Zones) -> None:
        """All runs of jobs, which are sorted."""
        split = _Split("day", None, None)
        select = (
            "SELECT Cluster, Job, Payer, Day, LastDay, Start_ns, End_ns,"
            f" {_of_one()} FROM job_run WHERE Step = 'job' AND Payer > 0"
        )
        for row in rows_of(session, jobs, select):
            cluster, _, payer, day, last_day, start_ns, end_ns = row[:7]
            numbers = _numbers(row[7:])
            if last_day is None:
                self.add((payer, day, day, day), numbers)
                continue
            for _, when, part in split.parts(zones[cluster], start_ns, end_ns, numbers):
                self.add((payer, day, last_day, when), part)

    def add(self, key: tuple[int, int, int, int], numbers: list[int | float]) -> None:
        """A part."""
        _add(self.sums, key, numbers)


BATCH = 5000
WHOSE = ("UserName", "Account", "PartitionName")
COLUMNS = ("JobIDRaw", *NAMES, *WHOSE)  # of the rows of top_jobs() and all_rows()


def top_jobs(session: Session, count: int, chosen: Chosen) -> list[dict]:
    """The job rows with the most energy, with UserName, Account and PartitionName."""
    where, values = chosen.where()
    key = ", ".join(JOB_RUN_KEY)
    rows = session.rows(
        f"{SELECT} JOIN (SELECT {key} FROM job_run{_index_of(session, chosen)}"
        f" WHERE Payer > 0 AND ConsumedEnergy_uj IS NOT NULL{where}"
        f" ORDER BY ConsumedEnergy_uj DESC LIMIT {int(count)}) AS top USING ({key})"
        " ORDER BY ConsumedEnergy_uj DESC",
        values,
    )
    return _with_payers(session, map(as_dict, rows))


def unmeasured(session: Session, chosen: Chosen) -> int:
    """How many of the jobs have no energy, by which top_jobs() could have them."""
    where, values = chosen.where()
    count = f"SELECT COUNT(*) FROM job_run{_index_of(session, chosen)}"
    return session.value(f"{count} WHERE Payer > 0 AND ConsumedEnergy_uj IS NULL{where}", values)


def _index_of(session: Session, chosen: Chosen) -> str:
    """By the index of energies a few jobs of long ago, or of few people, would be sought among all
    that used more, or have none: days and payers are in that of sums, which is read without a look
    at the rows."""
    of_some = (chosen.first_day, chosen.end_day, chosen.whose) != (None, None, None)
    return session.by_index.format("job_run_sums" if of_some else "job_run_energy")


def all_rows(session: Session, chosen: Chosen, steps: bool) -> Iterator[list[dict]]:
    """Every row in batches, so that a program's memory does not grow with the store."""
    where, values = chosen.where(steps)
    kind = "Payer > 0" if not steps else "1 = 1"
    key, last = tuple(JOB_RUN_KEY), ("", -1, -1, "")
    while True:
        after, begin = session.after(key, last)
        rows = session.rows(
            f"{SELECT} WHERE {kind} AND {after}{where} ORDER BY {', '.join(key)} LIMIT {BATCH}",
            (*begin, *values),
        )
        if not rows:
            return
        batch = _with_payers(session, map(as_dict, rows))
        yield batch
        last = tuple(batch[-1][name] for name in key)


def _with_payers(session: Session, rows) -> list[dict]:
    known = {
        number: dict(zip(WHOSE, rest))
        for number, *rest in session.rows(f"SELECT id, {', '.join(WHOSE)} FROM payer")
    }
    nobody = dict.fromkeys(WHOSE)
    return [{**row, **known.get(row["Payer"], nobody)} for row in rows]
