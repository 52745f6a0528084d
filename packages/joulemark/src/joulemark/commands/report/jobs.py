# `joulemark report jobs`: its options; joulemark.accounting.joblist and the database do the work.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator

from joulemark import output
from joulemark.commands import arguments
from joulemark.errors import UsageError

SUMMARY = "list the jobs that used the most energy, or export every job's record"
EPILOG = """\
From the site's store, with each energy's uncertainty (k=2). --all writes every run of every job
(with --steps their steps too) as csv, json or parquet, with all that the store knows.
In csv, json and parquet figures have the names of `report usage` and `joulemark job`: joules (_j),
the same in whole microjoules (_uj), grams (_g), watts (_w), seconds (_s), times since 1970 in
nanoseconds (_ns), money; null: not known. energy_systematic_uj and energy_random_uj are standard
uncertainties (k=1), energy_error_j is k=2 of both. peak_bound_w is the sum of the nodes' peaks.
step is `job` in a job's row, and job_id_raw is sacct's JobIDRaw without it. How many jobs have no
known energy, which only --all lists, or no known time, which are of no day, is said in a note, or
on stderr beside csv, json and parquet.
Where slurmdbd's PrivateData has `jobs`, who is no operator is shown his own jobs and those of
accounts that he coordinates, as by sacct; where Slurm cannot be asked, his own. stderr says so.

--anonymous has no jobs, for a job's times and energy name it beside what sacct tells, and how many
jobs of which size somebody has names him under any name. A row is the sum of jobs of five users or
more, alike in cluster, month, whether their energy is estimated, partition and, each within a
factor of two, energy, time and nodes. Of jobs of fewer users it is of more sizes; then what it is
not told apart by is null. Sums have three digits. How many jobs are in no row, without energy or
of too few users even so, is told on stderr. Still, who knows when somebody's jobs ran, and how
large they were, knows their rows, and of one that is most of all his about what they used. Two
exports that overlap in time differ by few jobs, or one's: give one away, not one a day.

examples:
  joulemark report jobs --top 10
  joulemark report jobs --since 2026-11-01 --format markdown
  joulemark report jobs --all --out jobs.parquet
  joulemark report jobs --all --anonymous --format csv --out study.csv
"""
TOP = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """How many, from when to when, and how to print."""
    parser.add_argument("--top", type=count, metavar="N", help=f"how many (default: {TOP})")
    parser.add_argument("--all", action="store_true", help="all of them; not for people")
    parser.add_argument("--steps", action="store_true", help="with --all: steps' rows too")
    parser.add_argument(
        "--anonymous",
        action="store_true",
        help="with --all: sums of jobs alike of several users, instead of jobs",
    )
    arguments.add_clusters(parser, "jobs of these clusters (default: all)")
    parser.add_argument("--since", metavar="DAY", help="jobs that began on this day or later")
    parser.add_argument("--until", metavar="DAY", help="jobs that began on this day or earlier")
    output.add_arguments(parser)


def count(text: str) -> int:
    """A number of jobs."""
    if not text.isdigit() or not 0 < int(text) < 1 << 31:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of jobs such as 20")
    return int(text)


def run(options: argparse.Namespace) -> int:
    """Prints the greatest jobs, or writes all of them batch by batch."""
    from joulemark import config, layout, progress, store
    from joulemark.accounting import anonymous, joblist, usage
    from joulemark.slurm import rights
    from joulemark.store.sums import Chosen, all_rows, top_jobs

    days = usage.days(options.since, options.until)
    if options.all and options.format not in output.FORMATS:
        raise UsageError(f"--all: it is for the formats {', '.join(output.FORMATS)}")
    for name in ("steps", "anonymous"):
        if getattr(options, name) and not options.all:
            raise UsageError(f"--{name}: goes with --all")
    if options.steps and options.anonymous:
        raise UsageError("--steps: goes without --anonymous, which tells of no job")
    if options.top and options.all:
        raise UsageError("--top: goes without --all")
    site = config.load()
    shown = rights.of_caller(site)
    with store.reading(site.store) as session:
        clusters = usage.chosen_clusters(session, options.clusters)
        chosen = Chosen(*days, clusters, shown.whose("jobs"))
        shown.tell("jobs")
        left_out = usage.left_out(session, chosen)
        if options.all:
            batches = map(joblist.as_records, all_rows(session, chosen, options.steps))
            columns = joblist.columns()
            if options.out or not sys.stdout.isatty():  # else the records themselves show it
                what = "records read" if options.anonymous else "records written"
                batches = progress.counted(batches, what, of=len)
            if options.anonymous:
                batches, columns = _anonymous(batches), anonymous.COLUMNS
            output.write(batches, options.format, options.out, columns)
            output.tell(left_out)
            return 0
        with progress.shown("looking for the greatest jobs"):
            rows = top_jobs(session, options.top or TOP, chosen)
        left_out += joblist.unlisted(session, chosen)
    records, tables = joblist.as_records(rows), (joblist.as_text(one) for one in [rows])
    layout.show(options, records, tables, joblist.notes(rows), joblist.columns(), left_out)
    return 0


def _anonymous(batches: Iterable[list[dict]]) -> Iterator[list[dict]]:
    from joulemark.accounting import anonymous

    rows, left_out = anonymous.rows(batches)
    if left_out:
        why = f"without energy, or of fewer than {anonymous.LEAST_USERS} users"
        output.tell([f"{left_out} runs of jobs are left out: {why}"])
    yield rows
