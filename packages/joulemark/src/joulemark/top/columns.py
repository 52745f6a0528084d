# How live figures are printed: watts, joules of one prefix a column, clocks.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import time
from dataclasses import dataclass

from joulemark import units

# Who has not been heard for so many rounds, and so long, has no power now.
SILENT_ROUNDS, SILENT_LEAST_S = 3, 5.0


def silent_s(every_s: float) -> float:
    """Who has not been heard for longer is silent."""
    return max(SILENT_ROUNDS * every_s, SILENT_LEAST_S)


def watts(value: float | None, mark: str = "", error: float = 0.0) -> str:
    """`-`: not known. error: of an estimate, which gets no digit that it leaves unknown."""
    return "-" if value is None else mark + units.digits(value, error)


@dataclass
class Joules:
    """A column of energies; a tenth of its unit moves while one looks."""

    values: list[float]

    def __post_init__(self):
        most = max(map(abs, self.values), default=0.0)
        self._exponent = next((e for e in (0, 3, 6) if most < 1e5 * 10**e), 9)

    def head(self, text: str) -> str:
        """`[J]` becomes `[kJ]`."""
        return text.replace("[J]", f"[{units.prefix(self._exponent)}J]")

    def cell(self, value_j: float, mark: str = "", error_j: float = 0.0) -> str:
        """With one decimal; error_j: of an estimate, as watts() has it."""
        scale = 10**self._exponent
        return mark + units.fixed(value_j / scale, 1, error_j / scale)

    def error(self, value_j: float, error_j: float = 0.0) -> str:
        """A small one says its unit."""
        return units.cell(value_j, self._exponent, "J", error_j)


def elapsed(seconds: float) -> str:
    """As Slurm's: 1-02:03:04."""
    days, rest = divmod(int(seconds), 86400)
    clock_text = f"{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"
    return f"{days}-{clock_text}" if days else clock_text


def clock(age_s: float = 0.0) -> str:
    """Now, or so long ago."""
    return time.strftime("%H:%M:%S", time.localtime(time.time() - age_s))
