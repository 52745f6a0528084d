# Whose jobs are meant, where they are not everybody's.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from joulemark.store.session import Session

if TYPE_CHECKING:
    from joulemark.store.sums import Use


class Whose(NamedTuple):
    """A user's jobs, and all those of accounts: by his name, as slurmdbd knows him, on every
    cluster; where Slurm named nobody, by the uid that he has on this one, which may be another's
    elsewhere."""

    cluster: str
    uid: int
    user: str | None  # None: he has no name here
    accounts: tuple[str, ...] = ()

    def has(self, use: Use) -> bool:
        """Is it one of theirs?"""
        if use.account in self.accounts:
            return True
        nameless = not use.user and (use.cluster, use.uid) == (self.cluster, self.uid)
        return nameless or use.user == self.user

    def where(self) -> tuple[str, list]:
        """SQL after another condition on jobs' rows in job_run, and its values."""
        either = f" OR Account IN ({', '.join('?' * len(self.accounts))})" if self.accounts else ""
        his = "UserName = ? OR UserName = '' AND Cluster = ? AND Uid = ?"
        theirs = f"Payer IN (SELECT id FROM payer WHERE {his}{either})"
        return f" AND {theirs}", [self.user, self.cluster, self.uid, *self.accounts]


def runs(session: Session, whose: Whose, cluster: str, job: int) -> set[int]:
    """Of a job's, those of theirs: a number that was used again may have been others' before."""
    text, values = whose.where()
    query = f"SELECT Run FROM job_run WHERE Cluster = ? AND Job = ? AND Step = 'job'{text}"
    return {run for (run,) in session.rows(query, (cluster, job, *values))}
