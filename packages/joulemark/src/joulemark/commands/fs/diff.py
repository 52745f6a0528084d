# `joulemark fs diff`: its options; joulemark.files.changes does the work.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse

from joulemark import output
from joulemark.commands.fs import arguments

SUMMARY = "tell what changed between two scans, or since one"
EPILOG = """\
Of two databases of one folder, or of one and the folder as it is now. What was made, removed,
changed or moved, each with its path; what is below a folder that moved has moved with it, and is
not listed. Of a folder itself a change is that of its mode, owner or identity. To read a file is
no change. Where a file system does not tell when an object was made, what moved was removed and
made.

Exit: 0 all was compared; 1 a folder could not be read in one of the scans.

examples:
  joulemark fs diff monday.db tuesday.db
  joulemark fs diff monday.db --format csv --out since-monday.csv
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Between which two, and how to print."""
    parser.add_argument("before", metavar="BEFORE", help="a database")
    parser.add_argument(
        "after", nargs="?", metavar="AFTER", help="another (default: a scan of now, not kept)"
    )
    arguments.add_top(parser, "the first N by path")
    output.add_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Prints the changes."""
    from joulemark.files import changes

    return changes.run(options)
