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

from tests.cluster import wait_for
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


def wait_hung(node: TestNode) -> Path:
    """Until the forwarder sleeps in the kernel; its /proc/PID/stat."""
    stat = Path(f"/proc/{node.forwarder()}/stat")
    wait_for(lambda: stat.read_text().rpartition(")")[2].split()[0] == "D", what="D state")
    return stat


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
    assert hung.exists()
    on_disk.job(3)
    disk.thaw()
    on_disk.wait_arrived(1, 2, 3)
    wait_for(lambda: not hung.exists(), what="the hung forwarder to end")


def test_a_full_disk_delays_records_alone(on_disk: TestNode, disk: Disk) -> None:
    filler = disk.fill()
    on_disk.job(2)
    wait_for(lambda: "No space left" in on_disk.log(), what="the log to say so")
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


def test_a_killed_daemon_delivers_what_waited(node: TestNode, tmp_path: Path) -> None:
    node.configure(records=tmp_path / "away" / "records")
    with node:
        node.job(1)
        wait_for(lambda: "No such file" in node.log(), what="the log to say so")
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
        wait_for(node.forwarder)
        forwarder = Path(f"/proc/{node.forwarder()}")
        node.kill(signal.SIGKILL)
        wait_for(lambda: not forwarder.exists(), what="the forwarder to end")


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
