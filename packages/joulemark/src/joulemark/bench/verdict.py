# Whether two values are told apart, by their ratio and its error; in words.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import math
from collections.abc import Iterable

from joulemark.bench import stats
from joulemark.bench.stats import ALPHA, Value

#: of what gets a verdict: the words for less of it, and for more
WORDS = {"time_s": ("faster", "slower"), "energy_j": ("thriftier", "costlier")}
ALIKE, FAILED = "not told apart", "failed"
OTHERS = f"by another instrument: {ALIKE}"
WORSE = (FAILED, *(more for _, more in WORDS.values()))


def of_ratio(ratio: Value, key: str, threshold: float, level: float = ALPHA) -> str:
    """A word where so great a difference is by chance less often than the level says, and beyond
    the threshold (a part); the opposite one whichever side is the divisor."""
    if chance(ratio) > level or max(ratio.mean, 1 / ratio.mean) - 1 <= threshold:
        return ALIKE
    less, more = WORDS[key]
    return less if ratio.mean < 1 else more


def chance(ratio: Value) -> float:
    """How often a ratio of 1 is measured to be as far off, or farther; of what is within its 95 %
    interval 1, for nobody asks."""
    off = 1 - min(ratio.mean, 1 / ratio.mean)
    if ratio.error is None or off <= ratio.error / ratio.mean:
        return 1.0
    parts = [ratio.standard_error] if ratio.interval else []
    if ratio.uncertainty:
        parts.append((ratio.uncertainty / ratio.mean / stats.student_t(math.inf), math.inf))
    error, degrees = stats.combined(*parts)
    return stats.beyond(off / error, degrees) if error else 0.0


def level(tested: Iterable[Value | None]) -> float:
    """At which each of a family of ratios is judged, so that where nothing changed 95 families of
    100 have no verdict at all (Holm 1979, Scandinavian Journal of Statistics 6, 65-70)."""
    chances = sorted(chance(ratio) for ratio in tested if ratio)
    left = len(chances)
    for one in chances:
        if one > ALPHA / left:
            break
        left -= 1
    return ALPHA / max(left, 1)


def told(tested: Iterable[Value | None], threshold: float) -> str:
    """How they were judged."""
    count = sum(ratio is not None for ratio in tested)
    if not count:
        return "No ratio was tested: that takes several runs on each side."
    were = "ratios were" if count > 1 else "ratio was"
    return (
        f"{count} {were} tested together by Holm's method, so that where nothing changed at most "
        "one call of 20 tells any apart: the more there are, the farther beyond its ± one must "
        f"be. Differences of {100 * threshold:g} % or less do not count (--threshold)."
    )
