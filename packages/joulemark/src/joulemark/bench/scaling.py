# `joulemark report scaling`: series over nodes, ranks or threads: what is gained, what it costs.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Callable

from joulemark import layout
from joulemark.bench import peaks, published, stats, table
from joulemark.bench.cooked import Measurement
from joulemark.bench.peaks import Peak
from joulemark.bench.stats import Row, Series, Value
from joulemark.errors import UsageError, UserError

STRONG, WEAK = "strong", "weak"
NODES, RANKS, THREADS = "nodes", "ranks", "threads"
# Threads of UiO's system, in which all memory is everybody's: its peak does not grow with them.
SHARED_MEMORY_TABLES = range(100, 104)
LEGEND = (
    "Par. eff.: performance of each worker, Energy eff.: operations per joule, both as a part of "
    "the first line's, ±: at 95 %, as far as it is known. strong: the same problem for all; weak: "
    "the problem grows with the workers. " + stats.SAME_INSTRUMENT
)

OTHERS_MARK = table.SEVERAL_MARK
LEGEND_OTHERS = (
    f"{OTHERS_MARK}: by other channels than the first line's, such as those of more GPUs, or by "
    "several, or by a model and a meter: no energy efficiency where they are not the workers' own."
)


@dataclass(frozen=True)
class Point:
    """A run on so many workers."""

    workers: int
    row: Row
    nodes: int = 0  # 0: not told


@dataclass(frozen=True)
class Scaling:
    """One problem, or one growing problem, on ever more workers."""

    name: str  # the variant and the machine
    kind: str  # strong or weak
    worker: str  # nodes, ranks or threads
    series: Series  # all points' rows, as if they were of one
    points: tuple[Point, ...]
    prototype: str = ""  # that published it
    peak: Peak | None = None
    peak_is_shared: bool = False  # by all workers, else each brings it

    @property
    def title(self) -> str:
        """What was measured, where, and whether any of its energy is an estimate."""
        estimate = f" ({layout.ESTIMATED})" if self.series.estimated else ""
        return f"{self.series.name}, {self.name}{estimate}"

    def parallel_efficiency(self, point: Point) -> Value | None:
        """Performance of one worker, as a part of the first point's."""
        first = next((one for one in self.points if one.row.performance), None)
        gain = first and stats.ratio("performance", first.row, point.row)
        return gain and gain.scaled(first.workers / point.workers)

    def relative_energy_efficiency(self, point: Point) -> Value | None:
        """Operations per joule, as a part of the first point's."""
        first = self._first_of_energy()
        return first and stats.ratio_of_any("efficiency", first.row, point.row)

    def is_by_others(self, point: Point) -> bool:
        """Whether other channels measured it than the first one's: more GPUs are more channels,
        and their energy belongs to it, but of channels that were idle before it is another."""
        first = self._first_of_energy()
        return first is not None and stats.is_other_instrument(first.row, point.row)

    def estimates(self, point: Point) -> bool:
        """Whether its relative energy efficiency rests on a model."""
        first = self._first_of_energy()
        return point.row.estimated or (first is not None and first.row.estimated)

    def _first_of_energy(self) -> Point | None:
        return next((one for one in self.points if one.row.efficiency), None)

    def fraction_of_peak(self, point: Point) -> Value | None:
        """Performance as a part of the peak of all workers together."""
        if self.peak is None or point.row.performance is None:
            return None
        peaks_of_all = 1 if self.peak_is_shared else point.workers
        return point.row.performance.scaled(1 / (self.peak.value * peaks_of_all))


OF_ENERGY = "relative_energy_efficiency"
RATIOS = (
    ("Par. eff. [%]", "parallel_efficiency", Scaling.parallel_efficiency),
    ("Energy eff. [%]", OF_ENERGY, Scaling.relative_energy_efficiency),
    ("Of peak [%]", "peak_fraction", Scaling.fraction_of_peak),
)


def find(
    options, measured: list[Measurement] | None = None
) -> tuple[list[Scaling], UserError | None]:
    """All scalings that were asked for, this machine's first; and why it has none. measured: what
    was read already."""
    published.check_names(options.prototypes)
    found, error = published.measured_here(options, _measured, measured)
    too_few = f"KERNEL {options.kernel}: no size was measured with two counts of "
    too_few += "nodes, ranks or threads"
    why = None if found else error or UsageError(too_few)
    for name in options.prototypes:
        found += _published(options.kernel, name)
    return found, why


# -- published -----------------------------------------------------------------------------------


def _published(wanted: str, name: str) -> Iterator[Scaling]:
    by_table: dict[int, list[Series]] = {}
    for one in published.series_of(wanted, name, published.SCALING_TABLES):
        by_table.setdefault(published.table_of(one), []).append(one)
    for number, found in by_table.items():
        shared = number in SHARED_MEMORY_TABLES
        points = _in_order(
            Point(one.threads if shared else one.ranks, row) for one in found for row in one.rows
        )
        kind = STRONG if len({point.row.size for point in points}) == 1 else WEAK
        yield Scaling(
            name=f"{name}, {published.prototypes()[name].device}, table {number}",
            kind=kind,
            worker=THREADS if shared else NODES,
            series=_of_all(found[0], points),
            points=points,
            prototype=name,
            peak=peaks.of_published(name, found[0].unit),
            peak_is_shared=shared,
        )


def _in_order(points: Iterable[Point]) -> tuple[Point, ...]:
    return tuple(sorted(points, key=lambda one: (one.workers, one.row.size, one.nodes)))


def _of_all(like: Series, points: tuple[Point, ...]) -> Series:
    return replace(like, rows=tuple(point.row for point in points))


# -- measured here -------------------------------------------------------------------------------


def _measured(options, measured: list[Measurement]) -> Iterator[Scaling]:
    found = stats.series_of(measured, options.kernel)
    found = stats.best_of(found) if options.best else found
    for group in _programs(found):
        yield from _of_program(group, options)


def _programs(found: list[Series]) -> Iterator[list[Series]]:
    """Series that differ in their workers alone."""
    groups: dict[tuple, list[Series]] = {}
    for one in found:
        key = (one.benchmark, one.kernel, one.variant, one.target, one.machine, one.unit)
        key += (one.manifest, one.options)
        groups.setdefault(key, []).append(one)
    yield from groups.values()


def _of_program(group: list[Series], options) -> Iterator[Scaling]:
    for worker, same in _sets(group):
        all_points = [
            Point(getattr(one, worker), row, one.nodes) for one in same for row in one.rows
        ]
        peak = _given_peak(same[0], options.peak, worker)
        for kind, points in _kinds(all_points, options.kind):
            yield Scaling(
                name=_name(same, worker),
                kind=kind,
                worker=worker,
                series=_of_all(same[0], points),
                points=points,
                peak=peak,
            )


def _sets(group: list[Series]) -> Iterator[tuple[str, list[Series]]]:
    """What the workers are, and the series that differ in their number alone: neither nodes are
    told to scale as ranks do, nor ranks as threads."""
    if all(one.ranks == 1 for one in group):
        yield THREADS, group
        return
    for threads in sorted({one.threads for one in group}):
        same = [one for one in group if one.threads == threads]
        told = [one for one in same if one.nodes]
        untold = [one for one in same if not one.nodes or one.ranks == 1]  # one needs no telling
        on_nodes = _alike(told, lambda one: one.ranks / one.nodes, NODES)
        on_ranks = _alike(untold, lambda _: 0, RANKS) + _alike(told, lambda one: one.nodes, RANKS)
        yield from on_nodes
        yield from on_ranks
        if not on_nodes and not on_ranks:  # each number of ranks was spread otherwise
            yield RANKS, same


def _alike(
    series: list[Series], key: Callable[[Series], float], worker: str
) -> list[tuple[str, list[Series]]]:
    """Those of one key that were measured with several counts of the workers."""
    groups: dict[float, list[Series]] = {}
    for one in series:
        groups.setdefault(key(one), []).append(one)
    return [
        (worker, groups[value])
        for value in sorted(groups)
        if len({getattr(one, worker) for one in groups[value]}) > 1
    ]


def _name(same: list[Series], worker: str) -> str:
    series = same[0]
    of_ranks = "" if worker == THREADS else f", {series.threads} thr. a rank"
    if worker == NODES:
        of_node = series.ranks / series.nodes
        of_ranks = f", {of_node:g} {'rank' if of_node == 1 else 'ranks'} a node{of_ranks}"
    elif series.nodes > 1 and all(one.nodes == series.nodes for one in same):
        of_ranks += f", on {series.nodes} nodes"
    elif worker == RANKS and not any(one.nodes for one in same if one.ranks > 1):
        of_ranks += ", nodes unknown"
    parts = (f"{series.variant}{of_ranks}", series.target, series.machine, series.apart)
    return ", ".join(filter(None, parts))


def _given_peak(series: Series, giga: float | None, worker: str) -> Peak | None:
    """Of one worker; over nodes it was given of a rank, of which each has several."""
    if giga is None:
        return None
    times, whose = (series.ranks / series.nodes, RANKS) if worker == NODES else (1, worker)
    return Peak(giga * 1e9 * times, f"{giga:g} G{series.unit} of one of the {whose}: given")


def _kinds(points: list[Point], wanted: str) -> Iterator[tuple[str, tuple[Point, ...]]]:
    """Strong: each size that ran on several counts; weak: the largest size of each count. What
    failed stands beside what did not."""
    in_order = _in_order(points)
    by_size: dict[int, list[Point]] = {}
    for point in in_order:
        by_size.setdefault(point.row.size, []).append(point)
    largest = {point.workers: point.row.size for point in in_order}
    strong = [same for same in by_size.values() if len({one.workers for one in same}) > 1]
    if wanted == STRONG or (wanted == "auto" and strong):
        for same in strong:
            yield STRONG, tuple(same)
    elif len(largest) > 1:
        yield WEAK, tuple(one for one in in_order if one.row.size == largest[one.workers])


# -- tables and records --------------------------------------------------------------------------


def as_text(one: Scaling) -> layout.Text:
    """The annex's columns with the workers before and the ratios behind them."""
    text = table.lay_out(one.series, "auto")
    shown = [ratio for ratio in RATIOS if any(ratio[2](one, point) for point in one.points)]
    points = iter(one.points)
    body = []
    for kind, cells in text.body:
        if kind == "error":
            body.append((kind, ["", *cells, *[""] * len(shown)]))
            continue
        point = next(points)
        ratios = [_percent(one, point, key, value) for _, key, value in shown]
        body.append((kind, [str(point.workers), *cells, *ratios]))
    heads = [one.worker.capitalize(), *text.heads, *(head for head, _, _ in shown)]
    return layout.Text(f"{one.title}: {one.kind} scaling", heads, body)


def _percent(one: Scaling, point: Point, key: str, ratio) -> str:
    value = ratio(one, point)
    mark = layout.ESTIMATE_MARK if key == OF_ENERGY and one.estimates(point) else ""
    other = OTHERS_MARK if key == OF_ENERGY and one.is_by_others(point) else ""
    return mark + table.with_error(value.scaled(100)) + other if value else "-"


def notes(found: list[Scaling]) -> list[str]:
    """The legend, the peaks, and what is wrong with the published tables."""
    lines = {table.LEGEND: None, LEGEND: None}
    for one in found:
        if one.series.estimated:
            lines[layout.LEGEND_ESTIMATED] = None
        if any(map(one.is_by_others, one.points)):
            lines[LEGEND_OTHERS] = None
        if one.peak:
            lines[f"{one.title}: peak {one.peak.source}"] = None
        if one.series.target == published.TARGET:
            number = published.table_of(one.series)
            measured = published.prototypes()[one.prototype].measured
            lines[f"table {number}: measured: {measured}"] = None
            lines.update(
                {f"table {number}: {note.text}": None for note in published.caveats([number])}
            )
    return list(lines)


def records(found: list[Scaling]) -> list[dict]:
    """One record a point in SI units."""
    return [
        {
            "scaling": one.kind,
            "worker": one.worker,
            "workers": point.workers,
            **record,
            **_counts(one, point),
            **_ratios(one, point),
            "other_instrument": one.is_by_others(point) if point.row.energy_j else None,
            "peak_source": one.peak.source if one.peak else None,
        }
        for one in found
        for point, record in zip(one.points, table.as_records([one.series]))
    ]


def _counts(one: Scaling, point: Point) -> dict[str, int | None]:
    """What is this point's own in the series of all points."""
    if one.worker == NODES:
        first = one.series
        ranks = first.ranks * point.workers // first.nodes if first.nodes else point.workers
        return {NODES: point.workers, RANKS: ranks}
    return {NODES: point.nodes or None, one.worker: point.workers}


def _ratios(one: Scaling, point: Point) -> dict[str, float | None]:
    found = {}
    for _, key, ratio in RATIOS:
        value = ratio(one, point)
        found[key] = value and value.mean
        found[f"{key}_error"] = value and value.error
    return found
