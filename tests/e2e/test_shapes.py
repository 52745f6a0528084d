"""Every shape that Slurm gives a job: the energy of each part is what the known power says."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from tests.cluster import ORDINARY_USER, Cluster, wait_for
from tests.e2e.jobs import Flag, requeue, requeuing, script
from tests.e2e.outcome import (
    UJ,
    Outcome,
    account_uj,
    assert_whole,
    books,
    newest_record,
    outcome,
    read_record,
    record_file,
    wait_on_disk,
)
from tests.e2e.waveform import NS, STEADY

NODE_W, IDLE_W = 100, 40
CPU_IDLE_W = IDLE_W / 2  # each node has two


@pytest.fixture(scope="module")
def cluster_of_100_w(powered: Callable[..., Cluster]) -> Cluster:
    return powered(STEADY, name="shapes", idle_w=IDLE_W)


@pytest.fixture
def shaped(cluster_of_100_w: Cluster) -> Iterator[Cluster]:
    """The books of every node balance after every test."""
    yield cluster_of_100_w
    for node in cluster_of_100_w.nodes.values():
        found = books(node)
        assert found and all(channel.balanced for channel in found), found


def wait_samples(cluster: Cluster, job: int, *steps: str, node: str = "n1") -> None:
    """Until each step has three samples: some seconds of it are in the ledger."""
    for step in steps:
        wait_on_disk(cluster.node(node), job, step, "samples", 3)


def assert_sacct_agrees(done: Outcome) -> None:
    for step in done.rows:
        rounding_j = 0.5 * len(done.accounts(step)) + 0.01
        assert done.sacct_j(step) == pytest.approx(done.energy_j(step), abs=rounding_j), step


def test_steps_that_run_at_once_divide_their_jobs_energy(shaped: Cluster) -> None:
    """The one that works has the most of it; together they have no more than there is."""
    end = Flag(shaped, "concurrent")
    job = shaped.sbatch(
        *("-w", "n1", "-n2", "--exclusive"),
        script(
            shaped,
            "concurrent",
            f"srun -n1 --exact sh -c '{end.work}' &",
            f"srun -n1 --exact sh -c '{end.wait}' &",
            "wait",
        ),
    )
    wait_samples(shaped, job, "0", "1")
    long_enough_j = 3 * NODE_W  # what it takes to start a step no longer matters
    wait_for(
        lambda: sum(account_uj(shaped.node("n1"), job, s) for s in "01") > long_enough_j * UJ,
        what=f"{long_enough_j} J of both steps",
    )
    end.set()
    done = outcome(shaped, job)
    assert_sacct_agrees(done)
    assert_whole(done)
    parts_uj = sorted(done.energy_uj(step) for step in ("0", "1"))
    assert sum(parts_uj) <= done.energy_uj("batch") <= done.energy_uj()
    assert parts_uj[1] > 2 * parts_uj[0] > 0
    # while both ran they had all of the node, and each had half of the idle energy at least
    for step in ("0", "1"):
        account = done.accounts(step)["n1"]
        assert account["idle_uj"] / UJ >= 0.95 * CPU_IDLE_W * account.seconds - 1


def test_a_suspended_job_keeps_its_share_of_the_idle_power_alone(shaped: Cluster) -> None:
    end = Flag(shaped, "suspended")
    job = shaped.sbatch("-w", "n1", "-n1", "--wrap", f"srun sh -c '{end.work}'")
    wait_samples(shaped, job, "0")
    shaped.run(["scontrol", "suspend", str(job)])
    held = 3 * NS
    wait_on_disk(shaped.node("n1"), job, "job", "suspended_ns", held)
    assert shaped.job_state(job) == "SUSPENDED"
    shaped.run(["scontrol", "resume", str(job)])
    end.set()
    done = outcome(shaped, job)
    account = done.accounts()["n1"]
    suspended_s = account["suspended_seconds"]
    assert held / NS <= suspended_s <= account.seconds
    assert f"suspended for {suspended_s:.1f} s" in done.notes()
    running_s = account.seconds - suspended_s
    expected_j = CPU_IDLE_W * account.seconds + (NODE_W - IDLE_W) * running_s
    assert account["idle_uj"] / UJ == pytest.approx(CPU_IDLE_W * account.seconds, abs=0.1)
    assert account.energy_j == pytest.approx(expected_j, abs=1)
    assert_sacct_agrees(done)


def runs_of(cluster: Cluster, job: int, node: str) -> list[dict]:
    """The job's accounts in all records of it, the first run first."""
    first = record_file(cluster, job, node)
    records = [read_record(path) for path in first.parent.glob(f"{first.name}*")]
    accounts = [record["accounts"][0] for record in records]
    return sorted(accounts, key=lambda account: account["start_ns"])


def test_each_run_of_a_requeued_job_has_its_own_record(shaped: Cluster) -> None:
    """As in sacct the last run is the job's; the earlier one is kept, and none has the other's."""
    with requeuing(shaped) as cluster:
        steps = "if [ -z $SLURM_RESTART_COUNT ]; then srun sleep 60; else srun sleep 1; fi"
        job = cluster.sbatch("-N2", "--exclusive", "--requeue", "--wrap", steps)
        wait_samples(cluster, job, "0", node="n2")
        requeue(cluster, job)
        for node in ("n1", "n2"):
            wait_for(lambda node=node: len(runs_of(cluster, job, node)) == 2, what="both records")
        done = outcome(cluster, job)
        states = [row["State"] for row in cluster.sacct(job, "State", "-DX")]
        assert states == ["REQUEUED", "COMPLETED"]
    for node in ("n1", "n2"):
        first, last = runs_of(cluster, job, node)
        assert first["end_ns"] < last["start_ns"]
        assert last["energy_uj"] == done.accounts()[node]["energy_uj"]
        for account in (first, last):
            assert account.energy_j == pytest.approx(NODE_W * account.seconds, abs=0.01)
    assert_whole(done)
    assert_sacct_agrees(done)


def test_each_task_of_an_array_is_a_job_of_its_own(shaped: Cluster) -> None:
    array = shaped.sbatch("--array=0-2", "-n2", "-N1", "--exclusive", "--wrap", "sleep 1")
    wait_for(
        lambda: not shaped.run(["squeue", "-h", "-j", str(array)], check=False), what="the end"
    )
    rows = wait_for(lambda: all_ended(shaped, array, 3), what="sacct's rows")
    for row in rows:
        done = outcome(shaped, int(row["JobIDRaw"]))
        (account,) = done.accounts().values()
        assert account.energy_j == pytest.approx(NODE_W * account.seconds, abs=0.01)
        assert int(row["ConsumedEnergyRaw"]) == pytest.approx(account.energy_j, abs=0.51)


def test_of_an_array_of_ten_thousand_what_ran_has_its_energy(shaped: Cluster) -> None:
    """The rest, which is cancelled before it runs, is one row without."""
    with shaped.changed(slurm_conf={"MaxArraySize": "10001"}) as cluster:
        words = [
            "--array=0-9999%2",
            "-n1",
            "--exclusive",
            "-o",
            "/dev/null",
            "--wrap",
            "sleep 0.5",
        ]
        array = cluster.sbatch(*words)
        wait_for(lambda: len(ran(cluster, array)) >= 4, what="four tasks to end")
        cluster.run(["scancel", str(array)])
        wait_for(
            lambda: not cluster.run(["squeue", "-h", "-j", str(array)], check=False),
            what="the end",
        )
        tasks = ran(cluster, array)
        for row in tasks:
            assert_sacct_agrees(outcome(cluster, int(row["JobIDRaw"])))
        words = ["joulemark", "sacct", "-X", "-nP", "-j", str(array), "-o", "JobID,Energy"]
        cells = dict(line.split("|") for line in cluster.run(words).splitlines())
    assert all(float(cells[row["JobID"]]) > 0 for row in tasks)
    (rest,) = (name for name in cells if name.startswith(f"{array}_["))
    assert cells[rest] == ""


def ran(cluster: Cluster, array: int) -> list[dict[str, str]]:
    rows = cluster.sacct(array, "JobID,JobIDRaw,State", "-X")
    return [row for row in rows if row["State"] == "COMPLETED"]


def test_a_preempted_job_and_the_one_that_took_its_node_pay_each_for_itself(
    shaped: Cluster,
) -> None:
    settings = {
        "PreemptType": "preempt/partition_prio",
        "PreemptMode": "REQUEUE",
        "PartitionName": "urgent Nodes=ALL PriorityTier=10 State=UP",
    }
    with requeuing(shaped, **settings) as cluster:
        steps = "if [ -z $SLURM_RESTART_COUNT ]; then srun sleep 60; else srun sleep 1; fi"
        job = cluster.sbatch("-w", "n1", "--exclusive", "--requeue", "--wrap", steps)
        wait_samples(cluster, job, "0")
        urgent = cluster.sbatch("-w", "n1", "--exclusive", "-p", "urgent", "--wrap", "sleep 1")
        wait_for(lambda: len(runs_of(cluster, job, "n1")) == 2, 90, "both runs' records")
        first, last = runs_of(cluster, job, "n1")
        between = outcome(cluster, urgent).accounts()["n1"]
    assert first["end_ns"] <= between["start_ns"] < between["end_ns"] <= last["start_ns"]
    for account in (first, between, last):
        assert account.energy_j == pytest.approx(NODE_W * account.seconds, abs=0.01)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be other users")
def test_a_node_that_is_one_users_alone_is_divided_among_his_jobs(shaped: Cluster) -> None:
    end = Flag(shaped, "one-user")
    options = ("-w", "n1", "-n1")
    jobs = [
        shaped.sbatch(*options, "--exclusive=user", "--wrap", end.wait, user=ORDINARY_USER)
        for _ in range(2)
    ]
    another = shaped.sbatch(*options, "--wrap", "true")
    for job in jobs:
        wait_on_disk(shaped.node("n1"), job, "job", "samples", 1)
    wait_for(
        lambda: all(account_uj(shaped.node("n1"), job, "job") > 100 * UJ for job in jobs),
        what="both to have run for seconds",
    )
    assert shaped.job_state(another) == "PENDING"
    end.set()
    pair = [outcome(shaped, job).accounts()["n1"] for job in jobs]
    begins, ends = ([account[key] for account in pair] for key in ("start_ns", "end_ns"))
    open_s = (max(ends) - min(begins)) / NS
    expected_j = sum(CPU_IDLE_W * a.seconds for a in pair) + (NODE_W - IDLE_W) * open_s
    assert sum(account.energy_j for account in pair) == pytest.approx(expected_j, rel=0.02)
    assert outcome(shaped, another).accounts()["n1"]["start_ns"] >= max(ends)


def all_ended(cluster: Cluster, job: int, count: int) -> list[dict[str, str]]:
    """sacct's rows of jobs (no steps), once there are so many and all have ended."""
    rows = cluster.sacct(job, "JobID,JobIDRaw,State,ConsumedEnergyRaw", "-X")
    whole = len(rows) == count and all(row["State"] == "COMPLETED" for row in rows)
    return rows if whole and all(row["ConsumedEnergyRaw"] for row in rows) else []


def test_the_components_of_a_heterogeneous_job_pay_for_their_own_nodes(shaped: Cluster) -> None:
    """Component 1 has a step of its own beside the one that both share."""
    path = script(
        shaped,
        "heterogeneous",
        "#SBATCH -N1 -w n1 --exclusive",
        "#SBATCH hetjob",
        "#SBATCH -N1 -w n2 --exclusive",
        "srun --het-group=0,1 sleep 1",
        "srun --het-group=1 -n1 sleep 1",
    )
    leader = shaped.sbatch(path)
    outcome(shaped, leader)
    rows = wait_for(lambda: all_ended(shaped, leader, 2), what="both components")
    assert [row["JobID"] for row in rows] == [f"{leader}+0", f"{leader}+1"]
    of_all = shaped.sacct(leader, "JobIDRaw,ConsumedEnergyRaw")
    told_j = {row["JobIDRaw"]: int(row["ConsumedEnergyRaw"]) for row in of_all}
    for row, node, numbered in zip(rows, ("n1", "n2"), ({"0"}, {"0", "1"})):
        job = int(row["JobIDRaw"])
        wait_for(record_file(shaped, job, node).exists, what=f"the record of {job} on {node}")
        done = Outcome(shaped, job, {}, {node: newest_record(shaped, job, node)})
        steps = {account["step"] for account in done.records[node]["accounts"]}
        assert {step for step in steps if step.isdigit()} == numbered
        assert_whole(done, "job", *numbered)
        for step in {"job", *numbered}:
            told = told_j[f"{job}.{step}".removesuffix(".job")]
            assert told == pytest.approx(done.energy_j(step), abs=0.51)


def test_a_step_pays_for_the_nodes_it_ran_on(shaped: Cluster) -> None:
    """Step 0 runs on n2 alone, step 1 on both."""
    steps = "srun -N1 -n1 -w n2 sleep 1; srun -N2 -n2 sleep 1"
    done = outcome(shaped, shaped.sbatch("-N2", "--exclusive", "--wrap", steps))
    assert set(done.accounts("0")) == {"n2"}
    assert set(done.accounts("1")) == set(done.accounts()) == {"n1", "n2"}
    assert_whole(done, "job", "0", "1")
    assert_sacct_agrees(done)


def test_overlapping_steps_share_what_their_node_draws(shaped: Cluster) -> None:
    """Two steps on the same CPU, one within the time of the other: no joule is in both."""
    path = script(
        shaped, "overlap", "srun --overlap -n1 sleep 3 &", "srun --overlap -n1 sleep 1", "wait"
    )
    done = outcome(shaped, shaped.sbatch("-w", "n1", "-n1", "--exclusive", path))
    assert_sacct_agrees(done)
    assert_whole(done)
    accounts = [done.accounts(step)["n1"] for step in ("0", "1")]
    union_ns = max(a["end_ns"] for a in accounts) - min(a["start_ns"] for a in accounts)
    both_j = sum(account["energy_uj"] for account in accounts) / UJ
    assert both_j <= NODE_W * union_ns / NS + 0.01
    assert both_j == pytest.approx(NODE_W * union_ns / NS, rel=0.1)
    assert all(account["energy_uj"] > 0 for account in accounts)
