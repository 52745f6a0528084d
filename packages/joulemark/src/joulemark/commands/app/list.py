# `joulemark app list`: its options; joulemark.bench.app does the work.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse

from joulemark import output

SUMMARY = "list the applications, with their Spack specs and settings"
EPILOG = """\
examples:
  joulemark app list
  joulemark app list fio --format json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which, and how the table looks."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="this one, or a file NAME.yaml")
    output.add_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Prints the table."""
    from joulemark.bench import applist

    return applist.write(options)
