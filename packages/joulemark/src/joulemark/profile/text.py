# Profiles as text: for a terminal a curve a row, and its regions; a table; records for programs.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

from collections.abc import Iterator

from joulemark.layout import ESTIMATE_MARK, ESTIMATED, LEGEND_ESTIMATED, Text
from joulemark.output import printable
from joulemark.profile.rows import Row
from joulemark.units import digits

BARS = "▁▂▃▄▅▆▇█"
WIDTH = 60  # characters of a terminal's curve
HEADS = ["Node", "Time [s]", "Energy [J]", "+-", "Mean [W]", "Most [W]"]
COLUMNS = (
    *("job_id_raw", "node", "label", "region", "time_s", "energy_j", "energy_error_j"),
    *("mean_w", "mean_error_w", "peak_w", "estimated", "marks_left_out"),
)
LEGEND = (
    "Profiles: from the first sample to the last; the job's ends are in `joulemark sacct`, too. "
    "+-: of the whole job, k=2; -: not known."
)


def as_text(rows: list[Row]) -> str:
    """A curve a row, its regions under it, and what of the job it is."""
    most_w = max(max(row.powers_w) for row in rows)
    return "\n\n".join([*("\n".join(_lines(row, most_w)) for row in rows), LEGEND])


def _lines(row: Row, most_w: float) -> list[str]:
    energy = with_error(row.energy_j, row.uncertainty_j, "J")
    head = f"{row.label}: {energy} in {digits(row.seconds)} s"
    head += f", {digits(row.mean_w)} W mean, {digits(max(row.powers_w))} W at most"
    lines = [head + (f"  ({ESTIMATED})" if row.estimated else "")]
    lines.append(f"  {_curve(row, most_w)}  0 to {digits(most_w)} W")
    regions = row.regions()
    width = max((len(name) for name in regions), default=0)
    for name, (seconds, energy_j) in regions.items():
        mean = f", {digits(energy_j / seconds)} W" if seconds > 0 else ""
        lines.append(f"  {name:{width}}  {digits(seconds)} s, {digits(energy_j)} J{mean}")
    if row.marks_left_out:
        lines.append(f"  {row.marks_left_out} marks were too many: no region is known to the end")
    return list(map(printable, lines))


def with_error(value: float, error: float | None, unit: str) -> str:
    """`1700 J +- 30.0 J (k=2)`"""
    known = "not known" if error is None else f"{digits(error)} {unit} (k=2)"
    return f"{digits(value)} {unit} +- {known}"


def _curve(row: Row, most_w: float) -> str:
    step_s = row.seconds / WIDTH
    means = [
        (row.energy_until((i + 1) * step_s) - row.energy_until(i * step_s)) / step_s
        for i in range(WIDTH)
    ]
    top = len(BARS) - 1
    return "".join(
        BARS[min(int(mean / most_w * top + 0.5), top) if most_w else 0] for mean in means
    )


def as_table(job: int, rows: list[Row]) -> Text:
    """A line a row, without its regions."""
    return Text(f"Raw id {job}: nodes", HEADS, [("value", _cells(row)) for row in rows])


def _cells(row: Row) -> list[str]:
    mark = ESTIMATE_MARK if row.estimated else ""
    error = "-" if row.uncertainty_j is None else digits(row.uncertainty_j)
    watts = [mark + digits(value) for value in (row.mean_w, max(row.powers_w))]
    return [row.label, digits(row.seconds), mark + digits(row.energy_j), error, *watts]


def as_tables(rows: list[Row]) -> list[Text]:
    """One for each job."""
    jobs = dict.fromkeys(row.job for row in rows)
    return [as_table(job, [row for row in rows if row.job == job]) for job in jobs]


def notes(rows: list[Row]) -> list[str]:
    """What must be known to read the tables."""
    return [LEGEND, *([LEGEND_ESTIMATED] if any(row.estimated for row in rows) else [])]


def as_records(rows: list[Row]) -> list[dict]:
    """A record a row, and one for each of its regions; null: not known."""
    return [record for row in rows for record in _records(row)]


def _records(row: Row) -> Iterator[dict]:
    where = {"job_id_raw": row.job, "node": row.node, "label": row.label}
    unknown = {**dict.fromkeys(COLUMNS), **where, "estimated": row.estimated}
    yield {
        **unknown,
        **{"time_s": row.seconds, "energy_j": row.energy_j, "energy_error_j": row.uncertainty_j},
        **{"mean_w": row.mean_w, "mean_error_w": row.mean_error_w, "peak_w": max(row.powers_w)},
        "marks_left_out": row.marks_left_out,
    }
    for name, (seconds, energy_j) in row.regions().items():
        mean_w = energy_j / seconds if seconds else None
        used = {"region": name, "time_s": seconds, "energy_j": energy_j, "mean_w": mean_w}
        yield {**unknown, **used}
