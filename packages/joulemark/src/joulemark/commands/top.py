# `joulemark top`: its options; joulemark.top does the work.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse

from joulemark import output

SUMMARY = "show what running jobs use, again and again"
EPILOG = """\
Your running jobs, or those named (12, 12_3, 12+1): a step of each, by srun --overlap, looks on and
tells what the job was charged on its nodes. It has no part of the job's energy itself; sacct has a
row more, joulemark-top, and the job's next step the next number. Only whose job it is may do so.
Figures are no finer than a profile: profile_max_hz.

In a terminal the table stays in place; in a pipe or file it comes once more each round. It ends
when no job is left, with Ctrl-C, or, --once, after the first round. What a job has used when it
ends is told; `sacct` and `joulemark job` have it exactly a few seconds later.
--format json has a line a round: joules, watts, seconds; null: not known.

Exit: 0; 1 where a job that was named does not run, or srun was refused: stderr says why.

examples:
  joulemark top
  joulemark top 12 13_4 --every 10
  joulemark top --once --format json
"""
LEAST_S, MOST_S = 0.001, 3600.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to watch, and how often."""
    parser.add_argument("jobs", nargs="*", metavar="ID", help="12, 12_3 or 12+1 (default: yours)")
    parser.add_argument(
        "--every", type=_seconds, default=2.0, metavar="SECONDS", help="a round (default: 2)"
    )
    parser.add_argument("--once", action="store_true", help="one round")
    output.add_format(parser, output.ANSWERS)
    output.add_json(parser)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not LEAST_S <= seconds <= MOST_S:
        raise argparse.ArgumentTypeError(f"'{text}' is not a time in seconds up to {MOST_S:g}")
    return seconds


def run(options: argparse.Namespace) -> int:
    """Shows rounds; 1 if something could not be watched."""
    from joulemark.top import screen
    from joulemark.top.jobs import Jobs

    watched = Jobs(options.jobs, options.every)
    screen.run(watched, options.format, options.once)
    return 1 if watched.failed else 0
