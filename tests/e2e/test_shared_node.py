"""Jobs that share a node get their own parts of its energy, and the books balance exactly."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import random
import time
from collections.abc import Callable

import pytest

from tests.cluster import Cluster, wait_for
from tests.e2e.jobs import Flag, wait_step
from tests.e2e.outcome import (
    UJ,
    Outcome,
    account_uj,
    assert_books_balance,
    books,
    ended_well,
    on_disk,
    outcome,
    wait_on_disk,
)
from tests.e2e.waveform import NS, STEADY

POLICY = "idle-by-share,rest-by-cpu-time,gpus-by-binding"


def busy_and_quiet(cluster: Cluster, enough_w: float) -> tuple[Outcome, Outcome]:
    """Each on one of the two CPUs of n1; the quiet job is never there without the busy one.

    It stays until its mean power is below `enough_w`: what its start takes of a loaded machine's
    time, where the busy one has little of a CPU, no longer matters.
    """
    node, enough, calm = cluster.node("n1"), Flag(cluster, "enough"), Flag(cluster, "calm")
    place = ["-w", "n1", "-n1"]
    busy = cluster.sbatch(*place, "--wrap", enough.work)
    wait_step(cluster, busy)
    wait = f"sleep 6; until [ -e {calm.path} ]; do sleep 1; done"
    quiet = cluster.sbatch(*place, "--wrap", wait)
    wait_on_disk(node, quiet, "batch", "samples", 6)
    opened_ns = int(on_disk(node, quiet, "job", "opened_ns") or 0)

    def mean_w() -> float:
        return account_uj(node, quiet, "job") / UJ / ((time.time_ns() - opened_ns) / NS)

    wait_for(lambda: mean_w() < enough_w, what=lambda: f"{mean_w():.1f} W to be below {enough_w}")
    calm.set()
    done = outcome(cluster, quiet)
    enough.set()
    return outcome(cluster, busy), done


def test_a_busy_job_pays_for_what_it_uses_and_a_quiet_one_for_its_cpu(
    powered: Callable[..., Cluster],
) -> None:
    """Of 100 W 40 W are idle power: 20 W a CPU. The rest is the busy job's."""
    busy, quiet = busy_and_quiet(powered(STEADY, name="split", idle_w=40), 23)
    for done in (busy, quiet):
        assert done.records["n1"]["split_policy"] == POLICY
        account = done.accounts()["n1"]
        assert account["cpus"] == 1
        assert account["idle_uj"] / UJ == pytest.approx(20 * account.seconds, abs=0.1)
    assert 75 < busy.accounts()["n1"].mean_w <= 80.001
    assert 19.999 <= quiet.accounts()["n1"].mean_w < 25  # starting it took some CPU time, too
    assert_books_balance(busy.cluster)


def test_without_a_known_idle_power_cpu_time_decides(powered: Callable[..., Cluster]) -> None:
    busy, quiet = busy_and_quiet(powered(STEADY, name="whole"), 6)
    assert busy.accounts()["n1"].mean_w > 90 and quiet.accounts()["n1"].mean_w < 10
    # all is theirs, but what the quiet one used after Slurm's last question: on a loaded machine
    # that is some hundredths of a second, in which its ending is most of the work
    whole_j = 100 * busy.accounts()["n1"].seconds
    assert 0.97 * whole_j < busy.energy_j() + quiet.energy_j() < whole_j + 0.01
    assert busy.accounts()["n1"]["idle_uj"] == quiet.accounts()["n1"]["idle_uj"] == 0
    assert_books_balance(busy.cluster)


def test_any_schedule_leaves_the_books_balanced(powered: Callable[..., Cluster]) -> None:
    """Twelve jobs of random size and place: records and unallocated are all that came in."""
    cluster = powered(STEADY, name="schedule", idle_w=40)
    dice = random.Random(12)
    jobs = []
    for _ in range(12):
        nodes = dice.choice([1, 1, 1, 2])
        step = dice.choice(["", "srun "])
        script = f"{step}sh -c 'sleep 0.{dice.randint(1, 9)}; timeout 0.3 yes >/dev/null'"
        jobs.append(cluster.sbatch(f"-N{nodes}", f"-n{nodes}", "--wrap", f"{script}; true"))
    recorded_uj = {node: 0 for node in cluster.nodes}
    for job in jobs:
        done = ended_well(cluster, job)
        for node, account in done.accounts().items():
            recorded_uj[node] += account["energy_uj"]
    assert_books_balance(cluster)
    for name, node in cluster.nodes.items():
        (channel,) = [c for c in books(node) if c.name.startswith("schedule")]
        assert channel.open_uj == 0
        assert channel.settled_uj == recorded_uj[name]
        assert channel.total_uj == channel.unallocated_uj + recorded_uj[name]
