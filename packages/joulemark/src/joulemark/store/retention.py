# Takes jobs that ended long ago from the store, and keeps what they add to each day's sums.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

from collections.abc import Iterator

from joulemark import progress
from joulemark.store import node_sums, sums
from joulemark.store.schema import KEPT, KEPT_KEY
from joulemark.store.session import Session
from joulemark.store.zones import Zones, note_pruned

BATCH = 5000
TABLES = ("job_run", "node_run", "slurm_run", "pending")
JOB_KEY = ("cluster", "job")
Job = tuple[str, int]


def jobs_before(session: Session, day: int) -> Iterator[list[Job]]:
    """Of each cluster, those all of whose runs ended before that day, batch by batch.

    A job of which nobody knows when it ran is none of them.
    """
    last: Job = ("", -1)
    while True:
        after, begin = session.after(("Cluster", "Job"), last)
        found = session.rows(
            f"SELECT Cluster, Job FROM job_run WHERE Step = 'job' AND {after}"
            " GROUP BY Cluster, Job"
            f" HAVING MAX(COALESCE(LastDay, Day)) < {int(day)} AND COUNT(Day) = COUNT(*)"
            f" ORDER BY Cluster, Job LIMIT {BATCH}",
            begin,
        )
        if not found:
            return
        yield found
        last = found[-1]


def prune(session: Session, day: int) -> int:
    """How many jobs went; their energies, days and payers are summed in `kept`."""
    zones, count = Zones(session), 0
    for batch in progress.counted(jobs_before(session, day), "jobs pruned", of=len):
        parts = sums.Kept()
        parts.add_jobs(session, batch, zones)
        _keep(session, parts)
        node_sums.keep(session, batch, zones)
        for table in TABLES:
            session.many(f"DELETE FROM {table} WHERE Cluster = ? AND Job = ?", batch)
        ended = [(cluster, job, zones[cluster].begin_ns(day)) for cluster, job in batch]
        session.upsert("pruned_job", (*JOB_KEY, "end_ns"), JOB_KEY, ended)
        note_pruned(session, {(cluster, zones[cluster].name) for cluster, _ in batch})
        count += len(batch)
    _note(session, day, zones)
    return count


def _keep(session: Session, parts: sums.Kept) -> None:
    for key in parts.sums:
        where = " AND ".join(f"{name} = ?" for name in KEPT_KEY)
        for row in session.rows(f"SELECT {', '.join(KEPT)} FROM kept WHERE {where}", key):
            parts.add(key, sums.kept_numbers(row[len(KEPT_KEY) :]))
    rows = [(*key, *sums.kept_row(numbers)) for key, numbers in parts.sums.items()]
    session.upsert("kept", KEPT, KEPT_KEY, rows)


def _note(session: Session, day: int, zones: Zones) -> None:
    """So that who sums meanwhile sees that jobs went."""
    clusters = [cluster for (cluster,) in session.rows("SELECT DISTINCT Cluster FROM payer")]
    before = ends(session)
    rows = [(name, max(before.get(name, 0), zones[name].begin_ns(day))) for name in clusters]
    session.upsert("pruned", ("Cluster", "End_ns"), ("Cluster",), rows)


def ends(session: Session) -> dict[str, int]:
    """Of each cluster: what ended later is of no pruned job."""
    return dict(sums.pruned(session))


def is_pruned(session: Session, cluster: str, job: int, end_ns: int = 0) -> bool:
    """Whether what comes of a job is of one whose energy is in `kept`.

    end_ns: when it ended; 0: it does not say, and is of a known job of that number, if any.
    """
    where = "WHERE cluster = ? AND job = ?"
    ended_ns = session.value(f"SELECT end_ns FROM pruned_job {where}", (cluster, job))
    if ended_ns is None or end_ns > ended_ns:
        return False
    known = (f"SELECT 1 FROM {table} {where} LIMIT 1" for table in ("node_run", "slurm_run"))
    return end_ns > 0 or not any(session.value(one, (cluster, job)) for one in known)
