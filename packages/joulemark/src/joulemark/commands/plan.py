# `joulemark plan`: its options; joulemark.accounting.plan does the work.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse

from joulemark import output

SUMMARY = "tell how long a run must be for its energy to be as accurate as wanted"
EPILOG = """\
For a job that has the node to itself, and the instruments that joulemark.yaml configures; their
error budgets come from `joulemarkd --describe`. Four parts make the error bar (k=2):

  instrument  what its maker states, and offsets: of every run, however long
  ends        an end falls between two readings, and the power steps there: from idle to --power
  readings    the power between two readings is not known (--swing), nor below a reading's step
  stamps      when a reading was taken, and a counter's steps

csv, markdown and parquet have a row a channel, and one of all together. In json, csv and parquet
errors are parts of the energy, 0.02 is 2 %; run_s is null or empty where no run is long enough.

Exit: 0 there is such a run; 1 there is none: the instrument's own error is larger; 2 wrong
arguments, or it is not known what to plan for.

examples:
  joulemark plan --accuracy 2% --power 350
  joulemark plan --accuracy 5% --power 240 --idle 120 --swing 60 --format json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What is wanted, of which load."""
    parser.add_argument("--accuracy", required=True, metavar="PART", help="such as 2%% or 0.02")
    parser.add_argument(
        "--power", type=float, metavar="W", help="the run's mean (default: the configured full_w)"
    )
    parser.add_argument(
        "--idle",
        type=float,
        metavar="W",
        help="before and after the run (default: the configured idle_w, else 0)",
    )
    parser.add_argument(
        "--swing",
        type=float,
        default=0.0,
        metavar="W",
        help="how far the power goes up and down meanwhile, peak to peak (default: 0, steady)",
    )
    parser.add_argument("--node", metavar="NODE", help="whose instruments (default: this host's)")
    parser.add_argument("--daemon", metavar="FILE", help="joulemarkd (default: the one in PATH)")
    output.add_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Prints the plan."""
    from joulemark.accounting import plan

    return plan.run(options)
