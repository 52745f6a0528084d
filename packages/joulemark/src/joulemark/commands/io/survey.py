# `joulemark io survey`: its options; joulemark.storage.survey does the work.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse

from joulemark import output
from joulemark.commands.arguments import add_rounds, number

SUMMARY = "write and read each OST or brick of a file system alone, and name those that are slower"
EPILOG = """\
As Lustre's ost-survey does: a file is put on each OST (`lfs setstripe`) of a Lustre, or on each
brick of a GlusterFS (on each replica set), written by 1 MiB, to the disk, dropped from this node's
memory, and read, one target after the other, in rounds; all bytes are compared. A target is named
as slower where even its best round is below --slower of the median target's rate: a round that met
another's load accuses nobody. What one task on one node can do is the most that is seen: of faster
targets all are alike. Reads may come from the servers' memory: a --size beyond it reads disks.
Only a folder of our own in FOLDER is written to; it is removed, also after Ctrl-C, but where the
file system hangs.
Exit: 0; 1 where a target is slower, failed, had wrong bytes, or took longer than --limit.

examples:
  joulemark io survey /lustre/scratch
  joulemark io survey /lustre/scratch --size 1g --rounds 5 --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Where, how much, and how often."""
    parser.add_argument("folder", metavar="FOLDER", help="on the file system")
    add_rounds(parser)
    parser.add_argument(
        "--slower", type=_share, default=0.8, metavar="SHARE", help="of the median (default: 0.8)"
    )
    output.add_arguments(parser)


def _share(text: str) -> float:
    return number(text, lambda share: 0 < share < 1, "a share above 0 and below 1")


def run(options: argparse.Namespace) -> int:
    """Prints what each target did."""
    from joulemark.storage import survey

    return survey.run(options)
