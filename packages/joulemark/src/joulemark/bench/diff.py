# `joulemark diff`: what is faster or slower, thriftier or costlier in one set of results than in
# another, and what is not told apart.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from joulemark import layout, units
from joulemark.bench import cooked, manifest, options, stats, table, verdict
from joulemark.bench.stats import Row, Series, Value
from joulemark.errors import UsageError

QUANTITIES = ("time_s", "performance", "energy_j", "efficiency")
ONE_RUN, ONE_JOB = f"one run: {verdict.ALIKE}", "within one job"
LEGEND = (
    f"N: runs of A, of B, beside energies those that have one; {stats.AT_95}; "
    "~: estimated by a model. "
    f"{ONE_JOB}: a side is the runs of a single job, and ± is by these; what another job, node or "
    f"hour would change is not in it. {stats.SAME_INSTRUMENT}"
)
LEGEND_OTHERS = (
    "by another instrument: A's and B's energies were measured by different instruments or "
    "channels, or one of them by a model, or those of one side by several, whose proportions may "
    "differ: they are in no ratio, for each is another quantity."
)


@dataclass(frozen=True)
class Pair:
    """One problem and size in both; `broken`: B's result is wrong, where all of A's were right, or
    none of B's is right, where one of A's was."""

    before: Row
    after: Row | None  # None: no run of B verified
    broken: bool
    threshold: float
    level: float = stats.ALPHA  # of the family that it is tested in

    def ratio(self, key: str) -> Value | None:
        """B's value by A's."""
        return stats.ratio(key, self.before, self.after) if self.after else None

    @property
    def is_by_others(self) -> bool:
        """Whether the energies of the sides are no values of one quantity."""
        return bool(self.after) and stats.is_other_instrument(self.before, self.after)

    @property
    def is_same_instrument(self) -> bool:
        """Whether one node's channels measured all of both sides."""
        return bool(self.after) and stats.is_same_instrument(self.before, self.after)

    def values(self, key: str) -> tuple[Value | None, Value | None]:
        """A's and B's."""
        return getattr(self.before, key), self.after and getattr(self.after, key)

    def verdict(self, key: str) -> str | None:
        """On the time or the energy, and what it rests on; None where it is not known on both
        sides."""
        word = self.word(key)
        if word in (None, verdict.FAILED, verdict.OTHERS, ONE_RUN):
            return word
        is_of_one_job = 1 in [value.jobs for value in self.values(key)]
        return f"{word}, {ONE_JOB}" if is_of_one_job else word

    def word(self, key: str) -> str | None:
        """Of the verdict, without what it rests on."""
        if self.broken and key == "time_s":
            return verdict.FAILED
        if self.ratio(key) is None:
            return verdict.OTHERS if self.is_by_others and key in table.OF_ENERGY else None
        tested = self.tested(key)
        return verdict.of_ratio(tested, key, self.threshold, self.level) if tested else ONE_RUN

    def tested(self, key: str) -> Value | None:
        """Its ratio, where several runs on each side tell how it scatters."""
        ratio = self.ratio(key)
        is_known = ratio and ratio.interval is not None
        return ratio if is_known and 1 not in (self.before.runs, self.after.runs) else None

    @property
    def is_worse(self) -> bool:
        """Whether B is slower, costlier or wrong."""
        return any(self.word(key) in verdict.WORSE for key in verdict.WORDS)


@dataclass(frozen=True)
class Difference:
    """One kernel with one manifest on each side."""

    before: Series
    after: Series
    pairs: tuple[Pair, ...]

    @property
    def title(self) -> str:
        """What was measured, by what the manifests differ, and by which options."""
        both = (*self.before.rows, *self.after.rows)
        apart = stats.apart(self.change, self.before, self.after)
        return table.title(replace(self.before, rows=both, apart=apart))

    @property
    def change(self) -> str:
        """By what the manifests differ; empty where nothing does."""
        return manifest.change(self.before.manifest, self.after.manifest)


# -- what stands beside what ---------------------------------------------------------------------


def find(before: str, after: str, threshold: float) -> tuple[list[Difference], list[str]]:
    """All that both have; and what only one has, in words."""
    ours = stats.series_of(cooked.load([before], "A"))
    theirs = stats.series_of(cooked.load([after], "B"))
    found = between(ours, theirs, threshold)
    wrong = list(_wrong(ours, theirs))
    if not found:
        why = "".join(f"; {line}" for line in wrong)
        raise UsageError(
            f"{before} and {after} have no size of a kernel in common, by the same options{why}"
        )
    return found, [*wrong, *_alone("A", ours, theirs), *_alone("B", theirs, ours)]


def between(ours: list[Series], theirs: list[Series], threshold: float) -> list[Difference]:
    """All that both have, tested as one family."""
    found = [
        Difference(one, other, tuple(pairs))
        for one, other, sizes in _beside(ours, theirs)
        if (pairs := list(_pairs(one, other, sizes, threshold)))
    ]
    level = verdict.level(tested(found))
    return [
        replace(one, pairs=tuple(replace(pair, level=level) for pair in one.pairs))
        for one in found
    ]


def tested(found: list[Difference]) -> list[Value | None]:
    """All ratios that get a verdict, a family."""
    return [pair.tested(key) for one in found for pair in one.pairs for key in verdict.WORDS]


def _beside(ours: list[Series], theirs: list[Series]) -> Iterator[tuple[Series, Series, set[int]]]:
    """Series of one problem and the sizes at which they are laid beside each other: by the same
    options, and of one manifest, or both without an equal; else two builds' difference would be
    that of the sides."""
    equal = _kinds(ours) & _kinds(theirs)
    asked, asked_there = _asked(ours), _asked(theirs)
    for one in ours:
        for other in theirs:
            if stats.problem(one) != stats.problem(other):
                continue
            told, told_there = _options(one), _options(other)
            sizes = {
                size
                for size in told.keys() & told_there.keys()
                if options.beside(told[size], asked_there[stats.problem(one), size])
                == told_there[size]
                and options.beside(told_there[size], asked[stats.problem(one), size]) == told[size]
            }
            if one.manifest != other.manifest:
                has_equal = equal & _kinds([one, other])
                sizes -= {size for *_, (size, _) in has_equal}
            yield one, other, sizes


def _kinds(all_series: list[Series]) -> set[tuple]:
    return {(stats.problem(one), one.manifest, row.case) for one in all_series for row in one.rows}


def _asked(all_series: list[Series]) -> dict[tuple, set[str]]:
    """The sets of options of each problem and size."""
    found: dict[tuple, set[str]] = {}
    for one in all_series:
        for size, told in _options(one).items():
            found.setdefault((stats.problem(one), size), set()).add(told)
    return found


def _options(series: Series) -> dict[int, str]:
    """By size, of which a series has one each."""
    return {row.size: row.options for row in series.rows}


def _pairs(one: Series, other: Series, sizes: set[int], threshold: float) -> Iterator[Pair]:
    after = _verified(other)
    broken = _failed(other) - (_failed(one) & after.keys())
    for size, row in _verified(one).items():
        if size in sizes and (size in after or size in broken):
            yield Pair(row, after.get(size), size in broken, threshold)


def _verified(series: Series) -> dict[int, Row]:
    return {row.size: row for row in series.rows if row.verified}


def _failed(series: Series) -> set[int]:
    return {row.size for row in series.rows if not row.verified}


def _wrong(ours: list[Series], theirs: list[Series]) -> Iterator[str]:
    """What cannot be compared, for no run of A is right; what B made of it."""
    for one, other, both in _beside(ours, theirs):
        right = _verified(other)
        for size in sorted(both & (_failed(one) - _verified(one).keys())):
            now = "right" if size in right else "wrong"
            yield f"wrong in A, so not compared: {table.title(one)}: size {size}, {now} in B"


def _alone(side: str, ours: list[Series], theirs: list[Series]) -> Iterator[str]:
    beside = list(_beside(ours, theirs))
    for one in ours:
        told = _options(one)
        sizes = told.keys() - set().union(*(both for like, _, both in beside if like is one))
        otherwise = {size for like, other, _ in beside if like is one for size in _options(other)}
        if sizes:
            shown = ", ".join(_told(size, told[size], size in otherwise) for size in sorted(sizes))
            yield f"only in {side}: {table.title(one)}: size {shown}"


def _told(size: int, options: str, is_otherwise_there: bool) -> str:
    return f"{size} ({options})" if options and is_otherwise_there else str(size)


# -- tables and records --------------------------------------------------------------------------


def as_text(one: Difference) -> layout.Text:
    """Four lines a size: what is measured in A and in B, the ratio, the verdict."""
    heads = ["Size", "N", "", "A", "B", "B / A", "verdict"]
    return layout.Text(
        one.title, heads, [line for pair in one.pairs for line in _lines(one, pair)]
    )


def _lines(one: Difference, pair: Pair) -> Iterator[tuple[str, list[str]]]:
    size, told = str(pair.before.size), ""
    for key in QUANTITIES:
        values = [value for value in pair.values(key) if value]
        if not values:
            continue
        exponent = units.best_exponent([value.mean for value in values])
        heading = (
            f"{table.HEADS[key][0]} [{units.prefix(exponent)}{table.unit_of(one.before, key)}]"
        )
        runs = _runs(pair, key)
        start = [size, runs if runs != told else ""]
        size, told = "", runs
        is_worse, said = False, ""
        if key in verdict.WORDS:
            is_worse, said = pair.word(key) in verdict.WORSE, pair.verdict(key) or ""
        yield (
            "failed" if is_worse else "value",
            [*start, heading, *_cells(pair, key, 10.0**-exponent), said],
        )


def _runs(pair: Pair, key: str) -> str:
    """Of A and of B; of an energy, those that have one."""
    what = "energy_runs" if key in table.OF_ENERGY else "runs"
    return ", ".join(str(getattr(row, what) if row else 0) for row in (pair.before, pair.after))


def _cells(pair: Pair, key: str, factor: float) -> Iterator[str]:
    rows = (pair.before, pair.after)
    for value, scale, of in zip(
        (*pair.values(key), pair.ratio(key)), (factor, factor, 1), (rows[:1], rows[1:], rows)
    ):
        yield table.mark(key, *of) + table.with_error(value.scaled(scale)) if value else "-"


def notes(found: list[Difference], before: str, after: str) -> list[str]:
    """Which side is which, the legend, and how many got worse."""
    pairs = [pair for one in found for pair in one.pairs]
    worse = sum(pair.is_worse for pair in pairs)
    same = sum(pair.is_same_instrument for pair in pairs)
    return [
        f"A: {before}; B: {after}.",
        LEGEND,
        *([LEGEND_OTHERS] if any(pair.is_by_others for pair in pairs) else []),
        f"{same} of {len(pairs)} sizes: the same channels of the same node on both sides.",
        verdict.told(tested(found), pairs[0].threshold),
        f"{worse} of {len(pairs)} sizes got worse.",
    ]


def records(found: Iterable[Difference]) -> list[dict]:
    """One record a size in SI units; errors at 95 %."""
    return [_record(one, pair) for one in found for pair in one.pairs]


def _record(one: Difference, pair: Pair) -> dict:
    before, after = pair.before, pair.after
    record = {
        **table.problem_record(one.before, before),
        "change": one.change or None,
        "runs_a": before.runs,
        "runs_b": after.runs if after else 0,
        "jobs_a": before.jobs,
        "jobs_b": after.jobs if after else 0,
        "energy_runs_a": before.energy_runs,
        "energy_runs_b": after.energy_runs if after else 0,
        "energy_jobs_a": before.energy_jobs,
        "energy_jobs_b": after.energy_jobs if after else 0,
        "estimated": before.estimated or bool(after and after.estimated),
        "same_instrument": pair.is_same_instrument,
    }
    for key in QUANTITIES:
        for side, value in zip(("a", "b", "ratio"), (*pair.values(key), pair.ratio(key))):
            record[f"{key}_{side}"] = value.mean if value else None
            record[f"{key}_{side}_error"] = value.error if value else None
    record["time_verdict"] = pair.verdict("time_s")
    record["energy_verdict"] = pair.verdict("energy_j")
    for side, series in (("a", one.before), ("b", one.after)):
        told = manifest.as_record(series.manifest)
        record.update({f"{key}_{side}": value for key, value in told.items()})
    return record
