"""One energy everywhere: sacct, `joulemark sacct`, record and ledger tell the waveform's own."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pytest

from tests.cluster import Cluster, wait_for
from tests.e2e.outcome import UJ, Outcome, apart_from_launch, outcome
from tests.e2e.waveform import RAMP, SQUARE, STEADY, Waveform

PERIOD_S = 0.2  # between readings of power
COUNTER_J = 1e-4  # a replayed counter is exact to 2 uJ at each end
WAVEFORMS = pytest.mark.parametrize("waveform", [STEADY, RAMP, SQUARE], ids=lambda w: w.name)


def batch_with_step(cluster: Cluster, nodes: int) -> int:
    script = "sleep 0.3; srun sleep 0.8; sleep 0.3"
    return cluster.sbatch(f"-N{nodes}", f"-n{nodes}", "--exclusive", "--wrap", script)


def lone_srun(cluster: Cluster, nodes: int, seconds: float = 0.8) -> int:
    """A step without a batch script; returns its job's number."""
    script = f"echo $SLURM_JOB_ID; sleep {seconds}"
    options = [f"-N{nodes}", f"-n{nodes}", "--exclusive"]
    return int(cluster.run(["srun", *options, "bash", "-c", script]).split()[0])


def run_all_kinds(cluster: Cluster) -> list[tuple[Outcome, int, set[str]]]:
    """Each with its nodes and steps. None shares a node, so a node's energy is its job's."""
    jobs = []
    for nodes in (1, 2):
        jobs.append((batch_with_step(cluster, nodes), nodes, {"batch", "0"}))
        jobs.append((lone_srun(cluster, nodes), nodes, {"0"}))
    return [(outcome(cluster, job), nodes, steps) for job, nodes, steps in jobs]


def assert_all_tell_the_same(done: Outcome) -> None:
    """Slurm rounds to whole joules on each node; the others have every microjoule."""
    for step in done.rows:
        recorded_uj = done.energy_uj(step)
        assert done.ledger_uj(step) == recorded_uj, step
        assert done.column("Energy", step) == f"{recorded_uj // UJ}.{recorded_uj % UJ:06}", step
        rounding_j = 0.5 * len(done.accounts(step))
        assert done.sacct_j(step) == pytest.approx(recorded_uj / UJ, abs=rounding_j), step


@WAVEFORMS
def test_joules_of_a_counter_are_the_waveforms_integral(
    powered: Callable[..., Cluster], waveform: Waveform
) -> None:
    for done, nodes, steps in run_all_kinds(powered(waveform)):
        assert set(done.rows) == {"job", "extern", *steps}
        assert len(done.records) == nodes
        assert_all_tell_the_same(done)
        for step in done.rows:
            expected_j = done.integral_j(step, waveform)
            assert done.energy_j(step) == pytest.approx(expected_j, abs=COUNTER_J), step
            for account in done.accounts(step).values():
                assert account["method"] == "counter" and not account["estimated"]
                assert apart_from_launch(account) == (0, "")


def unseen_j(done: Outcome, step: str, waveform: Waveform) -> float:
    """What jumps after the last reading brought at most: no bar of 95 % has room for them."""
    ago_s = [waveform.since_jump_s(account["end_ns"]) for account in done.accounts(step).values()]
    return waveform.swing_w * sum(ago for ago in ago_s if ago <= 2 * PERIOD_S)


@WAVEFORMS
def test_joules_of_sampled_power_are_within_their_stated_uncertainty(
    powered: Callable[..., Cluster], waveform: Waveform
) -> None:
    """Samples must be closer than the waveform's jumps, or no instrument could know of them.

    A job may lie beside a jump and have little energy of its own: how much may be stated goes by
    the jump and the time, not by the energy.
    """
    cluster = powered(waveform, name=f"sampled-{waveform.name}", **{"as": "power"})
    cluster = cluster.change(daemon={"period_s": PERIOD_S})
    jobs = [batch_with_step(cluster, nodes=2), lone_srun(cluster, nodes=1)]
    for done in [outcome(cluster, job) for job in jobs]:
        assert_all_tell_the_same(done)
        for step in done.rows:
            stated_j = float(done.column("EnergyError", step))  # k=2
            node_s = sum(account.seconds for account in done.accounts(step).values())
            assert stated_j <= waveform.swing_w * node_s + 1, step
            error_j = abs(done.energy_j(step) - done.integral_j(step, waveform))
            # k=3, which a jump's uniform error cannot leave; and what the clock's reading takes
            most_j = 1.5 * stated_j + 1 + unseen_j(done, step, waveform)
            assert error_j <= most_j, step
            assert {a["method"] for a in done.accounts(step).values()} == {"integrated"}


def test_a_job_of_300_ms_is_charged_its_30_joules(steady: Cluster) -> None:
    began = time.monotonic()
    job = lone_srun(steady, nodes=1, seconds=0.3)
    step_s = time.monotonic() - began  # starting a process takes its time, too
    done = outcome(steady, job)
    assert 30 <= done.sacct_j("0") <= 100 * step_s + 1
    assert done.sacct_j("0") <= done.sacct_j("job") <= 100 * (time.monotonic() - began) + 1


def test_consumed_energy_is_the_raw_figure_with_a_prefix(steady: Cluster) -> None:
    done = outcome(steady, batch_with_step(steady, nodes=2))
    for row in done.rows.values():
        text = row["ConsumedEnergy"]
        value = float(text[:-1]) * 1000 if text.endswith("K") else float(text)
        assert value == pytest.approx(int(row["ConsumedEnergyRaw"]), rel=0.01)


def test_a_node_shows_its_watts(steady: Cluster) -> None:
    for node in steady.nodes:
        wait_for(lambda node=node: current_watts(steady, node) == "100", what=f"100 W on {node}")


def current_watts(cluster: Cluster, node: str) -> str:
    found = re.search(r"CurrentWatts=(\S+)", cluster.run(["scontrol", "show", "node", node]))
    return found[1] if found else ""
