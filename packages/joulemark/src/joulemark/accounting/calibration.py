# `joulemark calibrate`: a channel beside a reference meter, from idle to full load.
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Limits of errors are those of joulemark.yaml: a channel that reads x is within relative x +
offset_w of the truth. The line METER = gain x CHANNEL + offset is that of least squares; its
errors are 95 % by Student's t, for a sweep has few steps (GUM, annex G)."""

from __future__ import annotations

import contextlib
import json
import math
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from joulemark import ending, layout, progress
from joulemark.accounting import instruments
from joulemark.errors import UsageError, UserError
from joulemark.units import UJ_PER_J

#: Student's t, two-sided 95 %, by degrees of freedom; beyond, 2 (GUM, table G.2)
STUDENT_T = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23)
LEAST_CHANGE = 0.05  # of the power, from idle to full load: less tells no gain
ENDLESS = "1000000000"  # readings of --probe, which is ended with the sweep
BUSY = "import os\nwhile os.getppid() == {parent}: pass"  # no longer than we live
MOST_GAIN_ERROR = 0.1  # less is known than what a calibration is for


@dataclass(frozen=True)
class Step:
    """The mean powers of one load, 0 to 1."""

    load: float
    channel_w: float
    meter_w: float


@dataclass(frozen=True)
class Line:
    """meter_w = gain x channel_w + offset_w, with its errors (95 %)."""

    gain: float
    gain_error: float
    offset_w: float
    offset_error_w: float
    residual_w: float  # the largest


@dataclass(frozen=True)
class Budget:
    """What an `error:` of joulemark.yaml says."""

    relative: float
    offset_w: float


def fit(steps: Sequence[Step]) -> Line:
    """By least squares; three steps at least. UserError: the channel's power hardly changed."""
    n = len(steps)
    mean_x = math.fsum(step.channel_w for step in steps) / n
    mean_y = math.fsum(step.meter_w for step in steps) / n
    change_w = max(s.channel_w for s in steps) - min(s.channel_w for s in steps)
    if change_w <= LEAST_CHANGE * abs(mean_x):
        raise UserError(
            f"CHANNEL changed by {change_w:.3g} W of {mean_x:.3g} W over all loads, too little to "
            "tell its gain: give a --load that changes it"
        )
    spread = math.fsum((step.channel_w - mean_x) ** 2 for step in steps)
    gain = math.fsum((s.channel_w - mean_x) * (s.meter_w - mean_y) for s in steps) / spread
    offset_w = mean_y - gain * mean_x
    residuals = [step.meter_w - gain * step.channel_w - offset_w for step in steps]
    freedom = n - 2
    scatter_w = math.sqrt(math.fsum(r * r for r in residuals) / freedom)
    t = STUDENT_T[freedom - 1] if freedom <= len(STUDENT_T) else 2.0
    return Line(
        gain=gain,
        gain_error=t * scatter_w / math.sqrt(spread),
        offset_w=offset_w,
        offset_error_w=t * scatter_w * math.sqrt(1 / n + mean_x**2 / spread),
        residual_w=max(map(abs, residuals)),
    )


def budget_of(line: Line, meter: Budget) -> Budget:
    """The limits that the channel keeps as it is, the meter's own and the scatter among them."""
    return Budget(
        relative=abs(line.gain - 1) + line.gain_error + meter.relative,
        offset_w=abs(line.offset_w) + line.offset_error_w + line.residual_w + meter.offset_w,
    )


# ---- what is read


def mean_w(
    readings: Sequence[tuple[float, float]], counts: bool, wrap_j: float, begin: float, end: float
) -> float | None:
    """Of (time, W or J) between two times; None: fewer than two readings are there."""
    within = [one for one in readings if begin <= one[0] <= end]
    pairs = list(zip(within, within[1:]))
    if not pairs or within[-1][0] <= within[0][0]:
        return None
    if counts:
        energy_j = math.fsum(b[1] - a[1] + (wrap_j if b[1] < a[1] else 0) for a, b in pairs)
    else:
        energy_j = math.fsum((a[1] + b[1]) / 2 * (b[0] - a[0]) for a, b in pairs)
    return energy_j / (within[-1][0] - within[0][0])


class Side:
    """CHANNEL or METER: one channel, or several that are added up."""

    def __init__(self, name: str, text: str, described: Sequence[dict]) -> None:
        by_name = {f"{one['instrument']}/{one['channel']}": one for one in described}
        self.parts = text.split("+")
        for part in self.parts:
            if part not in by_name:
                all_of_them = ", ".join(by_name) or "none"
                raise UsageError(f"{name}: '{part}' is no channel; there are {all_of_them}")
        self._described = {part: by_name[part] for part in self.parts}
        if len(self._described) < len(self.parts):
            raise UsageError(f"{name}: '{text}' has a channel twice")

    def budget(self) -> Budget:
        """What the configuration says of its error, in the worst case of all its channels."""
        errors = [one["error"] for one in self._described.values()]
        offset_w = math.fsum(error["offset_w"] + error["resolution_w"] / 2 for error in errors)
        return Budget(max(error["relative"] for error in errors), offset_w)

    def mean_w(self, seen: dict[str, list], begin: float, end: float) -> float:
        """The sum of its channels' means. UserError: one of them was not read twice."""
        total_w = 0.0
        for part, one in self._described.items():
            counts, wrap_j = one["method"] == "counter", (one["wrap_uj"] + 1) / UJ_PER_J
            power_w = mean_w(seen.get(part, ()), counts, wrap_j, begin, end)
            if power_w is None:
                raise UserError(
                    f"{part}: no two readings in {end - begin:g} s of a load; it is read each "
                    f"{one['period_s']:g} s: give --seconds more, or see `joulemarkd --probe`"
                )
            total_w += power_w
        return total_w


@contextlib.contextmanager
def probing(words: Sequence[str]) -> Iterator[dict[str, list[tuple[float, float]]]]:
    """All readings of `joulemarkd --probe` as they come: (time, value) by INSTRUMENT/CHANNEL."""
    seen: dict[str, list[tuple[float, float]]] = {}
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def take() -> None:
        for line in process.stdout:
            with contextlib.suppress(ValueError, KeyError):
                one = json.loads(line)
                if one["fault"] is None:
                    name = f"{one['instrument']}/{one['channel']}"
                    seen.setdefault(name, []).append((one["time"], one["value"]))

    reader = threading.Thread(target=take, daemon=True)
    reader.start()
    try:
        yield seen
    finally:
        process.kill()
        process.wait()
        reader.join()


@contextlib.contextmanager
def loaded(share: float, command: str | None) -> Iterator[None]:
    """The machine with so much of its CPUs busy, or as the command does it. UserError: that has
    ended by itself."""
    if command is None:
        cpus = len(os.sched_getaffinity(0))
        words, many = [sys.executable, "-c", BUSY.format(parent=os.getpid())], round(share * cpus)
    else:
        words, many = ["sh", "-c", command], 1
    options = {"env": {**os.environ, "JM_LOAD": f"{share:.6g}"}, "stdout": subprocess.DEVNULL}
    begun = []
    try:
        for _ in range(many):
            begun.append(subprocess.Popen(words, start_new_session=True, **options))
        yield
        for one in begun:
            if one.poll() is not None:
                raise UserError(
                    f"--load '{command}': ended with exit status {one.returncode} before its step "
                    "did: it must go on until it is ended"
                )
    finally:
        for one in begun:
            ending.end_group(one)


def sweep(options, channel: Side, meter: Side) -> list[Step]:
    """Both sides' means at each load, from idle to full."""
    steps: list[Step] = []
    words = instruments.command(options.daemon, options.node, "--probe", ENDLESS)
    with probing(words) as seen:
        for i in range(options.loads):
            share = i / (options.loads - 1)
            with progress.shown(f"load {share:.0%}"), loaded(share, options.load):
                time.sleep(options.settle)
                begin = time.time()
                time.sleep(options.seconds)
                end = time.time()
            means = (side.mean_w(seen, begin, end) for side in (channel, meter))
            steps.append(Step(share, *means))
    return steps


# ---- what is printed


def run(options) -> int:
    """Prints what each load drew, the line, and the budget."""
    described = instruments.describe(options.daemon, options.node)
    channel = Side("CHANNEL", options.channel, described)
    meter = Side("--against", options.against, described)
    if set(channel.parts) & set(meter.parts):
        raise UsageError(f"--against: '{options.against}' is of CHANNEL itself")
    with ending.leaving():
        steps = sweep(options, channel, meter)  # no load is left
    line = fit(steps)
    if line.gain_error > MOST_GAIN_ERROR:
        found = ", ".join(f"{step.channel_w:.1f} and {step.meter_w:.1f} W" for step in steps)
        raise UserError(
            f"the gain is {line.gain:.3g} +- {line.gain_error:.2g}, no better known: is the "
            f"machine used by others, or --settle too short? CHANNEL and METER were {found}"
        )
    budget = budget_of(line, meter.budget())
    rows = [
        {
            "channel": options.channel,
            "meter": options.against,
            **asdict(step),
            "difference_w": step.meter_w - step.channel_w,
            **asdict(line),
            **{f"budget_{name}": value for name, value in asdict(budget).items()},
        }
        for step in steps
    ]
    layout.show(options, rows, [as_text(options, steps)], notes(channel, line, budget))
    return 0


def as_text(options, steps: Sequence[Step]) -> layout.Text:
    """A line a load."""
    heads = ["Load", "CHANNEL [W]", "METER [W]", "Difference [W]"]
    body = [
        (
            "value",
            [
                f"{step.load:.0%}",
                f"{step.channel_w:.2f}",
                f"{step.meter_w:.2f}",
                f"{step.meter_w - step.channel_w:+.2f}",
            ],
        )
        for step in steps
    ]
    return layout.Text(f"{options.channel} beside {options.against}", heads, body)


def notes(channel: Side, line: Line, budget: Budget) -> list[str]:
    """The line, and what to write where."""
    each = budget.offset_w / len(channel.parts)
    named = ", ".join(channel.parts)
    return [
        f"METER = {line.gain:.4f} (+- {line.gain_error:.4f}) x CHANNEL "
        f"{line.offset_w:+.2f} W (+- {line.offset_error_w:.2f} W), 95 %; "
        f"no load is off this line by more than {line.residual_w:.2f} W",
        f"In joulemark.yaml, for {named}: "
        f"error: {{relative: {budget.relative:.4f}, offset_w: {each:.2f}}}",
    ]
