# The measurements that PRACE-1IP D9.3.3 published: read from data/, as figures and as series.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import csv
import functools
import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from joulemark import output
from joulemark.bench import cooked
from joulemark.bench.stats import Row, Series, Value
from joulemark.errors import UsageError, UserError
from joulemark.units import PREFIXES

DATA = Path(__file__).parents[1] / "data"
NODE_TABLES = range(36, 100)  # one node each (annex 8.2)
DHRYSTONE_TABLE = 28
STORAGE_TABLES = range(30, 33)  # bytes to and from files (section 6.2)
SCALING_TABLES = range(100, 111)  # over threads or nodes (annexes 8.3 and 8.4)
TARGET = "published"  # what a published series has in place of an architecture
# Which of the report's benchmarks each of ours is.
BENCHMARKS = {
    "jm-stream": "stream",
    "mod2am": "mod2am",
    "mod2as": "mod2as",
    "mod2f": "mod2f",
    "hydro": "hydro",
    "jm-linpack": "linpack",
    "hpl": "linpack",
    "dhrystone": "dhrystone",
    "jm-io-bandwidth": "bandwidth",
}
_EXPONENTS = {prefix: exponent for exponent, prefix in PREFIXES.items()}
_BASE_UNIT = re.compile(r"([nμmkMGT]?)(s|W|J|[FBU]/s|[FBU]/J)")
DMIPS = 1757.0  # passes a second of a VAX 11/780, which is one
_FACTORS = {"min": (60.0, "s"), "h": (3600.0, "s"), "%": (0.01, ""), "DMIPS": (DMIPS, "pass/s")}


@dataclass(frozen=True)
class Figure:
    """One printed number; `value` and `half` (half a unit of its last digit) are in SI units."""

    table: int
    prototype: str
    benchmark: str
    kernel: str
    variant: str
    size: str
    fill: float | None  # of the matrix, a part of 1
    nodes: int
    threads: int | None
    runs: int | None
    quantity: str
    value: float
    half: float
    unit: str
    spread: float | None  # k=1, a part of the value
    notes: tuple[str, ...]

    @property
    def problem(self) -> tuple:
        """What identifies its row in its table."""
        return (self.table, self.prototype, self.kernel, self.size, self.nodes, self.threads)


@dataclass(frozen=True)
class Prototype:
    """One published machine; peaks in F/s and B/s of what was measured, None where not stated."""

    name: str
    kind: str  # compute or io
    title: str
    site: str
    device: str
    peak: float | None
    peak_source: str
    bandwidth: float | None
    bandwidth_source: str
    measured: str
    error: str
    caveat: str


@dataclass(frozen=True)
class Note:
    """A caveat or an error of the source, and the tables that it is about."""

    key: str
    tables: frozenset[int]
    text: str


def rows_of(name: str) -> list[dict[str, str]]:
    """A data file's records; lines that begin with # are comments."""
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


@functools.lru_cache(maxsize=1)
def figures() -> tuple[Figure, ...]:
    """All published figures, in the order of the tables."""
    return tuple(map(_figure, rows_of("published.csv")))


def _figure(row: dict[str, str]) -> Figure:
    factor, unit = _scale(row["unit"])
    decimals = len(row["value"].partition(".")[2])
    return Figure(
        table=int(row["table"]),
        **{key: row[key] for key in ("prototype", "benchmark", "kernel", "variant", "size")},
        fill=_part(row["fill_percent"]),
        nodes=int(row["nodes"] or 1),
        threads=_whole(row["threads"]),
        runs=_whole(row["runs"]),
        quantity=row["quantity"],
        value=float(row["value"]) * factor,
        half=0.5 * 10.0**-decimals * factor,
        unit=unit,
        spread=_part(row["spread_percent"]),
        notes=tuple(row["note"].split()),
    )


def _scale(unit: str) -> tuple[float, str]:
    """`MF/s` is (1e6, `F/s`); a unit without a prefix of its own is itself."""
    found = _BASE_UNIT.fullmatch(unit)
    if found:
        return 10.0 ** _EXPONENTS[found[1]], found[2]
    return _FACTORS.get(unit, (1.0, unit))


def _part(percent: str) -> float | None:
    return float(percent) / 100 if percent else None


def _whole(text: str) -> int | None:
    return int(text) if text else None


@functools.lru_cache(maxsize=1)
def prototypes() -> dict[str, Prototype]:
    """All published machines by the abbreviations of table 21."""
    return {row["prototype"]: _prototype(row) for row in rows_of("prototypes.csv")}


def _prototype(row: dict[str, str]) -> Prototype:
    giga = {
        key: float(row[f"{key}_giga"]) * 1e9 if row[f"{key}_giga"] else None
        for key in ("peak", "bandwidth")
    }
    texts = ("kind", "title", "site", "device", "peak_source", "bandwidth_source")
    texts += ("measured", "error", "caveat")
    return Prototype(name=row["prototype"], **giga, **{key: row[key] for key in texts})


@functools.lru_cache(maxsize=1)
def notes() -> tuple[Note, ...]:
    """All caveats, in the order of their tables."""
    return tuple(
        Note(row["key"], frozenset(map(int, row["tables"].split())), row["text"])
        for row in rows_of("notes.csv")
    )


def caveats(tables: Iterable[int]) -> list[Note]:
    """What is known of tables; that numbers contradict each other is told by the other notes."""
    return [
        note for note in notes() if note.tables & set(tables) and not note.key.startswith("not-")
    ]


def operations(benchmark: str, kernel: str, size: str, fill: float | None) -> float:
    """Operations of one iteration, as the report's tables count them (data/README.md)."""
    if benchmark == "hydro":
        across, _, along = size.partition("x")
        return float(int(across) * int(along))
    n = int(size)
    if benchmark == "stream":
        return n * (16.0 if kernel in ("copy", "scale") else 24.0)
    if benchmark == "mod2am":
        return 2.0 * n**3
    if benchmark == "mod2as":
        return 2.0 * round(n * n * (fill or 0.0))
    if benchmark == "mod2f":
        levels = round(math.log2(n))
        return n * (6 * levels + (3.25 if levels % 2 else -3.5))
    return 2 / 3 * n**3 + 2.0 * n**2  # linpack


def measured_here(options, find: Callable, measured: list | None) -> tuple[list, UserError | None]:
    """What `find` makes of this machine's results, None: of those that the options name; why there
    is nothing, where nobody named them and there are prototypes to show."""
    try:
        return list(find(options, measured or cooked.load(options.sources))), None
    except UserError as error:
        if options.sources or not options.prototypes:
            raise
        return [], error


def say_alone(why: object) -> None:
    """Else published figures could pass for what was measured here; None: something was."""
    if why:
        output.tell([f"nothing of this machine stands beside: {why}"])


def check_names(names: Iterable[str]) -> None:
    """Raises UserError for an abbreviation that table 21 does not have."""
    for name in names:
        if name not in prototypes():
            known = ", ".join(prototypes())
            raise UsageError(f"--with {name}: no such prototype; table 21 has {known}")


def series_of(wanted: str, name: str, tables: Iterable[int]) -> Iterator[Series]:
    """A prototype's series of a kernel or benchmark of ours: one for each way of a table."""
    chosen: dict[tuple, dict[tuple, list[Figure]]] = {}
    for figure in figures():
        if figure.table in tables and figure.prototype == name and _answers(figure, wanted):
            alike = (figure.table, figure.nodes, figure.threads, figure.kernel, figure.variant)
            group = chosen.setdefault(alike, {})
            group.setdefault(figure.problem, []).append(figure)
    for (table, nodes, threads, *_), problems in chosen.items():
        first = next(iter(problems.values()))[0]
        unit_of = {figure.quantity: figure.unit for figure in figures_of(problems)}
        yield Series(
            benchmark=first.benchmark,
            kernel=first.kernel,
            variant=f"{first.variant} (table {table})".lstrip(),
            threads=threads or 1,
            ranks=nodes,
            target=TARGET,
            cpu=f"{name}: {prototypes()[name].device}",
            unit=unit_of.get("performance") or unit_of["efficiency"].replace("/J", "/s"),
            device="",
            rows=tuple(sorted(map(_row, problems.values()), key=lambda row: row.size)),
        )


def figures_of(problems: dict[tuple, list[Figure]]) -> Iterator[Figure]:
    """All figures of a table's rows."""
    for found in problems.values():
        yield from found


def table_of(series: Series) -> int:
    """The number of the table that a published series is from."""
    return int(re.search(r"\(table (\d+)\)", series.variant)[1])


def _answers(figure: Figure, wanted: str) -> bool:
    return figure.kernel == wanted or figure.benchmark == BENCHMARKS.get(wanted, wanted)


def _row(found: list[Figure]) -> Row:
    values = {figure.quantity: Value(figure.value, _absolute(figure)) for figure in found}
    first = found[0]
    return Row(
        size=side_of(first.size),
        runs=first.runs or 1,
        verified=True,
        estimated=False,
        time_s=values.get("time"),
        power_w=values.get("power"),
        energy_j=values.get("energy"),
        performance=values.get("performance"),
        efficiency=values.get("efficiency"),
    )


def _absolute(figure: Figure) -> float | None:
    return None if figure.spread is None else figure.spread * figure.value


def side_of(size: str) -> int:
    """A size as one number: of a grid its side, or that of the square with as many cells; 1
    where there is none."""
    across, _, along = size.partition("x")
    return round(math.sqrt(int(across) * int(along))) if along else int(across or 1)
