"""A raw counter that wraps many times within a job loses nothing and invents nothing."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import pytest

from tests.cluster import Cluster
from tests.e2e.outcome import apart_from_launch, outcome
from tests.e2e.waveform import SQUARE, STEADY

WRAP_UJ = 200_000_003  # at 200 W it wraps each second
POWERS = {"n1": STEADY, "n2": SQUARE}


def test_a_counter_that_wraps_within_a_job_is_exact(cluster: Cluster) -> None:
    """Read ten times as often as it wraps: a tick must be late by 0.4 s to doubt a wrap."""
    with cluster.changed(daemon={"period_s": 0.1}):
        for node, power in POWERS.items():
            named = {"name": f"wrapping-{power.name}", "wrap_uj": WRAP_UJ}
            instrument = power.instrument(cluster.state / "traces", **named)
            cluster.node(node).configure(instruments=[instrument])
        done = outcome(cluster, cluster.sbatch("-N2", "--exclusive", "--wrap", "srun sleep 8"))
    for step in done.rows:
        for node, account in done.accounts(step).items():
            assert account["energy_uj"] > 3 * WRAP_UJ
            assert account.energy_j == pytest.approx(account.integral_j(POWERS[node]), abs=1e-4)
            assert apart_from_launch(account) == (0, "")
