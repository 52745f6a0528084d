# `joulemark report table`: the columns of PRACE D9.3.3, annex 8.1, and ratios of variants.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

from joulemark import units
from joulemark.bench import manifest, stats
from joulemark.bench.stats import OF_ENERGY, Row, Series, Value
from joulemark.errors import UsageError
from joulemark.layout import ESTIMATE_MARK, ESTIMATED, Text

PREDICTED = "PREDICTED by a model, nothing of it was measured"
REPETITIONS, INSTRUMENT = "± repetitions", "± instrument"
N_OF_ENERGY = "4 (3): 3 of 4 with an energy"
LEGEND = (
    f"N: runs with the same manifest, {N_OF_ENERGY}; {REPETITIONS}: standard deviation of "
    "several runs, of a single run that of its mean by its repetitions (k=1); "
    f"{INSTRUMENT}: uncertainty of the energy measurement (k=2); -: not known."
)
LEGEND_RATIOS = (
    "A ratio's ±, at 95 %: of a performance by how the runs scatter, of a single run by its "
    "repetitions; of an energy efficiency by how the runs scatter and by the instrument, of a "
    "single run by the instrument alone, for the energy of a repetition is not known. "
    "-: by different instruments or channels, or those of one side by several: no ratio. "
    + stats.SAME_INSTRUMENT
)
SEVERAL_MARK = "*"
LEGEND_SEVERAL = (
    f"{SEVERAL_MARK}: the mean of energies by several instruments or channels, or by a model and "
    "a meter, which are different quantities."
)
# The prefixes of PRACE's tables (36-47, 55, 60-64), so that ours can be laid beside them.
PRACE_EXPONENTS = {
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


def lay_out(series: Series, prefixes: str = "prace") -> Text:
    """The annex's table of one series."""
    exponents = _exponents(series, prefixes)
    scales = {key: (exponents[key], unit_of(series, key)) for key in HEADS}
    heads = ["Size", "N"] + [
        f"{HEADS[key][0]} [{units.prefix(exponent)}{unit}]"
        for key, (exponent, unit) in scales.items()
    ]
    body = [line for row in series.rows for line in _lines(row, scales)]
    return Text(title(series), heads, body)


def unit_of(series: Series, key: str) -> str:
    """Of a value, as `F/s`, without a prefix."""
    _, unit = HEADS[key]
    return series.unit.partition("/")[0] + unit if unit.startswith("/") else unit


def title(series: Series) -> str:
    """What was measured, where, what tells it from others' builds and systems, and whether its
    energy is an estimate."""
    threads = "1 thread" if series.threads == 1 else f"{series.threads} threads"
    ranks = "" if series.ranks == 1 else f", {series.place}"
    estimate = f" ({ESTIMATED})" if series.estimated else ""
    if series.is_of_others:
        estimate = f" ({PREDICTED})" if series.predicted else ""
        return f"{series.name}, {series.variant}, {series.machine}{estimate}"
    machine = ", ".join(filter(None, (series.target, series.machine, series.apart)))
    return f"{series.name}, {series.variant}, {threads}{ranks}, {machine}{estimate}"


def _exponents(series: Series, prefixes: str) -> dict[str, int]:
    found = {key: units.best_exponent(_means(series, key)) for key in HEADS}
    if prefixes == "prace":
        found.update(PRACE_EXPONENTS.get(series.benchmark, {}))
    return {**found, "power_w": 0}


def _means(series: Series, key: str) -> list[float]:
    values = [getattr(row, key) for row in series.rows]
    return [value.mean for value in values if value]


def _lines(row: Row, scales: dict[str, tuple[int, str]]):
    """A row's values, then its error lines if anything is known."""
    start = [str(row.size), runs(row)]
    if not row.verified:
        yield "failed", [*start, "failed", "-", "-", "failed", "-"]
        return
    yield "value", [*start, *(_cell(row, key, *scales[key]) for key in HEADS)]
    for label, part in ((REPETITIONS, "spread"), (INSTRUMENT, "uncertainty")):
        values = [getattr(row, key) for key in HEADS]
        errors = [units.percent(value.part(part)) if value else "" for value in values]
        if any(errors):
            yield "error", [label, "", *errors]


def runs(row: Row) -> str:
    """How many, and of how many its energies are, where these are fewer."""
    is_fewer = 0 < (row.energy_runs or 0) < row.runs
    return f"{row.runs} ({row.energy_runs})" if is_fewer else str(row.runs)


def _cell(row: Row, key: str, exponent: int, unit: str) -> str:
    value: Value | None = getattr(row, key)
    if value is None:
        return "-"
    several = SEVERAL_MARK if key in OF_ENERGY and row.has_several_instruments else ""
    return mark(key, row) + units.cell(value.mean, exponent, unit) + several


def mark(key: str, *rows: Row | None) -> str:
    """Of what is an estimate where one of the rows is."""
    is_estimate = key in OF_ENERGY and any(row and row.estimated for row in rows)
    return ESTIMATE_MARK if is_estimate else ""


def as_records(all_series: list[Series]) -> list[dict]:
    """Plain SI numbers for programs: one record a row, both uncertainties apart."""
    return [_record(series, row) for series in all_series for row in series.rows]


def _record(series: Series, row: Row) -> dict:
    record = {
        **problem_record(series, row),
        **manifest.as_record(series.manifest),
        "runs": row.runs,
        "jobs": None if series.is_of_others else row.jobs,
        "energy_runs": row.energy_runs,
        "energy_jobs": None if series.is_of_others else row.energy_jobs,
        "verified": None if series.is_of_others else row.verified,
        "estimated": row.estimated if row.energy_j else None,
        "several_instruments": row.has_several_instruments if row.energy_runs else None,
    }
    for key in HEADS:
        value: Value | None = getattr(row, key)
        record[key] = value.mean if value else None
        record[f"{key}_spread"] = value.spread if value else None
        record[f"{key}_interval"] = value.interval if value else None
        if key in OF_ENERGY:
            record[f"{key}_uncertainty"] = value.uncertainty if value else None
    return record


def problem_record(series: Series, row: Row) -> dict:
    """What was measured, where, and the units of what follows."""
    return {
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
        "options": row.options or None,
        "performance_unit": unit_of(series, "performance"),
        "efficiency_unit": unit_of(series, "efficiency"),
    }


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
        raise UsageError(
            f"--compare {before},{after}: no two such series of one machine, manifest and "
            f"options; variants: {variants}"
        )
    return [_ratios(one, other) for one, other in found]


def _comparable(one: Series, other: Series) -> bool:
    same = ("benchmark", "kernel", "ranks", "nodes", "target", "cpu", "device", "manifest")
    same += ("options",)
    return all(getattr(one, key) == getattr(other, key) for key in same)


def _ratios(one: Series, other: Series) -> Text:
    unit, eff_unit = (f"G{unit_of(one, key)}" for key in ("performance", "efficiency"))
    heads = ["Size"] + [
        head
        for what in (unit, eff_unit)
        for head in (f"{one.variant} [{what}]", f"{other.variant} [{what}]", f"ratio {what}")
    ]
    others = {row.case: row for row in other.rows if row.verified}
    body = [
        ("value", [str(row.size), *_ratio_cells(one, row, others[row.case])])
        for row in one.rows
        if row.verified and row.case in others
    ]
    estimate = f" ({ESTIMATED})" if one.estimated or other.estimated else ""
    machine = ", ".join(filter(None, (one.machine, one.apart)))
    title = (
        f"{one.name}: {other.variant} ({other.threads} thr.) against {one.variant} "
        f"({one.threads} thr.), {machine}{estimate}"
    )
    return Text(title if body else title + _sizes_apart(one, other), heads, body)


def _sizes_apart(*both: Series) -> str:
    """Why their table has no row."""
    has = []
    for one in both:
        sizes = ", ".join(str(row.size) for row in one.rows if row.verified)
        has.append(f"{one.variant} has {sizes or 'none'}")
    return f": no size was verified of both: {'; '.join(has)}"


def _ratio_cells(series: Series, one: Row, other: Row) -> list[str]:
    cells = []
    for key in ("performance", "efficiency"):
        cells += [_cell(row, key, 9, unit_of(series, key)) for row in (one, other)]
        ratio = stats.ratio(key, one, other)
        cells.append(mark(key, one, other) + with_error(ratio) if ratio else "-")
    return cells


def with_error(value: Value) -> str:
    """`1.25 ± 0.03`: at 95 %, by repetitions and instrument, or by the one that is known."""
    if value.error is None:
        return units.digits(value.mean)
    error = units.digits(value.error) if value.error >= 1 else f"{value.error:#.2g}"
    return f"{units.digits(value.mean)} ± {error}"


def summary(all_series: list[Series]) -> list[str]:
    """What optimised code gains over plain code, in speed and in energy."""
    lines = []
    for one in all_series:
        for other in all_series:
            if (one.variant, other.variant) == ("plain", "blas") and _comparable(one, other):
                lines += _summary_line(one, other)
    return lines


def _summary_line(one: Series, other: Series) -> list[str]:
    rows = {row.case: row for row in one.rows if row.verified}
    common = [row for row in other.rows if row.verified and row.case in rows]
    if not common:
        return []
    best, plain = common[-1], rows[common[-1].case]
    speed = with_error(stats.ratio("performance", plain, best))
    apart = f" ({one.apart})" if one.apart else ""
    text = (
        f"Size {best.size}{apart}: {other.variant} ({other.threads} thr.) runs at {speed} times "
    )
    text += f"the {one.unit.replace('F', 'GF')} of {one.variant} ({one.threads} thr.)"
    if gain := stats.ratio("efficiency", plain, best):
        estimate = mark("efficiency", plain, best)
        text += f" and gives {estimate}{with_error(gain)} times the GF/J"
        text += f" ({ESTIMATED})" if estimate else ""
    return [text + "."]
