# `joulemark plan`: how long a run must be for its energy's error bar to be as narrow as wanted.
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The ledger's error model for a job alone on its node, with the ends at their worst.

Limits of errors are those of joulemark.yaml: rectangular, so that one of +-a has a standard
deviation of a / sqrt(3). Error bars are k=2. An end that falls between two readings may be off by
the whole step there: the limit itself counts, as in CoolMUC's rule (PRACE D9.3.3, 8.2.4): with a
sample a minute, 2 x 60 s / 5 % = 2400 s.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass

from joulemark import config, layout, output
from joulemark.accounting import instruments
from joulemark.errors import UsageError
from joulemark.units import UJ_PER_J

WHY = {
    "ends": "its ends fall between two readings",
    "readings": "what the power does between two readings, or below a reading's step, is not seen",
    "stamps": "the time of a reading, or a counter's step, is not known any better",
}


@dataclass(frozen=True)
class Channel:
    """An outermost channel; of the node's power each has an equal part."""

    name: str
    counts: bool  # energy; else power
    prompt: bool  # read at every tick; a counter at a job's begin and end, too
    period_s: float
    relative: float
    offset_w: float
    resolution_w: float
    resolution_uj: float
    jitter_s: float

    def reads(self) -> str:
        """What a reading of it is of."""
        return "energy" if self.counts else "power"

    def own_w(self, power_w: float) -> float:
        """The limit of its systematic error."""
        return self.relative * power_w + self.offset_w

    def ends_j(self, step_w: float) -> float:
        """The limit at both ends: each a whole reading off, but for a counter read there."""
        return 0.0 if self.prompt and self.counts else 2 * step_w * self.period_s

    def stamps_j2(self, peak_w: float) -> float:
        """Variance of both ends' time stamps and steps; the ledger knows the power there by stamps
        too, where it is a counter's."""
        step_j = self.resolution_uj / UJ_PER_J if self.counts else 0.0
        if self.counts:
            peak_w *= 1 + 2 * self.jitter_s / self.period_s
        return 2 * ((self.jitter_s * peak_w) ** 2 / 3 + step_j**2 / 12)

    def readings_w2s(self, swing_w: float) -> float:
        """Variance a second of a run: a load faster than the readings, and their resolution."""
        if self.counts:
            return 0.0
        return self.period_s * ((swing_w / 2) ** 2 + self.resolution_w**2 / 12)


@dataclass(frozen=True)
class Load:
    """A run: its mean power, the power before and after it, and how it swings meanwhile."""

    power_w: float
    idle_w: float
    swing_w: float

    def peak_w(self) -> float:
        """The most that it draws."""
        return self.power_w + self.swing_w / 2

    def step_w(self) -> float:
        """The change at either end, at worst."""
        return max(abs(self.power_w + side * self.swing_w / 2 - self.idle_w) for side in (-1, 1))


@dataclass(frozen=True)
class Parts:
    """Half-widths (k=2) in parts of the energy."""

    instrument: float
    ends: float
    readings: float
    stamps: float

    def total(self) -> float:
        """All together."""
        return math.hypot(self.instrument, self.ends, self.readings, self.stamps)

    def limit(self) -> str:
        """The largest of those that a longer run makes smaller."""
        return max(WHY, key=lambda name: getattr(self, name))


@dataclass(frozen=True)
class Plan:
    """run_s None: no run is long enough; parts are then those of a run without end."""

    accuracy: float
    load: Load
    channels: list[Channel]
    run_s: float | None
    parts: Parts


def parts_of(channels: list[Channel], load: Load, run_s: float) -> Parts:
    """Systematic parts add up over the channels, and so do the ends; others go by squares."""
    n = len(channels)
    power_w, step_w, swing_w = load.power_w / n, load.step_w() / n, load.swing_w / n
    stamps_j2 = sum(channel.stamps_j2(load.peak_w() / n) for channel in channels)
    readings_w2s = sum(channel.readings_w2s(swing_w) for channel in channels)
    energy_j = load.power_w * run_s
    return Parts(
        instrument=2 / math.sqrt(3) * sum(c.own_w(power_w) for c in channels) / load.power_w,
        ends=sum(channel.ends_j(step_w) for channel in channels) / energy_j,
        readings=2 * math.sqrt(readings_w2s / run_s) / load.power_w,
        stamps=2 * math.sqrt(stamps_j2) / energy_j,
    )


def plan(channels: list[Channel], load: Load, accuracy: float) -> Plan:
    """The shortest run that is as accurate, at least two readings long.

    With the parts of a run of one second, (accuracy^2 - instrument^2) T^2 - readings^2 T -
    (ends^2 + stamps^2) = 0.
    """
    second = parts_of(channels, load, 1.0)
    room = accuracy**2 - second.instrument**2
    if room <= 0:
        return Plan(accuracy, load, channels, None, parts_of(channels, load, math.inf))
    ends2 = second.ends**2 + second.stamps**2
    run_s = (second.readings**2 + math.sqrt(second.readings**4 + 4 * room * ends2)) / (2 * room)
    run_s = max(run_s, *(2 * channel.period_s for channel in channels))
    return Plan(accuracy, load, channels, run_s, parts_of(channels, load, run_s))


# ---- what is configured


def channel_of(described: dict) -> Channel:
    """A line of `joulemarkd --describe`."""
    return Channel(
        name=f"{described['instrument']}/{described['channel']}",
        counts=described["method"] == "counter",
        prompt=described["prompt"],
        period_s=described["period_s"],
        **described["error"],
    )


def describe(daemon: str | None, node: str | None) -> list[dict]:
    """The outermost channels of the configuration."""
    found = [one for one in instruments.describe(daemon, node) if one["outermost"]]
    if not found:
        raise UsageError(f"{config.find()}: instruments: none can be used here; see above")
    return found


def load_of(
    described: list[dict], power_w: float | None, idle_w: float | None, swing_w: float
) -> Load:
    """What is asked for, and for the rest what is configured."""
    if power_w is None:
        watts = [one["full_w"] for one in described]
        if None in watts:
            raise UsageError("--power: how many watts will the run draw? full_w is not configured")
        power_w = math.fsum(watts)
    if idle_w is None:
        idle_w = math.fsum(one["idle_w"] or 0.0 for one in described)
    for name, value in (("--power", power_w), ("--idle", idle_w), ("--swing", swing_w)):
        if not (math.isfinite(value) and value >= 0) or (name == "--power" and value == 0):
            raise UsageError(f"{name}: '{value:g}' is not a number of watts")
    return Load(power_w, idle_w, swing_w)


def accuracy_of(text: str) -> float:
    """`2%` or `0.02`."""
    number, scale = (text.rstrip(" %"), 100) if "%" in text else (text, 1)
    try:
        value = float(number) / scale
    except ValueError:
        value = math.nan
    if not 0 < value < 1:
        raise UsageError(f"--accuracy: '{text}' is not between 0 and 1: write 2% or 0.02")
    return value


# ---- what is printed


def run(options) -> int:
    """Prints the plan; 0: there is such a run."""
    accuracy = accuracy_of(options.accuracy)
    described = describe(options.daemon, options.node)
    load = load_of(described, options.power, options.idle, options.swing or 0.0)
    made = plan([channel_of(one) for one in described], load, accuracy)
    if options.format == "json":
        output.write_text(as_json(made), options.out)
    else:
        layout.show(options, as_rows(made), [as_text(made)], [answer(made)])
    return 0 if made.run_s is not None else 1


def as_json(made: Plan) -> str:
    """One object; seconds, watts, and errors in parts of the energy (k=2)."""
    record = {
        **_whole(made),
        "half_width": made.parts.total(),
        "parts": asdict(made.parts),
        "channels": [asdict(channel) for channel in made.channels],
    }
    return json.dumps(record, indent=2) + "\n"


def _whole(made: Plan) -> dict:
    return {
        "accuracy": made.accuracy,
        **asdict(made.load),
        "reachable": made.run_s is not None,
        "run_s": made.run_s,
        "limit": "instrument" if made.run_s is None else made.parts.limit(),
    }


ALL = "all together"


def as_rows(made: Plan) -> list[dict]:
    """One a channel, and of several one of all together: the question, the answer, its errors."""
    rows = [
        (channel.name, channel.reads(), channel.period_s, _parts_of(channel, made))
        for channel in made.channels
    ]
    if len(rows) > 1:
        rows.append((ALL, None, None, made.parts))
    return [
        {
            **_whole(made),
            **{"channel": name, "reads": reads, "period_s": period_s},
            **asdict(parts),
            "half_width": parts.total(),
        }
        for name, reads, period_s, parts in rows
    ]


def as_text(made: Plan) -> layout.Text:
    """A table, a line a channel."""
    load = made.load
    title = (
        f"± {_percent(made.accuracy)} (k=2) at {load.power_w:g} W, "
        f"from {load.idle_w:g} W idle, swinging by {load.swing_w:g} W"
    )
    heads = ["Channel", "Reads", "Every [s]", "Instrument", "Ends", "Readings", "Stamps", "All"]
    body = [("value", _row(channel, made)) for channel in made.channels]
    if len(body) > 1:
        body.append(("value", [ALL, "", "", *_cells(made.parts)]))
    return layout.Text(title, heads, body)


def _parts_of(channel: Channel, made: Plan) -> Parts:
    n = len(made.channels)
    load = Load(*(watts / n for watts in asdict(made.load).values()))
    return parts_of([channel], load, made.run_s or math.inf)


def _row(channel: Channel, made: Plan) -> list[str]:
    cells = _cells(_parts_of(channel, made))
    return [channel.name, channel.reads(), f"{channel.period_s:g}", *cells]


def _cells(parts: Parts) -> list[str]:
    return [*(_percent(value) for value in asdict(parts).values()), _percent(parts.total())]


def answer(made: Plan) -> str:
    """How long, or why no run is long enough."""
    if made.run_s is None:
        worst = max(made.channels, key=lambda c: c.own_w(made.load.power_w / len(made.channels)))
        return (
            f"It cannot be reached: {worst.name}'s own error, {_own(worst)}, makes "
            f"± {_percent(made.parts.instrument)} (k=2) of any run, however long. "
            "Use a better instrument, or narrow its `error` by what a calibration says."
        )
    return (
        f"A run must take {math.ceil(made.run_s):d} s{_clock(made.run_s)}: "
        f"{WHY[made.parts.limit()]}."
    )


def _own(channel: Channel) -> str:
    stated = [f"{_percent(channel.relative)} of the reading"] if channel.relative else []
    return " and ".join([*stated, *([f"{channel.offset_w:g} W"] if channel.offset_w else [])])


def _clock(seconds: float) -> str:
    minutes, rest = divmod(math.ceil(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f" ({hours}:{minutes:02}:{rest:02} h)"
    return f" ({minutes}:{rest:02} min)" if minutes else ""


def _percent(part: float) -> str:
    return f"{float(f'{100 * part:.3g}'):g}%"
