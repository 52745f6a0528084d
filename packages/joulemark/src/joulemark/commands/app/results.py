# `joulemark app results`: its options; joulemark.bench.apprun does the work.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse

SUMMARY = "write the results of a run once more, as cooked lines"
EPILOG = """\
Of a folder that `joulemark app run` left, such as after its definition was mended.

Exit: 0 all phases ran and are verified; 1 some did not.

example:
  joulemark app results fio fio.4711 --cooked fio.cooked.jsonl
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which run of what."""
    parser.add_argument("name", metavar="NAME", help="of the list, or a file NAME.yaml")
    parser.add_argument("folder", metavar="DIR", help="--out of the run")
    parser.add_argument("--cooked", metavar="FILE", help="append to FILE (default: print)")


def run(options: argparse.Namespace) -> int:
    """Prints or appends the lines."""
    from joulemark.bench import apprun

    return apprun.results(options)
