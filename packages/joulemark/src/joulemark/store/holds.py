# Accounts that are held because their budget is used up, and the limit that each had before.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

from joulemark.store.session import Session

COLUMNS, KEY = ("Cluster", "Account", "GrpJobs"), ("Cluster", "Account")


def of_cluster(session: Session, cluster: str) -> dict[str, str]:
    """GrpJobs as it was, by account."""
    return dict(session.rows("SELECT Account, GrpJobs FROM held WHERE Cluster = ?", (cluster,)))


def add(session: Session, cluster: str, account: str, limit: str) -> None:
    """From now on; limit: as it was."""
    session.upsert("held", COLUMNS, KEY, [(cluster, account, limit)])


def remove(session: Session, cluster: str, account: str) -> None:
    """No more."""
    session.run("DELETE FROM held WHERE Cluster = ? AND Account = ?", (cluster, account))
