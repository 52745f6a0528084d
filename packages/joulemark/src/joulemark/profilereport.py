# `joulemark report profile`: power over time with its regions, as a figure or for a terminal.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from pathlib import Path

from joulemark import config, output, profile
from joulemark.errors import UserError
from joulemark.profile import NodeProfile, Span
from joulemark.units import digits

BARS = "▁▂▃▄▅▆▇█"
WIDTH = 60  # characters of a terminal's curve
ESTIMATED = "energy ESTIMATED by a model, not measured"


@dataclass(frozen=True)
class Row:
    """One node of one job: a mapping of work to hardware, as Mont-Blanc's figure 9 compares."""

    label: str
    times_s: list[float]  # since the row's own start
    energies_j: list[float]  # since then
    spans: list[Span]
    estimated: bool
    marks_left_out: int = 0

    @property
    def seconds(self) -> float:
        """From the first sample to the last."""
        return self.times_s[-1]

    @property
    def energy_j(self) -> float:
        """Of the whole row."""
        return self.energies_j[-1]

    @property
    def mean_w(self) -> float:
        """Over the whole row."""
        return self.energy_j / self.seconds

    @property
    def powers_w(self) -> list[float]:
        """The mean between each two samples."""
        times_s, energies_j = self.times_s, self.energies_j
        return [
            (e1 - e0) / (t1 - t0)
            for t0, t1, e0, e1 in zip(times_s, times_s[1:], energies_j, energies_j[1:])
        ]

    def energy_until(self, at_s: float) -> float:
        """Joules from the row's start to this moment of it."""
        at_s = min(max(at_s, 0.0), self.seconds)
        index = max(bisect_left(self.times_s, at_s), 1)
        t0, t1 = self.times_s[index - 1 : index + 1]
        e0, e1 = self.energies_j[index - 1 : index + 1]
        return e0 + (e1 - e0) * (at_s - t0) / (t1 - t0)


def run(options) -> int:
    """Draws the figure, or prints the terminal's view."""
    if options.out is not None:
        output.check_figure("--out", options.out)
    site = config.load()
    rows = [
        row for number, job in enumerate(options.jobs) for row in _rows(site, job, options, number)
    ]
    if not rows:
        of = f" of --node {options.node}" if options.node else ""
        raise UserError(f"no profile{of} has two samples: for a short job say --energy=profile,HZ")
    if options.out is None:
        print(as_text(rows))
        return 0
    from joulemark.plots import profile as figure

    try:
        figure.draw(rows, Path(options.out), overlay=options.overlay)
    except OSError as error:
        raise UserError(f"--out {options.out}: {error.strerror}") from None
    print(options.out)
    return 0


def _rows(site, job: int, options, number: int) -> list[Row]:
    labels = options.label or []
    prefix = labels[number] if number < len(labels) else f"job {job}"
    found = profile.load(site, job)
    wanted = [one for one in found if options.node in (None, one.node)]
    return [row for one in wanted if (row := row_of(one, prefix, options.channel))]


def row_of(one: NodeProfile, prefix: str, channel: str | None = None) -> Row | None:
    """None where it holds no two samples."""
    if channel is None:
        times_s, energies_j = profile.total(one)
    elif channel in one.channels:
        times_s, energies_j = one.channels[channel].times_s, one.channels[channel].energies_j
    else:
        known = ", ".join(sorted(one.channels))
        raise UserError(f"--channel {channel}: node {one.node} has {known}")
    if len(times_s) < 2:
        return None
    start_s = times_s[0]
    return Row(
        label=f"{prefix}: {profile.mapping(one)}",
        times_s=[time_s - start_s for time_s in times_s],
        energies_j=[energy_j - energies_j[0] for energy_j in energies_j],
        spans=[
            Span(span.name, span.begin_s - start_s, span.end_s - start_s)
            for span in profile.spans(one)
        ],
        estimated=profile.is_estimated(one),
        marks_left_out=one.marks_left_out,
    )


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
