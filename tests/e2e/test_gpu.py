"""A GPU's energy goes to the job that Slurm bound it to, whoever used the CPUs."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster import Cluster
from tests.e2e.jobs import Flag, cooked, need_pmix, script, wait_step
from tests.e2e.outcome import UJ, Outcome, assert_books_balance, books, ended_well, outcome
from tests.e2e.test_templates import knobs, results_folder, template
from tests.e2e.waveform import Waveform

NODE = Waveform("board", [(0, 100), (1000, 100)])
GPUS = {0: Waveform("gpu-0", [(0, 300), (1000, 300)]), 1: Waveform("gpu-1", [(0, 70), (1000, 70)])}


@pytest.fixture(scope="module")
def gpus(cluster: Cluster) -> Iterator[Cluster]:
    """Nodes of two GPUs that draw 300 W and 70 W beside the board's 100 W."""
    folder = cluster.state / "traces"
    instruments = [NODE.instrument(folder, idle_w=60)]
    instruments += [wave.instrument(folder, domain="gpu") for wave in GPUS.values()]
    with cluster.changed(gpus=2, instruments=instruments) as changed:
        yield changed


def channel_w(done: Outcome, instrument: str, step: str = "job") -> float:
    """Mean power of one instrument over the step's account on n1."""
    account = done.accounts(step)["n1"]
    own = [one for one in account["channels"] if one["name"].startswith(f"{instrument}/")]
    return sum(channel["energy_uj"] for channel in own) / UJ / account.seconds


def assert_has_whole(done: Outcome, number: int) -> None:
    """From the moment on that the batch script, which is told its GPUs, is there."""
    name, mean_w = f"gpu-{number}", GPUS[number].mean_w
    assert channel_w(done, name, "batch") == pytest.approx(mean_w, rel=0.005)
    assert 0.5 * mean_w < channel_w(done, name) <= 1.001 * mean_w


def test_each_job_pays_for_its_own_gpu(gpus: Cluster) -> None:
    """The job that keeps a CPU busy has no more of the GPUs than the one that sleeps."""
    end = Flag(gpus, "gpu")
    place = ["-w", "n1", "-n1", "--gres=gpu:1"]
    first = gpus.sbatch(*place, "--wrap", end.work)
    wait_step(gpus, first)
    second = outcome(gpus, gpus.sbatch(*place, "--wrap", "echo $SLURM_JOB_GPUS; sleep 3"))
    end.set()
    busy = outcome(gpus, first)
    assert gpus.job_output(second.job).split() == ["1"]
    for done, own, other in ((busy, 0, 1), (second, 1, 0)):
        account = done.accounts()["n1"]
        assert account["gpus"] == str(own)
        assert_has_whole(done, own)
        assert channel_w(done, f"gpu-{other}") == 0
        assert account["domains_uj"]["gpu"] > 0
    assert_books_balance(gpus)


def test_a_gpu_bound_to_nobody_is_unallocated(gpus: Cluster) -> None:
    def unallocated_uj() -> dict[str, int]:
        return {c.name.partition("/")[0]: c.unallocated_uj for c in books(gpus.node("n1"))}

    before_uj = unallocated_uj()
    done = outcome(gpus, gpus.sbatch("-w", "n1", "-n1", "--gres=gpu:1", "--wrap", "sleep 2"))
    assert channel_w(done, "gpu-1") == 0
    assert_has_whole(done, 0)
    gained_j = (unallocated_uj()["gpu-1"] - before_uj["gpu-1"]) / UJ
    assert gained_j >= 0.95 * 70 * done.accounts()["n1"].seconds
    without = outcome(gpus, gpus.sbatch("-w", "n1", "-n1", "--wrap", "sleep 1"))
    assert "gpus" not in without.accounts()["n1"]
    assert channel_w(without, "gpu-0") == channel_w(without, "gpu-1") == 0


@pytest.mark.parametrize("options, bound", [(["--exclusive"], "0,1"), (["-n2"], "0")])
def test_a_job_alone_on_its_node_pays_for_all_of_it(
    gpus: Cluster, options: list[str], bound: str
) -> None:
    """Slurm gives an exclusive job every GPU; one with all CPUs keeps others from the rest."""
    job = gpus.sbatch("-w", "n1", "--gres=gpu:1", *options, "--wrap", "sleep 2")
    done = outcome(gpus, job)
    assert done.accounts()["n1"]["gpus"] == bound
    for number, wave in GPUS.items():
        assert channel_w(done, f"gpu-{number}") == pytest.approx(wave.mean_w, rel=0.02)


def test_steps_pay_for_the_gpus_bound_to_them(gpus: Cluster) -> None:
    step = "srun -n1 --exact --gres=gpu:1 sh -c 'echo $SLURM_STEP_GPUS >step-{}; sleep 3' &"
    path = script(gpus, "gpu-steps", step.format(0), step.format(1), "wait")
    done = ended_well(gpus, gpus.sbatch("-w", "n1", "-n2", "--gres=gpu:2", path))
    assert done.accounts()["n1"]["gpus"] == "0,1"
    bound = {step: done.accounts(step)["n1"]["gpus"] for step in ("0", "1")}
    assert sorted(bound.values()) == ["0", "1"]
    for step, own in bound.items():
        mean_w = GPUS[int(own)].mean_w
        assert channel_w(done, f"gpu-{own}", step) == pytest.approx(mean_w, rel=0.05)
        assert channel_w(done, f"gpu-{1 - int(own)}", step) == 0


def test_a_templates_ranks_have_a_gpu_each(gpus: Cluster) -> None:
    need_pmix()
    results = results_folder(gpus, "gpus")
    prolog = results / "prolog"
    prolog.write_text(f'#!/bin/sh\necho "$SLURM_PROCID $CUDA_VISIBLE_DEVICES" >>{results}/bound\n')
    prolog.chmod(0o755)
    env = {**knobs("hydro", results), "JM_VARIANTS": "mpi", "JM_RANKS_PER_NODE": "2"}
    env |= {
        "JM_GPUS_PER_TASK": "1",
        "JM_GPU_BIND": "single:1",
        "JM_SRUN": f"--task-prolog={prolog}",
    }
    job = gpus.sbatch("-w", "n1", "--gpus-per-node=2", template("hydro"), env=env)
    ended_well(gpus, job)
    assert [line["ranks"] for line in cooked(results)] == [2]
    assert sorted((results / "bound").read_text().split("\n")) == ["", "0 0", "1 1"]
