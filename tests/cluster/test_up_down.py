"""A real cluster, Slurm alone: comes up, is repaired, and leaves nothing behind."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster import Cluster, ClusterError, state_folder, wait_for
from tests.cluster.service import leftovers


@pytest.fixture
def plain() -> Iterator[Cluster]:
    cluster = Cluster(state_folder() / "plain", nodes=2)
    cluster.remove()
    yield cluster
    cluster.remove()


def test_up_is_idempotent_repairs_and_down_leaves_nothing(plain: Cluster) -> None:
    before = plain.up().status()
    assert all(before.values())
    assert plain.up().status() == before

    plain.node("n1").slurmd.kill(9)
    plain.slurmdbd.kill(9)
    after = plain.up().status()
    changed = {name for name in before if before[name] != after[name]}
    assert all(after.values()) and changed == {"slurmd-n1", "slurmdbd"}

    job = plain.sbatch("-N2", "--wrap", "srun hostname")
    assert plain.wait_job(job)["State"] == "COMPLETED"
    assert len(plain.job_output(job).split()) == 2

    left = plain.sbatch("--wrap", "srun sleep 600")
    wait_for(lambda: "0" in plain.node("n1").stepds(left), what="the step to run")
    plain.slurmctld.kill(9)  # nobody can cancel the job now
    plain.down()
    assert not any(plain.status().values())
    assert leftovers(plain.state, plain.slurm_conf) == []


def test_a_start_that_fails_leaves_nothing(plain: Cluster) -> None:
    plain.up()
    with pytest.raises(ClusterError, match=r"(slurm(?:ctl)?d)(?s:.)*/\1.*\.log"):
        plain.change(slurm_conf={"SelectType": "select/no_such_plugin"})
    assert not any(plain.status().values())
    assert leftovers(plain.state, plain.slurm_conf) == []
