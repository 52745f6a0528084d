# `joulemark report interval`: its options; joulemark.bench.interval does the work.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse
import re

from joulemark import output
from joulemark.commands.report import sources

SUMMARY = "tell how often to write a checkpoint, for the least time and for the least energy"
EPILOG = """\
From cooked files of jm-io's pattern `checkpoint`, such as job-templates/jm-io.sbatch leaves: what
a checkpoint takes is what a program's steps with checkpoints take longer than those without. The
interval is the one whose expected time, or energy, with failures at any moment alike is least:
work and checkpoints, restarts, and what each failure destroys. Young's sqrt(2 C M) stands beside
it, of which it is the limit for rare failures. What a new start of the job takes but its restart,
such as its time in the queue, moves no interval and is in no figure.

A checkpoint to a device beside the processors takes little power: then the least energy asks for
more of them than the least time. The state is jm-io's: measure it by --sizes of your program's.

examples:
  joulemark report interval --mtbf 1d 7d --from results/
  joulemark report interval --mtbf 6h --format csv
"""
UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "y": 31_557_600.0}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """How often the job fails, which results, and how to print them."""
    parser.add_argument(
        "--mtbf",
        nargs="+",
        type=_time_s,
        required=True,
        metavar="TIME",
        help="one failure in so long, of all nodes of the job together: 90m, 6h, 7d; of 1000 "
        "nodes of which each fails once in 5 years 1.8d",
    )
    sources.add_all(parser)
    output.add_arguments(parser)


def _time_s(text: str) -> float:
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)([smhdy])", text, re.ASCII)
    seconds = float(found[1]) * UNITS_S[found[2]] if found else 0.0
    if seconds <= 0:
        raise argparse.ArgumentTypeError(f"'{text}': must be a time such as 90m, 6h, 7d or 5y")
    return seconds


def run(options: argparse.Namespace) -> int:
    """Prints the intervals."""
    from joulemark import layout
    from joulemark.bench import interval

    found, left_out = interval.find(sources.measurements(options))
    mtbfs_s = list(dict.fromkeys(options.mtbf))
    left_out += interval.left_out(found, mtbfs_s)
    tables = [interval.as_text(one, mtbfs_s) for one in found]
    records, notes = interval.records(found, mtbfs_s), interval.notes(found)
    layout.show(options, records, tables, notes, interval.columns(found), left_out)
    return 0
