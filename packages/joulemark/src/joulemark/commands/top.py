# `joulemark top`: its options; joulemark.top does the work.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse
import re

from joulemark import output
from joulemark.commands import arguments

SUMMARY = "show what running jobs, or nodes, use, again and again"
EPILOG = """\
Your running jobs, or those named (12, 12_3, 12+1): a step of each, by srun --overlap, looks on and
tells what the job was charged on its nodes. It has no part of the job's energy itself; sacct has a
row more, joulemark-top, and the job's next step the next number. Only whose job it is may do so.
Figures are no finer than a profile: profile_max_hz.

--nodes, for operators: what nodes draw, what of it jobs are charged, what is nobody's, and how
many jobs each has. With `transport: mqtt` nodes tell it over the broker to whom it lets ask, no
finer than profile_max_hz; %n in the paths of `mqtt:` is joulemark-top for us. The nodes that are
named alone tell (of an earlier release, all do), each as often as the one who asks it most often:
with `all`, a small --every costs the broker a message of every node. Without that, by --no-mqtt,
or where we may not read the files that it takes, Slurm itself tells in one answer what nodes draw,
as old as AcctGatherNodeFreq lets it be. With --split, or where that is 0, a job on each node, with
a CPU of it, has its daemon tell the rest, too, as root and privileged_users may ask; nodes are
visited as by `joulemark doctor --nodes`.

In a terminal the table stays in place; in a pipe or file it comes once more each round. It ends
when no job is left, with q or Ctrl-C, or, --once, after the first round. What a job used in
all is told when its record is there, as sacct and `joulemark job` have it; where it is not within
10 seconds of the end, what its nodes told last, and when.
--format json has a line a round, csv a row a job or node of each: joules, watts, seconds; null or
empty: not known. A file, and so parquet, holds one round: --out goes with --once.

Exit: 0; 1 where a job that was named does not run, srun was refused, or a node gave no answer.

examples:
  joulemark top
  joulemark top 12 13_4 --every 10
  joulemark top --once --format json
  joulemark top --every 10 --format csv
  joulemark top --nodes all
  joulemark top --nodes n[1-4] --split
"""
LEAST_S = 0.1
JOB_ID = re.compile(r"[1-9]\d*([_+]\d+)?", re.ASCII)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to watch, and how often."""
    parser.add_argument(
        "jobs", nargs="*", type=_job_id, metavar="ID", help="12, 12_3 or 12+1 (default: yours)"
    )
    parser.add_argument(
        "--every", type=_every, default=2.0, metavar="SECONDS", help="a round (default: 2)"
    )
    parser.add_argument("--once", action="store_true", help="one round")
    parser.add_argument("--nodes", metavar="LIST", help="nodes instead, n[1-4] or `all`")
    parser.add_argument(
        "--split", action="store_true", help="of nodes, also what jobs are charged of their power"
    )
    parser.add_argument(
        "--no-mqtt",
        action="store_true",
        help="of nodes, without the broker that they tell it over",
    )
    arguments.add_wait(parser)
    arguments.add_broker(parser)
    parser.set_defaults(wait=None, refuse=parser.error)
    output.add_arguments(parser)


def _every(text: str) -> float:
    return arguments.seconds(text, LEAST_S)


def _job_id(text: str) -> str:
    if not JOB_ID.fullmatch(text):
        raise argparse.ArgumentTypeError(f"'{text}' is no running job's id: 12, 12_3 or 12+1")
    return text


def _nodes(options: argparse.Namespace):
    from joulemark.top import sources

    site = None
    if not options.no_mqtt:
        site = sources.by_broker(options.user, options.password_file)
    if site:
        return sources.listen(options.nodes, options.every, *site)
    wait_s = arguments.WAIT_S if options.wait is None else options.wait
    return sources.choose(options.nodes, options.every, options.split, wait_s)


def _check(options: argparse.Namespace) -> None:
    """Nothing that was asked for is left out in silence."""
    if options.out is not None and not options.once:
        options.refuse(f"--out {options.out}: it holds one round: say --once, or use `>`")
    if options.nodes is not None:
        if options.jobs:
            options.refuse(f"{options.jobs[0]}: name jobs or --nodes, not both")
        if options.no_mqtt and (options.user or options.password_file):
            options.refuse("--user and --password-file are the broker's: without --no-mqtt")
        return
    for name in ("split", "no_mqtt", "wait", "user", "password_file"):
        if getattr(options, name) not in (None, False):
            options.refuse(f"--{name.replace('_', '-')} is of --nodes LIST")


def run(options: argparse.Namespace) -> int:
    """Shows rounds; 1 if something could not be watched."""
    from joulemark.top import screen

    _check(options)
    if options.nodes is not None:
        watched = _nodes(options)
    else:
        from joulemark.top.jobs import Jobs

        watched = Jobs(options.jobs, options.every)
    screen.run(watched, options)
    return 1 if watched.failed else 0
