"""A job's share of its node's idle power, however Slurm counts: a full node is the whole.

The machine behind each node is one of two cores with two threads each. What Slurm gives away are
cores: two of them, or four where its configuration takes each thread for one.
"""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest

from tests.cluster import Cluster
from tests.e2e.jobs import Flag, wait_step
from tests.e2e.outcome import UJ, Outcome, assert_books_balance, ended_well, outcome, wait_told
from tests.e2e.waveform import STEADY

IDLE_W = 40
CORES = "Sockets=1 CoresPerSocket=2"
TOPOLOGY = {
    "n1": f"CPUs=4 {CORES} ThreadsPerCore=2",
    "n2": f"CPUs=2 {CORES} ThreadsPerCore=2",  # one CPU a core: no job takes a thread alone
    "n3": f"CPUs=2 {CORES} ThreadsPerCore=1",  # the same, with the second threads kept from Slurm
    "n4": "CPUs=4",  # each thread is a core to Slurm
    "n5": "CPUs=3 CoresPerSocket=3 CoreSpecCount=1",  # one core is the system's
}
CORES_FOR_JOBS = {"n1": 2, "n2": 2, "n3": 2, "n4": 4, "n5": 2}
TASKS = {"n1": 4, "n2": 2, "n3": 2, "n4": 4, "n5": 2}  # of a full node


@contextlib.contextmanager
def shares(powered: Callable[..., Cluster], select: str, partition: str = "") -> Iterator[Cluster]:
    with powered(STEADY, name="shares", idle_w=IDLE_W).changed(
        nodes=len(TOPOLOGY),
        topology=TOPOLOGY,
        partition=partition,
        slurm_conf={"SelectTypeParameters": select},
        daemon={"cpus": 4},  # the threads that such a machine has online
    ) as changed:
        for node, cores in CORES_FOR_JOBS.items():
            wait_told(changed.node(node), cores)
        yield changed


def submit(cluster: Cluster, part: int = 1, work: str = "true") -> dict[str, int]:
    """On each node a job of its every CPU, or of a part of them."""
    return {
        node: cluster.sbatch("-w", node, f"-n{tasks // part}", "--mem=1", "--wrap", work)
        for node, tasks in TASKS.items()
    }


def assert_share(done: Outcome, node: str, cores: float, idle: float) -> None:
    account, whole = done.accounts()[node], done.records[node]["node_cpus"]
    assert account["cpus"] == cores * whole, (node, whole)
    idle_j = idle * IDLE_W * account.seconds
    assert account["idle_uj"] / UJ == pytest.approx(idle_j, abs=0.1), node


@pytest.mark.parametrize("select", ["CR_CPU", "CR_Core_Memory"])
def test_a_full_node_is_the_whole_and_half_the_cores_are_half(
    powered: Callable[..., Cluster], select: str
) -> None:
    """Nobody else is there meanwhile: no room for both."""
    with shares(powered, select) as cluster:
        jobs = {1: submit(cluster), 1 / 2: submit(cluster, part=2)}
        for share, of_nodes in jobs.items():
            for node, job in of_nodes.items():
                assert_share(ended_well(cluster, job), node, share, share)
        assert_books_balance(cluster)


def test_two_jobs_on_the_same_cores_halve_them(powered: Callable[..., Cluster]) -> None:
    """The second is never there without the first."""
    with shares(powered, "CR_Core", "OverSubscribe=FORCE:2") as cluster:
        end = Flag(cluster, "forced")
        first = submit(cluster, work=end.wait)
        for node, job in first.items():
            wait_step(cluster, job, node=node)
        second = {node: outcome(cluster, job) for node, job in submit(cluster).items()}
        end.set()
        for node, done in second.items():
            assert_share(done, node, 1, 1 / 2)
            ended_well(cluster, first[node])
        assert_books_balance(cluster)
