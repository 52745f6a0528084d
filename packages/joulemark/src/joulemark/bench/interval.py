# `joulemark report interval`: how often a program that may fail should write a checkpoint.
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Work comes in pieces of one interval, each with a checkpoint at its end; failures come at any
moment alike, one in `mtbf_s` of running, and throw the program back to the last checkpoint, which
a restart reads. Expected time: Daly, Future Generation Computer Systems 22 (2006) 303-312, of
which Young, CACM 17 (1974) 530, is the limit of rare failures. Energy likewise: Meneses, Sarood,
Kale, SBAC-PAD 2012; Aupy et al., arXiv:1302.3720."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from joulemark import layout, units
from joulemark.bench import stats, table
from joulemark.bench.cooked import Measurement
from joulemark.bench.stats import Row, Series, Value
from joulemark.errors import UsageError

BENCHMARK = "jm-io-checkpoint"
WITHOUT, CHECKPOINT, RESTART = "steps", "-checkpoint", "-restart"
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
    restart: Row | None
    power_w: Value | None
    estimated: bool

    @property
    def costs(self) -> Costs:
        """Without errors."""
        read = self.restart
        knows = bool(self.checkpoint_j and self.power_w and (read is None or read.energy_j))
        return Costs(
            Phase(self.checkpoint_s.mean, self.checkpoint_j.mean if knows else None),
            Phase(read.time_s.mean, read.energy_j.mean if knows else None)
            if read
            else Phase(0.0, 0.0),
            self.power_w.mean if knows else None,
        )


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
    if costs.checkpoint.time_s <= 0 or _is_hopeless(costs, mtbf_s):
        return
    knows = costs.power_w is not None and costs.checkpoint.energy_j > 0
    found = [("time", costs.time_s, one.checkpoint_s, costs.checkpoint.time_s)]
    if knows:
        alike_s = costs.checkpoint.energy_j / costs.power_w
        found.append(("energy", costs.energy_j, one.checkpoint_j, alike_s))
    for what, of, price, price_s in found:
        interval_s = best_s(costs, mtbf_s, of)
        part = None if price.error is None else price.error / price.mean / 2  # of a square root
        time_part = costs.time_s(interval_s, mtbf_s) / interval_s - 1
        energy_part = None
        if knows:
            work_j = costs.power_w * interval_s
            energy_part = costs.energy_j(interval_s, mtbf_s) / work_j - 1
        error_s = None if part is None else part * interval_s
        yield Best(what, interval_s, error_s, young_s(price_s, mtbf_s), time_part, energy_part)


def _is_hopeless(costs: Costs, mtbf_s: float) -> bool:
    return max(costs.checkpoint.time_s, costs.restart.time_s) > mtbf_s


def find(measured: list[Measurement]) -> list[Measured]:
    """Each series of checkpoints that has steps without them beside it, size by size."""
    every = stats.series_of([one for one in measured if one.benchmark == BENCHMARK])
    without = {_alike(one): one for one in every if one.kernel == WITHOUT}
    restarts = {(_alike(one), one.kernel): one for one in every if one.kernel.endswith(RESTART)}
    found = []
    for one in every:
        way, ending, _ = one.kernel.partition(CHECKPOINT)
        steps = _verified(without.get(_alike(one)))
        reads = _verified(restarts.get((_alike(one), way + RESTART)))
        if ending:
            found += [
                _measured(one, row, steps[size], reads.get(size))
                for size, row in _verified(one).items()
                if size in steps
            ]
    if not found:
        raise UsageError(
            f"--from: no right result of {BENCHMARK} with and without checkpoints: run "
            "`jm-io checkpoint --folder FOLDER`, or job-templates/jm-io.sbatch"
        )
    return found


def _alike(series: Series) -> tuple:
    keys = ("variant", "threads", "ranks", "nodes", "target", "cpu", "device", "manifest")
    return tuple(getattr(series, key) for key in keys)


def _verified(series: Series | None) -> dict[int, Row]:
    return {row.size: row for row in series.rows if row.verified} if series else {}


def _measured(series: Series, row: Row, steps: Row, restart: Row | None) -> Measured:
    count = _checkpoints(series)
    is_same = stats.is_same_instrument(steps, row)
    knows = bool(row.energy_j and steps.energy_j) and not stats.is_other_instrument(steps, row)
    energy_j = None
    if knows:
        energy_j = _difference(row.energy_j, steps.energy_j, count)
        longer_j = steps.power_w.mean * (row.time_s.mean - steps.time_s.mean)
        parts = [one.energy_j.part("uncertainty") for one in (row, steps)]
        if None not in parts:
            # A wrong gain errs by the difference alone, a wrong offset by the time.
            apart = math.hypot(row.energy_j.uncertainty, steps.energy_j.uncertainty)
            most_j = max(abs(row.energy_j.mean - steps.energy_j.mean), abs(longer_j))
            energy_j = Value(
                energy_j.mean,
                uncertainty=(max(parts) * most_j if is_same else apart) / count,
                interval=energy_j.interval,
            )
    return Measured(
        series,
        row,
        _difference(row.time_s, steps.time_s, count),
        energy_j,
        restart,
        steps.power_w if knows else None,
        row.estimated or steps.estimated,
    )


def _checkpoints(series: Series) -> int:
    """Of an iteration."""
    words = (series.manifest.options if series.manifest else "").split()
    options = dict(word.split("=", 1) for word in words)
    try:
        return int(options["steps"]) // int(options["every"])
    except (KeyError, ValueError, ZeroDivisionError):
        raise UsageError(
            f"--from: {table.title(series)}: its lines have no whole option_steps and "
            "option_every: measure it by this release's jm-io"
        ) from None


def _difference(one: Value, other: Value, count: int) -> Value:
    """What one takes more than the other, by count; their scatters have nothing in common."""
    interval = None
    if None not in (one.interval, other.interval):
        interval = math.hypot(one.interval, other.interval) / count
    return Value((one.mean - other.mean) / count, interval=interval)


# -- tables and records --------------------------------------------------------------------------

LEGEND = (
    "An interval is work between two checkpoints; +: what it takes more than the work alone, by "
    "checkpoints, restarts and what failures destroy. ±: at 95 %, by that of the checkpoint's "
    "cost. Young: sqrt(2 C M) of a checkpoint's time C, of the energy by the program's power; "
    "M: one failure in so long, of all nodes of the job."
)
NO_RESTART = "Of {}: no restart was measured, and is taken for none."
TOO_OFTEN = "Of {}: with one failure in {} few checkpoints or restarts would end: no interval."
FREE = "Of {}: a checkpoint's cost is within the scatter, or below none: it is in no interval."


def as_text(one: Measured, mtbfs_s: list[float]) -> layout.Text:
    """Two lines a time between failures: for the least time, for the least energy."""
    heads = ["M", "least", "interval [s]", "Young [s]", "time", "energy"]
    body = [
        ("value", [_time(mtbf_s), *_cells(one, found)])
        for mtbf_s in mtbfs_s
        for found in best(one, mtbf_s)
    ]
    return layout.Text(f"{_title(one)}: {_told(one)}", heads, body)


def _title(one: Measured) -> str:
    return f"{table.title(one.series)}, size {one.row.size}"


def _told(one: Measured) -> str:
    mark = layout.ESTIMATE_MARK if one.estimated else ""
    energy = f", {mark}{table.with_error(one.checkpoint_j)} J" if one.checkpoint_j else ""
    parts = [f"a checkpoint takes {table.with_error(one.checkpoint_s)} s{energy}"]
    if one.restart:
        energy_j = one.restart.energy_j
        energy = f", {mark}{units.digits(energy_j.mean)} J" if energy_j else ""
        parts.append(f"a restart {units.digits(one.restart.time_s.mean)} s{energy}")
    if one.power_w:
        parts.append(f"the program draws {mark}{units.digits(one.power_w.mean)} W")
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


def notes(found: list[Measured], mtbfs_s: list[float]) -> list[str]:
    """The legend, and of what no interval or no restart is known."""
    lines = [LEGEND, *([layout.LEGEND_ESTIMATED] if any(one.estimated for one in found) else [])]
    lines += [NO_RESTART.format(_title(one)) for one in found if not one.restart]
    lines += [FREE.format(_title(one)) for one in found if _is_free(one)]
    return lines + [
        TOO_OFTEN.format(_title(one), _time(mtbf_s))
        for one in found
        for mtbf_s in mtbfs_s
        if _is_hopeless(one.costs, mtbf_s)
    ]


def _is_free(one: Measured) -> bool:
    return one.checkpoint_s.mean <= (one.checkpoint_s.interval or 0.0)


def records(found: list[Measured], mtbfs_s: list[float]) -> list[dict]:
    """One record a way of checkpoints, size, time between failures and what is to be least."""
    return [
        {
            **table.problem_record(one.series, one.row),
            **_costs_record(one),
            "mtbf_s": mtbf_s,
            "least": this.what,
            "interval_s": this.interval_s,
            "interval_s_error": this.error_s,
            "young_s": this.young_s,
            "time_part": this.time_part,
            "energy_part": this.energy_part,
        }
        for one in found
        for mtbf_s in mtbfs_s
        for this in best(one, mtbf_s)
    ]


def _costs_record(one: Measured) -> dict:
    record = {"estimated": one.estimated if one.checkpoint_j else None}
    for key in ("checkpoint_s", "checkpoint_j"):
        value: Value | None = getattr(one, key)
        record[key] = value.mean if value else None
        record[f"{key}_error"] = value.error if value else None
    costs = one.costs
    record["restart_s"] = costs.restart.time_s if one.restart else None
    record["restart_j"] = costs.restart.energy_j if one.restart else None
    record["power_w"] = costs.power_w
    return record
