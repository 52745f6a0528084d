# Whether two values are told apart, by their ratio and its error; in words.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

from joulemark.bench.stats import Value

#: of what gets a verdict: the words for less of it, and for more
WORDS = {"time_s": ("faster", "slower"), "energy_j": ("thriftier", "costlier")}
ALIKE, FAILED = "not told apart", "failed"
WORSE = (FAILED, *(more for _, more in WORDS.values()))


def of_ratio(ratio: Value, key: str, threshold: float) -> str:
    """A word where the ratio is less or more than 1 beyond its error and beyond the threshold (a
    part); the opposite one whichever side is the divisor."""
    if ratio.error is None:
        return ALIKE
    factor = max(ratio.mean, 1 / ratio.mean)
    relative_error = ratio.error / ratio.mean
    if factor * (1 - relative_error) <= 1 or factor - 1 <= threshold:
        return ALIKE
    less, more = WORDS[key]
    return less if ratio.mean < 1 else more
