# What several commands take from their command lines.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable


def job_id(text: str) -> int:
    """A job's raw id, of 32 bits."""
    if not (re.fullmatch("[0-9]{1,10}", text) and 0 < int(text) < 1 << 32):
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


def seconds(text: str, least: float = 0.0) -> float:
    """More than 0, or at least so many, up to an hour."""
    bounds = f"{f'from {least:g} ' if least else ''}up to 3600"
    return number(text, lambda s: least <= s <= 3600 and s > 0, f"a time in seconds {bounds}")


def add_clusters(
    parser: argparse.ArgumentParser, text: str = "of these clusters (default: all)"
) -> None:
    """-M, of what several clusters have."""
    parser.add_argument("-M", "--clusters", metavar="LIST", help=text)


def add_broker(parser: argparse.ArgumentParser) -> None:
    """--user and --password-file, of what is a client of the broker."""
    parser.add_argument("--user", help="our name at the broker (default: the configuration's)")
    parser.add_argument("--password-file", metavar="FILE", help="its password, mode 600")


WAIT_S = 5.0


def add_wait(parser: argparse.ArgumentParser) -> None:
    """--wait, of what visits nodes."""
    parser.add_argument(
        "--wait",
        type=seconds,
        default=WAIT_S,
        metavar="SECONDS",
        help=f"how long for a place on a node that others use (default: {WAIT_S:g})",
    )


def add_rounds(parser: argparse.ArgumentParser) -> None:
    """--size, --rounds and --limit, of what writes and reads files in rounds."""
    parser.add_argument(
        "--size", type=_size, default="256m", metavar="BYTES", help="of a file (default: 256m)"
    )
    parser.add_argument("--rounds", type=_rounds, default=3, metavar="N", help="default: 3")
    parser.add_argument(
        "--limit",
        type=seconds,
        default=300.0,
        metavar="S",
        help="of a file, each round (default: 300 s)",
    )


def _size(text: str) -> int:
    units = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
    unit = units.get(text[-1:].lower(), 1)
    what = "a size such as 256m, from 4k to 1024g"
    digits = text if unit == 1 else text[:-1]
    return int(unit * number(digits, lambda n: 1 << 12 <= n * unit <= 1 << 40, what))


def _rounds(text: str) -> int:
    return int(number(text, lambda n: 1 <= n <= 1000 and n == int(n), "a number from 1 to 1000"))
