# A job's part of what storage servers drew: by what it worked there, and what that costs.
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A channel of `shared: io` is the power of the servers that it names. Of what it measured between
two of its lines, idle_w is idle's, and the rest is shared as the model (storagemodel) says that
the jobs' work costs: all of it where the work costs far more than the server's noise, no more than
the model says where it costs far less, in between by the ratio of their squares. What no job has
is others' work, and noise.

Only times count of which the rounds of all the channel's servers tell: else others' work would be
taken for idle, or for the job's.

Errors, k=1: systematic ones are the meter's and the model's (idle, costs, and, where jobs work at
once, that a server is not linear in them), random ones are the meter's and the server's noise that
jobs are charged.

The model for a day (UTC) is fitted to the day before, so that a merge of today and one of next
week say the same; where that has too little of what the job did, to what there is until its end.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

from joulemark import folders
from joulemark.accounting.course import Course
from joulemark.accounting.shared import IO, Channel, Part, Segment
from joulemark.accounting.storagemodel import LATE_S, Model, Moment, fit
from joulemark.units import NS_PER_S, UJ_PER_J

DAY_NS = 86_400 * NS_PER_S
ENOUGH = 60  # moments with some kind of work tell its cost; a line a minute makes 1440 a day
HALF = 0.5  # of a day that a model is kept of
LATE_NS = round(max(LATE_S) * NS_PER_S)
VERSION = 2  # of kept models: another one where they are fitted otherwise

# courses_of(begin_ns, end_ns): of each of a channel's servers, what all jobs did.
CoursesOf = Callable[[int, int], Sequence[Course]]


@dataclass(frozen=True)
class History:
    """The times of a channel of which its servers' rounds tell, and these."""

    segments: list[Segment]
    courses: Sequence[Course]

    @classmethod
    def of(cls, channel: Channel, begin_ns: int, end_ns: int, courses_of: CoursesOf) -> History:
        """From begin_ns to end_ns; a channel that was another one before began then."""
        nodes = channel.nodes()
        found = [
            one
            for one in channel.segments(begin_ns, end_ns)[0]
            if one.last.split == IO and one.nodes == nodes
        ]
        if not found:
            return cls([], [])
        courses = courses_of(found[0].first.time_ns - LATE_NS, found[-1].last.time_ns)
        return cls([one for one in found if _is_told(one, courses)], courses)

    @property
    def seconds(self) -> float:
        """How long they are together."""
        return sum(one.last.time_ns - one.first.time_ns for one in self.segments) / NS_PER_S

    def moments(self, late_s: float) -> list[Moment]:
        """For the fit."""
        return [self._moment(one, late_s) for one in self.segments]

    def _moment(self, one: Segment, late_s: float) -> Moment:
        begin_ns, end_ns, seconds, gained_j = _numbers(one)
        work = _sum(self.courses, begin_ns, end_ns, late_s)
        return Moment(seconds, gained_j / seconds, tuple(amount / seconds for amount in work))


def _is_told(one: Segment, courses: Sequence[Course]) -> bool:
    return all(course.covers(one.first.time_ns, one.last.time_ns) for course in courses)


def _numbers(one: Segment) -> tuple[int, int, float, float]:
    begin_ns, end_ns = one.first.time_ns, one.last.time_ns
    gained_uj = one.last.energy_uj - one.first.energy_uj
    return begin_ns, end_ns, (end_ns - begin_ns) / NS_PER_S, gained_uj / UJ_PER_J


def part_of(history: History, model: Model, own: Sequence[Course]) -> Part:
    """own: what one job did at the channel's servers."""
    energy_j = systematic_j = misfit_j = variance_j2 = 0.0
    by_model = [0.0] * (1 + len(model.costs))  # what the model's numbers do to it: d energy
    for one in history.segments:
        begin_ns, end_ns, seconds, gained_j = _numbers(one)
        total = _sum(history.courses, begin_ns, end_ns, model.late_s)
        work = _sum(own, begin_ns, end_ns, model.late_s)
        total_j, work_j = model.above_idle(total), model.above_idle(work)
        if not (total_j > 0 and work_j > 0):
            for kind, amount in enumerate(work, 1):
                by_model[kind] += amount
            continue
        above_j, noise_j = gained_j - model.idle_w * seconds, model.noise_w * seconds
        trust = total_j**2 / (total_j**2 + noise_j**2)
        share, beside_j = work_j / total_j, above_j - total_j
        charged_j = work_j + share * trust * beside_j
        energy_j += charged_j
        by_model[0] -= share * trust * seconds
        for kind, (amount, of_all) in enumerate(zip(work, total), 1):
            grows = (amount - share * of_all) / total_j  # of the share, with this cost
            trusts = 2 * trust * (1 - trust) * of_all / total_j
            by_model[kind] += amount + trust * (grows * above_j - amount)
            by_model[kind] += share * trusts * beside_j
        meter_j = max(0.0, one.last.systematic_uj - one.first.systematic_uj) / UJ_PER_J
        systematic_j += abs(charged_j) * meter_j / gained_j if gained_j else 0.0
        misfit_j += model.misfit * work_j * (1 - share)  # of one alone all is its own
        meter_uj2 = max(0.0, one.last.random_uj**2 - one.first.random_uj**2)
        noise_j2 = noise_j**2 * model.lasting
        variance_j2 += (share * trust) ** 2 * (meter_uj2 / UJ_PER_J**2 + noise_j2)
    return Part(
        max(0, math.floor(energy_j * UJ_PER_J)),
        math.hypot(systematic_j, misfit_j, math.sqrt(model.variance(by_model))) * UJ_PER_J,
        math.sqrt(variance_j2) * UJ_PER_J,
    )


def _sum(courses: Sequence[Course], begin_ns: int, end_ns: int, late_s: float) -> list[float]:
    found = [course.between(begin_ns, end_ns, late_s) for course in courses]
    return [math.fsum(column) for column in zip(*found)] if found else [0.0] * 3


# ---- models ----


class Models:
    """Of each channel and day, kept beside the lines: a day that is over has one for good."""

    def __init__(self, record_dir: Path):
        self._record_dir = record_dir
        self._of_days: dict[tuple[str, int], Model | None] = {}  # fitted to the day before
        self._of_what_is: dict[tuple[str, int], Model | None] = {}

    def of(
        self,
        channel: Channel,
        work: Sequence[float],
        end_ns: int,
        until_ns: int,
        courses_of: CoursesOf,
    ) -> Model | None:
        """For a job that did this at the channel's servers and ended then, with lines until
        until_ns; None: the history is too short."""
        day = end_ns // DAY_NS
        begin_ns, whole_ns = (day - 1) * DAY_NS, day * DAY_NS
        key = channel.name, day
        if key not in self._of_days:
            self._of_days[key] = self._of_day_before(channel, day, begin_ns, courses_of)
        model = self._of_days[key]
        if model and all(n >= ENOUGH for n, amount in zip(model.busy, work) if amount):
            return model
        if key not in self._of_what_is:
            history = History.of(channel, begin_ns, max(until_ns, whole_ns), courses_of)
            self._of_what_is[key] = fit(history.moments)
        return self._of_what_is[key]

    def _of_day_before(
        self, channel: Channel, day: int, begin_ns: int, courses_of: CoursesOf
    ) -> Model | None:
        path = self._record_dir / "io" / "models" / f"{channel.name}.{day}.json"
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
            kept = json.loads(path.read_text(encoding="utf-8"))
            if kept.pop("version") == VERSION:
                return Model(**kept)
        history = History.of(channel, begin_ns, begin_ns + DAY_NS, courses_of)
        if history.seconds * NS_PER_S < HALF * DAY_NS:
            return None
        model = fit(history.moments)
        if model:
            self._keep(path, {"version": VERSION, **dataclasses.asdict(model)})
        return model

    def _keep(self, path: Path, values: dict) -> None:
        """Who may not write there fits it himself, to the same."""
        draft = path.with_suffix(f".{os.uname().nodename}.{os.getpid()}")
        with contextlib.suppress(OSError):
            folders.make(path.parent.parent, self._record_dir)
            folders.make(path.parent, self._record_dir)
            folders.replace(path, draft, json.dumps(values).encode(), self._record_dir, 0o644)
