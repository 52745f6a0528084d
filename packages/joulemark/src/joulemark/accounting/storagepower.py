# A job's part of what storage servers drew: by what it worked there, and what that costs.
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A channel of `shared: io` is the power of the servers that it names. Of what it measured between
two of its lines, idle_w is idle's, and the rest is shared as the model (storagemodel) says that
the jobs' work costs: all of it where the work costs far more than the server's noise, no more than
the model says where it costs far less, in between by the ratio of their squares. What no job has
is others' work, and noise.

Errors, k=1: systematic ones are the meter's and the model's (idle, costs, and, where jobs work at
once, that a server is not linear in them), random ones are the meter's and the server's noise that
jobs are charged.

The model for a day (UTC) is fitted to the day before, so that a merge of today and one of next
week say the same; where that has too little of what the job did, to what there is until its end.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from joulemark import folders
from joulemark.accounting.course import Course
from joulemark.accounting.shared import Channel, Segment
from joulemark.accounting.storagemodel import Model, Moment, fit
from joulemark.storage.work import Work
from joulemark.units import NS_PER_S, UJ_PER_J

DAY_NS = 86_400 * NS_PER_S
ENOUGH = 60  # moments with some kind of work tell its cost; a line a minute makes 1440 a day
LOOK_BACK_NS = 60 * NS_PER_S  # what was written before may be under way


@dataclass(frozen=True)
class Part:
    """What a job had of a channel."""

    energy_uj: int
    systematic_uj: float
    random_uj: float
    covered_ns: int


def part_of(
    segments: Sequence[Segment], model: Model, all_work: Sequence[Course], own: Sequence[Course]
) -> Part:
    """all_work, own: of the channel's servers, of all jobs and of one."""
    energy_j = systematic_j = misfit_j = variance_j2 = 0.0
    by_model = [0.0] * (1 + len(model.costs))  # what the model's numbers do to it: d energy
    covered_ns = 0
    for one in segments:
        begin_ns, end_ns = one.first.time_ns, one.last.time_ns
        seconds = (end_ns - begin_ns) / NS_PER_S
        covered_ns += end_ns - begin_ns
        total, work = (
            _sum(courses, begin_ns, end_ns, model.late_s) for courses in (all_work, own)
        )
        total_j, work_j = model.above_idle(total), model.above_idle(work)
        if not (total_j > 0 and work_j > 0):
            continue
        gained_j = (one.last.energy_uj - one.first.energy_uj) / UJ_PER_J
        above_j = gained_j - model.idle_w * seconds
        noise_j = model.noise_w * seconds
        trust = total_j**2 / (total_j**2 + noise_j**2)
        share = work_j / total_j
        charged_j = work_j + share * trust * (above_j - total_j)
        energy_j += charged_j
        by_model[0] -= share * trust * seconds
        for kind, (amount, of_all) in enumerate(zip(work, total), 1):
            grows = (amount - share * of_all) / total_j  # of the share, with this cost
            by_model[kind] += amount + trust * (grows * above_j - amount)
        meter_j = max(0.0, one.last.systematic_uj - one.first.systematic_uj) / UJ_PER_J
        systematic_j += abs(charged_j) * meter_j / gained_j if gained_j else 0.0
        misfit_j += model.misfit * work_j * (1 - share)  # of one alone all is its own
        meter_uj2 = max(0.0, one.last.random_uj**2 - one.first.random_uj**2)
        variance_j2 += (share * trust) ** 2 * (meter_uj2 / UJ_PER_J**2 + noise_j**2)
    return Part(
        max(0, math.floor(energy_j * UJ_PER_J)),
        math.hypot(systematic_j, misfit_j, math.sqrt(model.variance(by_model))) * UJ_PER_J,
        math.sqrt(variance_j2) * UJ_PER_J,
        covered_ns,
    )


def _sum(courses: Sequence[Course], begin_ns: int, end_ns: int, late_s: float) -> list[float]:
    found = [course.between(begin_ns, end_ns, late_s) for course in courses]
    return [math.fsum(column) for column in zip(*found)] if found else [0.0] * 3


def moments(
    segments: Sequence[Segment], courses: Sequence[Course], late_s: float
) -> Iterator[Moment]:
    """The channel's history."""
    for one in segments:
        begin_ns, end_ns = one.first.time_ns, one.last.time_ns
        seconds = (end_ns - begin_ns) / NS_PER_S
        gained_j = (one.last.energy_uj - one.first.energy_uj) / UJ_PER_J
        work = _sum(courses, begin_ns, end_ns, late_s)
        yield Moment(seconds, gained_j / seconds, tuple(amount / seconds for amount in work))


# ---- models ----


class Models:
    """Of each channel and day, kept beside the lines: a day that is over has one for good."""

    def __init__(self, record_dir: Path):
        self._record_dir = record_dir
        self._known: dict[str, dict[str, Model]] = {}

    def of(
        self, channel: Channel, work: Work, end_ns: int, until_ns: int, courses_of: Callable
    ) -> Model | None:
        """For a job that did this work and ended then, with lines until until_ns.

        courses_of(begin_ns, end_ns): of the channel's servers, of all jobs.
        """
        day = end_ns // DAY_NS
        known = self._of_channel(channel.name)
        begin_ns, whole_ns = (day - 1) * DAY_NS, day * DAY_NS
        model = known.get(str(day))
        if model is None and (model := _fitted(channel, begin_ns, whole_ns, courses_of)):
            known[str(day)] = model
            self._keep(channel.name, known)
        if model and all(n >= ENOUGH for n, amount in zip(model.busy, work) if amount):
            return model
        return _fitted(channel, begin_ns, until_ns, courses_of)

    def _file(self, channel: str) -> Path:
        return self._record_dir / "io" / "models" / f"{channel}.json"

    def _of_channel(self, channel: str) -> dict[str, Model]:
        if channel not in self._known:
            try:
                kept = json.loads(self._file(channel).read_text(encoding="utf-8"))
                found = {day: Model(**values) for day, values in kept.items()}
            except (OSError, ValueError, TypeError, AttributeError):
                found = {}  # it is computed anew
            self._known[channel] = found
        return self._known[channel]

    def _keep(self, channel: str, known: dict[str, Model]) -> None:
        """Who may not write there computes them himself."""
        path = self._file(channel)
        draft = path.with_suffix(f".{os.getpid()}")
        try:
            folders.make(path.parent.parent, self._record_dir)
            folders.make(path.parent, self._record_dir)
            text = json.dumps({day: dataclasses.asdict(one) for day, one in known.items()})
            draft.write_text(text, encoding="utf-8")
            folders.give_to_owner(draft, self._record_dir)
            os.replace(draft, path)
        except OSError:
            pass


def _fitted(channel: Channel, begin_ns: int, end_ns: int, courses_of: Callable) -> Model | None:
    segments, _ = channel.segments(begin_ns, end_ns)
    courses = courses_of(begin_ns - LOOK_BACK_NS, end_ns)

    return fit(lambda late_s: list(moments(segments, courses, late_s)))
