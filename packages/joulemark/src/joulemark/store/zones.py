# In whose time zone the days of a cluster's jobs are.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

from joulemark.errors import UserError
from joulemark.store import days
from joulemark.store.days import UTC, Zone
from joulemark.store.session import Session

COLUMNS, KEY = ("Cluster", "Name"), ("Cluster",)
BATCH = 5000


class Zones(dict):
    """Of each cluster; UTC where nothing was said. Who asks for no other cluster's need not know
    its zone here."""

    def __init__(self, session: Session):
        super().__init__()
        self._session = session
        self._names = _names(session)

    def __missing__(self, cluster: str) -> Zone:
        name = self._names.get(cluster, UTC)
        try:
            found = self[cluster] = Zone(name)
        except ValueError:
            raise UserError(
                f"{self._session.place}: the days of {cluster} are those of {name}, a time zone "
                "that is not known here: install the system's package tzdata"
            ) from None
        return found

    def told(self, cluster: str) -> str:
        """The zone's name, and those of other ones in which the days of pruned jobs are."""
        name, pruned = self[cluster].name, _pruned(self._session)
        others = sorted(other for one, other in pruned if one == cluster and other != name)
        return f"{name} (of jobs that were pruned: {', '.join(others)}, too)" if others else name


def _names(session: Session) -> dict[str, str]:
    return dict(session.rows("SELECT Cluster, Name FROM time_zone"))


def _pruned(session: Session) -> set[tuple[str, str]]:
    return set(session.rows("SELECT cluster, name FROM pruned_zone"))


def note_pruned(session: Session, names: set[tuple[str, str]]) -> None:
    """That days of these clusters' pruned jobs are in these zones, whatever comes later."""
    session.insert("pruned_zone", ("cluster", "name"), names - _pruned(session))


def set_zone(session: Session, cluster: str, name: str) -> None:
    """A cluster's days are this zone's from now on, and those of the jobs that are there, too; of
    pruned ones the sums stay."""
    if _names(session).get(cluster, UTC) != name:
        renew(session, cluster, Zone(name))
        session.upsert("time_zone", COLUMNS, KEY, [(cluster, name)])


def renew(session: Session, cluster: str, zone: Zone) -> None:
    """Writes the days of a cluster's rows where they are not this zone's."""
    last = (-1, -1, "")
    while True:
        after, begin = session.after(("Job", "Run", "Step"), last)
        rows = session.rows(
            f"SELECT Job, Run, Step, Start_ns, End_ns, {', '.join(days.COLUMNS)} FROM job_run"
            f" WHERE Cluster = ? AND {after} ORDER BY Job, Run, Step LIMIT {BATCH}",
            (cluster, *begin),
        )
        if not rows:
            return
        changed = []
        for job, run, step, start_ns, end_ns, *known in rows:
            found = list(zone.columns(start_ns, end_ns, step).values())
            if found != known:
                changed.append((*found, cluster, job, run, step))
        session.many(
            f"UPDATE job_run SET {', '.join(f'{name} = ?' for name in days.COLUMNS)}"
            " WHERE Cluster = ? AND Job = ? AND Run = ? AND Step = ?",
            changed,
        )
        last = rows[-1][:3]
