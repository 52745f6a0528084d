"""A raw counter that wraps many times within a job loses nothing and invents nothing."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.cluster import Cluster
from tests.e2e.outcome import apart_from_launch, outcome
from tests.e2e.waveform import SQUARE, STEADY, Waveform

WRAP_UJ = 61_000_003  # at 100 W it wraps each 0.6 s


@pytest.mark.parametrize("waveform", [STEADY, SQUARE], ids=lambda w: w.name)
def test_a_counter_that_wraps_within_a_job_is_exact(
    powered: Callable[..., Cluster], waveform: Waveform
) -> None:
    """Read ten times as often as it wraps, as a site does with real counters."""
    cluster = powered(waveform, name=f"wrapping-{waveform.name}", wrap_uj=WRAP_UJ)
    cluster = cluster.change(daemon={"period_s": 0.1})
    done = outcome(cluster, cluster.sbatch("-N2", "--exclusive", "--wrap", "srun sleep 3"))
    for step in done.rows:
        for account in done.accounts(step).values():
            assert account["energy_uj"] > 3 * WRAP_UJ
            assert account.energy_j == pytest.approx(account.integral_j(waveform), abs=1e-4)
            assert apart_from_launch(account) == (0, "")
