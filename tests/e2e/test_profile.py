"""`--energy=profile`: power over time in HDF5, as asked and allowed, for its user alone."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import h5py
import pytest

from tests.cluster import CHECKOUT, ORDINARY_USER, Cluster, ClusterError, pause, wait_for
from tests.e2e.jobs import Flag, wait_step
from tests.e2e.marking import python
from tests.e2e.outcome import UJ, Outcome, outcome
from tests.e2e.profiles import channel_of, the_channel, wait_profile
from tests.e2e.waveform import NS, STEADY

USER = None if os.geteuid() else ORDINARY_USER
OTHER = "daemon"  # another ordinary user that every system has


def run_job(cluster: Cluster, *options: str, nodes: int = 1) -> tuple[Outcome, Path]:
    """A job with a profile, and its file once all its nodes are in it."""
    job = cluster.sbatch(f"-N{nodes}", *options, user=USER)
    return outcome(cluster, job), wait_profile(cluster, job, nodes)


def test_a_profile_ends_with_the_records_energy(steady: Cluster) -> None:
    options = ["--exclusive", "--energy=profile", "--wrap", "srun sleep 2.5"]
    meter = STEADY.instrument(steady.state / "traces", error={"relative": 0.02})
    with steady.changed(instruments=[meter]):
        done, path = run_job(steady, *options, nodes=2)
    assert "W mean over" in steady.job_output(done.job)
    with h5py.File(path) as file:
        assert (file.attrs["cluster"], file.attrs["job"]) == (steady.options.name, done.job)
        for node, account in done.accounts().items():
            found = channel_of(file[f"nodes/{node}"])
            times_s, energies_j = found["time_s"][:], found["energy_j"][:]
            assert len(times_s) >= 3 and (times_s[1:] > times_s[:-1]).all()
            assert times_s[-1] == pytest.approx(account["end_ns"] / NS, abs=1e-6)
            assert energies_j[-1] == account.energy_j
            assert found["power_w"][1:].tolist() == pytest.approx([100] * (len(times_s) - 1), 0.02)
            error_j = account["uncertainty_uj"] / UJ
            assert found.attrs["uncertainty_j"] == pytest.approx(error_j, abs=1e-6) and error_j > 0


def test_marks_are_in_it(steady: Cluster, tmp_path: Path) -> None:
    program = """
        import time
        from joulemark import region
        with region("outer"):
            time.sleep(0.3)
            with region("inner"):
                time.sleep(0.3)
    """
    command = f"srun --overlap -n2 {python(steady, 'marked', program)}"
    done, file = run_job(steady, "-n2", "--energy=profile,5", "--wrap", command)
    (node,) = done.records
    with h5py.File(file) as opened:
        marks = opened[f"nodes/{node}/marks"]
        assert sorted(marks["name"].asstr()[:]) == ["outer"] * 4 + ["outer/inner"] * 4
        assert set(marks["rank"][:].tolist()) == {0, 1}
        assert len(set(marks["thread"][:].tolist())) == 2
    view = ["joulemark", "report", "profile", str(done.job)]
    text = steady.run(view, user=USER)
    assert f"job {done.job}: {node}, ranks 0-1: " in text and "outer/inner" in text
    figure = tmp_path / "figure.png"
    steady.run([*view, "--out", figure])
    assert figure.read_bytes().startswith(b"\x89PNG")


def rate_hz(path: Path) -> float:
    with the_channel(path) as channel:
        times_s = channel["time_s"][:]
        return (len(times_s) - 1) / (times_s[-1] - times_s[0])


def test_the_rate_is_the_asked_one_up_to_the_sites_limit(steady: Cluster) -> None:
    work = ["--wrap", "sleep 3"]
    _, slow = run_job(steady, "--energy=profile", *work)
    _, asked = run_job(steady, "--energy=profile,5", *work)
    greedy, most = run_job(steady, "--energy=profile,200", *work)
    assert rate_hz(slow) < 2
    assert 2 < rate_hz(asked) < 6
    assert rate_hz(asked) < rate_hz(most) < 11.5
    if USER:
        assert "not 200: `profile_max_hz`" in greedy.notes()


@pytest.mark.parametrize("value", ["profile,", "profile,0", "profile,x", "profile,1e9", "off,5"])
def test_a_wrong_rate_is_refused_at_submission(steady: Cluster, value: str) -> None:
    with pytest.raises(ClusterError, match="profile,HZ"):
        steady.run(["sbatch", f"--energy={value}", "--wrap", "true"])


@pytest.mark.skipif(USER is None, reason="only root can be other users")
def test_its_user_reads_it_and_nobody_else(steady: Cluster) -> None:
    done, path = run_job(steady, "--energy=profile", "--wrap", "sleep 1")
    assert path.stat().st_mode & 0o007 == 0
    read = [sys.executable, "-c", f"open({str(path)!r}, 'rb').read(8)"]
    steady.run(read, user=USER)
    with pytest.raises(ClusterError, match="PermissionError"):
        steady.run(read, user=OTHER)
    view = ["joulemark", "report", "profile", str(done.job)]
    assert f"job {done.job}: " in steady.run(view, user=USER)
    with pytest.raises(ClusterError, match="only job"):
        steady.run(view, user=OTHER)


def test_two_jobs_of_a_node_have_their_own_energy_alone(steady: Cluster) -> None:
    end = Flag(steady, "two-profiles")
    jobs = [
        steady.sbatch("-w", "n1", "-n1", "--energy=profile,5", "--wrap", end.wait, user=USER)
        for _ in range(2)
    ]
    for job in jobs:
        wait_step(steady, job)
    pause(2)
    end.set()
    for job in jobs:
        done = outcome(steady, job)
        with the_channel(wait_profile(steady, job)) as channel:
            assert channel["energy_j"][-1] == done.energy_j()
            # together they draw 100 W: while both run neither is charged all of it
            assert min(channel["power_w"][1:]) < 99


def test_a_killed_daemon_loses_a_second_of_it_at_most(steady: Cluster) -> None:
    end = Flag(steady, "killed-daemon")
    job = steady.sbatch("-w", "n1", "--energy=profile,5", "--wrap", end.wait, user=USER)
    part = steady.state / "ledger" / "n1"
    (draft,) = wait_for(lambda: list(part.glob(f"profile.{job}.*.jsonl")), what="it to begin")
    wait_for(lambda: draft.read_text().count('"e"') > 5, what="samples on the disk")
    steady.node("n1").daemon.kill()
    steady.up()
    before = draft.read_text().count('"e"')
    wait_for(lambda: draft.read_text().count('"e"') > before, what="samples afterwards")
    end.set()
    done = outcome(steady, job)
    with the_channel(wait_profile(steady, job)) as channel:
        assert channel["energy_j"][-1] == done.energy_j()
    wait_for(lambda: not list(part.glob(f"profile.{job}.*.jsonl")), what="its draft to go")


def test_the_summary_says_where_figures_come_from() -> None:
    """`--help` needs no cluster."""
    words = [sys.executable, "-m", "joulemark", "report", "profile", "--help"]
    env = {**os.environ, "PYTHONPATH": str(CHECKOUT / "packages" / "joulemark" / "src")}
    said = subprocess.run(words, env=env, capture_output=True, text=True, check=True).stdout
    assert "--overlay" in said and "Mont-Blanc" in said
