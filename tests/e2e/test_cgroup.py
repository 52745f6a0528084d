"""CPU time from control groups: a process that leaves its process tree pays all the same."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from tests.cluster import Cluster, Node, wait_for
from tests.e2e.jobs import Flag, script, wait_step
from tests.e2e.outcome import assert_books_balance, ended_well, on_disk, outcome
from tests.e2e.waveform import STEADY

IDLE_W = 40
# A grandchild in a session of its own: its parent is process 1, and no tree of the step holds it.
DAEMONISE = "(setsid sh -c '{}' >/dev/null 2>&1 &)"


def can_use_cgroup_v1() -> bool:
    return os.geteuid() == 0 and os.access("/sys/fs/cgroup/cpuacct/cpuacct.usage", os.R_OK)


@pytest.fixture(scope="module", params=["cgroup1", "proc"])
def source(request: pytest.FixtureRequest, powered: Callable[..., Cluster]) -> tuple[Cluster, str]:
    """A cluster of 100 W nodes with and without control groups, and the source it must name."""
    cgroup = request.param == "cgroup1"
    if cgroup and not can_use_cgroup_v1():
        pytest.skip("no cgroup v1 hierarchy cpuacct that root may use: Slurm 22.05 needs it")
    cluster = powered(STEADY, name=f"from-{request.param}", idle_w=IDLE_W)
    return cluster.change(cgroup=cgroup), request.param


def test_who_left_the_process_tree_pays_where_there_are_control_groups(
    source: tuple[Cluster, str],
) -> None:
    """Two jobs halve a node; one works, in a daemon of its own, the other sleeps where it is seen.

    Where it is nobody's work, the other one, whose work is seen, pays for both.
    """
    cluster, name = source
    others = "sleep 4" if name == "cgroup1" else "timeout 4 sh -c 'while :; do :; done' || true"
    end = Flag(cluster, "daemon")
    place = ["-w", "n1", "-n1"]
    hidden = cluster.sbatch(*place, "--wrap", f"{DAEMONISE.format(end.work)}; {end.wait}")
    wait_step(cluster, hidden)
    # the hidden one's time alone on the node is short, however long we take to hear of an end
    quiet = outcome(cluster, cluster.sbatch(*place, "--wrap", f"{others}; touch {end.path}"))
    busy = outcome(cluster, hidden)
    for done in (busy, quiet):
        assert done.accounts()["n1"]["cpu_time"] == name
        assert done.accounts("batch")["n1"]["cpu_time"] == name
    if name == "cgroup1":
        assert 70 < busy.accounts()["n1"].mean_w <= 80.001
        assert 20 <= quiet.accounts()["n1"].mean_w < 30
    else:
        assert busy.accounts()["n1"].mean_w < 60
        assert quiet.accounts()["n1"].mean_w > 60
    assert_books_balance(cluster)


def test_steps_are_told_apart_by_their_groups(source: tuple[Cluster, str]) -> None:
    """Two steps at once: one works in a daemon, the other sleeps."""
    cluster, name = source
    end = Flag(cluster, "steps")
    path = script(
        cluster,
        "two-steps",
        f'srun -n1 --exact sh -c "{DAEMONISE.format(end.work)}; {end.wait}" &',
        f'srun -n1 --exact sh -c "{end.wait}" &',
        f"sleep 4; touch {end.path}; wait",
    )
    done = ended_well(cluster, cluster.sbatch("-w", "n1", "-n2", "--exclusive", path))
    parts = sorted(done.energy_uj(step) for step in ("0", "1"))
    assert all(done.accounts(step)["n1"]["cpu_time"] == name for step in ("0", "1"))
    if name == "cgroup1":
        assert parts[1] > 2.5 * parts[0]
    assert sum(parts) <= done.energy_uj("batch") <= done.energy_uj()


def samples(node: Node, job: int, source: int) -> int:
    """Of the batch step's account on disk, where its CPU time is of this source."""
    same = on_disk(node, job, "batch", "cpu_source") == source
    return int(on_disk(node, job, "batch", "samples")) if same else 0


def test_a_daemon_started_again_goes_on_with_the_group(source: tuple[Cluster, str]) -> None:
    cluster, name = source
    node, number = cluster.node("n1"), ["proc", "cgroup1"].index(name)
    end = Flag(cluster, "restart")
    job = cluster.sbatch("-w", "n1", "-n1", "--wrap", end.work)
    wait_for(lambda: samples(node, job, number) >= 2, what=f"samples of job {job}")
    node.daemon.kill(9)
    before = samples(node, job, number)
    assert before
    node.daemon.start()
    wait_for(lambda: samples(node, job, number) >= before + 2, what="samples afterwards")
    end.set()
    done = outcome(cluster, job)
    assert done.accounts("batch")["n1"]["cpu_time"] == name
    assert_books_balance(cluster)
