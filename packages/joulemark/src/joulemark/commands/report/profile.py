# `joulemark report profile`: its options; the room joulemark.profile does the work.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse
from pathlib import Path

from joulemark.commands.arguments import job_id
from joulemark.errors import UsageError, UserError

SUMMARY = "show a job's power over time, with its regions"
EPILOG = """\
Of jobs that were submitted with --energy=profile or --energy=profile,HZ: one row a node of each
job, with the ranks that marked regions there and, where these are more, how many threads were in
regions at once; with several jobs, mappings of the same work can be compared as in Mont-Blanc's
figure 9. Power is what the job was charged, not what the node drew; regions are shaded while at
least one thread was inside. Without --out it is drawn for the terminal. You see your own jobs'
profiles. The file itself is profile_dir/CLUSTER.JOB.h5 (HDF5).

examples:
  joulemark report profile 12
  joulemark report profile 12,13
  joulemark report profile 12 --out power.png
  joulemark report profile 12 13 14 --label serial --label omp --label gpu --overlay --out fig9.svg
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which jobs and nodes, and where the figure goes."""
    parser.add_argument(
        "jobs", nargs="+", type=_job_ids, metavar="JOB", help="raw ids: 12 13 or 12,13"
    )
    parser.add_argument("--node", metavar="NODE", help="this node alone (default: all)")
    parser.add_argument(
        "--channel", metavar="NAME", help="this channel (default: the sum of the outermost ones)"
    )
    parser.add_argument(
        "--label",
        action="append",
        metavar="TEXT",
        help="what to call a job, in the order of the jobs (default: its number)",
    )
    parser.add_argument(
        "--overlay", action="store_true", help="all in one figure, without regions; with --out"
    )
    parser.add_argument("--out", metavar="FILE", help="a figure: .png, .svg or .pdf")


def _job_ids(text: str) -> list[int]:
    return [job_id(one) for one in text.split(",")]


def run(options: argparse.Namespace) -> int:
    """Draws the figure, or prints the terminal's view."""
    from joulemark import config, output
    from joulemark.profile import text
    from joulemark.profile.rows import rows_of

    jobs = [job for jobs in options.jobs for job in jobs]
    if options.out is not None:
        output.check_figure("--out", options.out)
    elif options.overlay:
        raise UsageError("--overlay: is of a figure: name one with --out")
    if len(options.label or ()) > len(jobs):
        raise UsageError(f"--label {options.label[len(jobs)]}: there is no job for it")
    site = config.load()
    rows = [row for number, job in enumerate(jobs) for row in rows_of(site, job, options, number)]
    if not rows:
        of = f" of --node {options.node}" if options.node else ""
        raise UserError(f"no profile{of} has two samples: for a short job say --energy=profile,HZ")
    if options.out is None:
        print(text.as_text(rows))
        return 0
    from joulemark.plots import profile as figure

    try:
        figure.draw(rows, Path(options.out), overlay=options.overlay)
    except OSError as error:
        raise UserError(f"--out {options.out}: {error.strerror}") from None
    print(options.out)
    return 0
