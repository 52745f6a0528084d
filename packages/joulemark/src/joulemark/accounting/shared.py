# Shared channels: what a rack, switch or cooling loop used, and a job's part of it.
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The gateway appends a line a minute to record_dir/shared/CHANNEL.jsonl: time_ns and the counter
energy_uj since its start, with its systematic_uj and random_uj (k=1) so far; nodes, a host list;
split (of `io` they are storage servers); run, another text whenever the counter began anew; and,
where split is `energy`, nodes_uj, counters of what each node used, without those of which it is
not known. Between two lines of one run energy grows evenly.

A node's part of a channel: split equally, or as nodes_uj grew; where one of them is not known,
equally too, and that is told as Part.evenly_ns. A job's part of a node: its CPUs over the node's.
All in whole microjoules rounded down, so that jobs never get more than there was.
"""

from __future__ import annotations

import bisect
import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from joulemark import hostlist, output
from joulemark.accounting.jobrecord import interval_j
from joulemark.timed import Timed, json_object, real, whole, wrong

IO = "io"  # a split of storagepower's, not of ours


@dataclass(frozen=True)
class Line:
    """One reading of a shared channel's counter."""

    time_ns: int
    energy_uj: int
    systematic_uj: float
    random_uj: float
    nodes: str
    split: str
    run: str
    nodes_uj: dict[str, int] | None


@dataclass(frozen=True)
class Part:
    """What a time on a node took of a channel; errors are k=1."""

    energy_uj: int = 0
    systematic_uj: float = 0.0
    random_uj: float = 0.0
    covered_ns: int = 0
    evenly_ns: int = 0  # of covered_ns: split equally, since the configured split was not possible


def charged(parts: Sequence[Part], names: Sequence[str]) -> dict:
    """Of several channels, as columns of these names: energy, errors, interval. Channels' errors
    add linearly, their random parts too: the job's ends are theirs all."""
    systematic_uj = math.fsum(part.systematic_uj for part in parts)
    random_uj = math.fsum(part.random_uj for part in parts)
    energy_uj = sum(part.energy_uj for part in parts)
    values = energy_uj, systematic_uj, random_uj, interval_j(systematic_uj, random_uj)
    return dict(zip(names, values))


@dataclass(frozen=True)
class Segment:
    """The time between two lines of one run of the counter."""

    first: Line
    last: Line
    nodes: frozenset[str]

    def part(self, node: str, start_ns: int, end_ns: int) -> Part:
        """What the node answers for from start_ns to end_ns, as far as the segment reaches."""
        first, last = self.first, self.last
        start_ns, end_ns = max(start_ns, first.time_ns), min(end_ns, last.time_ns)
        if start_ns >= end_ns or node not in self.nodes:
            return Part()
        weights = self.weights
        weight, total = (weights[node], sum(weights.values())) if weights else (1, len(self.nodes))
        gained_uj = last.energy_uj - first.energy_uj
        energy_uj = self._until(gained_uj, end_ns) - self._until(gained_uj, start_ns)
        begin, end = self._fraction(start_ns), self._fraction(end_ns)
        share = weight / total
        variance_uj2 = (end - begin) * max(0.0, last.random_uj**2 - first.random_uj**2)
        # Where the meter was not read the power is not known: any curve between two lines fits.
        variance_uj2 += gained_uj**2 * (begin * (1 - begin) + end * (1 - end)) / 3
        return Part(
            energy_uj * weight // total,
            (end - begin) * max(0.0, last.systematic_uj - first.systematic_uj) * share,
            math.sqrt(variance_uj2) * share,
            end_ns - start_ns,
            end_ns - start_ns if weights is None and self.last.split != "equal" else 0,
        )

    @functools.cached_property
    def weights(self) -> dict[str, int] | None:
        """What each node used; None: to be split equally, or not known of all of them."""
        first, last = self.first.nodes_uj or {}, self.last.nodes_uj or {}
        if self.last.split == "equal" or not self.nodes <= first.keys() & last.keys():
            return None
        grown = {node: last[node] - first[node] for node in self.nodes}
        return grown if sum(grown.values()) > 0 and min(grown.values()) >= 0 else None

    def _fraction(self, time_ns: int) -> float:
        return (time_ns - self.first.time_ns) / (self.last.time_ns - self.first.time_ns)

    def _until(self, gained_uj: int, time_ns: int) -> int:
        first, last = self.first.time_ns, self.last.time_ns
        return gained_uj * (time_ns - first) // (last - first)


class Channel(Timed[Line]):
    """One file of shared/."""

    def __init__(self, path: Path):
        super().__init__(path)
        self._nodes: dict[str, frozenset[str]] = {}
        self._last: Line | None = None

    def segments(self, start_ns: int, end_ns: int) -> tuple[list[Segment], set[int]]:
        """Those that overlap the time, in order; where lines begin there that are not sound."""
        lines, bad = self.about(start_ns, end_ns)
        return [
            Segment(first, last, self._expanded(last.nodes))
            for first, last in zip(lines, lines[1:])
            if first.run == last.run
            and (first.nodes, first.split) == (last.nodes, last.split)
            and first.time_ns < last.time_ns
            and first.energy_uj <= last.energy_uj
        ], bad

    def last_line(self) -> Line | None:
        """As it was when it was first asked for: a line may have an energy for each of ten
        thousand nodes."""
        if self._last is None:
            self._last = super().last_line()
        return self._last

    def nodes(self) -> frozenset[str]:
        """The nodes that the newest line names; of IO the servers."""
        line = self.last_line()
        return self._expanded(line.nodes) if line else frozenset()

    def _expanded(self, text: str) -> frozenset[str]:
        if text not in self._nodes:
            self._nodes[text] = frozenset(hostlist.expand(text, "nodes"))
        return self._nodes[text]

    def parse(self, text: bytes) -> Line:
        values = json_object(text)
        try:
            line = Line(
                *(whole(key, values[key]) for key in ("time_ns", "energy_uj")),
                *(real(key, values[key]) for key in ("systematic_uj", "random_uj")),
                *(str(values[key]) for key in ("nodes", "split", "run")),
                nodes_uj=values.get("nodes_uj"),
            )
        except KeyError as error:
            raise ValueError(f"has no {error.args[0]}") from None
        if not isinstance(line.nodes_uj, (dict, type(None))):
            raise wrong("nodes_uj", line.nodes_uj, "object")
        for node, used_uj in (line.nodes_uj or {}).items():
            if not isinstance(used_uj, int):
                raise wrong(f"nodes_uj: {node}", used_uj, "whole number")
        self._expanded(line.nodes)
        return line


class Shares:
    """A channel's parts over one span of time, quick to ask for many nodes."""

    def __init__(self, channel: Channel, start_ns: int, end_ns: int):
        self.channel = channel
        self.segments, self.bad_lines = channel.segments(start_ns, end_ns)
        self._ends = [segment.last.time_ns for segment in self.segments]
        self._nodes = channel.nodes()
        self._is_weighted = any(segment.weights for segment in self.segments)
        self._known: dict[tuple, Part] = {}

    def part(self, node: str, start_ns: int, end_ns: int) -> Part:
        """What the node answers for; alike nodes are asked for once."""
        alike = node if self._is_weighted or node not in self._nodes else ""
        key = (alike, start_ns, end_ns)
        if key not in self._known:
            self._known[key] = self._sum(node, start_ns, end_ns)
        return self._known[key]

    def _sum(self, node: str, start_ns: int, end_ns: int) -> Part:
        first = bisect.bisect_right(self._ends, start_ns)
        parts = []
        for segment in self.segments[first:]:
            if segment.first.time_ns >= end_ns:
                break
            parts.append(segment.part(node, start_ns, end_ns))
        return Part(
            sum(part.energy_uj for part in parts),
            math.fsum(part.systematic_uj for part in parts),
            math.hypot(*(part.random_uj for part in parts)),
            sum(part.covered_ns for part in parts),
            sum(part.evenly_ns for part in parts),
        )


@dataclass(frozen=True)
class Lost:
    """A channel of which nothing can be read: jobs' records are merged without it."""

    note: str  # for the jobs
    said: str  # to the administrator
    may_come: bool  # without an edit of the file


def channels(record_dir: Path) -> tuple[list[Channel], list[Lost]]:
    """All shared channels that the gateway has written."""
    found, lost = [], []
    for path in sorted((record_dir / "shared").glob("*.jsonl")):
        channel, place = Channel(path), output.printable(str(path))
        try:
            first, count = (0, 0) if channel.last_line() else channel.unsound()
        except OSError as error:
            note = f"{channel.name}: {place} cannot be read: {error.strerror}"
            fix = "no job gets overhead of it: let this user read it"
            lost.append(Lost(note, f"{note}: {fix}", may_come=True))
            continue
        if count:
            note = f"{channel.name}: no overhead: no line of {place} is sound"
            said = f"{channel.wrong(first)}, and none of the file's {count} lines is sound"
            fix = "correct or remove them, then run `joulemark merge --rebuild`"
            said = f"{said}: no job gets overhead of it: {fix}"
            lost.append(Lost(note, said, may_come=False))
        else:
            found.append(channel)
    return found, lost
