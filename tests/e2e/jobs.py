"""Jobs of the tests: one that has a node for itself, one that ends when the test says so."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import Cluster, wait_for
from tests.cluster.config import has_pmix
from tests.e2e.outcome import account_uj


def alone(
    cluster: Cluster, script: str, *options: str, node: str = "n1", user: str | None = None
) -> int:
    """A job that has the node for itself: what the node draws is the job's."""
    return cluster.sbatch("-w", node, "--exclusive", *options, "--wrap", script, user=user)


def script(cluster: Cluster, name: str, *lines: str) -> Path:
    path = cluster.jobs_folder / f"{name}.sh"
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    return path


def cooked(results: Path, name: str = "*") -> list[dict]:
    """The lines of all files of that name that benchmarks have left."""
    texts = [path.read_text() for path in sorted(results.glob(f"{name}.cooked.jsonl"))]
    return [json.loads(line) for text in texts for line in text.splitlines()]


def need_pmix() -> None:
    """Skips the test where srun cannot start the ranks of Debian's Open MPI."""
    if not has_pmix():
        pytest.skip("Slurm has no PMIx: srun starts no ranks of Open MPI")


def wait_step(cluster: Cluster, job: int, step: str = "batch", node: str = "n1") -> None:
    """Until this part of the job runs there."""
    wait_for(lambda: step in cluster.node(node).stepds(job), what=f"{job}.{step} to run")


@contextlib.contextmanager
def requeuing(cluster: Cluster, **settings: str) -> Iterator[Cluster]:
    """Slurm holds a requeued job back until its credentials have expired: soon, 5 s at least."""
    auth = f"socket={cluster.state}/run/munge.sock,cred_expire=5"
    with cluster.changed(slurm_conf={"AuthInfo": auth, **settings}) as changed:
        yield changed


def requeue(cluster: Cluster, job: int) -> None:
    """Returns when its second run has ended."""
    cluster.run(["scontrol", "requeue", str(job)])
    wait_for(lambda: cluster.job_state(job) == "COMPLETED", 90, "the second run")


class Flag:
    """A file that is not there yet; what waits for it goes on when the test sets it."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.path: Path = cluster.jobs_folder / f"flag-{name}"
        self.path.unlink(missing_ok=True)
        #: for a shell: idle until then, or busy
        self.wait = f"until [ -e {self.path} ]; do sleep 0.1; done"
        self.work = f"until [ -e {self.path} ]; do :; done"

    def set(self) -> None:
        self.path.touch()


@contextlib.contextmanager
def held(cluster: Cluster, script: str = "srun sh -c '{}'") -> Iterator[int]:
    """A job whose step on n1 runs and is charged; `{}` in its script ends when the block does."""
    end = Flag(cluster, "held")
    job = alone(cluster, script.format(end.wait))
    wait_step(cluster, job, "0")
    wait_for(lambda: account_uj(cluster.node("n1"), job, "0"), what=f"{job}.0 in the ledger")
    yield job
    end.set()
