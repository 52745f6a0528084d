# What a node's profile says: its power, its regions, which ranks marked them.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

from dataclasses import dataclass

from joulemark.profile.node import NodeProfile


@dataclass(frozen=True)
class Span:
    """A time in which at least one thread of the node was in a region."""

    name: str
    begin_s: float
    end_s: float

    @property
    def depth(self) -> int:
        """How many regions it lies in, by its name."""
        return self.name.count("/")


def total(profile: NodeProfile) -> tuple[list[float], list[float]]:
    """Times and joules of the node: the sum of its outermost channels at every sample."""
    import numpy

    outermost = [one for one in profile.channels.values() if one.outermost and one.times_s]
    if not outermost:
        return [], []
    times_s = numpy.unique(numpy.concatenate([channel.times_s for channel in outermost]))
    energies_j = sum(
        numpy.interp(times_s, channel.times_s, channel.energies_j) for channel in outermost
    )
    return times_s.tolist(), energies_j.tolist()


def peak_w(profiles: list[NodeProfile]) -> float | None:
    """The greatest sum of the nodes' powers at one time, each the mean between two samples."""
    import numpy

    known = [
        (numpy.array(channel.times_s), numpy.array(channel.energies_j))
        for profile in profiles
        for channel in profile.channels.values()
        if channel.outermost and len(channel.times_s) > 1
    ]
    if not known:
        return None
    times_s = numpy.unique(numpy.concatenate([times_s for times_s, _ in known]))
    middles_s = (times_s[1:] + times_s[:-1]) / 2
    sum_w = numpy.zeros(len(middles_s))
    for own_s, energies_j in known:
        powers_w = numpy.diff(energies_j) / numpy.diff(own_s)
        at = numpy.searchsorted(own_s, middles_s) - 1
        inside = (at >= 0) & (at < len(powers_w))
        sum_w[inside] += powers_w[at[inside]]
    return float(sum_w.max())


def spans(profile: NodeProfile) -> list[Span]:
    """The union over threads and ranks, as in the records; what never ended lasts to the end, or,
    where marks were left out, to the last one."""
    inside: dict[str, int] = {}
    since: dict[str, float] = {}
    found = []
    for mark in profile.marks:
        before = inside.get(mark.name, 0)
        inside[mark.name] = max(before + (1 if mark.kind == "begin" else -1), 0)
        if before == 0 and inside[mark.name] == 1:
            since[mark.name] = mark.time_s
        elif before == 1 and inside[mark.name] == 0:
            found.append(Span(mark.name, since.pop(mark.name), mark.time_s))
    known = (channel.times_s for channel in profile.channels.values())
    last_s = max((times_s[-1] for times_s in known if times_s), default=0.0)
    if profile.marks_left_out:
        last_s = profile.marks[-1].time_s if profile.marks else 0.0
    found += [Span(name, begin_s, max(last_s, begin_s)) for name, begin_s in since.items()]
    return sorted(found, key=lambda span: (span.begin_s, span.depth))


def mapping(profile: NodeProfile) -> str:
    """Where the job's work was: `n1: ranks 0-3, 8 threads`."""
    ranks = sorted({mark.rank for mark in profile.marks if mark.rank >= 0})
    threads = _threads_at_once(profile)
    words = [profile.node]
    if ranks:
        words.append(f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {_ranges(ranks)}")
    if threads > max(len(ranks), 1):
        words.append(f"{threads} threads")
    return ", ".join(words)


def _threads_at_once(profile: NodeProfile) -> int:
    """The most that were in regions at a time: commands one after the other are one thread."""
    depths: dict[tuple[int, int], int] = {}  # of each rank's thread that is in a region
    most = 0
    for mark in profile.marks:
        thread = (mark.rank, mark.thread)
        depth = depths.pop(thread, 0) + (1 if mark.kind == "begin" else -1)
        if depth > 0:
            depths[thread] = depth
        most = max(most, len(depths))
    return most


def _ranges(numbers: list[int]) -> str:
    """0,1,2,5 as `0-2,5`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
