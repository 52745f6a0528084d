# `joulemark report interval`: how often a program that may fail should write a checkpoint.
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Work comes in pieces of one interval, each with a checkpoint at its end; failures come at any
moment alike, one in `mtbf_s` of running, and throw the program back to the last checkpoint, which
a restart reads. Expected time: Daly, Future Generation Computer Systems 22 (2006) 303-312, of
which Young, CACM 17 (1974) 530, is the limit of rare failures. Energy likewise: Meneses, Sarood,
Kale, SBAC-PAD 2012; Aupy et al., arXiv:1310.8456."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from joulemark import layout, units
from joulemark.bench import manifest, options, stats, table
from joulemark.bench.cooked import Measurement
from joulemark.bench.stats import Row, Series, Value
from joulemark.errors import UsageError

BENCHMARK = "jm-io-checkpoint"
WITHOUT, CHECKPOINT, RESTART = "steps", "-checkpoint", "-restart"
LOCAL = "local"  # goes on behind the program: no time of its own
GOLDEN = (math.sqrt(5) - 1) / 2
SHORTEST = 1e-9  # of an interval, in times of a checkpoint
LONGEST = 50.0  # of an interval, in times between failures: none is anywhere near


class Phase(NamedTuple):
    """What something takes; no energy: it is not known."""

    time_s: float
    energy_j: float | None = None


class Costs(NamedTuple):
    """Of a program: a checkpoint, a restart, and its power between them."""

    checkpoint: Phase
    restart: Phase
    power_w: float | None = None

    def time_s(self, interval_s: float, mtbf_s: float) -> float:
        """Expected, for so much work and its checkpoint, with all that failures cost."""
        failures = math.expm1((interval_s + self.checkpoint.time_s) / mtbf_s)
        return mtbf_s * math.exp(self.restart.time_s / mtbf_s) * failures

    def energy_j(self, interval_s: float, mtbf_s: float) -> float:
        """Likewise; each energy is known, and of its phase spent evenly."""
        writing_s = self.checkpoint.time_s
        failures = math.expm1((interval_s + writing_s) / mtbf_s)
        # until it is done or fails, of each part
        working_s = mtbf_s * -math.expm1(-interval_s / mtbf_s)
        wrote_s = mtbf_s * math.exp(-interval_s / mtbf_s) * -math.expm1(-writing_s / mtbf_s)
        attempt_j = self.power_w * working_s + _power_w(self.checkpoint) * wrote_s
        read_s = mtbf_s * math.expm1(self.restart.time_s / mtbf_s)
        return (failures + 1) * attempt_j + failures * _power_w(self.restart) * read_s


def _power_w(phase: Phase) -> float:
    return phase.energy_j / phase.time_s if phase.time_s else 0.0


def best_s(costs: Costs, mtbf_s: float, of: Callable[[float, float], float]) -> float:
    """The interval for which costs.time_s or costs.energy_j is least, by the work that is done."""
    low = math.log(SHORTEST * min(costs.checkpoint.time_s, mtbf_s))
    high = math.log(LONGEST * mtbf_s)

    def each(log_s: float) -> float:
        try:
            return of(math.exp(log_s), mtbf_s) / math.exp(log_s)
        except OverflowError:
            return math.inf

    while high - low > 1e-7:  # it falls, then rises
        one, other = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        if each(one) < each(other):
            high = other
        else:
            low = one
    return math.exp((low + high) / 2)


def young_s(checkpoint_s: float, mtbf_s: float) -> float:
    """Where failures are rare; of an energy, checkpoint_s is that by the program's power."""
    return math.sqrt(2 * checkpoint_s * mtbf_s)


# -- what was measured ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Measured:
    """One way of checkpoints at one size of the state."""

    series: Series
    row: Row
    checkpoint_s: Value  # what the program takes longer, a checkpoint
    checkpoint_j: Value | None
    alike_s: Value | None  # how long the program without checkpoints takes for as many joules
    restart: Row | None
    is_by_others: bool  # their energies are no values of one quantity
    restart_j: float | None  # by the same instrument
    power_w: float | None
    estimated: bool

    @property
    def is_free(self) -> bool:
        """Whether what a checkpoint takes is within the scatter: nobody knows its interval."""
        return _is_within_error(self.checkpoint_s)

    @property
    def is_free_of_energy(self) -> bool:
        """Likewise what it draws."""
        return self.checkpoint_j is not None and _is_within_error(self.checkpoint_j)

    @property
    def costs(self) -> Costs:
        """Without errors; without energy where not all of it is known."""
        restart = Phase(0.0, 0.0)
        if self.restart:
            restart = Phase(self.restart.time_s.mean, self.restart_j)
        if restart.energy_j is None or not self.checkpoint_j or self.is_free_of_energy:
            return Costs(Phase(self.checkpoint_s.mean), Phase(restart.time_s))
        checkpoint = Phase(self.checkpoint_s.mean, self.checkpoint_j.mean)
        return Costs(checkpoint, restart, self.power_w)


def _is_within_error(value: Value) -> bool:
    return value.mean <= (value.error or 0.0)


class Best(NamedTuple):
    """The interval of the least time or energy, and what it costs, as parts of the work's own."""

    what: str
    interval_s: float
    error_s: float | None
    young_s: float
    time_part: float
    energy_part: float | None


def best(one: Measured, mtbf_s: float) -> Iterator[Best]:
    """For the time, and for the energy where it is known; none where a checkpoint costs nothing
    that could be told, or failures leave it no time."""
    costs = one.costs
    if one.is_free or _is_hopeless(costs, mtbf_s):
        return
    found = [("time", costs.time_s, one.checkpoint_s)]
    if costs.power_w:
        found.append(("energy", costs.energy_j, one.alike_s))
    for what, of, price in found:
        interval_s = best_s(costs, mtbf_s, of)
        part = None if price.error is None else price.error / price.mean / 2  # of a square root
        time_part = costs.time_s(interval_s, mtbf_s) / interval_s - 1
        energy_part = None
        if costs.power_w:
            work_j = costs.power_w * interval_s
            energy_part = costs.energy_j(interval_s, mtbf_s) / work_j - 1
        error_s = None if part is None else part * interval_s
        yield Best(what, interval_s, error_s, young_s(price.mean, mtbf_s), time_part, energy_part)


def _is_hopeless(costs: Costs, mtbf_s: float) -> bool:
    return max(costs.checkpoint.time_s, costs.restart.time_s) > mtbf_s


def find(measured: list[Measurement]) -> tuple[list[Measured], list[str]]:
    """Each series of checkpoints that has steps without them beside it, size by size; and what has
    not, in words."""
    every = stats.series_of([one for one in measured if one.benchmark == BENCHMARK])
    rows: dict[tuple, tuple[Series, Row]] = {}
    found, left_out = [], []
    for one in every:
        for row in one.rows:
            if row.verified:
                rows[(_alike(one), one.kernel, *row.case)] = one, row
            else:
                left_out.append(f"Of {_title(one, row)}: its result is wrong.")
    for (alike, kernel, *case), (one, row) in rows.items():
        way, ending, _ = kernel.partition(CHECKPOINT)
        if not ending or way == LOCAL:
            continue
        _, steps = rows.get((alike, WITHOUT, *case), (None, None))
        _, restart = rows.get((alike, way + RESTART, *case), (None, None))
        if steps is None:
            left_out.append(f"Of {_title(one, row)}: {WITHOUT_STEPS}")
        elif not (count := _checkpoints(row)):
            left_out.append(f"Of {_title(one, row)}: {UNCOUNTED}.")
        else:
            found.append(_measured(one, row, count, steps, restart))
    if not found:
        why = "".join(f"; {line}" for line in left_out)
        raise UsageError(
            f"--from: no right result of {BENCHMARK} with and without checkpoints{why}: run "
            "`jm-io checkpoint --folder FOLDER`, or job-templates/jm-io.sbatch"
        )
    return found, left_out


def _alike(series: Series) -> tuple:
    keys = ("variant", "threads", "ranks", "nodes", "target", "cpu", "device", "manifest")
    return tuple(getattr(series, key) for key in keys)


WITHOUT_STEPS = "no right result of the steps without it, by the same manifest and options."
UNCOUNTED = (
    "its lines have no option_steps that is a multiple of option_every: measure it by this "
    "release's jm-io"
)


def _checkpoints(row: Row) -> int:
    """Of an iteration; 0: nobody told."""
    asked = options.by_name(row.options)
    try:
        steps, every = int(asked["steps"]), int(asked["every"])
    except (KeyError, ValueError):
        return 0
    return steps // every if 0 < every <= steps and steps % every == 0 else 0


def _measured(series: Series, row: Row, count: int, steps: Row, restart: Row | None) -> Measured:
    checkpoint_j = alike_s = None
    if _is_told_beside(steps, row) and steps.power_w.mean:
        checkpoint_j = _energy(row, steps, count)
        alike_s = _alike_s(row, steps, checkpoint_j)
    return Measured(
        series,
        row,
        _difference(row.time_s, steps.time_s, count),
        checkpoint_j,
        alike_s,
        restart,
        stats.is_other_instrument(steps, row),
        restart.energy_j.mean
        if checkpoint_j and restart and _is_told_beside(steps, restart)
        else None,
        steps.power_w.mean if checkpoint_j else None,
        row.estimated,
    )


def _is_told_beside(one: Row, other: Row) -> bool:
    """Whether both have energies, of one quantity."""
    return bool(one.energy_j and other.energy_j) and not stats.is_other_instrument(one, other)


def _difference(one: Value, other: Value, count: int) -> Value:
    """What one takes more than the other, by count; their scatters have nothing in common."""
    interval = None
    if None not in (one.interval, other.interval):
        interval = math.hypot(one.interval, other.interval) / count
    return Value((one.mean - other.mean) / count, interval=interval)


def _energy(row: Row, steps: Row, count: int) -> Value:
    """Likewise; of one instrument a wrong gain errs by the difference alone, a wrong offset by the
    time, and neither by more than it may err of each, alone or together."""
    found = _difference(row.energy_j, steps.energy_j, count)
    errors = [one.energy_j.uncertainty for one in (row, steps)]
    known = [error for error in errors if error is not None]
    uncertainty = math.hypot(*known) if known else None
    # what is random of an instrument's error is known by the runs' scatter alone
    if len(known) == 2 and found.interval is not None and stats.is_same_instrument(steps, row):
        both = (row, steps)
        gain = min(one.energy_j.part("uncertainty") for one in both)
        offset_w = min(one.energy_j.uncertainty / one.time_s.mean for one in both)
        by_gain_j = gain * abs(row.energy_j.mean - steps.energy_j.mean)
        by_offset_j = offset_w * abs(row.time_s.mean - steps.time_s.mean)
        most_j = max(by_gain_j, by_offset_j, abs(errors[0] - errors[1]))
        uncertainty = min(most_j, sum(errors))
    return replace(found, uncertainty=uncertainty and uncertainty / count)


def _alike_s(row: Row, steps: Row, checkpoint_j: Value) -> Value:
    """An instrument errs by what it does of the energies' ratio, of which a wrong gain drops out;
    what scatters of a program's power does not scatter of its time, too."""
    power_w = steps.power_w.mean
    mean_s = checkpoint_j.mean / power_w
    interval = uncertainty = None
    if checkpoint_j.interval is not None:
        of_power_s = mean_s * (steps.power_w.part("interval") or 0.0)
        interval = math.hypot(checkpoint_j.interval / power_w, of_power_s)
    ratio = stats.ratio("energy_j", steps, row)
    if ratio.uncertainty is not None and ratio.mean != 1:
        uncertainty = abs(mean_s) * ratio.uncertainty / abs(ratio.mean - 1)
    return Value(mean_s, uncertainty=uncertainty, interval=interval)


# -- tables and records --------------------------------------------------------------------------

LEGEND = (
    "An interval is work between two checkpoints; +: what it takes more than the work alone, by "
    "checkpoints, restarts and what failures destroy. ±: at 95 %, by that of the checkpoint's "
    "cost, of an energy as a part of the program's, of which an instrument's gain drops out. "
    "Young: sqrt(2 C M) of a checkpoint's time C, of the energy by the program's power; M: one "
    "failure in so long, of all nodes of the job."
)
NO_RESTART = "Of {}: no right result of a restart, which is taken for none."
TOO_OFTEN = "Of {}: with one failure in {} few checkpoints or restarts would end: no interval."
FREE = "Of {}: what a checkpoint takes is within its error, or below nothing: no interval."
FREE_OF_ENERGY = (
    "Of {}: what a checkpoint draws is within its error, or below nothing: none for the energy."
)
BY_OTHERS = (
    "Of {}: steps and checkpoints were measured by different instruments or channels, or by "
    "several: none for the energy."
)
UNTOLD_RESTART = (
    "Of {}: a restart's energy is not known, or by another instrument: none for the energy."
)


def as_text(one: Measured, mtbfs_s: list[float]) -> layout.Text:
    """Two lines a time between failures: for the least time, for the least energy."""
    heads = ["M", "least", "interval [s]", "Young [s]", "time", "energy"]
    body = [
        ("value", [_time(mtbf_s), *_cells(one, found)])
        for mtbf_s in mtbfs_s
        for found in best(one, mtbf_s)
    ]
    return layout.Text(f"{_title(one.series, one.row)}: {_told(one)}", heads, body)


def _title(series: Series, row: Row) -> str:
    return f"{table.title(series)}, size {row.size}"


def _told(one: Measured) -> str:
    mark = layout.ESTIMATE_MARK if one.estimated else ""
    energy = f", {mark}{table.with_error(one.checkpoint_j)} J" if one.checkpoint_j else ""
    parts = [f"a checkpoint takes {table.with_error(one.checkpoint_s)} s{energy}"]
    if one.restart:
        energy = "" if one.restart_j is None else f", {mark}{units.digits(one.restart_j)} J"
        parts.append(f"a restart {units.digits(one.restart.time_s.mean)} s{energy}")
    if one.power_w:
        parts.append(f"the program draws {mark}{units.digits(one.power_w)} W")
    return "; ".join(parts)


def _cells(one: Measured, found: Best) -> list[str]:
    mark = layout.ESTIMATE_MARK if one.estimated else ""
    own = mark if found.what == "energy" else ""
    value = Value(found.interval_s, uncertainty=found.error_s)
    energy = "-" if found.energy_part is None else mark + _more(found.energy_part)
    return [
        found.what,
        own + table.with_error(value),
        own + units.digits(found.young_s),
        _more(found.time_part),
        energy,
    ]


def _more(part: float) -> str:
    return f"+{units.digits(100 * part)} %"


def _time(seconds: float) -> str:
    for unit, length_s in LENGTHS_S.items():
        if seconds >= length_s:
            return f"{units.digits(seconds / length_s)} {unit}"
    return f"{units.digits(seconds)} s"


LENGTHS_S = {"y": 31_557_600.0, "d": 86_400.0, "h": 3600.0, "min": 60.0, "s": 1.0}


def notes(found: list[Measured]) -> list[str]:
    """The legend, and of what no restart is known."""
    lines = [LEGEND, *([layout.LEGEND_ESTIMATED] if any(one.estimated for one in found) else [])]
    return lines + [
        NO_RESTART.format(_title(one.series, one.row)) for one in found if not one.restart
    ]


def left_out(found: list[Measured], mtbfs_s: list[float]) -> Iterator[str]:
    """Of what there is no interval, and why."""
    for one in found:
        title = _title(one.series, one.row)
        if one.is_free:
            yield FREE.format(title)
            continue
        if one.is_by_others:
            yield BY_OTHERS.format(title)
        elif one.is_free_of_energy:
            yield FREE_OF_ENERGY.format(title)
        elif one.checkpoint_j and one.restart and one.restart_j is None:
            yield UNTOLD_RESTART.format(title)
        for mtbf_s in mtbfs_s:
            if _is_hopeless(one.costs, mtbf_s):
                yield TOO_OFTEN.format(title, _time(mtbf_s))


def records(found: list[Measured], mtbfs_s: list[float]) -> list[dict]:
    """One record a way of checkpoints, size, time between failures and what is to be least."""
    return [
        _record(one, mtbf_s, this)
        for one in found
        for mtbf_s in mtbfs_s
        for this in best(one, mtbf_s)
    ]


def columns(found: list[Measured]) -> list[str]:
    """The keys of records() also where there is none."""
    return list(_record(found[0], 0.0, Best("", 0.0, None, 0.0, 0.0, None)))


def _record(one: Measured, mtbf_s: float, this: Best) -> dict:
    return {
        **table.problem_record(one.series, one.row),
        **manifest.as_record(one.series.manifest),
        **_costs_record(one),
        "mtbf_s": mtbf_s,
        "least": this.what,
        "interval_s": this.interval_s,
        "interval_s_error": this.error_s,
        "young_s": this.young_s,
        "time_part": this.time_part,
        "energy_part": this.energy_part,
    }


def _costs_record(one: Measured) -> dict:
    record = {"estimated": one.estimated if one.checkpoint_j else None}
    for key in ("checkpoint_s", "checkpoint_j"):
        value: Value | None = getattr(one, key)
        record[key] = value.mean if value else None
        record[f"{key}_error"] = value.error if value else None
    record["restart_s"] = one.restart.time_s.mean if one.restart else None
    record["restart_j"] = one.restart_j
    record["power_w"] = one.power_w
    return record
