# `joulemark report table`: the columns of PRACE D9.3.3, annex 8.1, in four formats.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import csv
import io
import json
import sys
from dataclasses import dataclass, replace

from joulemark import units
from joulemark.errors import UserError
from joulemark.stats import Row, Series, Value

ESTIMATE_MARK = "~"
ESTIMATED = "energy ESTIMATED by a model, not measured"
PREDICTED = "PREDICTED by a model, nothing of it was measured"
REPETITIONS, INSTRUMENT = "± repetitions", "± instrument"
LEGEND = (
    f"{REPETITIONS}: standard deviation over the N runs and their repetitions (k=1); "
    f"{INSTRUMENT}: uncertainty of the energy measurement (k=2); -: not known."
)
LEGEND_ESTIMATED = f"{ESTIMATE_MARK}: {ESTIMATED}."
# The prefixes of the seeds' tables (36-47, 55, 60-64), so that ours can be laid beside them.
SEED_EXPONENTS = {
    "jm-stream": {"time_s": -6, "energy_j": -3, "performance": 6, "efficiency": 6},
    "mod2am": {"time_s": -3, "energy_j": 0, "performance": 6, "efficiency": 6},
}
HEADS = {
    "time_s": ("Time", "s"),
    "power_w": ("Power", "W"),
    "energy_j": ("Energy", "J"),
    "performance": ("Perf.", "/s"),  # operations
    "efficiency": ("Eff.", "/J"),
}
OF_ENERGY = ("power_w", "energy_j", "efficiency")
GAP = 2  # spaces between columns
WIDEST = 100_000  # characters of a table, which the terminal may break, but nothing cuts


@dataclass(frozen=True)
class Text:
    """One table, ready to be laid out: a body row is (kind, cells), kind is value or error.

    optional: columns that a narrow terminal can do without, a value with its error, the first
    ones first.
    """

    title: str
    heads: list[str]
    body: list[tuple[str, list[str]]]
    optional: tuple[tuple[int, ...], ...] = ()

    def fitted(self, width: int) -> tuple[Text, list[str]]:
        """Without as many of the optional columns as do not fit, and the names of these."""
        from rich.cells import cell_len

        columns = list(zip(self.heads, *(cells for _, cells in self.body)))
        widths = [max(map(cell_len, column)) + GAP for column in columns]
        left, dropped = list(range(len(columns))), []
        for group in self.optional:
            if sum(widths[index] for index in left) - GAP > width:
                left = [index for index in left if index not in group]
                dropped.append(self.heads[group[0]])

        def of(cells: list[str]) -> list[str]:
            return [cells[index] for index in left]

        body = [(kind, of(cells)) for kind, cells in self.body]
        return replace(self, heads=of(self.heads), body=body), dropped


def lay_out(series: Series, prefixes: str = "seeds") -> Text:
    """The annex's table of one series."""
    exponents = _exponents(series, prefixes)
    scales = {key: (exponents[key], _unit(series, key)) for key in HEADS}
    heads = ["Size", "N"] + [
        f"{HEADS[key][0]} [{units.prefix(exponent)}{unit}]"
        for key, (exponent, unit) in scales.items()
    ]
    body = [line for row in series.rows for line in _lines(row, scales)]
    return Text(title(series), heads, body)


def _unit(series: Series, key: str) -> str:
    _, unit = HEADS[key]
    return series.unit.partition("/")[0] + unit if unit.startswith("/") else unit


def title(series: Series) -> str:
    """What was measured, where, and whether its energy is an estimate."""
    threads = "1 thread" if series.threads == 1 else f"{series.threads} threads"
    ranks = "" if series.ranks == 1 else f", {series.place}"
    estimate = f" ({ESTIMATED})" if series.estimated else ""
    if series.is_of_others:
        estimate = f" ({PREDICTED})" if series.predicted else ""
        return f"{series.name}, {series.variant}, {series.machine}{estimate}"
    machine = f"{series.target}, {series.machine}"
    return f"{series.name}, {series.variant}, {threads}{ranks}, {machine}{estimate}"


def _exponents(series: Series, prefixes: str) -> dict[str, int]:
    found = {key: units.best_exponent(_means(series, key)) for key in HEADS}
    if prefixes == "seeds":
        found.update(SEED_EXPONENTS.get(series.benchmark, {}))
    return {**found, "power_w": 0}


def _means(series: Series, key: str) -> list[float]:
    values = [getattr(row, key) for row in series.rows]
    return [value.mean for value in values if value]


def _lines(row: Row, scales: dict[str, tuple[int, str]]):
    """A row's values, then its error lines if anything is known."""
    start = [str(row.size), str(row.runs)]
    if not row.verified:
        yield "failed", [*start, "failed", "-", "-", "failed", "-"]
        return
    yield "value", [*start, *(_cell(row, key, *scales[key]) for key in HEADS)]
    for label, relative in (
        (REPETITIONS, Value.relative_spread),
        (INSTRUMENT, Value.relative_uncertainty),
    ):
        values = [getattr(row, key) for key in HEADS]
        errors = [units.percent(relative(value)) if value else "" for value in values]
        if any(errors):
            yield "error", [label, "", *errors]


def _cell(row: Row, key: str, exponent: int, unit: str) -> str:
    value: Value | None = getattr(row, key)
    text = units.cell(value.mean if value else None, exponent, unit)
    is_estimate = row.estimated and value and key in OF_ENERGY
    return ESTIMATE_MARK + text if is_estimate else text


def written(tables: list[Text], notes: list[str], options) -> str:
    """As --format says, for where --out says."""
    if options.format == "markdown":
        return as_markdown(tables, notes)
    return as_terminal(tables, notes, to_terminal=options.out is None and sys.stdout.isatty())


def as_terminal(tables: list[Text], notes: list[str], to_terminal: bool) -> str:
    """For eyes: aligned, error lines dim where the terminal can; no cell is ever cut.

    A terminal too narrow for a table is not shown its optional columns, and told so.
    """
    import shutil

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text as Styled

    width = shutil.get_terminal_size().columns if to_terminal else 132
    console = Console(
        file=io.StringIO(), force_terminal=to_terminal, width=WIDEST, highlight=False
    )
    for whole in tables:
        text, dropped = whole.fitted(width) if to_terminal else (whole, [])
        console.print(Styled(text.title, style="bold"))
        table = Table(box=None, pad_edge=False)
        for index, head in enumerate(text.heads):
            justify = "left" if index == 0 else "right"
            table.add_column(Styled(head), justify=justify, no_wrap=True)
        for kind, cells in text.body:
            style = {"error": "dim", "failed": "red"}.get(kind)
            table.add_row(*map(Styled, cells), style=style)
        console.print(table)
        if dropped:
            console.print(Styled(f"Not shown for want of width: {', '.join(dropped)}."))
        console.print()
    console.width = width
    for note in notes:
        console.print(Styled(note))
    return console.file.getvalue()


def as_markdown(tables: list[Text], notes: list[str]) -> str:
    """For documents."""
    parts = []
    for text in tables:
        align = [":--"] + ["--:"] * (len(text.heads) - 1)
        lines = [text.heads, align, *(cells for _, cells in text.body)]
        table = "\n".join("| " + " | ".join(map(_escaped, line)) + " |" for line in lines)
        parts.append(f"**{_escaped(text.title)}**\n\n{table}\n")
    return "\n".join([*parts, *(f"{_escaped(note)}\n" for note in notes)])


def _escaped(text: str) -> str:
    """A ~ pair would strike text out; a | would end the cell."""
    return text.replace("|", "\\|").replace("~", "\\~")


def as_records(all_series: list[Series]) -> list[dict]:
    """Plain SI numbers for programs: one record a row, both uncertainties apart."""
    return [_record(series, row) for series in all_series for row in series.rows]


def _record(series: Series, row: Row) -> dict:
    record = {
        "benchmark": series.benchmark,
        "kernel": series.kernel,
        "variant": series.variant,
        "threads": series.threads,
        "ranks": series.ranks,
        "nodes": series.nodes or None,
        "target": series.target,
        "cpu": series.cpu,
        "device": series.device or None,
        "size": row.size,
        "runs": row.runs,
        "verified": None if series.is_of_others else row.verified,
        "estimated": row.estimated if row.energy_j else None,
        "performance_unit": _unit(series, "performance"),
        "efficiency_unit": _unit(series, "efficiency"),
    }
    for key in HEADS:
        value: Value | None = getattr(row, key)
        record[key] = value.mean if value else None
        record[f"{key}_spread"] = value.spread if value else None
        record[f"{key}_interval"] = value.interval if value else None
        if key in OF_ENERGY:
            record[f"{key}_uncertainty"] = value.uncertainty if value else None
    return record


def as_json(records: list[dict]) -> str:
    """The records as one JSON list."""
    return json.dumps(records, indent=2, ensure_ascii=False) + "\n"


def as_csv(records: list[dict]) -> str:
    """The records with a header line; an empty value is not known, booleans are true and false."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(records[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {key: _csv_value(value) for key, value in record.items()} for record in records
    )
    return out.getvalue()


def _csv_value(value):
    return str(value).lower() if isinstance(value, bool) else value


def comparison(all_series: list[Series], before: str, after: str) -> list[Text]:
    """How much faster and thriftier variant `after` is than `before`, size by size."""
    found = [
        (one, other)
        for one in all_series
        if one.variant == before
        for other in all_series
        if other.variant == after and _comparable(one, other)
    ]
    if not found:
        variants = ", ".join(sorted({series.variant for series in all_series}))
        raise UserError(
            f"--compare {before},{after}: no two such series of one machine; variants: {variants}"
        )
    return [_ratios(one, other) for one, other in found]


def _comparable(one: Series, other: Series) -> bool:
    same = ("benchmark", "kernel", "ranks", "nodes", "target", "cpu", "device")
    return all(getattr(one, key) == getattr(other, key) for key in same)


def _ratios(one: Series, other: Series) -> Text:
    unit, eff_unit = (f"G{_unit(one, key)}" for key in ("performance", "efficiency"))
    heads = ["Size"] + [
        head
        for what in (unit, eff_unit)
        for head in (f"{one.variant} [{what}]", f"{other.variant} [{what}]", f"ratio {what}")
    ]
    others = {row.size: row for row in other.rows if row.verified}
    body = [
        ("value", [str(row.size), *_ratio_cells(one, row, others[row.size])])
        for row in one.rows
        if row.verified and row.size in others
    ]
    estimate = f" ({ESTIMATED})" if one.estimated or other.estimated else ""
    title = (
        f"{one.name}: {other.variant} ({other.threads} thr.) against {one.variant} "
        f"({one.threads} thr.), {one.machine}{estimate}"
    )
    return Text(title, heads, body)


def _ratio_cells(series: Series, one: Row, other: Row) -> list[str]:
    cells = []
    for key in ("performance", "efficiency"):
        pair = [getattr(row, key) for row in (one, other)]
        marks = [
            ESTIMATE_MARK if row.estimated and key in OF_ENERGY else "" for row in (one, other)
        ]
        means = [value.mean if value else None for value in pair]
        unit = _unit(series, key)
        cells += [mark + units.cell(mean, 9, unit) for mark, mean in zip(marks, means)]
        cells.append(max(marks) + with_error(pair[1].over(pair[0])) if all(pair) else "-")
    return cells


def with_error(value: Value) -> str:
    """`1.25 ± 0.03`: at 95 %, by repetitions and instrument, or by the one that is known."""
    if value.error is None:
        return units.digits(value.mean)
    error = units.digits(value.error) if value.error >= 1 else f"{value.error:#.2g}"
    return f"{units.digits(value.mean)} ± {error}"


def summary(all_series: list[Series]) -> list[str]:
    """The seeds' point: what optimised code gains over plain code, in speed and in energy."""
    lines = []
    for one in all_series:
        for other in all_series:
            if (one.variant, other.variant) == ("plain", "blas") and _comparable(one, other):
                lines += _summary_line(one, other)
    return lines


def _summary_line(one: Series, other: Series) -> list[str]:
    rows = {row.size: row for row in one.rows if row.verified}
    common = [row for row in other.rows if row.verified and row.size in rows]
    if not common:
        return []
    best, plain = common[-1], rows[common[-1].size]
    speed = best.performance.mean / plain.performance.mean
    text = f"Size {best.size}: {other.variant} ({other.threads} thr.) runs at {speed:.1f} times "
    text += f"the {one.unit.replace('F', 'GF')} of {one.variant} ({one.threads} thr.)"
    if best.efficiency and plain.efficiency:
        gain = best.efficiency.mean / plain.efficiency.mean
        mark = ESTIMATE_MARK if best.estimated or plain.estimated else ""
        text += f" and gives {mark}{gain:.1f} times the GF/J"
        text += f" ({ESTIMATED})" if mark else ""
    return [text + "."]
