# `joulemark app list`: its options; joulemark.bench.app does the work.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse

from joulemark import output

SUMMARY = "list the applications, with their Spack specs and settings"
EPILOG = """\
examples:
  joulemark app list
  joulemark app list --format json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """How the table looks."""
    output.add_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Prints the table."""
    from joulemark.bench import applist

    return applist.write(options)
