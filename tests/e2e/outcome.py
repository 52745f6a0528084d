"""What is known of a job afterwards: sacct, the node records, the store, the daemons' ledgers."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import functools
import json
import re
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.cluster import PATIENCE_S, Cluster, Node, wait_for
from tests.e2e.waveform import NS, STEADY, Waveform

UJ = 1_000_000
COLUMNS = "Faults,Energy,EnergyError,EnergyMethod,Estimated,GapSeconds,EnergyMissing"


class Account(dict):
    """A job's, or a step's, on one node, as the node's record has it."""

    @property
    def seconds(self) -> float:
        return (self["end_ns"] - self["start_ns"]) / NS

    @property
    def energy_j(self) -> float:
        return self["energy_uj"] / UJ

    @property
    def mean_w(self) -> float:
        return self.energy_j / self.seconds

    def integral_j(self, power: Waveform = STEADY) -> float:
        """What its node drew meanwhile."""
        return power.energy_j(self["start_ns"], self["end_ns"])


@dataclass
class Outcome:
    """One job that has ended, and all that was written down about it."""

    cluster: Cluster
    job: int
    rows: dict[str, dict[str, str]]  # of sacct, by step: "job", "extern", "batch", "0", ...
    records: dict[str, dict]  # by node

    def sacct_j(self, step: str = "job") -> int:
        """0 also where Slurm knows of none, as of a step that ended before it first asked."""
        return int(self.rows[step]["ConsumedEnergyRaw"] or 0)

    def accounts(self, step: str = "job") -> dict[str, Account]:
        """The step's accounts by node."""
        return {
            node: account
            for node, record in self.records.items()
            for account in record["accounts"]
            if account["step"] == step
        }

    def energy_uj(self, step: str = "job") -> int:
        return sum(account["energy_uj"] for account in self.accounts(step).values())

    def energy_j(self, step: str = "job") -> float:
        return self.energy_uj(step) / UJ

    def integral_j(self, step: str = "job", power: Waveform = STEADY) -> float:
        """What the step's nodes drew while it ran there."""
        return sum(account.integral_j(power) for account in self.accounts(step).values())

    def notes(self, step: str = "job") -> str:
        return "; ".join(note for a in self.accounts(step).values() for note in a["notes"])

    def ledger_uj(self, step: str = "job") -> int:
        """What the daemons' own ledgers hold; an extern step's account is its job's."""
        own = "job" if step == "extern" else step
        return sum(
            account_uj(self.cluster.node(node), self.job, own) for node in self.accounts(step)
        )

    def column(self, name: str, step: str = "job") -> str:
        """A cell of `joulemark sacct`, exact."""
        return self._energy_rows[str(self.job) if step == "job" else f"{self.job}.{step}"][name]

    @functools.cached_property
    def _energy_rows(self) -> dict[str, dict[str, str]]:
        rows = self.cluster.sacct(self.job, f"JobIDRaw,{COLUMNS}", ours=True)
        return {row["JobIDRaw"]: row for row in rows}


LAUNCH = re.compile(r"joulemarkd did not see its first ([\d.]+) s(; )?")


def apart_from_launch(account: dict) -> tuple[float, str]:
    """An account's gap and notes without those of a launch that took more than a period.

    So long a loaded machine may take from a step's start until its daemon is told of it.
    """
    notes = "; ".join(account["notes"])
    late_s = sum(float(found[1]) for found in LAUNCH.finditer(notes))
    return round(account["gap_seconds"] - late_s, 2), LAUNCH.sub("", notes)


def record_file(cluster: Cluster, job: int, node: str, folder: str = "merged") -> Path:
    return record_dir(cluster) / folder / f"{cluster.options.name}.{job}.{node}.json"


def record_dir(cluster: Cluster) -> Path:
    return Path(str(cluster.options.daemon.get("record_dir", cluster.state / "records")))


def newest_record(cluster: Cluster, job: int, node: str) -> dict:
    """A later record of the same job and node is kept beside the first as NAME.2, NAME.3, ..."""
    first = record_file(cluster, job, node)
    later = sorted(first.parent.glob(f"{first.name}.*"), key=lambda path: int(path.suffix[1:]))
    return read_record([first, *later][-1])


def read_record(path: Path) -> dict:
    record = json.loads(path.read_text())
    return {**record, "accounts": [Account(account) for account in record["accounts"]]}


def outcome(cluster: Cluster, job: int, timeout_s: float = PATIENCE_S) -> Outcome:
    """Waits until the job has ended and its records are merged."""
    cluster.wait_job(job, timeout_s)
    rows = cluster.sacct(job, "JobIDRaw,NodeList", "-X")  # with an array's, all of its tasks'
    nodes = hosts(cluster, next(r["NodeList"] for r in rows if r["JobIDRaw"] == str(job)))
    wait_for(
        lambda: all(record_file(cluster, job, node).exists() for node in nodes),
        timeout_s,
        f"records of job {job} on {nodes}",
    )
    records = {node: newest_record(cluster, job, node) for node in nodes}
    return Outcome(cluster, job, sacct_rows(cluster, job), records)


def ended_well(cluster: Cluster, job: int, timeout_s: float = PATIENCE_S) -> Outcome:
    """The outcome of a job that nothing disturbed."""
    done = outcome(cluster, job, timeout_s)
    row = done.rows["job"]
    well = (row["State"], row["ExitCode"]) == ("COMPLETED", "0:0")
    assert well, f"{row}\n{cluster.job_output(job)}"
    return done


def assert_whole(done: Outcome, *steps: str, within_j: float = 0.01) -> None:
    """Each is charged all that its nodes drew while it ran there; without steps the job."""
    for step in steps or ("job",):
        missing_j = done.integral_j(step) - done.energy_j(step)
        assert abs(missing_j) <= within_j, (step, missing_j)


def sacct_rows(cluster: Cluster, job: int) -> dict[str, dict[str, str]]:
    fields = "JobID,State,ExitCode,ElapsedRaw,ConsumedEnergy,ConsumedEnergyRaw,NodeList"
    rows = cluster.sacct(job, f"{fields},AdminComment")
    return {row["JobID"].partition(".")[2] or "job": row for row in rows}


def hosts(cluster: Cluster, nodelist: str) -> list[str]:
    return cluster.run(["scontrol", "show", "hostnames", nodelist]).split()


def admin_comment(cluster: Cluster, job: int) -> str:
    """All of it: ours and what others wrote."""
    return cluster.sacct(job, "AdminComment")[0]["AdminComment"]


def comment(cluster: Cluster, job: int, timeout_s: float = PATIENCE_S) -> str:
    """The text of our segment of the job's AdminComment, as soon as it is there."""
    found = wait_for(
        lambda: re.search("<joulemark 1: ([^<>]*)>", admin_comment(cluster, job)),
        timeout_s,
        f"our part of AdminComment of job {job}",
        poll_s=0.1,
    )
    return found[1]


# -- a daemon's ledger ---------------------------------------------------------------------------


@contextlib.contextmanager
def ledger(node: Node) -> Iterator[sqlite3.Connection]:
    uri = f"{(node.ledger / 'ledger.sqlite').as_uri()}?mode=ro"
    with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=30)) as connection:
        yield connection


def forget(node: Node) -> None:
    """The daemon begins anew, as on a node that never had one."""
    node.daemon.stop()
    for file in node.ledger.glob("ledger.sqlite*"):
        file.unlink()
    node.daemon.start()


def wait_told(node: Node, cores: int) -> None:
    """Until the daemon knows that Slurm gives so many to jobs."""
    status = [joulemarkctl(node.cluster), "-N", node.name, "status"]
    said = f"cores: {cores}\n"
    wait_for(lambda: said in node.cluster.run(status), what=f"{cores} cores on {node.name}")


def open_accounts(node: Node) -> list[tuple[int, str]]:
    """(job, step) of each account that is open on disk; a job's own step is "job"."""
    with ledger(node) as connection:
        query = "SELECT job_id, step FROM account WHERE closed_ns = 0 ORDER BY id"
        return connection.execute(query).fetchall()


def on_disk(node: Node, job: int, step: str, column: str) -> int | str | None:
    """Of the newest account of the job's step; None: it has none yet."""
    with ledger(node) as connection:
        query = f"SELECT {column} FROM account WHERE job_id = ? AND step = ? ORDER BY id DESC"
        return (connection.execute(query, (job, step)).fetchone() or [None])[0]


def wait_on_disk(node: Node, job: int, step: str, column: str, least: int) -> None:
    what = f"{column} of {job}.{step} to be {least}"
    wait_for(lambda: int(on_disk(node, job, step, column) or 0) >= least, what=what)


def account_uj(node: Node, job: int, step: str) -> int:
    """Over the outermost channels, as the node's total counts them; what got none has no row."""
    with ledger(node) as connection:
        (total_uj,) = connection.execute(
            "SELECT coalesce(sum(energy_uj), 0) FROM balance"
            " JOIN account ON account.id = balance.account"
            " JOIN channel ON channel.name = balance.channel"
            " WHERE outermost AND job_id = ? AND step = ?",
            (job, step),
        ).fetchone()
    return total_uj


@dataclass
class Books:
    """One channel of a node's ledger, as SQLite has it."""

    name: str
    total_uj: int
    unallocated_uj: int
    settled_uj: int  # of jobs whose records are written
    open_uj: int  # of the others

    @property
    def balanced(self) -> bool:
        return self.total_uj == self.unallocated_uj + self.settled_uj + self.open_uj


def books(node: Node) -> list[Books]:
    """All channels in one snapshot."""
    job_kind = 0
    with ledger(node) as connection:
        rows = connection.execute(
            "SELECT name, total_uj, unallocated_uj, settled_uj, (SELECT"
            " coalesce(sum(energy_uj), 0) FROM balance JOIN account ON id = balance.account"
            " WHERE channel = name AND kind = ? AND recorded = 0) FROM channel",
            (job_kind,),
        ).fetchall()
    return [Books(*row) for row in rows]


def audit(cluster: Cluster, node: str) -> str:
    """What `joulemarkctl books` prints of a node; it fails when the books do not balance."""
    return cluster.run([joulemarkctl(cluster), "-N", node, "books"])


def assert_books_balance(cluster: Cluster) -> None:
    for node in cluster.nodes.values():
        assert "NOT BALANCED" not in audit(cluster, node.name)
        found = books(node)
        assert found and all(channel.balanced for channel in found), found


def joulemarkctl(cluster: Cluster) -> Path:
    return cluster.options.build.slurm_prefix / "bin" / "joulemarkctl"


def slurm_version(cluster: Cluster) -> tuple[int, int]:
    major, minor = cluster.run(["sinfo", "-V"]).split()[1].split(".")[:2]
    return int(major), int(minor)
