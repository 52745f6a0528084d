# Whose jobs are meant, where they are not everybody's.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

from typing import NamedTuple

from joulemark.store.session import Session


class Whose(NamedTuple):
    """A user's jobs, and all those of accounts."""

    uid: int
    accounts: tuple[str, ...] = ()

    def has(self, uid: int, account: str) -> bool:
        """Is it one of theirs?"""
        return uid == self.uid or account in self.accounts

    def where(self, steps: bool = False) -> tuple[str, list]:
        """SQL after another condition on job_run, and its values; steps: on rows of steps, too,
        which have no payer: their job's has."""
        either = f" OR Account IN ({', '.join('?' * len(self.accounts))})" if self.accounts else ""
        theirs = f"Payer IN (SELECT id FROM payer WHERE Uid = ?{either})"
        values = [self.uid, *self.accounts]
        if not steps:
            return f" AND {theirs}", values
        of_job = " AND ".join(f"whole.{key} = job_run.{key}" for key in ("Cluster", "Job", "Run"))
        return (
            f" AND EXISTS (SELECT 1 FROM job_run AS whole WHERE {of_job} AND whole.{theirs})",
            values,
        )


def runs(session: Session, whose: Whose, cluster: str, job: int) -> set[int]:
    """Of a job's, those of theirs: a number that was used again may have been others' before."""
    text, values = whose.where()
    query = f"SELECT Run FROM job_run WHERE Cluster = ? AND Job = ? AND Step = 'job'{text}"
    return {run for (run,) in session.rows(query, (cluster, job, *values))}
