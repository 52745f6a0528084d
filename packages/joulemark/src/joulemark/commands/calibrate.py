# `joulemark calibrate`: its options; joulemark.accounting.calibration does the work.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse

from joulemark import output
from joulemark.commands.arguments import number, seconds

SUMMARY = "compare a channel with a reference meter over a sweep of loads, for its error budget"
EPILOG = """\
Both are instruments of joulemark.yaml ($JOULEMARK_CONFIG names another one), on this machine,
which nobody else uses meanwhile: its CPUs are loaded step by step, from idle to all of them, and
each step's mean power is read of both. The line METER = gain x CHANNEL + offset through the
steps, with its errors (95 %, Student's t), makes the limits that the channel keeps as it is:
`error:` for joulemark.yaml, in which the meter's own limits are added. Channels that only
together measure what the meter does are joined by +.

joulemarkd may run meanwhile, unless a meter speaks to one client alone.

csv, json and parquet have a row a load; gain, offset and budget are the same in all of them.

Exit: 0 they are told; 1 they are not: the load changed the power too little, its steps lie on no
line (the gain is known no better than to 0.1), or a channel did not answer; 2 wrong arguments.

examples:
  joulemark calibrate rapl/package-0+rapl/package-1 --against wt310/power
  joulemark calibrate bmc/dcmi --against pdu/outlet --seconds 120 --loads 8
  joulemark calibrate nvml/gpu-0 --against riser/power --load './burn --share $JM_LOAD'
"""
LOADS, SECONDS, SETTLE_S = 5, 30.0, 10.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which channel, which meter, how long."""
    parser.add_argument("channel", metavar="CHANNEL", help="INSTRUMENT/CHANNEL, more after a +")
    parser.add_argument("--against", required=True, metavar="METER", help="the reference")
    parser.add_argument(
        "--loads", type=_loads, default=LOADS, metavar="N", help=f"steps (default: {LOADS})"
    )
    parser.add_argument(
        "--seconds",
        type=seconds,
        default=SECONDS,
        metavar="S",
        help=f"of each step, that are compared (default: {SECONDS:g})",
    )
    parser.add_argument(
        "--settle",
        type=seconds,
        default=SETTLE_S,
        metavar="S",
        help=f"before them, in which the power settles (default: {SETTLE_S:g})",
    )
    load = "a command that loads the machine by $JM_LOAD, 0 to 1, until it is ended"
    parser.add_argument("--load", metavar="COMMAND", help=f"{load} (default: busy CPUs)")
    parser.add_argument("--node", metavar="NODE", help="whose instruments (default: this host's)")
    parser.add_argument("--daemon", metavar="FILE", help="joulemarkd (default: the one in PATH)")
    output.add_arguments(parser)


def _loads(text: str) -> int:
    return int(number(text, lambda n: 3 <= n <= 100 and n == int(n), "a number from 3 to 100"))


def run(options: argparse.Namespace) -> int:
    """Prints the comparison."""
    from joulemark.accounting import calibration

    return calibration.run(options)
