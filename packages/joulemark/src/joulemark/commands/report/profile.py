# `joulemark report profile`: its options; the room joulemark.profile does the work.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from joulemark import output
from joulemark.commands.arguments import job_id
from joulemark.errors import UsageError, UserError

SUMMARY = "show a job's power over time, with its regions"
EPILOG = """\
Of jobs that were submitted with --energy=profile or --energy=profile,HZ: one row a node of each
job, with the ranks that marked regions there and, where these are more, how many threads were in
regions at once; with several jobs, mappings of the same work can be compared as in Mont-Blanc's
figure 9. A job is named by its raw id, sacct's JobIDRaw: an array's own is that of one task.
Power is what the job was charged, not what the node drew; regions are shaded while at least one
thread was inside. Energy and mean power are from the first sample to the last, without the job's
ends, which `joulemark sacct` has; their uncertainty (k=2) is the whole job's, that of regions is
in `joulemark job`. You see your own jobs' profiles. All samples are in profile_dir/CLUSTER.JOB.h5
(HDF5).

Without --out it is drawn for the terminal; --out FILE.png, .svg or .pdf is a figure. csv, json and
parquet have a row a node, with region null, and one for each of its regions: joules (_j), watts
(_w), seconds (_s), uncertainties k=2; null: not known.

examples:
  joulemark report profile 12
  joulemark report profile 12,13 --format json
  joulemark report profile 12 --out power.png
  joulemark report profile 12 13 14 --label serial --label omp --label gpu --overlay --out fig9.svg
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which jobs and nodes, and where the figure goes."""
    parser.add_argument(
        "jobs", nargs="+", type=_job_ids, metavar="JOB", help="sacct's JobIDRaw: 12 13 or 12,13"
    )
    parser.add_argument(
        "-M", "--cluster", metavar="NAME", help="whose jobs (default: joulemark.yaml's cluster)"
    )
    parser.add_argument("--node", metavar="NODE", help="this node alone (default: all)")
    parser.add_argument(
        "--channel", metavar="NAME", help="this channel (default: the sum of the outermost ones)"
    )
    parser.add_argument(
        "--label",
        action="append",
        metavar="TEXT",
        help="what to call a job, in the order of the jobs (default: its raw id)",
    )
    parser.add_argument(
        "--overlay", action="store_true", help="all in one figure, without regions; with --out"
    )
    output.add_arguments(parser, draws=True)


def _job_ids(text: str) -> list[int]:
    return [job_id(one) for one in text.split(",")]


def run(options: argparse.Namespace) -> int:
    """Draws the figure, or prints the terminal's view, a table or rows."""
    from joulemark import config, layout
    from joulemark.profile import text
    from joulemark.profile.rows import rows_of

    jobs = [job for jobs in options.jobs for job in jobs]
    draws = options.format == output.FIGURE
    is_text = options.out is None or options.out.endswith(".txt")
    if draws or (options.format == "terminal" and not is_text):  # no figure by a mistyped ending
        output.check_figure("--out", options.out)
    elif options.overlay:
        raise UsageError("--overlay: is of a figure: name one with --out")
    if len(options.label or ()) > len(jobs):
        raise UsageError(f"--label {options.label[len(jobs)]}: there is no job for it")
    site = config.load()
    site = replace(site, cluster=options.cluster or site.cluster)
    rows = [row for number, job in enumerate(jobs) for row in rows_of(site, job, options, number)]
    if not rows:
        of = f" of --node {options.node}" if options.node else ""
        raise UserError(f"no profile{of} has two samples: for a short job say --energy=profile,HZ")
    if options.format == "terminal":
        output.write_text(text.as_text(rows) + "\n", options.out)
    elif not draws:
        layout.show(options, text.as_records(rows), text.as_tables(rows), text.notes(rows))
    else:
        _draw(rows, options)
    return 0


def _draw(rows: list, options: argparse.Namespace) -> None:
    from joulemark.plots import draw_profile

    try:
        draw_profile(rows, Path(options.out), options.overlay)
    except OSError as error:
        raise UserError(f"--out {options.out}: {error.strerror}") from None
    print(options.out)
