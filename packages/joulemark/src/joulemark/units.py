# Units of the books; numbers as PRACE's tables print them: three digits, one prefix a column; far
# cells say their own unit.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import math
from collections.abc import Iterable

NS_PER_S = 1_000_000_000
UJ_PER_J = 1_000_000
PREFIXES = {-15: "f", -12: "p", -9: "n", -6: "μ", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T"}
#: what sizes of bytes end in, as users write them
BINARY = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
# Within these bounds a number reads well under its column's prefix, as in PRACE's own tables.
LEAST, FIVE_DIGITS, MOST = 0.1, 1e4, 1e7
MANY = 300  # decimals: a number of no error has all


def known_sum(values: Iterable):
    """Of those that are known; None: none is. The order of floats changes nothing."""
    known = [value for value in values if value is not None]
    return sum(sorted(known)) if known else None


def prefix(exponent: int) -> str:
    """The SI prefix of a power of ten."""
    return PREFIXES[exponent]


def best_exponent(values: list[float]) -> int:
    """The prefix with which the fewest cells are overridden or longer than four digits."""
    known = [value for value in values if value]
    return min(sorted(PREFIXES, key=abs), key=lambda exponent: _awkward_cells(known, exponent))


def _awkward_cells(values: list[float], exponent: int) -> float:
    scaled = [abs(value) / 10.0**exponent for value in values]
    return sum(not LEAST <= value < FIVE_DIGITS for value in scaled) + sum(
        not 1 <= value < 1000 for value in scaled
    ) / (1 + len(scaled))


def cell(value: float | None, exponent: int, unit: str, error: float = 0.0) -> str:
    """A number under its column's prefix; a far one says its unit: `37 mJ`; `-` is not known.

    error: of an estimate, which gets no digit that it leaves unknown.
    """
    if value is None:
        return "-"
    own = exponent_of(value, exponent)
    scaled, error = value / 10.0**own, error / 10.0**own
    if own == exponent:
        return digits(scaled, error)
    return f"{_three(round(scaled, decimals(scaled, error)))} {prefix(own)}{unit}"


def exponent_of(value: float, exponent: int) -> int:
    """Its column's; of a far one its own."""
    is_near = value == 0 or LEAST <= value / 10.0**exponent < MOST
    return exponent if is_near else _own_exponent(value)


def rough(value: float, error: float, unit: str) -> str:
    """With no digits that its error leaves unknown: `7 kJ` of 7023 J ± 3200 J."""
    own = _own_exponent(value)
    if 0 < error < value:
        value = round(value, decimals(value, error) - 1)
    return f"{_three(value / 10.0**own)} {prefix(own)}{unit}"


def digits(value: float, error: float = 0.0) -> str:
    """4337, 468, 54.0, 4.67, 0.30, 0.0021: PRACE's way to print a number, but for what it would
    print as 0.00; error: as cell() has it."""
    if 0 < abs(value) < LEAST:
        return f"{value:.{decimals(value, LEAST)}f}"
    known = decimals(value, error)
    for bound, places in ((10, 2), (100, 1)):
        text = f"{value:.{max(0, min(places, known))}f}"
        if float(text) < bound:
            return text
    return f"{round(value, min(0, known)):.0f}"


def fixed(value: float, places: int, error: float = 0.0) -> str:
    """With so many decimals; error: as cell() has it."""
    known = min(places, decimals(value, error))
    return f"{round(value, known):.{max(0, known)}f}"


def decimals(value: float, error: float) -> int:
    """Up to the second digit of its error, or of itself where that is less: -1 of 442 ± 153."""
    least = min(abs(value), error)
    return 1 - math.floor(math.log10(float(f"{least:.1e}"))) if least > 0 else MANY


def _three(value: float) -> str:
    """Three significant digits, without zeros that say nothing: 8.31, 48.1, 37."""
    return f"{float(f'{value:.3g}'):g}"


def _own_exponent(value: float) -> int:
    rounded = float(f"{abs(value):.3g}")
    exponent = 3 * math.floor(math.log10(rounded) / 3 + 1e-9)
    return min(max(exponent, min(PREFIXES)), max(PREFIXES))


def percent(relative: float | None) -> str:
    """`± 2.95%`, or nothing if it is not known."""
    return "" if relative is None else f"± {relative * 100:.2f}%"
