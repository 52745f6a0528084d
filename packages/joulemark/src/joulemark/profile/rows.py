# What `joulemark report profile` shows of each node of each job: power over time, regions.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass

from joulemark.errors import UsageError
from joulemark.profile import hdf5
from joulemark.profile.node import Channel, NodeProfile
from joulemark.profile.spans import Span, mapping, spans, total


@dataclass(frozen=True)
class Row:
    """One node of one job: a mapping of work to hardware, as Mont-Blanc's figure 9 compares."""

    job: int
    node: str
    label: str
    times_s: list[float]  # since the row's own start
    energies_j: list[float]  # since then
    spans: list[Span]
    estimated: bool
    marks_left_out: int = 0
    uncertainty_j: float | None = None  # of the whole energy, k=2; None: not known

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
    def mean_error_w(self) -> float | None:
        """k=2."""
        return None if self.uncertainty_j is None else self.uncertainty_j / self.seconds

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

    def regions(self) -> dict[str, tuple[float, float]]:
        """The seconds and joules of each region, of all its spans."""
        found: dict[str, tuple[float, float]] = {}
        for span in self.spans:
            seconds, energy_j = found.get(span.name, (0.0, 0.0))
            used_j = self.energy_until(span.end_s) - self.energy_until(span.begin_s)
            found[span.name] = (seconds + span.end_s - span.begin_s, energy_j + used_j)
        return found


def rows_of(site, job: int, options, number: int) -> list[Row]:
    """Of a job's nodes, or of the one asked for; number: the how manieth job it is."""
    labels = options.label or []
    prefix = labels[number] if number < len(labels) else f"job {job}"
    found = hdf5.load(site, job)
    wanted = [one for one in found if options.node in (None, one.node)]
    return [row for one in wanted if (row := row_of(one, prefix, options.channel))]


def row_of(one: NodeProfile, prefix: str, channel: str | None = None) -> Row | None:
    """None where it holds no two samples."""
    if channel is None:
        times_s, energies_j = total(one)
    elif channel in one.channels:
        times_s, energies_j = one.channels[channel].times_s, one.channels[channel].energies_j
    else:
        known = ", ".join(sorted(one.channels))
        raise UsageError(f"--channel {channel}: node {one.node} has {known}")
    if len(times_s) < 2:
        return None
    start_s = times_s[0]
    return Row(
        job=one.job,
        node=one.node,
        label=f"{prefix}: {mapping(one)}",
        times_s=[time_s - start_s for time_s in times_s],
        energies_j=[energy_j - energies_j[0] for energy_j in energies_j],
        spans=[
            Span(span.name, span.begin_s - start_s, span.end_s - start_s) for span in spans(one)
        ],
        estimated=any(shown.method == "model" for shown in _shown(one, channel)),
        marks_left_out=one.marks_left_out,
        uncertainty_j=_uncertainty_j(_shown(one, channel)),
    )


def _shown(one: NodeProfile, channel: str | None) -> list[Channel]:
    """The outermost ones, or the one asked for: it may be measured where these are not."""
    if channel is not None:
        return [one.channels[channel]]
    return [each for each in one.channels.values() if each.outermost]


def _uncertainty_j(shown: list[Channel]) -> float | None:
    """Channels' systematic and random parts are not told apart, so that the bound adds up."""
    parts = [channel.uncertainty_j for channel in shown]
    return None if None in parts else math.fsum(parts)
