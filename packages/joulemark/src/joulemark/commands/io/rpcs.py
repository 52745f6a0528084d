# `joulemark io rpcs`: its options; joulemark.storage.rpcs does the work.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse

from joulemark import output
from joulemark.commands.arguments import add_rounds, number

SUMMARY = "write and read a file on Lustre with more and more calls to each OST under way"
EPILOG = """\
Sweeps osc.*.max_rpcs_in_flight of this client (PRACE D9.3.3, figure 117), as root: a file over all
OSTs is written by 1 MiB, to the disks, dropped from this node's memory, and read; all bytes are
compared; in rounds, each at every number. At the end, also after Ctrl-C, the numbers are what they
were, and the file is removed; SIGKILL leaves both. Who else uses FOLDER's file system on this node
has the swept number meanwhile: use an idle node. `lctl set_param -P` on the MGS keeps the best.
Exit: 0; 1 where a measurement failed, had wrong bytes, or took longer than --limit.

examples:
  joulemark io rpcs /lustre/scratch
  joulemark io rpcs /lustre/scratch --numbers 8,16,32 --size 4g --json
"""
MOST = 256  # OSC_MAX_RIF_MAX, lustre/include/lustre_osc.h


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Where, which numbers, how much, and how often."""
    parser.add_argument("folder", metavar="FOLDER", help="on a Lustre")
    parser.add_argument(
        "--numbers",
        type=_numbers,
        default="1,2,4,8,16,32,64",
        metavar="LIST",
        help="of calls to an OST (default: 1,2,4,8,16,32,64)",
    )
    add_rounds(parser)
    output.add_arguments(parser)


def _numbers(text: str) -> list[int]:
    def is_sound(value: float) -> bool:
        return 1 <= value <= MOST and value == int(value)

    what = f"a list of numbers from 1 to {MOST}"
    return list(dict.fromkeys(int(number(one, is_sound, what)) for one in text.split(",")))


def run(options: argparse.Namespace) -> int:
    """Prints what was reached at each number."""
    from joulemark.storage import rpcs

    return rpcs.run(options)
