# `joulemark store correct`: charges a job another energy than was measured, for a reason.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from joulemark import output
from joulemark.commands.arguments import number
from joulemark.errors import UserError
from joulemark.units import UJ_PER_J

if TYPE_CHECKING:
    from joulemark.accounting.jobid import JobId
    from joulemark.accounting.usage import Group

SUMMARY = "charge a job a part of its energy, or another one, and keep who did it, when and why"
EPILOG = """\
A job that a broken node ended is charged less, one that a wrong meter measured what is right. The
job's row shrinks or grows as a whole: energy and its parts, their errors, overhead, carbon and
cost, by the factors of its merge (of one that an earlier release than this corrected before, by
today's), and by --charge what storage servers drew for it, of which an energy of its nodes says
nothing; sums and reports follow at once, AdminComment when the next job has ended. Steps, mean and
peak power, profiles and the nodes' records stay what was measured, and a note of the job says what
that was. All runs of a requeued job are corrected alike; an energy is that of all together, and is
refused where what was measured is within its error of 0 J, of which nothing is a share. The last
correction of a job holds; `joulemark store corrections` has them all. They are in the store alone:
`joulemark merge --rebuild` into a new one does not know them. Whoever may write the store may
correct it; a job of another cluster with that one's joulemark.yaml ($JOULEMARK_CONFIG), which has
its price.

JOB is a raw id (sacct's JobIDRaw, which `report jobs` has), one task of an array (12_3) or one
component of a heterogeneous job (12+1). An array's own id, the raw id of one of its tasks, is
refused where sacct knows the array; where sacct does not answer it is taken for the raw id, which
is said.

examples:
  joulemark store correct 12 --charge 0% --why "its node failed, ticket 4711"
  joulemark store correct 13 --energy 3.6e6 --why "PDU 7 was wired to the next rack"
  joulemark store correct 13 --charge 100% --why "it was not, after all"
"""
LONGEST_WHY = 500


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which job, what it is charged, and why."""
    parser.add_argument(
        "job", type=_job_id, metavar="JOB", help="a raw id such as 12, or 12_3, 12+1"
    )
    charge = parser.add_mutually_exclusive_group(required=True)
    charge.add_argument(
        "--charge",
        type=_share,
        metavar="PERCENT",
        help="so much of what was measured, with its %%: 0%% to 1000%%",
    )
    charge.add_argument("--energy", type=_energy_uj, metavar="JOULES", help="so much, in joules")
    parser.add_argument("--why", type=_why, required=True, metavar="TEXT", help="the reason")


def _job_id(text: str) -> JobId:
    from joulemark.accounting.jobid import JobId

    try:
        return JobId.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _share(text: str) -> float:
    """`80%`: a bare 0.8 may be meant as 0.8 % or as 80 %."""
    what = "a charge from 0% to 1000%: write 80% or the like"
    return number(text, lambda percent: "%" in text and 0 <= percent <= 1000, what, "%") / 100


def _energy_uj(text: str) -> int:
    what = "an energy in joules such as 3.6e6"
    return round(number(text, lambda joules: 0 <= joules < 1e12, what) * UJ_PER_J)


def _why(text: str) -> str:
    if not text.strip() or len(text) > LONGEST_WHY or not text.isprintable():
        raise argparse.ArgumentTypeError(
            f"it takes a reason on one line, of at most {LONGEST_WHY} characters"
        )
    return text.strip()


def run(options: argparse.Namespace) -> int:
    """Keeps the correction and makes the job's record anew, in one transaction."""
    from joulemark import config, layout, store
    from joulemark.accounting import merge
    from joulemark.store import corrections

    site = config.load()
    cluster = site.cluster  # of another one's jobs this site knows no price
    job, raw = options.job.text, _raw(cluster, options.job)
    with store.writing(site.store, may_make=False) as session:
        before = _energy(session, cluster, raw, job)
        number = len(corrections.by_job(session).get((cluster, raw), ())) + 1
        made = corrections.Correction(
            *(cluster, raw, number, time.time_ns(), _author()),
            *(options.charge, options.energy, options.why),
        )
        corrections.add(session, made)
        lines = merge.renew(session, site, raw)
        after = _energy(session, cluster, raw, job)
        if options.energy and after.energy_error_j >= after.energy_j:
            raise UserError(
                f"job {job} of {cluster}: what was measured is within its error of 0 J, "
                f"of which nothing is a share: it cannot be {options.energy / UJ_PER_J:g} J"
            )
    told = (
        layout.joules(one.energy_j, one.energy_error_j, bool(one.estimated_jobs))
        for one in (before, after)
    )
    print(f"job {job}: {' -> '.join(told)}")
    _leave_comment(site, lines)
    return 0


def _raw(cluster: str, asked: JobId) -> int:
    """The one job that is meant, as the store knows it; without sacct it is taken for a raw id,
    which is said."""
    from joulemark.accounting import job
    from joulemark.accounting.jobrecord import few
    from joulemark.slurm import allocations

    told, silent = allocations.ask(cluster, [asked])
    found = {one.job_id.text: one.raw for one in told if asked.covers(one)}
    if len(found) > 1:
        several = f"several for Slurm, {few(list(found))}"
        raise UserError(f"job {asked.text}: {several}: correct each by itself")
    if not found and not asked.is_whole:
        raise UserError(f"job {asked.text}: {job.why_no_part(asked, told, silent)}")
    if silent:
        output.tell([f"job {asked.text}: {silent}: taken for a raw id, not for an array's"])
    return found.popitem()[1] if found else asked.job


def _energy(session, cluster: str, raw: int, job: str) -> Group:
    """Of all runs of the job."""
    from joulemark.accounting.job import used
    from joulemark.store import jobs, retention

    rows = jobs.job_rows(session, cluster, raw)
    of_job = [row for row in rows if row["Step"] == "job"]
    if not of_job and retention.is_pruned(session, cluster, raw):
        raise UserError(f"job {job} of {cluster}: it was pruned, and only sums of it are left")
    if not of_job:
        raise UserError(f"job {job} of {cluster}: the store has no record of it: merge it first")
    found = used(of_job)
    if not found.energy_jobs:
        raise UserError(f"job {job} of {cluster}: its energy is not known: nothing to correct")
    return found


def _author() -> str:
    import pwd

    user = os.environ.get("SUDO_USER") if os.getuid() == 0 else None
    if user:
        return f"{user} (sudo)"
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"


def _leave_comment(site, lines: list[str]) -> None:
    """For the next job's end to bring to Slurm, where a site lets merges do that. The correction
    is kept by now: who tried again would make a second one."""
    from joulemark.accounting.ended import Comments

    folder = Path(site.record_dir, "comments")
    if not (lines and folder.is_dir()):
        return
    try:
        Comments(site.record_dir, None).leave(lines)
    except OSError as error:
        output.tell(
            [
                f"{folder}: {error.strerror}: the correction is kept, but Slurm is not told: mend "
                "the folder; what AdminComment should have:",
                *(line.split("\t")[-1] for line in lines),
            ]
        )
