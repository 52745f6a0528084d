# `joulemark fs scan`: its options; joulemark.files.scan does the work.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse

from joulemark import output
from joulemark.commands.fs import arguments

SUMMARY = "read all of a folder into a database"
EPILOG = """\
On its file system alone: what others have mounted below is counted and left out. A folder that
cannot be read is named on stderr and counted. DATABASE is replaced when the new one is whole; a
scan that is killed leaves DATABASE.partial, which the next one takes over. Within a Slurm job on a
node that has joulemarkd the scan's joules are told and kept: `joulemark fs sizes --by scan` shows
scans side by side.

Exit: 0 all was read; 1 a part could not be read, the rest is in the database; 3 there is no new
database.

examples:
  joulemark fs scan /scratch scratch.db
  srun joulemark fs scan /scratch/project --threads 16 project.db
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What, where to, and how fast."""
    parser.add_argument("folder", metavar="FOLDER")
    parser.add_argument("database", metavar="DATABASE", help="a file, new or of an earlier scan")
    parser.add_argument(
        "--threads",
        type=arguments.count,
        metavar="N",
        help="that read folders (default: one a CPU; a parallel file system may want more)",
    )
    output.add_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Scans."""
    from joulemark.files import scan

    return scan.run(options)
