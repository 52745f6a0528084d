# `joulemark trend`: a benchmark over the days, and whether the last of them is worse than before.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from joulemark import layout, units
from joulemark.bench import manifest, options, stats, table, verdict
from joulemark.bench.cooked import Measurement
from joulemark.bench.diff import QUANTITIES
from joulemark.bench.manifest import Manifest
from joulemark.bench.stats import Row, Series, Value
from joulemark.store.days import Zone
from joulemark.units import NS_PER_S

FEWEST = 3  # earlier points; of fewer nobody knows how days scatter
TOO_FEW = f"too few earlier: {verdict.ALIKE}"
LEGEND = (
    f"A line: the N runs of one day and manifest, {table.N_OF_ENERGY}; {stats.AT_95}. "
    "Manifests of one last day have a table each. "
    "last / median: the last line by the median of the earlier ones, and how far one more day may "
    "be off at 95 % as those days scatter, with the last line's own scatter (of a single job, "
    f"that of the earlier days' jobs), and of energies by the instrument. {stats.SAME_INSTRUMENT}"
)
MARK = "*"
LEGEND_OTHERS = (
    f"{MARK}: measured by other instruments or channels than the last line's, or by several, or "
    "by a model: it is in no ratio of energies, for it is another quantity."
)
UNLIKE = (
    "Lines by other options of the program than those of a problem's last day are in no table: "
    "`report table` has them."
)


@dataclass(frozen=True)
class Point:
    """The runs of one day with one manifest."""

    day: str  # ISO 8601
    series: Series
    row: Row

    @property
    def manifest(self) -> Manifest | None:
        """What the runs have in common."""
        return self.series.manifest


@dataclass(frozen=True)
class Trend:
    """One problem and size over the days, the earliest first."""

    points: tuple[Point, ...]
    threshold: float
    apart: str = ""  # what tells the last manifest from others of that day; other options
    has_unlike: bool = False  # whether others by other options are left out
    level: float = stats.ALPHA  # of the family that it is tested in

    @property
    def last(self) -> Point:
        """What is judged."""
        return self.points[-1]

    def ratio(self, key: str) -> Value | None:
        """The last by the median of the earlier; without an interval where these are too few."""
        last, earlier = getattr(self.last.row, key), self._earlier(key)
        if last is None or not earlier:
            return None
        values = [getattr(row, key) for row in earlier]
        means = [value.mean for value in values]
        if len(values) < FEWEST:
            return Value(last.mean / statistics.median(means))
        error, degrees = _of_one_more(values, last.jobs)
        errors = [value.uncertainty for value in values if value.uncertainty is not None]
        usual = Value(
            statistics.median(means),
            uncertainty=statistics.median(errors) if errors else None,
            interval=stats.student_t(degrees) * error,
            degrees=degrees,
        )
        own = replace(last, interval=last.interval or 0.0)
        return own.over(
            usual, all(stats.is_same_instrument(row, self.last.row) for row in earlier)
        )

    def verdict(self, key: str) -> str | None:
        """On the last one's time or energy; None where there is nothing to judge."""
        if not self.last.row.verified:
            is_new = any(point.row.verified for point in self.points)
            return verdict.FAILED if is_new and key == "time_s" else None
        ratio = self.ratio(key)
        if ratio is None:
            return verdict.OTHERS if self.has_others and key in table.OF_ENERGY else None
        tested = self.tested(key)
        return verdict.of_ratio(tested, key, self.threshold, self.level) if tested else TOO_FEW

    def tested(self, key: str) -> Value | None:
        """Its ratio, where the earlier ones tell how it scatters."""
        ratio = self.ratio(key) if self.last.row.verified else None
        return ratio if ratio and ratio.interval is not None else None

    @property
    def is_worse(self) -> bool:
        """Whether the last is slower, costlier or wrong."""
        return any(self.verdict(key) in verdict.WORSE for key in verdict.WORDS)

    @property
    def has_too_few(self) -> bool:
        """Whether nothing of a right last result can be judged."""
        said = {self.verdict(key) for key in verdict.WORDS}
        return self.last.row.verified and said <= {None, TOO_FEW, verdict.OTHERS}

    def is_by_others(self, point: Point) -> bool:
        """Whether its energy is no earlier value of what the last one's is."""
        return stats.is_other_instrument(point.row, self.last.row)

    @property
    def has_others(self) -> bool:
        """Whether any is."""
        return any(map(self.is_by_others, self.points))

    def change(self, index: int) -> str:
        """By what a point's manifest differs from that of the point before."""
        if index == 0:
            return ""
        before, after = self.points[index - 1 : index + 1]
        return manifest.change(before.manifest, after.manifest)

    def _earlier(self, key: str) -> list[Row]:
        return [
            point.row
            for point in self.points[:-1]
            if getattr(point.row, key)
            and not (key in table.OF_ENERGY and self.is_by_others(point))
        ]


def _of_one_more(values: list[Value], jobs: int) -> tuple[float, float]:
    """How far one more value of so many jobs scatters about the median, a standard error, and its
    degrees of freedom; a median's variance is pi / 2 times that of a mean.

    One job tells no scatter of its own, and means of several have less than it: the rest is that
    of the jobs within those days."""
    count = len(values)
    deviation = statistics.stdev(value.mean for value in values)
    days = deviation * math.sqrt(1 + math.pi / 2 / count), count - 1
    several = [value for value in values if value.jobs > 1]
    if jobs > 1 or not several:
        return days
    degrees = sum(value.degrees for value in several)
    squares = (
        value.degrees * value.jobs * (value.mean * value.standard_error[0]) ** 2
        for value in several
    )
    rest = 1 - statistics.fmean(1 / value.jobs for value in values)
    return stats.combined(days, (math.sqrt(rest * math.fsum(squares) / degrees), degrees))


# -- what was measured when ----------------------------------------------------------------------


def find(measured: list[Measurement], kernel: str, threshold: float, zone: Zone) -> list[Trend]:
    """Each problem, size and options of a kernel, or of all kernels of a benchmark, tested as one
    family; zone: of the days."""
    points: dict[tuple, list[Point]] = {}
    titles = {}
    for one in stats.series_of(measured, kernel):
        for row in one.rows:
            points[stats.problem(one), row.size] = []
            titles[stats.problem(one), row.case] = one
    wanted = [one for one in measured if kernel in (one.kernel, one.benchmark)]
    for point in _points(wanted, zone):
        points[stats.problem(point.series), point.row.size].append(point)
    found = []
    for (problem, _), days in points.items():
        lines = list(_of_options(days))
        has_unlike = len({id(point) for own in lines for point in own}) < len(days)
        for one in (one for own in lines for one in _of_builds(own, threshold)):
            apart = stats.apart(one.apart, titles[problem, one.last.row.case])
            found.append(replace(one, apart=apart, has_unlike=has_unlike))
    level = verdict.level(tested(found))
    return [replace(one, level=level) for one in found]


def _of_options(points: list[Point]) -> Iterator[list[Point]]:
    """Those of each set of options that ran on the last day, and earlier ones beside it."""
    asked: dict[str, dict[str, None]] = {}
    for point in points:
        asked.setdefault(point.day, {})[point.row.options] = None
    last = asked[points[-1].day]
    for told in last:
        beside = {day: options.beside(told, sets) for day, sets in asked.items()}
        yield [
            point
            for point in points
            if beside[point.day] == point.row.options
            and options.beside(point.row.options, last) == told
        ]


def _of_builds(points: list[Point], threshold: float) -> Iterator[Trend]:
    """One for each manifest that ran on the last day: builds beside each other are no change. A
    former manifest's lines are before those of the one that differs least from it; a new one that
    has too few lines is laid beside the nearest's, too."""
    day = points[-1].day
    lines: dict[Manifest | None, list[Point]] = {
        point.manifest: [] for point in points if point.day == day
    }
    for point in points:
        lines[_nearest(point.manifest, lines)].append(point)
    for one, own in lines.items():
        if sum(point.day < day for point in own) < FEWEST:
            own = _with_nearest(own, points)
        yield Trend(tuple(own), threshold, manifest.apart(one, lines))


def _with_nearest(own: list[Point], points: list[Point]) -> list[Point]:
    last = own[-1]
    before = points[: points.index(last)]
    others = [point.manifest for point in reversed(before) if point not in own]
    if not others:
        return own
    nearest = _nearest(last.manifest, others)
    return [*(point for point in before if point in own or point.manifest == nearest), last]


def _nearest(one: Manifest | None, others: Iterable[Manifest | None]) -> Manifest | None:
    return min(others, key=lambda other: manifest.distance(one, other))


def tested(found: list[Trend]) -> list[Value | None]:
    """All ratios that get a verdict, a family."""
    return [one.tested(key) for one in found for key in verdict.WORDS]


def _points(measured: list[Measurement], zone: Zone) -> Iterator[Point]:
    """In the order of their first runs."""
    groups: dict[tuple[str, Manifest | None], list[Measurement]] = {}
    for one in sorted(measured, key=lambda one: one.start_s):
        day = zone.date_of(int(one.start_s * NS_PER_S)).isoformat()
        groups.setdefault((day, one.manifest), []).append(one)
    for (day, _), runs in groups.items():
        for series in stats.series_of(runs):
            yield from (Point(day, series, row) for row in series.rows)


# -- tables and records --------------------------------------------------------------------------


def as_text(one: Trend) -> layout.Text:
    """A line a day and manifest, then the last by the median of the earlier, and the verdicts."""
    scales = {key: _exponent(one, key) for key in QUANTITIES}
    heads = ["Day", "N"] + [
        f"{table.HEADS[key][0]} [{units.prefix(scale)}{table.unit_of(one.last.series, key)}]"
        for key, scale in scales.items()
    ]
    body = [
        (
            "value" if point.row.verified else "failed",
            [point.day, table.runs(point.row), *_cells(one, point, scales), one.change(index)],
        )
        for index, point in enumerate(one.points)
    ]
    ratios = [_ratio_cell(one, key) for key in QUANTITIES]
    said = [(one.verdict(key) if key in verdict.WORDS else None) or "" for key in QUANTITIES]
    body.append(("value", ["last / median", "", *ratios, ""]))
    body.append(("failed" if one.is_worse else "value", ["verdict", "", *said, ""]))
    rows = tuple(point.row for point in one.points)
    title = table.title(replace(one.last.series, rows=rows, apart=one.apart))
    return layout.Text(f"{title}, size {one.last.row.size}", [*heads, "manifest"], body)


def _exponent(one: Trend, key: str) -> int:
    values = [getattr(point.row, key) for point in one.points]
    return units.best_exponent([value.mean for value in values if value])


def _cells(one: Trend, point: Point, scales: dict[str, int]) -> Iterator[str]:
    row = point.row
    for key, scale in scales.items():
        value: Value | None = getattr(row, key)
        if value is None:
            yield "-" if row.verified else verdict.FAILED
            continue
        other = MARK if key in table.OF_ENERGY and one.is_by_others(point) else ""
        yield table.mark(key, row) + table.with_error(value.scaled(10.0**-scale)) + other


def _ratio_cell(one: Trend, key: str) -> str:
    ratio = one.ratio(key)
    return table.mark(key, one.last.row) + table.with_error(ratio) if ratio else "-"


def notes(found: list[Trend], zone: Zone) -> list[str]:
    """The legend, whose days they are, how many got worse, and how many nobody can judge yet."""
    worse, unknown = sum(one.is_worse for one in found), sum(one.has_too_few for one in found)
    why = f"{unknown} of {len(found)} not judged: that takes {FEWEST} earlier days."
    lines = [LEGEND, *([LEGEND_OTHERS] if any(one.has_others for one in found) else [])]
    lines += [UNLIKE] if any(one.has_unlike for one in found) else []
    lines += [f"Days: {zone.name}.", verdict.told(tested(found), found[0].threshold)]
    return [*lines, f"{worse} of {len(found)} got worse.", *([why] if unknown else [])]


def records(found: list[Trend]) -> list[dict]:
    """One record a point in SI units, errors at 95 %; the last of each has the verdicts."""
    return [_record(one, index) for one in found for index in range(len(one.points))]


def _record(one: Trend, index: int) -> dict:
    point = one.points[index]
    is_last = index == len(one.points) - 1
    record = {
        "day": point.day,
        **table.problem_record(point.series, point.row),
        **manifest.as_record(point.manifest),
        "change": one.change(index) or None,
        "runs": point.row.runs,
        "jobs": point.row.jobs,
        "energy_runs": point.row.energy_runs,
        "energy_jobs": point.row.energy_jobs,
        "verified": point.row.verified,
        "estimated": point.row.estimated if point.row.energy_j else None,
        "other_instrument": one.is_by_others(point) if point.row.energy_j else None,
    }
    for key in QUANTITIES:
        value: Value | None = getattr(point.row, key)
        record[key] = value.mean if value else None
        record[f"{key}_error"] = value.error if value else None
    for key in verdict.WORDS:
        ratio = one.ratio(key) if is_last else None
        record[f"{key}_ratio"] = ratio.mean if ratio else None
        record[f"{key}_ratio_error"] = ratio.error if ratio else None
        record[f"{key}_verdict"] = one.verdict(key) if is_last else None
    return record
