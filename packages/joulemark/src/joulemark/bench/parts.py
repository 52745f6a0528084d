# Parts of one program's run: when each was, by the program's own file, and its joules.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import bisect
import calendar
import math
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from joulemark.bench.outside import Energy

#: k=2 of what is anywhere within one.
WITHIN_A_BOUND = 2 / math.sqrt(3)
_UJ = 1e-6
_DECIMALS = re.compile(r"\.(\d+)$")
#: The sampler's first line: both clocks at one moment.
_CLOCKS = re.compile(r"^clocks real_s=(?P<real>\d+\.\d+) boot_s=(?P<boot>\d+\.\d+)$")
_KEYS = ("time_ns", "energy_uj", "systematic_uj", "common_uj", "random_uj", "ends_uj")


class PartsError(Exception):
    """Why the joules of parts are not known."""


@dataclass(frozen=True)
class Form:
    """How a program tells its parts: of `parts:` of a phase."""

    folder: str  # that the program writes to, all of which is kept
    file: str  # in it, with a section for each part
    begins: re.Pattern  # a section; its group is the part's name
    start: re.Pattern
    end: re.Pattern
    seconds: re.Pattern | None  # between them, finer than both
    time: str | None  # strptime's format; None: seconds since 1970
    details: str | None  # further files of a part


@dataclass(frozen=True)
class Span:
    """A moment is from..to: a stamp is cut to its last digit."""

    least_s: float
    most_s: float

    @property
    def middle_s(self) -> float:
        """The best guess."""
        return (self.least_s + self.most_s) / 2


@dataclass(frozen=True)
class Part:
    """One, with all that the program wrote of it."""

    name: str
    text: str
    start: Span
    end: Span


def read(form: Form, kept: Path, utc_offset_s: int) -> dict[str, Part]:
    """By name; a section without both times is none. UTC_OFFSET_S is of the run's zone."""
    try:
        text = (kept / form.file).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    heads = list(form.begins.finditer(text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    found: dict[str, Part] = {}
    for head, until in zip(heads, ends):
        name, section = head[1], text[head.end() : until]
        spans = _spans(form, section, utc_offset_s)
        if spans and name not in found:
            found[name] = Part(name, section + _details(form, kept, name), *spans)
    return found


def _details(form: Form, kept: Path, name: str) -> str:
    if form.details is None:
        return ""
    paths = sorted(kept.glob(form.details.replace("{part}", name)))
    return "".join(path.read_text(encoding="utf-8", errors="replace") for path in paths)


def _spans(form: Form, section: str, utc_offset_s: int) -> tuple[Span, Span] | None:
    start = _stamp(form.start, section, form.time, utc_offset_s)
    end = _stamp(form.end, section, form.time, utc_offset_s)
    if start is None or end is None:
        return None
    lasted = form.seconds and _stamp(form.seconds, section, None, 0)
    return _narrowed(start, end, lasted) if lasted else (start, end)


def _stamp(pattern: re.Pattern, text: str, form: str | None, utc_offset_s: int) -> Span | None:
    found = pattern.search(text)
    if found is None:
        return None
    told = found[1].strip()
    decimals = _DECIMALS.search(told)
    step_s = 10.0 ** -len(decimals[1]) if decimals else 1.0
    try:
        if form is None:
            value_s = float(told)
        else:
            value_s = calendar.timegm(time.strptime(told, form)) - utc_offset_s
    except ValueError:
        return None
    return Span(value_s, value_s + step_s)


def _narrowed(start: Span, end: Span, lasted: Span) -> tuple[Span, Span]:
    """Both by the time between them, but where the stamps are beside it by a little."""
    begun = Span(
        max(start.least_s, end.least_s - lasted.most_s),
        min(start.most_s, end.most_s - lasted.least_s),
    )
    if begun.least_s > begun.most_s:
        return start, end
    return begun, Span(
        max(end.least_s, begun.least_s + lasted.least_s),
        min(end.most_s, begun.most_s + lasted.most_s),
    )


# -- joules --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Sample:
    """What the job was charged on a node by then, and the parts of its error (k=1)."""

    at_s: float  # since 1970
    energy_j: float
    systematic_j: float
    common_j: float
    random_j: float
    ends_j: float
    estimated: bool


@dataclass(frozen=True)
class _Drawn:
    """By a node in a part, with the error of its instruments (k=2), and its borders' bound."""

    joules: float
    instrument_j: float
    border_j: float
    seconds: float
    estimated: bool


class Curve:
    """A node's energy over a run, which never falls; what is between samples is interpolated."""

    def __init__(self, text: str) -> None:
        self.samples = sorted(_samples(text), key=lambda one: one.at_s)
        if not self.samples:
            raise PartsError("a node has no samples")
        self.times_s = [one.at_s for one in self.samples]

    def at_j(self, at_s: float) -> float:
        """By a line between two samples."""
        before, after = self._around(at_s)
        width_s = after.at_s - before.at_s
        share = (at_s - before.at_s) / width_s if width_s else 0.0
        return before.energy_j + share * (after.energy_j - before.energy_j)

    def _around(self, at_s: float) -> tuple[_Sample, _Sample]:
        after = bisect.bisect_left(self.times_s, at_s)
        before = bisect.bisect_right(self.times_s, at_s) - 1
        return self.samples[before], self.samples[after]

    def _within(self, span: Span) -> Span:
        """Sampling begins before the program does, and ends after it."""
        least_s, most_s = self.times_s[0], self.times_s[-1]
        cut = Span(max(span.least_s, least_s), min(span.most_s, most_s))
        if cut.least_s > cut.most_s:
            raise PartsError("the node was not sampled from its start to its end")
        return cut

    def of(self, part: Part) -> _Drawn:
        """Its borders' error is all that may have been drawn on their other side."""
        start, end = self._within(part.start), self._within(part.end)
        joules = max(0.0, self.at_j(end.middle_s) - self.at_j(start.middle_s))
        earliest, latest = self._around(start.least_s)[0], self._around(end.most_s)[1]
        begun, ended = self._around(start.most_s)[1], self._around(end.least_s)[0]
        most_j = latest.energy_j - earliest.energy_j
        least_j = max(0.0, ended.energy_j - begun.energy_j)
        border_j = max(most_j - joules, joules - least_j)
        seconds = max(0.0, end.middle_s - start.middle_s)
        instrument_j = _instrument_j(earliest, latest)
        return _Drawn(joules, instrument_j, border_j, seconds, latest.estimated)


def _instrument_j(first: _Sample, last: _Sample) -> float:
    """Of the gain between two samples, k=2; each tells its error as if the job ended there."""
    systematic_j = max(0.0, last.systematic_j - first.systematic_j)
    inside_j2 = last.common_j**2 + last.random_j**2 - first.common_j**2 - first.random_j**2
    return 2 * math.hypot(systematic_j, math.sqrt(max(0.0, inside_j2)), first.ends_j, last.ends_j)


def _samples(text: str) -> Iterable[_Sample]:
    lines = text.splitlines()
    clocks = _CLOCKS.match(lines[0]) if lines else None
    if clocks is None:
        raise PartsError("its samples do not begin with the clocks: was the run ended?")
    ahead_s = float(clocks["real"]) - float(clocks["boot"])
    for line in lines[1:]:
        told = dict(word.partition("=")[::2] for word in line.split())
        try:
            time_ns, *values_uj = (float(told[key]) for key in _KEYS)
            is_known, estimated = told["known"] == "1", told["estimated"] == "1"
        except (KeyError, ValueError):
            continue  # cut off, or what joulemarkctl complains of
        if is_known:
            values_j = (value_uj * _UJ for value_uj in values_uj)
            yield _Sample(time_ns / 1e9 + ahead_s, *values_j, estimated)


def energy_of(curves: list[Curve], parts: Iterable[Part]) -> Energy:
    """The sum over nodes and parts. Instruments are alike, and stamps the same on all nodes: their
    errors add up; those of several parts' borders are anywhere within their bounds."""
    found = [[curve.of(part) for curve in curves] for part in parts]
    every = [one for nodes in found for one in nodes]
    bounds_j = [sum(one.border_j for one in nodes) for nodes in found]
    return Energy(
        joules=sum(one.joules for one in every),
        error=sum(one.instrument_j for one in every)
        + min(sum(bounds_j), WITHIN_A_BOUND * math.hypot(*bounds_j)),
        seconds=sum(max(one.seconds for one in nodes) for nodes in found),
        estimated=any(one.estimated for one in every),
    )
