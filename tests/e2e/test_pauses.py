"""A daemon that was paused, or late, leaves no account open that nothing stands for."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from tests.cluster import Cluster, Node, pause, wait_for
from tests.e2e.jobs import Flag, alone, wait_step
from tests.e2e.marking import CLIENT
from tests.e2e.outcome import (
    assert_whole,
    audit,
    joulemarkctl,
    on_disk,
    open_accounts,
    outcome,
    read_record,
    record_file,
)
from tests.peers.joulemarkd import ask

PAUSES = 3
LONG_S = 4.0  # more than the two periods and a half second by which a tick may be late
ORPHAN_S = 5.0  # after which a job that nothing stands for is closed

OPENS = (
    CLIENT
    + """
print(ask(connect(), sys.argv[1]), flush=True)
sys.stdin.read()
"""
)


def assert_charged_in_full(cluster: Cluster, job: int) -> None:
    """It had n1 for itself: what n1 drew meanwhile is the job's."""
    done = outcome(cluster, job)
    assert_whole(done, within_j=1e-4)
    assert done.integral_j() > 0
    assert "NOT BALANCED" not in audit(cluster, "n1")


def wait_closed(node: Node, patience_s: float = 2.0) -> None:
    wait_for(lambda: not open_accounts(node), patience_s, f"{node.name} to close its accounts")


def wait_lifeless(cluster: Cluster, node: str, jobs: str) -> None:
    """Until these, and no others, are named as resting."""
    status = [joulemarkctl(cluster), "-N", node, "status"]
    wait_for(lambda: f"lifeless: {jobs}\n" in cluster.run(status, check=False), what=f"'{jobs}'")


def test_jobs_that_begin_and_end_in_a_pause_leave_nothing_open(steady: Cluster) -> None:
    """Their requests queue up meanwhile; busy loops, so that some of them are late, too."""
    node = steady.node("n1")
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(3)]
    try:
        for _ in range(PAUSES):
            with node.daemon.stopped():
                steady.run(["srun", "-w", "n1", "--exclusive", "true"])
                steady.wait_job(alone(steady, "srun true"))
            steady.run(["srun", "-w", "n1", "--exclusive", "true"])
    finally:
        for one in busy:
            one.kill()
            one.wait()
    wait_closed(node, 2 * ORPHAN_S)
    assert_charged_in_full(steady, alone(steady, "srun sleep 1"))


def test_a_job_that_ends_in_a_pause_ends_when_it_was_last_seen(steady: Cluster) -> None:
    node, end = steady.node("n1"), Flag(steady, "in-pause")
    end_later = Flag(steady, "after-pause")
    job = alone(steady, end.wait)
    wait_for(lambda: (job, "batch") in open_accounts(node), what=f"job {job} in the ledger")
    with node.daemon.stopped():
        long = time.monotonic() + LONG_S
        end.set()
        steady.wait_job(job)
        later = alone(steady, end_later.wait)  # begins in the pause, is there when it ends
        steady.wait_running(later)
        wait_step(steady, later)
        wait_for(lambda: time.monotonic() > long)
    pause(2)
    end_later.set()
    steady.wait_job(later)
    wait_closed(node)
    account = outcome(steady, later).accounts()["n1"]
    assert "ended while joulemarkd was held up" in on_disk(node, job, "job", "note")
    assert on_disk(node, job, "job", "closed_ns") <= account["start_ns"]
    assert_charged_in_full(steady, later)


def test_a_job_that_nothing_stands_for_takes_no_energy_and_is_closed(steady: Cluster) -> None:
    """The fault itself, however it came about: an account, no process, no epilog to come."""
    node = steady.node("n1")
    phantom = steady.wait_job(alone(steady, "true"))["JobIDRaw"]
    words = [sys.executable, "-c", OPENS, f"open job={phantom} step=0 job_cpus=2", node.socket]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout and process.stdout.readline().startswith("ok")
        process.communicate()
    job = alone(steady, "srun sleep 2")
    assert_charged_in_full(steady, job)
    wait_closed(node, 2 * ORPHAN_S)
    wait_lifeless(steady, "n1", "")


def test_a_question_that_waited_longer_than_its_sender_is_void(steady: Cluster) -> None:
    """Taken up at once, or without a word of when it was sent, it is none; an end still holds."""
    node, now_ns = steady.node("n1"), time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    late = f"sent_ns={now_ns - 200_000_000} wait_ms=100"
    for request in ("node", "status", "open job=4244 step=0"):
        assert "void" in ask(node.socket, f"{request} {late}")
    assert "void" in ask(node.socket, "node sent_ns=0 wait_ms=1")
    for when in ("", "wait_ms=1", f"sent_ns={now_ns} wait_ms=60000", f"sent_ns={2**64 - 1}"):
        assert ask(node.socket, f"node {when}").startswith("ok")
    assert ask(node.socket, f"end job=4244 {late}") == "ok"
    assert open_accounts(node) == []
    places = [record_file(steady, 4244, "n1", folder) for folder in ("", "merged")]
    wait_for(lambda: any(place.exists() for place in places), what="the record of its end")
    (record,) = (place for place in places if place.exists())
    assert "no account of job 4244" in read_record(record)["missing"]
    record.unlink()


def test_without_contain_a_job_rests_between_steps_is_named_and_charged(steady: Cluster) -> None:
    """On n2, where no script of it runs: doctor and status name it, its record has all of it."""
    with steady.changed(contain=False) as cluster:
        node, go = cluster.node("n2"), Flag(cluster, "second-step")
        node.daemon.restart()  # it had learnt that every job has an .extern step
        script = f"srun true; {go.wait}; srun sleep 1"
        job = cluster.sbatch("-N2", "--exclusive", "--wrap", script)
        wait_lifeless(cluster, "n2", str(job))
        doctor = ["joulemark", "doctor", "--node", "n2"]
        assert f"open without a living process: jobs {job}" in cluster.run(doctor, check=False)
        go.set()
        account = outcome(cluster, job).accounts()["n2"]
        whole_j = account.integral_j()
        assert whole_j > 100 * ORPHAN_S
        assert account.energy_j == pytest.approx(whole_j, abs=1e-4)
        wait_lifeless(cluster, "n2", "")
