# The energy of jobs that sacct shows: from the store, else from what AdminComment has of them.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import functools
import math
import os
from collections.abc import Collection
from dataclasses import dataclass

from joulemark import config, store
from joulemark.accounting import comment
from joulemark.errors import UserError
from joulemark.slurm import command
from joulemark.store import jobs
from joulemark.units import NS_PER_S

CLOCKS_S = 5.0
ANSWER_S = 5.0  # sacct's: who watches waits no longer
FIELDS = ("AdminComment", "JobIDRaw", "Cluster", "Start", "End")
FROM_COMMENT = "energies are from AdminComment: rounded, and of whole jobs, not of their steps"

Window = tuple[float, float]  # seconds since 1970: when a run started and ended; inf: not yet


@dataclass(frozen=True)
class Shown:
    """A job (`12`) or step (`12.batch`) as sacct shows it."""

    cluster: str
    id_raw: str
    window: Window
    admin_comment: str = ""  # a job's
    is_alone: bool = True  # no other run of the job is shown

    @property
    def job(self) -> int | None:
        """None: it has no number yet."""
        job = self.id_raw.partition(".")[0]
        return int(job) if job.isdigit() else None


class Energy:
    """Records of what sacct shows; `note` says what is to know about where they are from."""

    def __init__(self, shown: Collection[Shown]):
        self.note = ""
        self._shown = shown
        try:
            self._rows = _stored(shown)
        except UserError as error:
            self._rows = {}
            self.note = f"{error}; {FROM_COMMENT}"

    def row(self, one: Shown) -> dict | None:
        """Its record, if there is one; of a requeued job, or of a number that was used again, that
        of the run in the window."""
        rows = self._of_job(one)
        found = _run(rows, one) or self._seen_late(rows, one)
        has_ended = one.window[1] < math.inf  # else the comment is an earlier run's
        if found is None and one.admin_comment and has_ended:
            found = comment.read(one.admin_comment, one.job)
            if found and not self.note:
                self.note = f"of jobs that are not in the store {FROM_COMMENT}"
        return found

    def _of_job(self, one: Shown) -> list[dict]:
        return self._rows.get((one.cluster, one.job), [])

    @functools.cached_property
    def _claimed(self) -> set[int]:
        """Of the records of any shown run the ids: made only where a run has none."""
        return {id(row) for one in self._shown for row in _began(self._of_job(one), one)}

    def _seen_late(self, rows: list[dict], one: Shown) -> dict | None:
        """Of a run that the node's daemon did not see before Slurm had ended it: it was down all
        that time, and found a slurmstepd that still ended. No other run's."""
        first_s, last_s = one.window[0] - CLOCKS_S, one.window[1] + CLOCKS_S
        for row in _known(rows, one):
            unseen_s = row["GapSeconds"] or 0.0
            if first_s <= _start_s(row) - unseen_s <= last_s and id(row) not in self._claimed:
                return row
        return None


def of_ended(jobs_raw: Collection[int]) -> dict[int, dict] | None:
    """What is known of the last runs of jobs that have ended; None: sacct tells of none."""
    mark = command.mark()
    options = ["-nPX", f"--delimiter={mark}", "-j", ",".join(map(str, jobs_raw))]
    options += ["-o", ",".join(FIELDS)]
    env = {**os.environ, "SLURM_TIME_FORMAT": "%s"}
    try:
        done = command.run("", "sacct", *options, env=env, limit_s=ANSWER_S)
    except UserError:
        return None
    if done.returncode != 0:
        return None
    shown = [
        Shown(cluster, raw, (float(start), float(end)), comment)
        for comment, raw, cluster, start, end in command.split_rows(done.stdout, mark, len(FIELDS))
        if start.isdigit() and end.isdigit()
    ]
    energy = Energy(shown)
    found = {one.job: energy.row(one) for one in shown}
    return {job: row for job, row in found.items() if row and row["ConsumedEnergy_uj"] is not None}


def _stored(shown: Collection[Shown]) -> dict[tuple[str, int], list[dict]]:
    """Their rows in the store, a query for many jobs."""
    wanted: dict[str, dict[int, None]] = {}
    for one in shown:
        if one.job is not None:
            wanted.setdefault(one.cluster, {})[one.job] = None
    with store.reading(config.load().store) as session:
        return {
            (cluster, job): rows
            for cluster, numbers in wanted.items()
            for job, rows in jobs.rows_of_jobs(session, cluster, list(numbers)).items()
        }


def _known(rows: list[dict], one: Shown) -> list[dict]:
    return [row for row in rows if row["JobIDRaw"] == one.id_raw and row["Start_ns"] is not None]


def _began(rows: list[dict], one: Shown) -> list[dict]:
    """Those that began in its window; Slurm's clock and the node's, and their seconds and
    nanoseconds, differ a little."""
    first_s, last_s = one.window[0] - CLOCKS_S, one.window[1] + CLOCKS_S
    return [row for row in _known(rows, one) if first_s <= _start_s(row) <= last_s]


def _run(rows: list[dict], one: Shown) -> dict | None:
    start_s, end_s = one.window
    began = _began(rows, one)
    if began:
        return min(began, key=lambda row: abs(_start_s(row) - start_s))
    last = jobs.last_run(rows).get(one.id_raw)
    if last is None or not one.is_alone:
        return None
    if last["Start_ns"] is None:  # nobody measured it
        return last if end_s < math.inf else None
    # One that was resized: what Slurm shows is the part since.
    return last if start_s + CLOCKS_S < last["End_ns"] / NS_PER_S <= end_s + CLOCKS_S else None


def _start_s(row: dict) -> float:
    return row["Start_ns"] / NS_PER_S
