"""Power that is known at every moment: a trace for `replay`, and its exact integral."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

NS = 1_000_000_000
# Whole seconds long before the tests and of no meaning: the phase is known in absolute time.
EPOCH_S = 1_700_000_000


@dataclass(frozen=True)
class Waveform:
    """Periodic power: straight lines between points of (seconds, watts)."""

    name: str
    points: Sequence[tuple[float, float]]

    @property
    def period_s(self) -> float:
        return self.points[-1][0] - self.points[0][0]

    @property
    def mean_w(self) -> float:
        return self._within_j(self.period_s) / self.period_s

    @property
    def swing_w(self) -> float:
        powers_w = [power_w for _, power_w in self.points]
        return max(powers_w) - min(powers_w)

    def instrument(self, folder: Path, **keys: object) -> dict[str, object]:
        """The daemon's entry for it; writes the trace that it names."""
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)
        path = folder / f"{self.name}.csv"
        rows = "".join(f"{time_s},{power_w}\n" for time_s, power_w in self.points)
        path.write_text(f"time_s,power_w\n{rows}")
        known = {"type": "replay", "file": str(path), "epoch": EPOCH_S, "repeat": True}
        return {"name": self.name, **known, **keys}

    def energy_j(self, start_ns: int, end_ns: int) -> float:
        """Its integral between two moments of Unix time."""
        return self._since_epoch_j(end_ns) - self._since_epoch_j(start_ns)

    def since_jump_s(self, time_ns: int) -> float:
        """How long ago it jumped last; infinite where it never does."""
        into_s = (time_ns - EPOCH_S * NS) % round(self.period_s * NS) / NS
        jumps_s = [t1 for (t0, p0), (t1, p1) in zip(self.points, self.points[1:]) if t0 == t1]
        if self.points[0][1] != self.points[-1][1]:
            jumps_s.append(self.period_s)
        return min(((into_s - jump_s) % self.period_s for jump_s in jumps_s), default=math.inf)

    def _since_epoch_j(self, time_ns: int) -> float:
        cycles, rest_ns = divmod(time_ns - EPOCH_S * NS, round(self.period_s * NS))
        return cycles * self._within_j(self.period_s) + self._within_j(rest_ns / NS)

    def _within_j(self, seconds: float) -> float:
        """From the start of a period on."""
        energy_j = 0.0
        for (t0, p0), (t1, p1) in zip(self.points, self.points[1:]):
            if seconds <= t0 or t1 == t0:
                continue
            part_s = min(seconds, t1) - t0
            energy_j += part_s * (p0 + (p1 - p0) * part_s / (t1 - t0) / 2)
        return energy_j


STEADY = Waveform("steady", [(0, 100), (1000, 100)])
RAMP = Waveform("ramp", [(0, 50), (4, 250)])
SQUARE = Waveform("square", [(0, 200), (0.7, 200), (0.7, 40), (2, 40)])
