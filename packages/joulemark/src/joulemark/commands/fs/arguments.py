# What several kinds of `joulemark fs` take from their command lines.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse
import re

from joulemark import units

UNITS_NS = {
    one: seconds * 10**9 for one, seconds in zip("hdwy", (3600, 86_400, 604_800, 31_557_600))
}
TIMES = ("mtime", "atime", "ctime")


def add_time(parser: argparse.ArgumentParser, of: str) -> None:
    """--time."""
    text = f"{of}: since it was written, read, or anything of it changed (default: mtime)"
    parser.add_argument("--time", choices=TIMES, default="mtime", help=text)


def add_top(parser: argparse.ArgumentParser, what: str) -> None:
    """--top."""
    parser.add_argument("--top", type=count, metavar="N", help=f"{what} (for people: 100)")


def count(text: str) -> int:
    if not re.fullmatch("[0-9]{1,9}", text) or not int(text):
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from 1 on")
    return int(text)


def age_ns(text: str) -> int:
    found = re.fullmatch("([0-9]{1,5})([hdwy])", text)
    if not found:
        raise argparse.ArgumentTypeError(f"'{text}' is not an age such as 12h, 90d, 4w or 1y")
    return int(found[1]) * UNITS_NS[found[2]]


def size(text: str) -> int:
    found = re.fullmatch("([0-9]{1,6})([kmgt]?)", text.lower())
    if not found:
        raise argparse.ArgumentTypeError(f"'{text}' is not a size such as 4k, 10m, 1g or 2t")
    return int(found[1]) * units.BINARY[found[2]]
