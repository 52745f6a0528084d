# `joulemark job`: its options; joulemark.accounting.job and sacct do the work.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from joulemark import output
from joulemark.commands import arguments
from joulemark.errors import UserError

if TYPE_CHECKING:
    from joulemark.accounting.job import Job
    from joulemark.accounting.jobid import JobId
    from joulemark.config import Config

SUMMARY = (
    "tell what a job cost: its energy, power, parts, steps, regions, and what would change it"
)
EPILOG = """\
From the site's store, once the job has ended and a merge has run; energies have their uncertainty
(k=2). ID is a job's raw id, all of an array (12), one task (12_3) or some (12_[1-3,7]), all of a
heterogeneous job (12) or one component (12+1). What has several jobs, or runs, for Slurm may
requeue a job, is summed: systematic errors add up, random ones in quadrature.

sacct tells which raw ids an array has, and of CPU-hours and CPU use (TotalCPU over AllocCPUS x the
time of the nodes' records; Slurm does not count what a task's processes leave running). Without it
a raw id is looked up alone. Mean power is over the time in which a part of the job ran. Peak
power, of all nodes together, is known where the job has a profile (--energy=profile) that you may
read; else a note says why not, and it is at most the sum of the nodes' own peaks (peak_bound_w).
Power, energy per CPU-hour and what would change the energy are of what was measured, also where
`joulemark store correct` charges another one.
A sum that lacks runs says so, `50.0 (2 of 3)`: the other had no such step or region, or its energy
is not known. --format json has joules, whole microjoules (_uj), watts, seconds, grams, null: not
known, and of how many runs a sum is (energy_jobs, energy_gpu_jobs). csv and parquet have a row an
ID of the same names, without runs, steps, regions and what is said. A job
that `report jobs` does not show you is not known here, either.

Who cannot read the store, or has no joulemark.yaml, is told what AdminComment has of the jobs that
sacct shows him: all but steps, regions and nodes' notes. Energy is rounded to 0.1 J, other figures
to 0.1 or four digits, times are Slurm's whole seconds, and what is made of a corrected energy is
of what is charged; of a requeued job Slurm is told a correction of the last run alone. The last
line says so, in json the last of `notes`, for csv, json and parquet stderr.

-M LIST tells each cluster's job of that number; what one of them has is known.

Exit: 0; 1 where a job is not known: stderr says why.

examples:
  joulemark job 12
  joulemark job '12_[1-3]' 14+1 --format json
  joulemark job 12 13 14 --out jobs.csv
  joulemark job 12 -M north,south
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which jobs, and how to print."""
    parser.add_argument(
        "jobs", nargs="+", type=_job_ids, metavar="ID", help="12, 12_3, 12_[1-3] or 12+1"
    )
    arguments.add_clusters(parser, "of these clusters (default: joulemark.yaml's)")
    output.add_arguments(parser)


def _job_ids(text: str) -> list:
    from joulemark.accounting.jobid import JobId

    try:
        return [JobId.parse(one) for one in re.split(r",(?![^\[]*\])", text)]
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def run(options: argparse.Namespace) -> int:
    """Prints the jobs that are known; 1 if one is not."""
    from joulemark import config, layout
    from joulemark.accounting import job, jobreport, usage
    from joulemark.slurm import allocations, configuration

    asked = [one for ids in options.jobs for one in ids]
    chosen = dict.fromkeys(usage.named_clusters(options.clusters))
    known = {name: allocations.ask(name, asked, "-M", name) for name in chosen}
    try:
        site = config.load()
    except UserError as error:
        if config.is_there():
            raise
        # as on a login node
        cluster = None if known else configuration.cluster()
        known = known or {cluster: allocations.ask(cluster, asked)}
        found, problems = _told(asked, known, str(error))
    else:
        known = known or {site.cluster: allocations.ask(site.cluster, asked)}
        found, problems = _of_store(site, asked, known)
        found = [job.with_peak(one, site) for one in found]
    output.tell(problems)
    records_of = jobreport.as_records if options.format == "json" else jobreport.as_rows
    texts = (jobreport.as_text(one, names_cluster=bool(chosen)) for one in found)
    layout.show_each(options, records_of(found), texts, jobreport.columns())
    if options.format in output.FORMATS:
        output.tell(dict.fromkeys(note for one in found for note in jobreport.source(one)))
    return 1 if problems else 0


def _of_store(
    site: Config, asked: list[JobId], known: dict[str, tuple]
) -> tuple[list[Job], list[str]]:
    """As _each, of the store, or, where it cannot be read, of sacct alone."""
    from joulemark import progress, store
    from joulemark.accounting import job
    from joulemark.slurm import rights

    shown = rights.of_caller(site)
    whose = shown.whose("jobs")
    try:
        with progress.shown("asking the store"), store.reading(site.store) as session:
            found, problems = _each(
                asked, known, lambda where, *one: job.find(session, where, *one, whose)
            )
        if problems:
            shown.tell("jobs")
    except UserError as error:
        return _told(asked, known, str(error))
    return found, problems


def _told(asked: list[JobId], known: dict[str, tuple], why: str) -> tuple[list[Job], list[str]]:
    """As _each, of what sacct tells alone; why: the store cannot be read."""
    from joulemark.accounting import job

    return _each(asked, known, lambda *one: job.find_told(*one, why))


def _each(
    asked: list[JobId], known: dict[str, tuple], find: Callable[..., Job]
) -> tuple[list[Job], list[str]]:
    """Those that are known, and why the others are not, which no cluster has; known: what sacct
    says of each cluster's."""
    found, problems = [], []
    for one in asked:
        here, lacking = [], []
        for cluster, told in known.items():
            try:
                here.append(find(cluster, one, *told))
            except UserError as error:
                lacking.append(f"{cluster}: {error}" if len(known) > 1 else str(error))
        found += here
        problems += [] if here else lacking
    return found, problems
