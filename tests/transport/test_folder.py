"""Records by shared folder: whatever happens to it, the daemon goes on, every record arrives."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import pause, processes, wait_for
from tests.peers.node import TestNode
from tests.transport.conftest import Disk

ANSWER_S = 2.0  # an answer takes milliseconds; the machine may be loaded


@pytest.fixture
def node(joulemarkd: Path, tmp_path: Path) -> Iterator[TestNode]:
    made = TestNode(joulemarkd, tmp_path)
    yield made
    made.kill()


@pytest.fixture
def on_disk(node: TestNode, disk: Disk) -> Iterator[TestNode]:
    """Its records go to the disk, where job 1's is."""
    node.configure(records=disk.folder / "records")
    with node:
        node.job(1)
        node.wait_arrived(1)
        yield node


def wait_hung(node: TestNode) -> int:
    """Until the forwarder sleeps in the kernel; its pid."""
    pid = node.forwarder()
    wait_for(lambda: processes.state(pid) == "D", what="D state")
    return pid


def test_a_record_goes_through_the_outbox(node: TestNode) -> None:
    with node:
        node.job(1)
        node.wait_arrived(1)
        assert not [path for path in node.records.rglob("*") if path.name.startswith(".")]


def test_a_frozen_folder_stalls_nothing_and_all_arrives_after(
    on_disk: TestNode, disk: Disk
) -> None:
    """ext4 on a loop device, frozen with fsfreeze."""
    disk.freeze()
    slowest_s = max(on_disk.job(number) for number in range(2, 12))
    assert slowest_s < ANSWER_S
    wait_hung(on_disk)
    ticks = on_disk.ask("node")
    wait_for(lambda: on_disk.ask("node") != ticks, what="ticks to go on")
    assert len(on_disk.outbox()) == 10
    disk.thaw()
    on_disk.wait_arrived(*range(1, 12))


def test_a_daemon_is_restarted_while_its_forwarder_hangs(on_disk: TestNode, disk: Disk) -> None:
    """The hung process cannot be killed; it must hold neither the ledger nor the socket."""
    disk.freeze()
    on_disk.job(2)
    hung = wait_hung(on_disk)
    for number in (signal.SIGKILL, signal.SIGTERM):
        on_disk.kill(number)
        on_disk.start()
    assert processes.state(hung)
    on_disk.job(3)
    disk.thaw()
    on_disk.wait_arrived(1, 2, 3)
    wait_for(lambda: not processes.state(hung), what="the hung forwarder to end")


def test_a_full_disk_delays_records_alone(on_disk: TestNode, disk: Disk) -> None:
    filler = disk.fill()
    on_disk.job(2)
    on_disk.wait_log("No space left")
    assert on_disk.arrived() == [1] and on_disk.outbox() == [on_disk.file_name(2)]
    filler.unlink()
    on_disk.wait_arrived(1, 2)


def test_a_full_ledger_disk_lets_records_pass(node: TestNode, disk: Disk) -> None:
    """The second outbox, beside the socket, takes what the first has no room for."""
    node.state = disk.folder / "state"
    node.configure()
    with node:
        node.job(1)
        node.wait_arrived(1)
        disk.fill()
        node.job(2)
        wait_for(lambda: node.arrived() == [1, 2], what="the record")


def test_a_record_stands_though_the_ledger_could_not_be_saved(node: TestNode, disk: Disk) -> None:
    """The saved ledger has the job open, with less than its record says."""
    node.state = disk.folder / "state"
    node.configure()
    with node:
        node.ask("open job=2 step=extern uid=0 job_cpus=1")  # a process that lives on: ours
        pause(0.3)
        filler = disk.fill()
        wait_for(lambda: "the ledger goes on in memory" in node.log(), what="the fault")
        pause(0.5)
        node.ask("end job=2")
        wait_for(lambda: node.arrived() == [2], what="the record")
        path = node.records / node.file_name(2)
        record = path.read_text()
        node.kill(signal.SIGKILL)
        filler.unlink()
        node.start()
        assert node.ask("status")["accounts"] == "0"
        node.job(3)
        node.wait_arrived(2, 3)
        assert path.read_text() == record


def test_a_record_of_a_run_that_ends_later_stays(node: TestNode) -> None:
    """A ledger that a power failure threw back tells of the job's beginning alone."""
    with node:
        node.job(1)
        node.wait_arrived(1)
    path, waiting = (
        folder / node.file_name(1) for folder in (node.records, node.state / "outbox")
    )
    delivered = path.read_text()
    end_ns = json.loads(delivered)["accounts"][0]["end_ns"]
    for other_ns, stays in ((end_ns - 1, True), (end_ns + 1, False)):
        waiting.write_text(delivered.replace(f'"end_ns": {end_ns}', f'"end_ns": {other_ns}'))
        with node:
            node.wait_arrived(1)
        assert (path.read_text() == delivered) == stays
    assert [entry.name for entry in node.records.glob("*json*")] == [path.name]


def test_a_killed_daemon_delivers_what_waited(node: TestNode, tmp_path: Path) -> None:
    node.configure(records=tmp_path / "away" / "records")
    with node:
        node.job(1)
        node.wait_log("No such file")
        node.kill(signal.SIGKILL)
        (tmp_path / "away").mkdir()
        node.start()
        node.wait_arrived(1)


def test_a_daemon_killed_before_it_has_written_a_record_writes_it_later(node: TestNode) -> None:
    """Whoever asked it to end the job was told that all is well, and asks no other."""
    with node:
        for outbox in (node.state / "outbox", Path(f"{node.socket}.outbox")):
            shutil.rmtree(outbox)
            outbox.write_text("no folder: a record takes its time\n")
        node.job(1)
        node.kill(signal.SIGKILL)
        for outbox in (node.state / "outbox", Path(f"{node.socket}.outbox")):
            outbox.unlink()
        node.start()
        node.wait_arrived(1)


def test_a_killed_forwarder_is_replaced(node: TestNode) -> None:
    with node:
        node.job(1)
        node.wait_arrived(1)
        os.kill(node.forwarder(), signal.SIGKILL)
        node.job(2)
        node.wait_arrived(1, 2)
        assert "the forwarder ended (signal 9)" in node.log()


def test_a_killed_daemon_leaves_no_forwarder_behind(node: TestNode) -> None:
    with node:
        forwarder = wait_for(node.forwarder)
        node.kill(signal.SIGKILL)
        wait_for(lambda: not processes.state(forwarder), what="the forwarder to end")


def test_a_requeued_jobs_runs_are_kept_side_by_side(node: TestNode) -> None:
    """Three runs of job 1 on one node before any merge."""
    starts = []
    with node:
        for run in (1, 2, 3):
            node.job(1)
            kept = node.records / (node.file_name(1) + (f".{run}" if run > 1 else ""))
            wait_for(kept.exists, what=f"the record of run {run}")
            wait_for(lambda: node.outbox() == [], what="the outbox to be empty")
            starts.append(json.loads(kept.read_text())["accounts"][0]["start_ns"])
    assert len(set(starts)) == 3 and starts == sorted(starts)
    assert len(list(node.records.glob("*.json*"))) == 3


def test_a_link_in_the_folder_is_not_followed(node: TestNode, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    node.records.mkdir()
    (node.records / node.file_name(1)).symlink_to(victim)
    with node:
        node.job(1)
        wait_for(lambda: not (node.records / node.file_name(1)).is_symlink(), what="the record")
        node.wait_arrived(1)
        assert victim.read_text() == "mine"
