"""The broker's access list that we ship: who may write and read what, by certificate."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from joulemark.broker import OPERATOR, PROGRAMS
from joulemark.broker import Broker as Site
from joulemark.top.mqtt import Live

from tests.cluster import CHECKOUT, wait_for
from tests.peers.certificates import make_certificate
from tests.peers.mosquitto import Broker
from tests.peers.node import CLUSTER, TestNode
from tests.peers.receiver import Receiver

ACL = CHECKOUT / "slurm-plugins" / "site" / "mosquitto.acl"
TOP = f"joulemark/{CLUSTER}"
NAMES = ("n1", "n2", *PROGRAMS)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    folder = tmp_path_factory.mktemp("mosquitto")
    acl = folder / "joulemark.acl"
    acl.write_text(ACL.read_text().replace("mycluster", CLUSTER))
    acl.chmod(0o600)
    with Broker(folder, tls=True, acl=acl) as started:
        for name in NAMES:
            make_certificate(folder, name, name)
        yield started


@pytest.fixture
def node(joulemarkd: Path, tmp_path: Path, broker: Broker) -> Iterator[TestNode]:
    """n1, by the certificate of its name."""
    folder = broker.folder
    keys = (
        f"transport: mqtt\nstore: {tmp_path}/store.sqlite\n"
        f"mqtt: {{host: localhost, port: {broker.port}, ca_file: {folder}/ca.crt,"
        f" cert_file: {folder}/%n.crt, key_file: {folder}/%n.key}}\n"
    )
    (tmp_path / "records").mkdir()
    with TestNode(joulemarkd, tmp_path, keys) as started:
        yield started


@pytest.fixture
def receiver(node: TestNode, tmp_path: Path) -> Iterator[Receiver]:
    """By its own certificate: of one configuration, %n is whoever reads it."""
    with Receiver(node.config, tmp_path) as started:
        yield started


def client(broker: Broker, program: str, name: str | None, *words: str) -> list[str]:
    """name: whose certificate it shows; None: nobody's."""
    own = ["--cert", f"{broker.folder}/{name}.crt", "--key", f"{broker.folder}/{name}.key"]
    return [*broker.client_words(program), *(own if name else []), *words]


def publish(broker: Broker, name: str | None, topic: str, payload: str) -> int:
    words = client(broker, "mosquitto_pub", name, "-q", "1", "-t", topic, "-m", payload)
    return subprocess.run(words, capture_output=True, timeout=60).returncode


def test_a_node_cannot_write_anothers_record(
    node: TestNode, receiver: Receiver, broker: Broker
) -> None:
    """n2 sends n1's next record, sound in all but its sender, and then one of its own; and an
    operator one as the node of his name, which the list cannot forbid."""
    node.job(1)
    node.wait_arrived(1)
    record = json.loads((node.records / node.file_name(1)).read_text())
    forged = json.dumps({**record, "JobIDRaw": 2})
    publish(broker, "n2", f"{TOP}/record/n1/2", forged)
    publish(broker, "n2", f"{TOP}/profile/n1/{CLUSTER}.1.n1.profile.jsonl", "{}")
    for name in (OPERATOR, "n2"):
        own = json.dumps({**record, "JobIDRaw": 2, "node": name})
        publish(broker, name, f"{TOP}/record/{name}/2", own)
    own = node.records / f"{CLUSTER}.2.n2.json"
    wait_for(own.exists, what="n2's own record")
    assert sorted(path.name for path in node.records.iterdir()) == [node.file_name(1), own.name]
    assert f"{TOP}/record/n1/2" not in receiver.log()
    denied = [line for line in broker.log().splitlines() if "Denied PUBLISH" in line]
    assert any(f"'{TOP}/record/n1/2'" in line for line in denied)
    assert publish(broker, "n1", f"{TOP}/record/n1/2", forged) == 0
    wait_for((node.records / node.file_name(2)).exists, what="what n1 itself sends")


def test_a_node_hears_its_own_power_and_receipts_alone(broker: Broker) -> None:
    words = client(broker, "mosquitto_sub", "n2", "-v", "-t", "joulemark/#", "-W", "60", "-C", "2")
    before = broker.log().count("Sending SUBACK")
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as listening:
        wait_for(lambda: broker.log().count("Sending SUBACK") > before, what="the subscription")
        for name in ("n1", "n2"):
            publish(broker, "n2", f"{TOP}/power/{name}", "forged")
            publish(broker, name, f"{TOP}/record/{name}/7", "{}")
            publish(broker, "joulemark-gateway", f"{TOP}/power/{name}", "42")
            publish(broker, "n1", f"{TOP}/receipt/{name}", "forged")
            publish(broker, "joulemark-receive", f"{TOP}/receipt/{name}", "mine")
        heard, _ = listening.communicate(timeout=120)
    assert heard.splitlines() == [f"{TOP}/power/n2 42", f"{TOP}/receipt/n2 mine"]


def test_an_operator_alone_looks_at_nodes(node: TestNode, broker: Broker) -> None:
    """Others make no node tell its energy, do not hear it where it does, and forge none."""
    told = f"Received PUBLISH from .*'{TOP}/live/n1'"
    denied, forged = (f"Denied PUBLISH from .*'{TOP}/{of}'" for of in ("watch", "live/n1"))
    others = ("n2", "joulemark-receive", "joulemark-gateway")
    for name in others:
        publish(broker, name, f"{TOP}/watch", "watch interval_ms=100 lasts_ms=60000")
    wait_for(lambda: len(re.findall(denied, broker.log())) == len(others), what="to be denied")
    words = client(broker, "mosquitto_sub", "n2", "-v", "-t", "joulemark/#")
    before = broker.log().count("Sending SUBACK")
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as listening:
        wait_for(lambda: broker.log().count("Sending SUBACK") > before, what="the subscription")
        assert not re.search(told, broker.log())
        with Live(Site.load(node.config, OPERATOR, None, None), CLUSTER, 0.1, {}) as nodes:
            publish(broker, "n2", f"{TOP}/live/n1", "node=n1 energy_uj=1")
            publish(broker, "n2", f"{TOP}/live/n2", "node=n1 energy_uj=2")
            heard = list(nodes.until(time.monotonic() + 1.0))
        listening.terminate()
        assert f"{TOP}/live/" not in listening.communicate(timeout=60)[0]
    assert len(heard) > 3 and {one for one, _ in heard} == {"n1"}
    energies = [int(line.split(" energy_uj=")[1].split()[0]) for _, line in heard]
    assert 2 < energies[0] <= energies[-1] <= sum(node.books().values())
    assert re.search(forged, broker.log()) and nodes.refused == 1


def test_without_a_certificate_nobody_is_let_in(broker: Broker) -> None:
    assert publish(broker, None, f"{TOP}/record/n1/1", "{}") != 0
