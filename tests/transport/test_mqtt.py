"""Records over a real mosquitto to a real `joulemark receive`: each arrives, and counts once."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import wait_for
from tests.peers.mosquitto import PASSWORD, USER, Broker
from tests.peers.node import TestNode
from tests.peers.receiver import Receiver
from tests.peers.secret import secret


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(tmp_path / "mosquitto", tls=True, password=True) as started:
        yield started


@pytest.fixture
def node(joulemarkd: Path, tmp_path: Path, broker: Broker) -> Iterator[TestNode]:
    password_file = secret(tmp_path / "secret", PASSWORD)
    keys = (
        f"transport: mqtt\nstore: {tmp_path}/store.sqlite\n"
        f"mqtt: {{host: localhost, port: {broker.port}, ca_file: {broker.folder}/ca.crt,"
        f" user: {USER}, password_file: {password_file}}}\n"
    )
    (tmp_path / "records").mkdir()
    with TestNode(joulemarkd, tmp_path, keys) as started:
        yield started


@pytest.fixture
def receiver(node: TestNode, tmp_path: Path) -> Iterator[Receiver]:
    with Receiver(node.config, tmp_path) as started:
        yield started


def test_records_arrive_over_tls_with_a_password(node: TestNode, receiver: Receiver) -> None:
    for job in range(1, 21):
        node.job(job)
    node.wait_arrived(*range(1, 21))
    for job in range(1, 21):
        receiver.wait_log(f"{node.file_name(job)}: ")  # which it says behind its receipt
        assert receiver.log().count(f"{node.file_name(job)}: ") == 1
    assert receiver.kill(signal.SIGTERM) == 0


def test_a_dead_broker_delays_records_alone(
    node: TestNode, receiver: Receiver, broker: Broker
) -> None:
    node.job(1)
    node.wait_arrived(1)
    broker.kill(signal.SIGKILL)
    assert max(node.job(number) for number in range(2, 12)) < 2
    node.wait_log("records wait in the outbox")
    wait_for(lambda: len(node.outbox()) == 10, what="all records in the outbox")
    assert node.arrived() == [1]
    broker.start()
    node.wait_arrived(*range(1, 12))


def test_a_daemon_killed_during_the_outage_loses_nothing(
    node: TestNode, receiver: Receiver, broker: Broker
) -> None:
    broker.kill(signal.SIGKILL)
    node.job(1)
    wait_for(lambda: node.outbox() == [node.file_name(1)], what="the record in the outbox")
    node.kill(signal.SIGKILL)
    node.start()
    node.job(2)
    broker.start()
    node.wait_arrived(1, 2)


def test_a_receiver_that_is_away_gets_all_later(node: TestNode, receiver: Receiver) -> None:
    receiver.kill(signal.SIGKILL)
    jobs = range(1, 101)
    for job in jobs:
        node.job(job)
    wait_for(lambda: len(node.outbox()) == len(jobs), what="the records in the outbox")
    receiver.start()
    node.wait_arrived(*jobs)
    # its writers answer all at once, over one connection
    assert "not connected" not in receiver.log().rpartition("receiving from")[2]


def test_what_a_broker_loses_is_sent_again(
    node: TestNode, receiver: Receiver, broker: Broker
) -> None:
    """It acknowledges, dies, and has forgotten: the node still has the record."""
    receiver.kill(signal.SIGKILL)
    node.job(1)
    broker.wait_log("Sending PUBACK")
    broker.kill(signal.SIGKILL)
    (broker.folder / "mosquitto.db").unlink(missing_ok=True)
    assert node.outbox() == [node.file_name(1)]
    broker.start()
    receiver.start()
    node.wait_arrived(1)


def test_a_record_nobody_takes_is_said_and_kept(node: TestNode) -> None:
    node.job(1)
    node.wait_log("for nobody")
    assert node.outbox() == [node.file_name(1)]


def test_a_full_record_disk_delays_records_alone(
    node: TestNode, receiver: Receiver, tmp_path: Path
) -> None:
    """The receiver cannot write: it sends no receipt, and the node sends the record again."""
    final = node.records / node.file_name(1)
    final.mkdir()  # no file can take its place
    node.job(1)
    receiver.wait_log("cannot be written, and comes again")
    assert node.outbox() == [node.file_name(1)]
    final.rmdir()
    node.wait_arrived(1)


def test_what_others_publish_is_refused(
    receiver: Receiver, node: TestNode, broker: Broker
) -> None:
    broker.wait_log("Sending SUBACK to joulemark-receive-")
    broker.publish("joulemark/test/record/n1/7", "{}")
    broker.publish("joulemark/test/profile/n1/../../evil", "x")
    wait_for(lambda: receiver.log().count("refused: ") == 2, what="two refusals")
    assert list(node.records.rglob("*")) == []


def test_a_network_thread_that_dies_ends_the_receiver(node: TestNode, tmp_path: Path) -> None:
    """It would hear nothing more, and seem to be well."""
    receiver = Receiver(node.config, tmp_path)
    receiver.break_function("understand")
    receiver.start()
    assert receiver.process
    node.job(1)
    assert receiver.process.wait(60) == 1
    assert "RuntimeError: broken on purpose" in receiver.log()


def test_whatever_a_writer_dies_of_is_said(node: TestNode, tmp_path: Path) -> None:
    receiver = Receiver(node.config, tmp_path)
    receiver.break_function("write")
    receiver.start()
    node.job(1)
    said = "cannot be written, and comes again: RuntimeError: broken on purpose"
    try:
        receiver.wait_log(f"{node.file_name(1)}: {said}")
        assert node.outbox() == [node.file_name(1)]
    finally:
        assert receiver.kill(signal.SIGTERM) == 0
