"""A job's end waits for nothing of ours: neither for records, nor for where they are kept."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import Cluster, wait_for
from tests.cluster.config import service_user
from tests.disks import Unavailable, fill, small_disk
from tests.e2e.jobs import held
from tests.e2e.outcome import comment, outcome, record_dir, record_file

AT_ONCE_S = 10.0  # a merge waits for a record three times as long


def folder_of_notices(cluster: Cluster) -> Path:
    """Of slurmctld's machine; there is one job at least."""
    outcome(cluster, cluster.sbatch("--wrap", "true"))
    (folder,) = cluster.state.glob("ledger/*/ended")
    return folder


def assert_not_completing(cluster: Cluster, job: int) -> None:
    """Slurm has done with it, and it is not merged."""
    wait_for(lambda: cluster.job_state(job) == "COMPLETED", AT_ONCE_S, f"job {job} to complete")
    assert cluster.notices(job)


def test_of_a_record_that_never_comes(steady: Cluster) -> None:
    with steady.changed(slurm_conf={"Epilog": None}):  # it says so at once
        with held(steady) as job:
            steady.node("n1").daemon.kill(signal.SIGKILL)
        assert_not_completing(steady, job)
        assert "missing: n1" in comment(steady, job)
        steady.node("n1").daemon.start()
        wait_for(record_file(steady, job, "n1", folder="").exists, what="the recovered record")
        assert f"{job}\t" in steady.run(["joulemark", "merge"])


def test_of_a_folder_that_is_away(steady: Cluster) -> None:
    """No later job has to end for it."""
    folder = record_dir(steady)
    away = folder.rename(f"{folder}.away")
    try:
        with held(steady) as job:
            pass
        assert_not_completing(steady, job)
        assert steady.merging()
    finally:
        away.rename(folder)
    assert comment(steady, job).startswith("Energy: ")
    assert outcome(steady, job).column("EnergyMissing") == ""


@contextlib.contextmanager
def a_file_in_its_place(folder: Path) -> Iterator[None]:
    away = folder.rename(f"{folder}.away")
    folder.touch()
    try:
        yield
    finally:
        folder.unlink()
        away.rename(folder)


@contextlib.contextmanager
def a_full_disk(folder: Path) -> Iterator[None]:
    try:
        with small_disk(folder):
            fill(folder)
            yield
    except Unavailable as why:
        pytest.skip(str(why))


@pytest.mark.parametrize("trouble", [a_file_in_its_place, a_full_disk])
def test_where_state_dir_takes_no_notice_record_dir_does(steady: Cluster, trouble) -> None:
    with trouble(folder_of_notices(steady)):
        job = steady.sbatch("--wrap", "true")
        assert comment(steady, outcome(steady, job).job).startswith("Energy: ")
    assert list(record_dir(steady).glob("ended/[!.]*")) == []


def test_nobody_else_can_hold_its_locks(steady: Cluster) -> None:
    folder = folder_of_notices(steady)
    comment(steady, outcome(steady, steady.sbatch("--wrap", "true")).job)
    locks = [folder / ".next", folder / ".lock", record_dir(steady) / "comments" / ".teller"]
    assert {lock.stat().st_mode & 0o777 for lock in locks} == {0o600}


def test_what_a_killed_merge_has_left_is_merged_when_asked(steady: Cluster) -> None:
    folder = folder_of_notices(steady)
    wait_for(lambda: not steady.merging(), what="the merge to end by itself")
    notice = folder / "999999.0"
    notice.touch()
    steady.run([steady.state / "etc" / "epilogslurmctld", "--merge"], user=service_user())
    assert not notice.exists()
