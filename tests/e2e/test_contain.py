"""Without PrologFlags=Contain: the log warns once, the record is whole, sacct's job row is not."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import pytest

from tests.cluster import Cluster
from tests.e2e.outcome import Outcome, outcome, slurm_version
from tests.e2e.waveform import STEADY

WARNING = "PrologFlags=Contain is not set"


def is_told_late(done: Outcome) -> bool:
    """From 25.11 on the merge may give a job's row what Slurm itself did not count."""
    return slurm_version(done.cluster) >= (25, 11) and abs(done.sacct_j() - done.energy_j()) <= 1


def test_without_contain_the_record_has_what_sacct_lacks(steady: Cluster) -> None:
    with steady.changed(contain=False) as cluster:
        daemon = cluster.node("n1").daemon
        daemon.restart()
        before = daemon.log_text().count(WARNING)
        jobs = [cluster.sbatch("-w", "n1", "-n1", "--wrap", "sleep 1") for _ in range(2)]
        for done in [outcome(cluster, job) for job in jobs]:
            assert set(done.rows) == {"job", "batch"}
            assert done.sacct_j() == 0 or is_told_late(done)
            assert abs(done.sacct_j("batch") - done.energy_j("batch")) <= 1
            account = done.accounts()["n1"]
            assert account["energy_uj"] >= done.energy_uj("batch") > 0
        spans = [outcome(cluster, job).accounts()["n1"] for job in jobs]
        start_ns = min(account["start_ns"] for account in spans)
        end_ns = max(account["end_ns"] for account in spans)
        assert sum(account.energy_j for account in spans) == pytest.approx(
            STEADY.energy_j(start_ns, end_ns), abs=1
        )
        assert daemon.log_text().count(WARNING) == before + 1
