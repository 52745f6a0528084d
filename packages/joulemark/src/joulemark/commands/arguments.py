# What several commands take from their command lines.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse
import math
from collections.abc import Callable


def job_id(text: str) -> int:
    """A job's raw id."""
    if not (text.isascii() and text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"'{text}' is not a job's raw id such as 12")
    return int(text)


def number(text: str, is_sound: Callable[[float], bool], what: str, unit: str = "") -> float:
    """One that is sound, with or without its unit, else an error that says what it must be."""
    try:
        value = float(text.rstrip(unit))
    except ValueError:
        value = math.nan  # which is within no bounds
    if not is_sound(value):
        raise argparse.ArgumentTypeError(f"'{text}' is not {what}")
    return value
