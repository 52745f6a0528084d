"""Whatever dies or fills up: the job runs, nothing is charged twice, and the record says so."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import os
import pwd
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster import ORDINARY_USER, Cluster, Service, pause, wait_for
from tests.disks import Unavailable, fill, small_disk
from tests.e2e.jobs import Flag, alone, held, wait_step
from tests.e2e.marking import CLIENT
from tests.e2e.outcome import (
    UJ,
    Outcome,
    assert_books_balance,
    assert_whole,
    comment,
    ended_well,
    ledger,
    newest_record,
    on_disk,
    outcome,
    record_dir,
    record_file,
    wait_on_disk,
)
from tests.e2e.waveform import NS, STEADY

USER = None if os.geteuid() else ORDINARY_USER  # root's profiles are as fine as asked for
TURNS = 6  # how often each of two steps is timed, one beside the other
GONE_S = 1.0  # how long a daemon stays away at least
TICKS_S = 3.0  # and what its last tick and its next one may be apart from that


def kill_for(daemon: Service, seconds: float) -> float:
    """Kills it, and starts it after so long; what a gap is less than."""
    began = time.monotonic()
    daemon.kill(signal.SIGKILL)
    pause(seconds)
    daemon.start()
    return time.monotonic() - began + TICKS_S


def assert_charged(done: Outcome, step: str = "job") -> None:
    """All that its node drew, and sacct says so to the joule."""
    assert_whole(done, step, within_j=1e-4)
    assert abs(done.sacct_j(step) - done.energy_j(step)) <= 1, step


# -- the daemon ----------------------------------------------------------------------------------


def test_a_killed_daemon_comes_back_and_a_counter_makes_up_for_the_gap(steady: Cluster) -> None:
    with held(steady) as job:
        most_s = kill_for(steady.node("n1").daemon, GONE_S)
    done = ended_well(steady, job)
    account = done.accounts()["n1"]
    assert GONE_S <= account["gap_seconds"] < most_s
    assert_charged(done)
    for step in done.rows:
        assert abs(done.sacct_j(step) - done.energy_j(step)) <= 1, step
        assert done.ledger_uj(step) == done.energy_uj(step), step
    assert_books_balance(steady)


def test_a_start_waits_for_who_reads_the_ledger(steady: Cluster) -> None:
    """After a kill any reader may hold the database for a moment, to mend what was left."""
    node = steady.node("n1")
    with held(steady) as job:
        began, said = time.monotonic(), node.daemon.news()
        node.daemon.kill(signal.SIGKILL)
        with contextlib.closing(sqlite3.connect(node.ledger / "ledger.sqlite")) as reader:
            reader.execute("BEGIN EXCLUSIVE")
            node.daemon.launch()
            pause(GONE_S)
            assert node.daemon.alive and "taking up the ledger" not in said()
        node.daemon.wait_ready()
        most_s = time.monotonic() - began + TICKS_S
    done = ended_well(steady, job)
    assert "taking up the ledger" in said() and "memory" not in said()
    assert_whole(done, within_j=1e-4)
    assert GONE_S <= done.accounts()["n1"]["gap_seconds"] < most_s
    assert_books_balance(steady)


def test_a_killed_daemon_costs_sampled_power_the_gap_and_says_so(steady: Cluster) -> None:
    """Over a gap of more than a few periods two samples are not joined by a line."""
    power = STEADY.instrument(steady.state / "traces", name="sampled", **{"as": "power"})
    with steady.changed(instruments=[power], daemon={"period_s": 0.1}) as cluster:
        with held(cluster) as job:
            most_s = kill_for(cluster.node("n1").daemon, 2)
        done = ended_well(cluster, job)
        lost_s = done.accounts()["n1"]["gap_seconds"]
        assert 2 <= lost_s < most_s
        assert done.energy_j() == pytest.approx(done.integral_j() - 100 * lost_s, abs=1)
        assert abs(done.sacct_j() - done.energy_j()) <= 1
        assert f"gap {lost_s:.1f} s" in comment(cluster, job)
        assert_books_balance(cluster)


def test_a_daemon_that_comes_back_after_the_job_still_delivers_its_record(
    steady: Cluster,
) -> None:
    """First the record is missing, then the recovered one takes its place, once."""
    daemon = steady.node("n1").daemon
    with held(steady) as job:
        daemon.kill(signal.SIGKILL)
    before = ended_well(steady, job)
    assert "joulemarkd does not answer" in before.records["n1"]["missing"]
    assert "missing: n1" in comment(steady, job)
    daemon.start()
    merged = ["joulemark", "merge", "--wait", "0"]
    wait_for(record_file(steady, job, "n1", folder="").exists, what="the recovered record")
    assert f"{job}\t" in steady.run(merged)
    after = newest_record(steady, job, "n1")
    assert after["missing"] is None
    (account,) = [a for a in after["accounts"] if a["step"] == "job"]
    observed_j = account.integral_j()
    assert account.energy_j == pytest.approx(observed_j, abs=1e-4) and observed_j > 0
    assert account["gap_seconds"] > 0 and "ended while joulemarkd was down" in account["notes"][0]
    (row,) = steady.sacct(job, "Energy,EnergyMissing", "-X", ours=True)
    assert row == {"Energy": f"{account['energy_uj'] / UJ:.6f}", "EnergyMissing": ""}
    assert steady.run(merged) == ""
    assert steady.run([*merged, "--rebuild"]) == ""
    assert_books_balance(steady)


def test_a_daemon_that_comes_back_learns_all_of_a_job_that_began_without_it(
    steady: Cluster,
) -> None:
    """Its user, cores and GPUs, with the job's next word; then a step asks for a fine profile."""
    with steady.changed(gpus=1) as cluster:
        node, end = cluster.node("n1"), Flag(cluster, "unheard")
        work = f"{end.wait}; srun --energy=profile,1000 sleep 1"
        node.daemon.stop()
        job = cluster.sbatch("-w", "n1", "-n1", "--gres=gpu:1", "--wrap", work, user=USER)
        wait_step(cluster, job)
        node.daemon.start()
        for step in ("extern", "batch"):
            wait_on_disk(node, job, step, "samples", 1)
        known = [on_disk(node, job, "job", column) for column in ("uid", "cpus", "gpus")]
        end.set()
        done = ended_well(cluster, job)
    uid = pwd.getpwnam(USER).pw_uid if USER else os.geteuid()
    assert known == [uid, 1, 1 << 0]
    assert done.records["n1"]["uid"] == uid
    assert "nobody told" not in done.notes()
    assert "not 1000: `profile_max_hz`" in done.notes()


def test_a_daemon_that_hangs_costs_a_step_its_timeouts_alone(steady: Cluster) -> None:
    """A step asks twice, 100 ms each; nobody asks again for a while."""
    daemon = steady.node("n1").daemon
    step = "before=$(date +%s%N); srun true; echo $(($(date +%s%N) - before))"
    stop, go_on = f"kill -STOP {daemon.pid}", f"kill -CONT {daemon.pid}"
    turns = " ".join(str(turn) for turn in range(TURNS))
    in_turn = f"for turn in {turns}; do {step}; {stop}; {step}; {go_on}; done"
    job = alone(steady, f"trap '{go_on}' EXIT; {in_turn}")
    ended_well(steady, job)
    usual_s, hung_s = shortest_of_each(steady.job_output(job))
    assert hung_s < 1.5 * usual_s + 0.2 + 0.1  # a busy machine's steps differ by a part of them


def shortest_of_each(output: str) -> tuple[float, float]:
    # srun may add a line about a step that waits for the one before
    durations_s = [int(line) / NS for line in output.splitlines() if line.isdigit()]
    assert len(durations_s) == 2 * TURNS, output
    return min(durations_s[::2]), min(durations_s[1::2])


def test_a_daemon_that_hangs_does_not_hold_up_the_node(steady: Cluster) -> None:
    """Its epilog waits a second for the daemon; when the next job starts is Slurm's own affair."""
    daemon = steady.node("n1").daemon
    usual_s, hung_s = [], []
    for _ in range(2):  # of each the shortest: a busy machine holds a node up, too
        usual_s.append(held_s(steady))
        with daemon.stopped():
            hung_s.append(held_s(steady))
    assert min(hung_s) < 1 + 3 * min(usual_s) + 1


def held_s(cluster: Cluster) -> float:
    """How long n1 is not idle again after a job's end."""
    cluster.run(["srun", "-w", "n1", "--exclusive", "true"])
    began = time.monotonic()
    state = ["sinfo", "-h", "-n", "n1", "-o", "%T"]
    wait_for(lambda: cluster.run(state).strip() == "idle", what="n1 to be idle", poll_s=0.05)
    return time.monotonic() - began


def test_a_request_of_who_is_gone_opens_no_job(steady: Cluster) -> None:
    """After a hang a step's first word may come behind its job's epilog: nobody would end it."""
    node, job = steady.node("n1"), 4242
    ask = f"{CLIENT}\nconnect().send(sys.argv[1].encode())"
    with node.daemon.stopped():
        words = [sys.executable, "-c", ask, f"open job={job} step=0", node.socket]
        process = subprocess.Popen(words)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # a zombie has a name still
    outcome(steady, alone(steady, "true"))  # asked for later, so saved later
    assert process.wait() == 0
    with ledger(node) as connection:
        assert (
            connection.execute("SELECT 1 FROM account WHERE job_id = ?", (job,)).fetchone() is None
        )


def test_without_the_socket_a_job_runs_and_its_record_is_missing(steady: Cluster) -> None:
    node = steady.node("n1")
    for path in (node.socket, Path(f"{node.socket}.slurm")):
        path.unlink()
    job = alone(steady, "srun true", "--energy=summary")
    try:
        done = ended_well(steady, job)
    finally:
        node.daemon.restart()
    assert str(node.socket) in done.records["n1"]["missing"]
    assert done.rows["job"]["ConsumedEnergyRaw"] in ("", "0")
    said = "no energy from here on: joulemarkd does not answer"
    assert said in node.slurmd.log_text()


def test_users_see_why_a_record_is_missing(steady: Cluster) -> None:
    """The node's own reason stays, not the merge's guess."""
    node = steady.node("n1")
    node.daemon.stop()
    done = outcome(steady, alone(steady, "true"))
    assert done.column("EnergyMissing").startswith("n1: joulemarkd does not answer")


# -- Slurm's own daemons -------------------------------------------------------------------------


def test_a_killed_slurmstepd_closes_its_step_alone(steady: Cluster) -> None:
    node = steady.node("n1")
    with held(steady, "srun sh -c '{0}' & {0}") as job:  # its task outlives its slurmstepd
        os.kill(node.stepds(job)["0"], signal.SIGKILL)
        wait_on_disk(node, job, "0", "closed_ns", 1)
        pause(1.5)
    done = outcome(steady, job)
    assert "ended without a word" in done.notes("0")
    step, whole = done.accounts("0")["n1"], done.accounts()["n1"]
    assert step["end_ns"] < whole["end_ns"] - 1 * NS
    assert_whole(done, "0", "job", within_j=1e-4)
    assert abs(done.sacct_j() - done.energy_j()) <= 1
    assert_books_balance(steady)


def test_a_killed_slurmd_leaves_the_jobs_energy_whole(steady: Cluster) -> None:
    slurmd = steady.node("n1").slurmd
    with held(steady) as job:
        slurmd.kill(signal.SIGKILL)
        slurmd.start()
    done = ended_well(steady, job)
    for step in done.rows:
        assert_charged(done, step)


def assert_ends_without_slurmdbd(cluster: Cluster) -> None:
    job = cluster.sbatch("-n1", "-w", "n1", "--wrap", "true")
    wait_for(lambda: cluster.job_state(job) == "COMPLETED", what=f"the end of job {job}")
    wait_for(record_file(cluster, job, "n1").exists, what="its record, merged all the same")


def test_a_killed_slurmdbd_gets_energy_and_comment_when_it_is_back(steady: Cluster) -> None:
    log = record_dir(steady) / "epilogslurmctld.log"
    began_s = time.monotonic()
    with held(steady) as job:
        steady.slurmdbd.kill(signal.SIGKILL)
        before = len(log.read_text().splitlines()) if log.exists() else 0
    for _ in range(6):
        assert_ends_without_slurmdbd(steady)
    wait_for(record_file(steady, job, "n1").exists, what="the record, merged without slurmdbd")
    said = log.read_text().splitlines()[before:]
    asked = 2 + (time.monotonic() - began_s) // 30
    assert 1 <= len(said) <= 4 * asked, said  # libslurm's lines and ours, not of each job
    steady.slurmdbd.start()
    done = ended_well(steady, job)
    assert abs(done.sacct_j() - done.energy_j()) <= 1
    outcome(steady, alone(steady, "true"))  # a later job's epilog sets what waits
    assert comment(steady, job).startswith(f"Energy: {done.energy_j():.1f} J +- ")


# -- places to write to --------------------------------------------------------------------------


@pytest.fixture
def small_folder(steady: Cluster) -> Iterator[Path]:
    """A file system of its own that a test can fill."""
    try:
        with small_disk(steady.state / "small") as folder:
            yield folder
    except Unavailable as why:
        pytest.skip(str(why))


def test_a_full_ledger_disk_is_stated_and_survived(steady: Cluster, small_folder: Path) -> None:
    with steady.node("n1").configured(state_dir=str(small_folder / "ledger")) as node:
        outcome(steady, alone(steady, "true"))  # the ledger is open before its disk is full
        filler = fill(small_folder)
        done = ended_well(steady, alone(steady, "srun sleep 1"))
        assert "the ledger was not saved on disk" in done.notes()
        assert "full" in done.notes()
        assert_charged(done)
        filler.unlink()
        node.daemon.wait_log("the ledger is saved again")
        node.daemon.stop()


@pytest.mark.parametrize("mode", [0o555, 0o000], ids=["read-only", "closed"])
def test_a_ledger_that_cannot_be_written_is_stated(steady: Cluster, mode: int) -> None:
    folder = steady.state / f"locked-{mode:o}"
    folder.mkdir(exist_ok=True)  # only root can remove an earlier run's
    folder.chmod(mode)
    said = steady.node("n1").daemon.news()
    with steady.node("n1").configured(state_dir=str(folder)):
        done = ended_well(steady, alone(steady, "srun sleep 1"))
        assert f"ledger {folder}/ledger.sqlite: cannot be opened" in done.notes()
        assert_whole(done, within_j=1e-4)
        assert "the ledger lives in memory only" in said()


def assert_record_comes(cluster: Cluster, make_room: Callable[[], object]) -> None:
    """A job ends while its record cannot be written; then there is room."""
    job = alone(cluster, "srun sleep 1")
    complaint = f"record {record_dir(cluster)}/{cluster.options.name}.{job}.n1.json: "
    cluster.node("n1").daemon.wait_log(complaint)
    make_room()
    done = ended_well(cluster, job)
    assert_charged(done)
    assert comment(cluster, job).startswith(f"Energy: {done.energy_j():.1f} J")


def test_a_full_record_disk_delays_the_record_alone(steady: Cluster, small_folder: Path) -> None:
    records = small_folder / "records"
    records.mkdir()
    records.chmod(0o777)
    with steady.changed(daemon={"record_dir": str(records)}) as cluster:
        # its comment waits there, too: were it told later, there would be room for a record
        comment(cluster, outcome(cluster, alone(cluster, "true")).job)
        waiting = (records / "comments").glob
        wait_for(lambda: not any(waiting("*[0-9]")), what="the comment's file to go")
        filler = fill(small_folder)
        assert_record_comes(cluster, filler.unlink)


def test_a_record_folder_that_is_closed_delays_the_record_alone(steady: Cluster) -> None:
    folder = record_dir(steady)
    outcome(steady, alone(steady, "true"))
    folder.chmod(0o555)
    try:
        assert_record_comes(steady, lambda: folder.chmod(0o755))
    finally:
        folder.chmod(0o755)


# -- configuration -------------------------------------------------------------------------------


def test_a_wrong_configuration_is_refused_with_its_line_and_jobs_run_without(
    steady: Cluster,
) -> None:
    node = steady.node("n1")
    good = node.config_file.read_text()
    node.daemon.stop()
    wrong = good.replace("period_s: 1.0", "period_s: soon")
    line = wrong[: wrong.index("period_s")].count("\n") + 1
    node.config_file.write_text(wrong)
    said = node.slurmd.news()
    try:
        node.daemon.launch()
        wait_for(lambda: not node.daemon.alive, what="the daemon to refuse")
        complaint = node.daemon.output.read_text()
        assert f"{node.config_file}:{line}:" in complaint and "period_s" in complaint
        done = ended_well(steady, alone(steady, "srun true"))
    finally:
        node.config_file.write_text(good)
    assert "joulemarkd does not answer" in done.records["n1"]["missing"]
    assert "joulemarkd does not answer" in said()
