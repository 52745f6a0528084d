# What an administrator decided of jobs' charges: which share of what was measured, who, when, why.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import json
from typing import NamedTuple

from joulemark.store.session import Session
from joulemark.store.whose import Whose


class Correction(NamedTuple):
    """One decision; none is ever changed or taken away, a later one takes its place."""

    cluster: str
    job: int
    number: int  # of the job's: 1 is the first
    made_ns: int
    author: str
    share: float | None  # of what was measured; None: energy_uj it is
    energy_uj: int | None
    why: str

    def share_of(self, measured_uj: int) -> float:
        """What is charged of what was measured."""
        if self.energy_uj is None:
            return self.share
        return self.energy_uj / measured_uj if measured_uj else 1.0


COLUMNS = ("Cluster", "Job", "Number", "Made_ns", "Author", "Share", "Energy_uj", "Why")
SELECT = f"SELECT {', '.join(COLUMNS)} FROM correction"


def add(session: Session, one: Correction) -> None:
    """Keeps it; one of that number is refused by the database."""
    session.insert("correction", COLUMNS, [one])


def by_job(session: Session) -> dict[tuple[str, int], list[Correction]]:
    """Each job's, the first first: people make few, and a merge has many jobs."""
    found: dict[tuple[str, int], list[Correction]] = {}
    for one in sorted(all_of(session), key=lambda one: one.number):
        found.setdefault((one.cluster, one.job), []).append(one)
    return found


def standing(session: Session, made: list[Correction], runs: list[dict]) -> list[Correction]:
    """Of a job's those of its runs: before these, a pruned job of the number may have had some."""
    if not made or not session.value(
        "SELECT 1 FROM pruned_job WHERE cluster = ? AND job = ?", (made[0].cluster, made[0].job)
    ):
        return made
    starts = [row["Start_ns"] for row in runs if row["Start_ns"] is not None]
    return [one for one in made if starts and one.made_ns >= min(starts)]


def keep_measured(session: Session, one: Correction, of_runs: dict[int, dict]) -> None:
    """What its job's runs are charged without it: of a share of 0 nobody could tell."""
    session.run(
        "UPDATE correction SET Measured = ? WHERE Cluster = ? AND Job = ? AND Number = ?",
        (json.dumps(list(of_runs.items())), one.cluster, one.job, one.number),
    )


def measured(session: Session, one: Correction) -> dict[int, dict]:
    """What keep_measured() kept; nothing of one that was made before version 9 and not merged
    since."""
    text = session.value(
        "SELECT Measured FROM correction WHERE Cluster = ? AND Job = ? AND Number = ?",
        (one.cluster, one.job, one.number),
    )
    return dict(json.loads(text or "[]"))


def all_of(session: Session, whose: Whose | None = None) -> list[Correction]:
    """The store's, or of jobs with a run of theirs, as they were made."""
    theirs, values = whose.where() if whose else ("", [])
    runs = "SELECT 1 FROM job_run WHERE job_run.Cluster = correction.Cluster"
    runs += f" AND job_run.Job = correction.Job AND Step = 'job'{theirs}"
    pruned = "SELECT 1 FROM pruned_job WHERE pruned_job.cluster = correction.Cluster"
    pruned += " AND pruned_job.job = correction.Job"  # which was another's, see standing()
    runs += f" AND (Start_ns <= Made_ns OR NOT EXISTS ({pruned}))"
    where = f" WHERE EXISTS ({runs})" if whose else ""
    rows = session.rows(f"{SELECT}{where} ORDER BY Made_ns, Cluster, Job, Number", values)
    return [Correction(*row) for row in rows]
