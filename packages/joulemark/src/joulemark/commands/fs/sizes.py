# `joulemark fs sizes`: its options; joulemark.files.sizes does the work.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse

from joulemark import output
from joulemark.commands.fs import arguments

SUMMARY = "tell how much there is of which sizes, ages, owners, groups or kinds"
EPILOG = """\
From databases of `joulemark fs scan`. An object of several names, a hard link's, is counted once.
Size is what a file says of itself, Allocated what it takes on the disk. Sizes and ages are of
files alone; an age is that at the scan's begin. --by scan has a row a scan: how long it took, and
its joules.

examples:
  joulemark fs sizes scratch.db
  joulemark fs sizes scratch.db --by owner --format csv
  joulemark fs sizes scratch.db --by age --time atime
  joulemark fs sizes monday.db tuesday.db --by scan
"""
KINDS = ("size", "age", "owner", "group", "kind", "scan")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Of which scans, by what, and how to print."""
    parser.add_argument("databases", nargs="+", metavar="DATABASE")
    parser.add_argument("--by", choices=KINDS, default="size", help="(default: size)")
    arguments.add_time(parser, "of --by age")
    output.add_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Prints the sums."""
    from joulemark.files import sizes

    return sizes.run(options)
