# Profiles as text: for a terminal a curve a row, and its regions; a table for pages.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

from joulemark.layout import ESTIMATE_MARK, ESTIMATED, Text
from joulemark.profile.rows import Row
from joulemark.profile.spans import Span
from joulemark.units import digits

BARS = "▁▂▃▄▅▆▇█"
WIDTH = 60  # characters of a terminal's curve
HEADS = ["Node", "Time [s]", "Energy [J]", "+-", "Mean [W]", "Most [W]"]
LEGEND = "Profiles: what was charged from the first sample to the last. +-: k=2; -: not known."


def as_text(rows: list[Row]) -> str:
    """A curve a row, and its regions under it."""
    most_w = max(max(row.powers_w) for row in rows)
    return "\n\n".join("\n".join(_lines(row, most_w)) for row in rows)


def _lines(row: Row, most_w: float) -> list[str]:
    head = f"{row.label}: {digits(row.energy_j)} J in {digits(row.seconds)} s"
    head += f", {digits(row.mean_w)} W mean, {digits(max(row.powers_w))} W at most"
    lines = [head + (f"  ({ESTIMATED})" if row.estimated else "")]
    lines.append(f"  {_curve(row, most_w)}  0 to {digits(most_w)} W")
    regions: dict[str, list[Span]] = {}
    for span in row.spans:
        regions.setdefault(span.name, []).append(span)
    width = max((len(name) for name in regions), default=0)
    for name, found in regions.items():
        seconds = sum(span.end_s - span.begin_s for span in found)
        energy_j = sum(row.energy_until(s.end_s) - row.energy_until(s.begin_s) for s in found)
        mean = f", {digits(energy_j / seconds)} W" if seconds > 0 else ""
        lines.append(f"  {name:{width}}  {digits(seconds)} s, {digits(energy_j)} J{mean}")
    if row.marks_left_out:
        lines.append(f"  {row.marks_left_out} marks were too many: no region is known to the end")
    return lines


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
    return Text(f"Job {job}: nodes", HEADS, [("value", _cells(row)) for row in rows])


def _cells(row: Row) -> list[str]:
    mark = ESTIMATE_MARK if row.estimated else ""
    error = "-" if row.uncertainty_j is None else digits(row.uncertainty_j)
    watts = [mark + digits(value) for value in (row.mean_w, max(row.powers_w))]
    return [row.label, digits(row.seconds), mark + digits(row.energy_j), error, *watts]
