"""Energy budgets of accounts on a real cluster: Slurm's own limit holds nobody, ours does."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import Cluster, wait_for
from tests.e2e.outcome import outcome

BUDGETS = "budgets.csv"


@pytest.fixture(scope="module")
def limited(steady: Cluster) -> Iterator[Cluster]:
    """Slurm keeps limits; root may use the accounts blue, red, and navy, which is below blue."""
    keys = {**steady.options.daemon, "budgets": str(steady.state / BUDGETS)}
    enforced = {**steady.options.slurm_conf, "AccountingStorageEnforce": "limits"}
    with steady.changed(slurm_conf=enforced, daemon=keys) as cluster:
        for account, parent in (("blue", "root"), ("red", "root"), ("navy", "blue")):
            cluster.run(["sacctmgr", "-i", "add", "account", account, f"parent={parent}"])
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
    assert settle(limited) == 1
    held, free = submit(limited, "blue"), submit(limited, "red")
    outcome(limited, free)
    reason = ["squeue", "-h", "-j", str(held), "-o", "%T %r"]
    assert limited.run(reason).split() == ["PENDING", "AssocGrpJobsLimit"]
    budgets(limited, blue=1000, red=1000)
    assert settle(limited) == 0
    wait_for(lambda: limited.job_state(held) == "COMPLETED", 90, "the job that was held")


def test_where_slurm_keeps_no_limits_nobody_is_called_held(limited: Cluster) -> None:
    budgets(limited, blue=1e-6)
    kept = {**limited.options.slurm_conf, "AccountingStorageEnforce": "associations"}
    with limited.changed(slurm_conf=kept) as cluster:
        words = ["joulemark", "budget"]
        done = subprocess.run(words, env=cluster.env, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert "AccountingStorageEnforce=associations: Slurm would hold nobody" in done.stderr
    words = ["sacctmgr", "-nP", "show", "assoc", "account=blue", "format=User,GrpJobs"]
    assert "|" in limited.run(words).split()


def test_accounts_below_are_charged_and_wait_too(limited: Cluster) -> None:
    """Also one that has moved there, or was deleted since."""
    outcome(limited, submit(limited, "navy"))
    before = used_j(limited, "red")
    budgets(limited, blue=1000, navy=1e-6)
    assert settle(limited) == 1
    budgets(limited, navy=1000, blue=1e-6)
    assert settle(limited) == 1
    held = submit(limited, "navy")
    reason = ["squeue", "-h", "-j", str(held), "-o", "%T %r"]
    wait_for(lambda: limited.run(reason).split() == ["PENDING", "AssocGrpJobsLimit"], 30, "it")
    limited.run(["scancel", str(held)])
    budgets(limited, blue=1000, navy=1000)
    assert settle(limited) == 0
    navy = used_j(limited, "navy")
    assert navy > 0
    limited.run(["sacctmgr", "-i", "modify", "account", "navy", "set", "parent=red"])
    assert used_j(limited, "red") == pytest.approx(before + navy)
    limited.run(["sacctmgr", "-i", "delete", "account", "navy"])
    assert used_j(limited, "red") == pytest.approx(before + navy)


def used_j(cluster: Cluster, account: str) -> float:
    """By the report of its budget."""
    budgets(cluster, **{account: 1000})
    words = ["joulemark", "report", "usage", "--budget", "--format", "json"]
    (told,) = json.loads(cluster.run(words))
    return told["used_j"] or 0.0
