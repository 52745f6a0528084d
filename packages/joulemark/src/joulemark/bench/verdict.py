# Whether two values are told apart, by their ratio and its error.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

from joulemark.bench.stats import Value

TIME_WORDS, ENERGY_WORDS = ("faster", "slower"), ("thriftier", "costlier")
WORSE = (TIME_WORDS[1], ENERGY_WORDS[1])
ALIKE = "not told apart"


def of_ratio(ratio: Value, words: tuple[str, str], threshold: float) -> str:
    """The first of the words for a ratio that is less than 1 beyond its error and beyond the
    threshold (a part), the second for one that is more; the same whichever side is the divisor."""
    if ratio.error is None:
        return ALIKE
    factor = max(ratio.mean, 1 / ratio.mean)
    relative_error = ratio.error / ratio.mean
    if factor * (1 - relative_error) <= 1 or factor - 1 <= threshold:
        return ALIKE
    return words[0] if ratio.mean < 1 else words[1]
