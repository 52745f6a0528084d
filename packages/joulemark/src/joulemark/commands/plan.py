# `joulemark plan`: its options; joulemark.accounting.plan does the work.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse
from collections.abc import Sequence

from joulemark import output
from joulemark.commands.arguments import number
from joulemark.errors import UsageError

SUMMARY = "tell how long a run must be to be as accurate as wanted, or what a site's records take"
EPILOG = """\
For a job that has the node to itself, and the instruments that joulemark.yaml configures; their
error budgets come from `joulemarkd --describe`. Four parts make the error bar (k=2):

  instrument  what its maker states, and offsets: of every run, however long
  ends        an end falls between two readings, and the power steps there: from idle to --power
  readings    the power between two readings is not known (--swing), nor below a reading's step
  stamps      when a reading was taken, and a counter's steps

csv, markdown and parquet have a row a channel, and one of all together. In json, csv and parquet
errors are parts of the energy, 0.02 is 2 %; run_s is null or empty where no run is long enough.

With --site it is told what records of so many jobs a day take: on the network, in
record_dir/merged (a file each, in whole blocks of 4 KiB), in the store, and on a node for each
day that it is cut off; bytes by what SQLite takes.

Exit: 0 there is such a run; 1 there is none: the instrument's own error is larger; 2 wrong
arguments, or it is not known what to plan for.

examples:
  joulemark plan --accuracy 2% --power 350
  joulemark plan --accuracy 5% --power 240 --idle 120 --swing 60 --format json
  joulemark plan --site 1000000 --nodes 10000 --keep-days 1825
"""


LOAD = ("--power", "--idle", "--swing", "--node", "--daemon")
SITE = (
    ("--nodes", 1000, "N", "the site's"),
    ("--wide", 1, "N", "nodes of a job, the mean"),
    ("--steps", 3, "N", "of a job, the mean, batch and extern among them"),
    ("--channels", 4, "N", "of a node, such as packages and DRAM"),
    ("--keep-days", 365, "DAYS", "how long jobs are kept"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What is wanted, of which load."""
    asked = parser.add_mutually_exclusive_group(required=True)
    asked.add_argument("--accuracy", metavar="PART", help="such as 2%% or 0.02")
    asked.add_argument("--site", type=_count, metavar="JOBS", help="so many jobs a day")
    of_site = parser.add_argument_group("with --site")
    for name, default, metavar, what in SITE:
        of_site.add_argument(
            name,
            type=_count,
            metavar=metavar,
            help=f"{what} (default: {default})",
        )
    of_run = parser.add_argument_group("with --accuracy")
    of_run.add_argument(
        "--power", type=float, metavar="W", help="the run's mean (default: the configured full_w)"
    )
    of_run.add_argument(
        "--idle",
        type=float,
        metavar="W",
        help="before and after the run (default: the configured idle_w, else 0)",
    )
    of_run.add_argument(
        "--swing",
        type=float,
        metavar="W",
        help="how far the power goes up and down meanwhile, peak to peak (default: 0, steady)",
    )
    of_run.add_argument("--node", metavar="NODE", help="whose instruments (default: this host's)")
    of_run.add_argument("--daemon", metavar="FILE", help="joulemarkd (default: the one in PATH)")
    output.add_arguments(parser)


def _count(text: str) -> float:
    what = "a number from 1 to 1e12"
    return number(text, lambda value: 1 <= value <= 1e12, what)


def run(options: argparse.Namespace) -> int:
    """Prints the plan."""
    from joulemark.accounting import capacity, plan

    if options.site is None:
        _refuse(options, [name for name, *_ in SITE], "--site")
        return plan.run(options)
    _refuse(options, LOAD, "--accuracy")
    nodes, wide, steps, channels, days = (
        _given(options, name) or default for name, default, *_ in SITE
    )
    site = capacity.Site(options.site, wide, steps, round(channels), round(nodes), round(days))
    return capacity.run(options, site)


def _given(options: argparse.Namespace, name: str):
    return getattr(options, name.lstrip("-").replace("-", "_"))


def _refuse(options: argparse.Namespace, names: Sequence[str], whose: str) -> None:
    """What belongs to the other question would be passed over in silence."""
    wrong = [name for name in names if _given(options, name) is not None]
    if wrong:
        raise UsageError(f"{' '.join(wrong)}: goes with {whose}")
