"""Energy budgets of accounts on a real cluster: Slurm's own limit holds nobody, ours does."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import Cluster, wait_for
from tests.e2e.outcome import outcome

BUDGETS = "budgets.csv"


@pytest.fixture(scope="module")
def limited(steady: Cluster) -> Iterator[Cluster]:
    """Slurm keeps limits; root may use the accounts blue and red."""
    keys = {**steady.options.daemon, "budgets": str(steady.state / BUDGETS)}
    enforced = {**steady.options.slurm_conf, "AccountingStorageEnforce": "limits"}
    with steady.changed(slurm_conf=enforced, daemon=keys) as cluster:
        for account in ("blue", "red"):
            cluster.run(["sacctmgr", "-i", "add", "account", account])
            cluster.run(["sacctmgr", "-i", "add", "user", "root", f"account={account}"])
        yield cluster


def budgets(cluster: Cluster, **kwh: float) -> None:
    lines = [f"{account},{most},2020-01-01,2100-01-01\n" for account, most in kwh.items()]
    Path(cluster.state, BUDGETS).write_text("".join(lines))


def settle(cluster: Cluster) -> int:
    """`joulemark budget`'s exit code."""
    return subprocess.run(["joulemark", "budget"], env=cluster.env).returncode


def submit(cluster: Cluster, account: str) -> int:
    return cluster.sbatch(f"--account={account}", "--exclusive", "--wrap", "srun sleep 1")


def test_slurms_own_limit_of_energy_holds_nobody(limited: Cluster) -> None:
    """priority/multifactor leaves energy out of the usage that limits are compared with."""
    limited.run(["sacctmgr", "-i", "modify", "account", "red", "set", "GrpTRESMins=energy=1"])
    used = sum(outcome(limited, submit(limited, "red")).energy_j() for _ in range(2))
    assert used > 60  # J: more than the limit's 1 J x min, by the definition of a TRES's minutes
    text = limited.run(["scontrol", "show", "assoc_mgr", "flags=assoc", "accounts=red"])
    assert "energy=1(0)" in text.split("GrpTRESMins=")[1].splitlines()[0]


def test_who_has_used_up_a_budget_waits_until_there_is_one(limited: Cluster) -> None:
    outcome(limited, submit(limited, "blue"))
    budgets(limited, blue=1e-6, red=1000)
    assert settle(limited) == 2
    held, free = submit(limited, "blue"), submit(limited, "red")
    outcome(limited, free)
    reason = ["squeue", "-h", "-j", str(held), "-o", "%T %r"]
    assert limited.run(reason).split() == ["PENDING", "AssocGrpJobsLimit"]
    budgets(limited, blue=1000, red=1000)
    assert settle(limited) == 0
    wait_for(lambda: limited.job_state(held) == "COMPLETED", 90, "the job that was held")
