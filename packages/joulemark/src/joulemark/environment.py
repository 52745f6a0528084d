# Numbers that a variable of the environment gives.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import math
import os
from collections.abc import Callable

from joulemark.errors import UsageError


def number(name: str, default: float, is_sound: Callable[[float], bool], what: str) -> float:
    """One that is sound, the default where it is unset or empty; another one is an error."""
    text = os.environ.get(name) or str(default)
    try:
        value = float(text)
    except ValueError:
        value = math.nan  # which is within no bounds
    if not is_sound(value):
        raise UsageError(f"{name}={text}: is not {what}: correct it, or unset it")
    return value


def count(name: str) -> int:
    """A whole number from 1, which is the default."""
    what = "a whole number from 1"
    return int(number(name, 1, lambda n: 1 <= n < 1 << 31 and n % 1 == 0, what))
