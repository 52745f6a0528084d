# The job records: one row for each run of a job, and one for each of its steps.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

from collections.abc import Iterable, Sequence

from joulemark.store.schema import JOB_RUN, JOB_RUN_KEY
from joulemark.store.session import Session

NAMES = tuple(JOB_RUN)
SELECT = f"SELECT {', '.join(NAMES)} FROM job_run"
PENDING_AT_ONCE = 50  # so that a job's epilog does not wait for a whole site's
ASKED_AT_ONCE = 500  # SQLite before 3.32 takes no more than 999 values


def put_job(session: Session, cluster: str, job: int, rows: list[dict]) -> dict[str, dict]:
    """Replaces a job's rows (its runs and their steps); returns what was its last_run() before.

    rows: dicts with the keys of NAMES.
    """
    before = job_rows(session, cluster, job)
    new, old = (
        {(row["Run"], row["Step"]): {name: row[name] for name in NAMES} for row in some}
        for some in (rows, before)
    )
    if old == new:
        return last_run(before)
    session.run("DELETE FROM job_run WHERE Cluster = ? AND Job = ?", (cluster, job))
    session.upsert(
        "job_run", NAMES, tuple(JOB_RUN_KEY), (tuple(row.values()) for row in new.values())
    )
    return last_run(before)


def job_rows(session: Session, cluster: str, job: int) -> list[dict]:
    """All rows of a job by run, the job's before its steps'; each has JobIDRaw too."""
    return rows_of_jobs(session, cluster, [job])[job]


def rows_of_jobs(session: Session, cluster: str, jobs: Sequence[int]) -> dict[int, list[dict]]:
    """Likewise of each of many; a query for every ASKED_AT_ONCE."""
    found: dict[int, list[dict]] = {job: [] for job in jobs}
    for start in range(0, len(jobs), ASKED_AT_ONCE):
        some = jobs[start : start + ASKED_AT_ONCE]
        marks = ", ".join("?" * len(some))
        query = f"{SELECT} WHERE Cluster = ? AND Job IN ({marks})"
        for values in session.rows(query, (cluster, *some)):
            row = as_dict(values)
            found[row["Job"]].append(row)
    for rows in found.values():
        rows.sort(key=lambda row: (row["Run"], row["Step"] != "job", row["Step"]))
    return found


def as_dict(values: tuple) -> dict:
    """A row of SELECT, with sacct's JobIDRaw."""
    row = dict(zip(NAMES, values))
    job, step = row["Job"], row["Step"]
    return {"JobIDRaw": str(job) if step == "job" else f"{job}.{step}", **row}


def last_run(rows: list[dict]) -> dict[str, dict]:
    """Of job_rows() those of the last run, by JobIDRaw: what sacct shows without -D."""
    last = max((row["Run"] for row in rows), default=0)
    return {row["JobIDRaw"]: row for row in rows if row["Run"] == last}


def add_pending(session: Session, found: Iterable[tuple[str, int]]) -> None:
    """Notes jobs whose records have to be made, until set_pending() says otherwise."""
    key = ("cluster", "job")
    session.upsert("pending", (*key, "tries"), key, [(*one, 0) for one in sorted(found)])


def set_pending(session: Session, cluster: str, job: int, pending: bool) -> None:
    """Notes that lines of a shared channel, price or storage that concern a job may yet come."""
    if not pending:
        session.run("DELETE FROM pending WHERE cluster = ? AND job = ?", (cluster, job))
        return
    key = ("cluster", "job")
    tries = session.value(
        "SELECT tries FROM pending WHERE cluster = ? AND job = ?", (cluster, job)
    )
    session.upsert("pending", (*key, "tries"), key, [(cluster, job, (tries or 0) + 1)])


def pending_jobs(session: Session, cluster: str, everything: bool) -> set[int]:
    """A cluster's jobs to look at again: all, or those that were tried least."""
    limit = "" if everything else f" LIMIT {PENDING_AT_ONCE}"
    jobs = f"SELECT job FROM pending WHERE cluster = ? ORDER BY tries, job{limit}"
    return {job for (job,) in session.rows(jobs, (cluster,))}
