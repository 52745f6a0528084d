# `joulemark merge`: its options; joulemark.accounting.merge does the work.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

from joulemark.commands.arguments import job_id, number
from joulemark.errors import UsageError

SUMMARY = "put node records into the store and make job records"
EPILOG = """\
EpilogSlurmctld leaves a notice for each job that has ended, and one merge at a time, with --ended,
takes them as their nodes' records come; it prints nothing, and leaves comments in record_dir.

Any other prints one line, JOBID<tab>JOULES<tab>COMMENT, for each job of this cluster whose comment
changed; JOULES is empty where not all nodes' are known, or nobody told which they are (--nodes).
Merging a
file twice changes nothing. Merged files go to record_dir/merged; files that are not sound records
go to record_dir/rejected, with the reason in rejected.log. A node that sends nothing is stored as
missing until its record comes: files older than a minute are merged whatever --job says. A job
whose nodes' figures add up to more than a store can hold is named on stderr, and left as it was.
Exit: 0; 1 if a file was rejected or the store cannot be used. With --ended: 0 when no more jobs
end, whatever was rejected; 3 when they still did after a minute: begin it anew.

The site's configuration is $JOULEMARK_CONFIG, else joulemark.yaml beside $SLURM_CONF, else
/etc/slurm/joulemark.yaml.

examples:
  joulemark merge                             everything that waits, after a recovery
  joulemark merge --job 12 --nodes n[1-2]     job 12, once its nodes' records are there
  joulemark merge --rebuild                   a new store from all records that were ever merged
  joulemark merge --rebuild --since 2026-11-26T03:00
                                              what a backup of the store from then does not have
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which job, which nodes, how long to wait."""
    parser.add_argument("--job", type=job_id, metavar="ID", help="this job (default: all)")
    parser.add_argument("--nodes", metavar="LIST", help="the job's nodes: n1,n2 or n[1-2]")
    parser.add_argument(
        "--wait",
        type=_seconds,
        default=30.0,
        metavar="SECONDS",
        help="how long to wait for the nodes' records (default: 30)",
    )
    parser.add_argument(
        "--print-comment",
        action="store_true",
        help="print the job's line even if its record did not change",
    )
    parser.add_argument(
        "--rebuild", action="store_true", help="read record_dir/merged again as well"
    )
    parser.add_argument(
        "--since",
        type=_time_s,
        metavar="TIME",
        help="with --rebuild: only what was merged since then, such as 2026-11-26T03:00",
    )
    parser.add_argument(
        "--ended",
        type=Path,
        action="append",
        metavar="FOLDER",
        help="the jobs of EpilogSlurmctld's notices there, until no more come; can be repeated",
    )
    parser.add_argument(
        "--tell",
        metavar="PROGRAM",
        help="with --ended: what brings record_dir/comments to Slurm's accounting",
    )


def _seconds(text: str) -> float:
    what = "a time in seconds from 0 to 86400"
    return number(text, lambda seconds: 0 <= seconds <= 86400, what)


def _time_s(text: str) -> float:
    """Local time, as sacct's, where it names no zone."""
    from joulemark.times import from_iso  # which a merge at a job's end need not load

    try:
        return from_iso(text).timestamp()
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            f"'{text}' is not a time such as 2026-11-26T03:00"
        ) from None


def run(options: argparse.Namespace) -> int:
    """Merges; 1 if a file was rejected."""
    from joulemark import config
    from joulemark.accounting import merge

    if options.ended and (
        options.job or options.nodes or options.rebuild or options.print_comment
    ):
        raise UsageError("--ended: goes with --tell and --wait alone: its notices say which jobs")
    if options.tell and not options.ended:
        raise UsageError("--tell: goes with --ended")
    if options.since is not None and not options.rebuild:
        raise UsageError("--since: goes with --rebuild")
    if options.nodes and options.job is None:
        raise UsageError("--nodes: it names the nodes of one job: give --job as well")
    if options.ended:
        from joulemark.accounting import ended  # which needs to start processes: 10 ms

        return ended.run(config.load(for_merge=True), options.ended, options.tell, options.wait)
    runs = (_run(options),) if options.job else ()
    since_s = options.since or 0.0
    request = merge.Request(runs, options.rebuild, since_s, options.print_comment)
    return merge.run(config.load(for_merge=True), request, options.wait)


def _run(options: argparse.Namespace):
    """A Slurm epilog's environment tells of its own job whose it is and how often it began, and
    that it has ended now."""
    from joulemark import hostlist
    from joulemark.accounting import merge
    from joulemark.store import nodes

    own = os.environ.get("SLURM_JOB_ID") == str(options.job)
    said = os.environ if own else {}
    restart = said.get("SLURM_JOB_RESTART_COUNT", "")
    slurm = nodes.SlurmRun(
        restart=int(restart) if restart.isdigit() else 0,
        nodes=tuple(hostlist.expand(options.nodes)) if options.nodes else (),
        why_missing=nodes.why_missing(options.wait),
        user=said.get("SLURM_JOB_USER", ""),
        account=said.get("SLURM_JOB_ACCOUNT", ""),
        partition=said.get("SLURM_JOB_PARTITION", ""),
    )
    return merge.JobRun(options.job, slurm, time.time_ns() if own else 0)
