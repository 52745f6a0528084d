# `joulemark report jobs`: its options; joulemark.accounting.joblist and the database do the work.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse
import sys

from joulemark import output
from joulemark.errors import UsageError

SUMMARY = "list the jobs that used the most energy, or export every job's record"
EPILOG = """\
From the site's store, with each energy's uncertainty (k=2). --all writes every run of every job
(with --steps their steps too) as csv, json or parquet, with all that the store knows: its columns
are those of `joulemark sacct`, energies in whole microjoules (_uj), times in nanoseconds (_ns).

examples:
  joulemark report jobs --top 10
  joulemark report jobs --since 2026-11-01 --format markdown
  joulemark report jobs --all --out jobs.parquet
  joulemark report jobs --all --anonymous --format csv --out study.csv
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """How many, from when to when, and how to print."""
    parser.add_argument(
        "--top", type=count, default=20, metavar="N", help="how many (default: 20)"
    )
    parser.add_argument("--all", action="store_true", help="all of them; not for people")
    parser.add_argument("--steps", action="store_true", help="with --all: steps' rows too")
    parser.add_argument(
        "--anonymous",
        action="store_true",
        help="with --all: whose job it was by names of this export, without nodes and hours",
    )
    parser.add_argument(
        "-M", "--clusters", metavar="LIST", help="jobs of these clusters (default: all)"
    )
    parser.add_argument("--since", metavar="DAY", help="jobs that began on this day or later")
    parser.add_argument("--until", metavar="DAY", help="jobs that began on this day or earlier")
    output.add_arguments(parser, output.TABLES)


def count(text: str) -> int:
    """A number of jobs."""
    if not text.isdigit() or not 0 < int(text) < 1 << 31:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of jobs such as 20")
    return int(text)


def run(options: argparse.Namespace) -> int:
    """Prints the greatest jobs, or writes all of them batch by batch."""
    from joulemark import config, layout, progress, store
    from joulemark.accounting import anonymous, joblist, usage
    from joulemark.store.sums import COLUMNS, Chosen, all_rows, top_jobs

    days = usage.days(options.since, options.until)
    if options.all and options.format not in output.FORMATS:
        raise UsageError(f"--all: it is for the formats {', '.join(output.FORMATS)}")
    if options.anonymous and not options.all:
        raise UsageError("--anonymous: goes with --all")
    with store.reading(config.load().store) as session:
        chosen = Chosen(*days, usage.chosen_clusters(session, options.clusters))
        if options.all:
            batches, columns = all_rows(session, chosen, options.steps), COLUMNS
            if options.anonymous:
                batches, columns = anonymous.anonymous(batches), anonymous.columns(columns)
            if options.out or not sys.stdout.isatty():  # else the records themselves show it
                batches = progress.counted(batches, "records written", of=len)
            output.write(batches, options.format, options.out, columns)
            return 0
        rows = top_jobs(session, options.top, chosen)
    layout.show(options, rows, [joblist.as_text(rows)], joblist.notes(rows), COLUMNS)
    return 0
