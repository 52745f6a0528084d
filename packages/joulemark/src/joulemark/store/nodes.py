# What nodes and Slurm said of a job: node records, and who ran it where.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import binascii
import json
import zlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from joulemark.store.session import Session
from joulemark.units import NS_PER_S

try:
    from _blake2 import (
        blake2b,
    )  # hashlib's own, without its 5 ms to load OpenSSL at every job's end
except ImportError:
    from hashlib import blake2b

KEY = ("cluster", "job", "node", "run_key")
FIRST_COLUMNS = (*KEY, "complete", "end_ns", "digest", "body")
# What is summed of each node: of the job's accounts whose energy is known.
USE_COLUMNS = ("energy_uj", "systematic_uj", "random_uj2", "seconds", "estimated")
COLUMNS = (*FIRST_COLUMNS, *USE_COLUMNS)
RUN_KEY = ("cluster", "job", "restart")
RUN_COLUMNS = (*RUN_KEY, "nodes", "why", "UserName", "Account", "PartitionName")
PAYER = ("Cluster", "Uid", "UserName", "Account", "PartitionName", "Currency")

# How much a record says: the node tells why there is no energy, or the energy.
EXCUSE, COMPLETE = 1, 2
UNKNOWN_RUN = -1
JOBS_KNOWN = 20_000  # of a rebuild there may be any number
# A run_key below this is Slurm's count of restarts; a greater one is a time in nanoseconds.
LEAST_TIME_NS = 1_000_000_000_000
NO_RECORD = "no record came in time"
NO_ACCOUNT = "(null)"  # slurmctld's SLURM_JOB_ACCOUNT of who has no association


def why_missing(wait_s: float) -> str:
    """Of a node's record that a merge did not find."""
    return f"no record came within {wait_s:g} s of the job's end"


@dataclass
class Found:
    """One record of a job on a node, as its file had it."""

    record: dict = field(repr=False)
    body: str = field(repr=False)  # packed()
    job: tuple[str, int]  # cluster and number
    place: tuple[str, int]  # node and run_key
    # The greater of two of one node and run is kept, whatever order they come in.
    rank: tuple[int, int, str]  # how complete, end_ns, digest

    @classmethod
    def of(cls, body: str, record: dict, digest: str) -> Found:
        """The record, the text that it was read from as it is stored, and that text's digest."""
        accounts = record["accounts"]
        end_ns = max([account["end_ns"] for account in accounts]) if accounts else 0
        return cls(
            record,
            body,
            (record["cluster"], record["JobIDRaw"]),
            (record["node"], run_key_of(record)),
            (COMPLETE if record["missing"] is None else EXCUSE, end_ns, digest),
        )

    @property
    def end_ns(self) -> int:
        """Of its accounts the last."""
        return self.rank[1]

    @property
    def digest(self) -> str:
        """Names the record's text."""
        return self.rank[2]

    def row(self) -> tuple:
        """Its values for COLUMNS."""
        return (*self.job, *self.place, *self.rank, self.body, *self.use)

    @property
    def use(self) -> tuple:
        """Its values for USE_COLUMNS."""
        known = [
            account
            for account in self.record["accounts"]
            if account["step"] == "job" and account["energy_uj"] is not None
        ]
        if not known:
            return (None,) * len(USE_COLUMNS)
        return (
            sum([account["energy_uj"] for account in known]),
            # JSON's may be whole, and then be more than a database's 63 bits.
            float(sum([account["uncertainty_systematic_uj"] for account in known])),
            float(sum([account["uncertainty_random_uj"] ** 2 for account in known])),
            sum([account["end_ns"] - account["start_ns"] for account in known]) / NS_PER_S,
            int(any([account["estimated"] for account in known])),
        )


def packed(text: str) -> str:
    """A record as it is stored: a fifth of its size, and of a database's work with it."""
    return binascii.b2a_base64(zlib.compress(text.encode(), 1), newline=False).decode()


def unpacked(body: str) -> str:
    """The record's text."""
    return zlib.decompress(binascii.a2b_base64(body)).decode()


def digest_of(text: str) -> str:
    """Names a record by its content."""
    return blake2b(text.encode(), digest_size=16).hexdigest()


def run_key_of(record: dict) -> int:
    """Which start of a requeued job it belongs to: Slurm's count of restarts, else the time."""
    restart = record.get("restart")
    if restart is not None:
        return restart
    starts = [a["start_ns"] for a in record["accounts"] if a["step"] == "job"]
    return starts[0] if starts else UNKNOWN_RUN


class Keeper:
    """Keeps node records as they come: of two of one job's run on a node the more complete."""

    def __init__(self, session: Session):
        self._session = session
        self._ranks: dict[tuple[str, int], dict[tuple, tuple]] = {}  # by job and place

    def put(self, found: Iterable[Found]) -> None:
        """Some records; what is stored of a job is asked for once, as a rule."""
        if len(self._ranks) > JOBS_KNOWN:
            self._ranks.clear()
        new: dict[tuple, Found] = {}
        better: dict[tuple, Found] = {}
        for one in found:
            ranks, key = self._ranks_of(one.job), (*one.job, *one.place)
            if one.place not in ranks:
                new[key] = one
            elif one.rank > ranks[one.place]:
                (new if key in new else better)[key] = one
            else:
                continue
            ranks[one.place] = one.rank
        self._session.insert("node_run", COLUMNS, (one.row() for one in new.values()))
        self._session.upsert("node_run", COLUMNS, KEY, (one.row() for one in better.values()))

    def _ranks_of(self, job: tuple[str, int]) -> dict[tuple, tuple]:
        if job not in self._ranks:
            rows = self._session.rows(
                "SELECT node, run_key, complete, end_ns, digest FROM node_run"
                " WHERE cluster = ? AND job = ?",
                job,
            )
            self._ranks[job] = {tuple(row[:2]): tuple(row[2:]) for row in rows}
        return self._ranks[job]


def node_records(
    session: Session, cluster: str, job: int, at_hand: dict[str, dict]
) -> list[tuple[int, dict]]:
    """(run_key, record) of a job, sorted by node; at_hand: records by digest, read already."""
    where = "FROM node_run WHERE cluster = ? AND job = ? ORDER BY node, run_key"
    kept = session.rows(f"SELECT run_key, digest {where}", (cluster, job))
    if any(digest not in at_hand for _, digest in kept):
        bodies = session.rows(f"SELECT digest, body {where}", (cluster, job))
        at_hand = {digest: json.loads(unpacked(body)) for digest, body in bodies}
    return [(run_key, at_hand[digest]) for run_key, digest in kept]


def complete_nodes(session: Session, cluster: str, job: int, restart: int) -> set[str]:
    """The nodes whose complete record of this start of the job is stored already.

    Where records do not count the starts, a node must have one more of them than restarts.
    """
    rows = session.rows(
        "SELECT node, run_key FROM node_run WHERE cluster = ? AND job = ? AND complete = ?",
        (cluster, job, COMPLETE),
    )
    uncounted = Counter(node for node, run_key in rows if run_key >= LEAST_TIME_NS)
    counted = {node for node, run_key in rows if run_key == restart}
    return counted | {node for node, count in uncounted.items() if count > restart}


@dataclass(frozen=True)
class SlurmRun:
    """What Slurm says of one start of a job; empty texts: it was not asked."""

    restart: int = 0
    nodes: tuple[str, ...] = ()
    why_missing: str = NO_RECORD
    user: str = ""
    account: str = ""
    partition: str = ""


def put_slurm_run(session: Session, cluster: str, job: int, run: SlurmRun) -> None:
    """Keeps Slurm's latest word; empty values leave earlier ones as they are."""
    old = slurm_runs(session, cluster, job).get(run.restart, SlurmRun(run.restart))
    same_nodes = set(run.nodes) == set(old.nodes)
    account = run.account if run.account != NO_ACCOUNT else ""
    row = (
        *(cluster, job, run.restart),
        ",".join(sorted(run.nodes or old.nodes)),
        old.why_missing if same_nodes else run.why_missing,
        *(run.user or old.user, account or old.account, run.partition or old.partition),
    )
    session.upsert("slurm_run", RUN_COLUMNS, RUN_KEY, [row])


def slurm_runs(session: Session, cluster: str, job: int) -> dict[int, SlurmRun]:
    """What Slurm said of a job, by the number of restarts."""
    rows = session.rows(
        "SELECT restart, nodes, why, UserName, Account, PartitionName FROM slurm_run"
        " WHERE cluster = ? AND job = ? ORDER BY restart",
        (cluster, job),
    )
    return {
        restart: SlurmRun(restart, tuple(filter(None, names.split(","))), *rest)
        for restart, names, *rest in rows
    }


def payer(
    session: Session,
    cluster: str,
    uid: int,
    user: str = "",
    account: str = "",
    partition: str = "",
    currency: str = "",
) -> int:
    """The number of who is charged, made where it is new; usage is summed by it."""
    values = (cluster, uid, user, account, partition, currency)
    where = " AND ".join(f"{name} = ?" for name in PAYER)
    known = session.value(f"SELECT id FROM payer WHERE {where}", values)
    if known is None:
        session.insert("payer", PAYER, [values])
        known = session.value(f"SELECT id FROM payer WHERE {where}", values)
    return known
