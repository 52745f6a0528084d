# `joulemark compare`: this machine's cooked results beside the published prototypes.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Callable

from joulemark import layout, units
from joulemark.bench import fpga, peaks, published, stats, table
from joulemark.bench.cooked import Measurement
from joulemark.bench.peaks import Peak
from joulemark.bench.stats import Row, Series, Value
from joulemark.errors import UsageError, UserError

STREAM = ("copy", "scale", "sum", "triad")
SYSTEM_TABLES = {100: 276, 101: 276, 102: 276, 103: 276}  # of UiO: table 24's number of threads
CAUTION = (
    "Scales and optimisation differ between the machines: the report itself asks for caution when "
    "they are laid side by side (section 6)."
)
OF_MEMORY = "the peak is the memory's bandwidth: vectors that a cache holds go beyond it"
FFT_COUNT = (
    "mod2f counts 5 n log2 n operations here, 10 to 21 % fewer than the published tables do for "
    "the same transform"
)
PREDICTED, HERE = "model", "here"
GIVEN = {"F/s": "peak", "B/s": "peak_bandwidth"}  # the options that tell a node's peak
WIDTH = 120  # of a table's columns; more sides make a second table


@dataclass(frozen=True)
class Side:
    """One column: a series, its name and its peak."""

    name: str
    owner: str  # of the peak and the caveats: a prototype, a model, or `here`
    series: Series
    peak: Peak | None

    @property
    def origin(self) -> str:
        """`here`, `published` or `model`."""
        if self.series.predicted:
            return PREDICTED
        return published.TARGET if self.series.target == published.TARGET else HERE

    def fraction(self, row: Row) -> Value | None:
        """Of the peak that this row reached."""
        known = self.peak and row.performance
        return row.performance.scaled(1 / self.peak.value) if known else None


@dataclass(frozen=True)
class Quantity:
    """One table and one figure of the comparison."""

    name: str
    heading: str
    value: Callable[[Side, Row], Value | None]
    unit: Callable[[str], str]  # of the operation: F, B, U


QUANTITIES = (
    Quantity("performance", "performance", lambda _, row: row.performance, lambda of: f"{of}/s"),
    Quantity("efficiency", "fraction of peak", Side.fraction, lambda _: "%"),
    Quantity(
        "energy-efficiency",
        "energy efficiency",
        lambda _, row: row.efficiency,
        lambda of: f"{of}/J",
    ),
)


# -- what stands beside what ---------------------------------------------------------------------


def families(
    options, measured: list[Measurement] | None = None
) -> tuple[dict[str, list[Side]], UserError | None]:
    """The sides of each kernel that was asked for, this machine's first; and why it has none.
    measured: what was read already."""
    if not options.prototypes:
        raise UsageError("--with: name prototypes to compare with, such as --with LRZ,SNIC")
    _check_names(options.prototypes)
    groups: dict[str, list[Side]] = {}
    ours, why = published.measured_here(options, _here, measured)
    for side in ours:
        groups.setdefault(family(side.series), []).append(side)
    here = [side.series for side in ours]
    for name in options.prototypes:
        for side in _alike(_of(name, options.kernel, groups), here):
            groups.setdefault(family(side.series), []).append(side)
    if not groups:
        raise UsageError(
            f"KERNEL {options.kernel}: nothing was measured here, and nothing was published of "
            f"{', '.join(options.prototypes)}; published are {', '.join(published.BENCHMARKS)}"
        )
    order = {name: index for index, name in enumerate(STREAM)}
    return dict(sorted(groups.items(), key=lambda item: order.get(item[0], 9))), why


def beside(measured: list[Series], wanted: str, names: list[str]) -> Iterator[Series]:
    """Published and predicted series under the names of the measured ones that they match."""
    _check_names(names)
    ours = {family(one): one for one in measured}
    for name in names:
        for side in _alike(_of(name, wanted, {}), measured):
            like = ours.get(family(side.series), side.series)
            yield replace(side.series, benchmark=like.benchmark, kernel=like.kernel)


def _check_names(names: list[str]) -> None:
    published.check_names(name for name in names if not name.startswith(fpga.NAME))


def family(series: Series) -> str:
    """What may stand in one table: a kernel of STREAM or of files, or a benchmark whatever its
    kernels."""
    benchmark = _benchmark(series)
    if benchmark in ("stream", "bandwidth"):
        return series.kernel
    return f"{benchmark}-benchmark" if benchmark in STREAM else benchmark  # as triad


def _benchmark(series: Series) -> str:
    """As it is published."""
    return published.BENCHMARKS.get(series.benchmark, series.benchmark)


def _alike(sides: Iterable[Side], here: list[Series]) -> Iterator[Side]:
    """Of the benchmarks that were measured here, or of all: a kernel's name may be another's."""
    measured = set(map(_benchmark, here))
    return (side for side in sides if not measured or _benchmark(side.series) in measured)


def _here(options, measured: list[Measurement]) -> Iterator[Side]:
    """This machine's series."""
    found = stats.series_of(measured, options.kernel)
    found = stats.best_of(found) if options.best else found
    given = {unit: giga * 1e9 for unit, name in GIVEN.items() if (giga := getattr(options, name))}
    for one in found:
        peak = peaks.of_machine(one, measured, given, options.peaks)
        same = [other for other in found if family(other) == family(one)]
        yield Side(_name_here(one, same), HERE, one, peak)


def _name_here(one: Series, others: list[Series]) -> str:
    best = one.variant.startswith("best of")
    parts = ["best" if best else one.variant, f"{one.threads} thr."]
    if any(other.ranks > 1 for other in others):
        parts.append(one.place)
    differing = [
        getattr(one, what)
        for what in ("name", "target", "machine", "cpu")
        if len({getattr(other, what) for other in others}) > 1
    ]
    parts += dict.fromkeys([*differing, *filter(None, [one.apart])])  # a CPU may be the machine
    return ", ".join(parts)


def _of(name: str, wanted: str, groups: dict[str, list[Side]]) -> Iterator[Side]:
    """A prototype's sides; JKU's is its model."""
    if name.startswith(fpga.NAME):
        multiplier = fpga.parse(name)
        if published.BENCHMARKS.get(wanted, wanted) == "mod2am":
            yield _of_model(multiplier, groups)
        return
    tables = (published.DHRYSTONE_TABLE, *published.STORAGE_TABLES, *published.NODE_TABLES)
    found = list(published.series_of(wanted, name, tables))
    found += [
        one
        for one in published.series_of(wanted, name, SYSTEM_TABLES)
        if one.threads == SYSTEM_TABLES[published.table_of(one)]
    ]
    for one in found:
        same = [other for other in found if family(other) == family(one)]
        peak = peaks.of_published(name, one.unit)
        yield Side(_name_published(name, one, same), name, one, peak)


def _of_model(multiplier: fpga.Multiplier, groups: dict[str, list[Side]]) -> Side:
    shown = {row.size for side in groups.get("mod2am", ()) for row in side.series.rows}
    series = fpga.series(multiplier, {*fpga.SIZES, *shown})
    mhz = multiplier.clock_hz / 1e6
    peak = Peak(
        multiplier.peak,
        f"{multiplier.peak / 1e9:.4g} GF/s: {multiplier.tiles} tiles x 2 F x {mhz:g} MHz",
    )
    name = f"{fpga.NAME} {multiplier.tiles}@{mhz:g} ({PREDICTED})"
    return Side(name, name, series, peak)


def _name_published(name: str, one: Series, same: list[Series]) -> str:
    if len(same) == 1:
        return name
    if len({other.threads for other in same}) > 1:
        return f"{name}, {one.threads} thr."
    return f"{name} {one.variant.partition(' (')[0]}"


# -- tables, notes, records ----------------------------------------------------------------------


def tables(name: str, sides: list[Side]) -> Iterator[layout.Text]:
    """Performance, fraction of peak and energy efficiency by size: a column a side."""
    for quantity in QUANTITIES:
        values = {side: _values(side, quantity) for side in sides}  # two may be of one name
        means = [value.mean for column in values.values() for value, _ in column.values()]
        if not means:
            continue
        unit = quantity.unit(sides[0].series.unit.partition("/")[0])
        exponent = -2 if unit == "%" else units.best_exponent(means)
        shown_unit = unit if unit == "%" else units.prefix(exponent) + unit
        columns = [
            (side.name, {size: _cell(*found, exponent, unit) for size, found in column.items()})
            for side, column in values.items()
            if column
        ]
        for part in _parts(columns):
            yield _table(f"{name}: {quantity.heading} [{shown_unit}]", part, columns)


Column = tuple[str, dict[int, str]]  # its head, and its cells by size


def _parts(columns: list[Column]) -> Iterator[list[Column]]:
    """So many at a time as fit a line; this machine's are in the first alone."""
    part, width = [], 0
    for name, cells in columns:
        own = max(map(len, (name, *cells.values()))) + layout.GAP
        if part and width + own > WIDTH:
            yield part
            part, width = [], 0
        part.append((name, cells))
        width += own
    yield part


def _values(side: Side, quantity: Quantity) -> dict[int, tuple[Value, bool]]:
    """By size: the value, and whether it is an estimate."""
    of_energy = quantity.name == "energy-efficiency"
    found = {}
    for row in side.series.rows:
        value = quantity.value(side, row)
        if value is not None and row.verified:
            found[row.size] = value, side.series.predicted or (of_energy and row.estimated)
    return found


def _table(title: str, part: list[Column], columns: list[Column]) -> layout.Text:
    sizes = sorted({size for _, cells in columns for size in cells})
    body = [("value", [str(size), *(cells.get(size, "-") for _, cells in part)]) for size in sizes]
    return layout.Text(title, ["Size", *(name for name, _ in part)], body)


def _cell(value: Value, is_estimate: bool, exponent: int, unit: str) -> str:
    """As a column has it; one far from its prefix has its own, with the unit."""
    mark = layout.ESTIMATE_MARK if is_estimate else ""
    own = exponent if unit == "%" else units.exponent_of(value.mean, exponent)
    text = table.with_error(value.scaled(10.0**-own))
    return mark + text + ("" if own == exponent else f" {units.prefix(own)}{unit}")


def notes(sides: list[Side]) -> list[str]:
    """The peaks with their sources and what is to be known of each machine, each once."""
    marked = any(side.series.predicted or side.series.estimated for side in sides)
    lines = [f"{stats.AT_95}. -: not known, or not of that size."]
    lines += [f"{layout.ESTIMATE_MARK}: predicted or estimated by a model."] if marked else []
    for owner in dict.fromkeys(side.owner for side in sides):
        its = [side for side in sides if side.owner == owner]
        found = {_told_peak(side): None for side in its if side.series.unit in peaks.MEASURES}
        lines += [f"{owner}: {text}" for text in [*found, *caveats(its)]]
    is_of_memory = any(side.series.unit == "B/s" and side.peak for side in sides)
    return [*lines, *([f"Of GB/s {OF_MEMORY}."] if is_of_memory else []), CAUTION]


def passed_over(options, groups: dict[str, list[Side]]) -> Iterator[str]:
    """Why a peak that was given is not that of a run here."""
    ours = [side for sides in groups.values() for side in sides if side.origin == HERE]
    for unit, name in GIVEN.items():
        if getattr(options, name) is None:
            continue
        option, same = f"--{name.replace('_', '-')}", [s for s in ours if s.series.unit == unit]
        if not same:
            yield f"{option}: nothing of this machine is in {unit}"
        for side in same:
            if not side.series.nodes:
                yield (
                    f"{option}: not used for {side.name}: it is of a node, and its ranks did not "
                    "tell on how many they were: run it again by this joulemark's programs"
                )


def _told_peak(side: Side) -> str:
    return f"peak {side.peak.source}" if side.peak else f"peak of {side.name}: not known"


def caveats(sides: list[Side]) -> list[str]:
    """Of one machine: what was measured, how well, and what is wrong with the tables."""
    first = sides[0]
    if first.origin == PREDICTED:
        measured = published.prototypes()[fpga.NAME].measured
        return [fpga.CAVEAT, f"its powers are those of the {measured}"]
    if first.origin == HERE:
        machines = {f"{side.series.target}, {side.series.machine}" for side in sides}
        counted = [FFT_COUNT] if any(family(side.series) == "mod2f" for side in sides) else []
        return [*sorted(machines), *_energy_here(sides), *counted]
    one = published.prototypes()[first.owner]
    numbers = sorted({published.table_of(side.series) for side in sides})
    found = [f"{_tables(numbers)}; {one.device}; measured: {one.measured}; error: {one.error}"]
    found += [one.caveat] if one.caveat else []
    for note in published.caveats(numbers):
        found.append(f"{_tables(sorted(note.tables & set(numbers)))}: {note.text}")
    return found


def _energy_here(sides: list[Side]) -> list[str]:
    if not any(row.energy_j for side in sides for row in side.series.rows):
        return ["no energy was measured"]
    return [layout.ESTIMATED] if any(side.series.estimated for side in sides) else []


def _tables(numbers: list[int]) -> str:
    return f"table{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def records(groups: dict[str, list[Side]]) -> list[dict]:
    """One record a side and size in SI units, with the peak, its source and the caveats."""
    return [record for sides in groups.values() for side in sides for record in _records(side)]


def _records(side: Side) -> Iterable[dict]:
    for row, record in zip(side.series.rows, table.as_records([side.series])):
        fraction = side.fraction(row)
        yield {
            "side": side.name,
            "origin": side.origin,
            "family": family(side.series),
            **record,
            "peak": side.peak.value if side.peak else None,
            "peak_fraction": fraction and fraction.mean,
            "peak_fraction_error": fraction and fraction.error,
            "peak_source": side.peak.source if side.peak else None,
            "caveats": " | ".join(caveats([side])),
        }
