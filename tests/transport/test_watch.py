"""An operator looks at nodes over a real mosquitto: told while he looks, and not else."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from joulemark.broker import OPERATOR
from joulemark.broker import Broker as Site
from joulemark.errors import UserError
from joulemark.top import mqtt

from tests.cluster import CHECKOUT, pause, wait_for
from tests.peers.mosquitto import USER, Broker
from tests.peers.node import CLUSTER, TestNode
from tests.peers.secret import secret

TOP = f"joulemark/{CLUSTER}"
MOST_HZ = 5
#: opens job 7 and keeps it, until its standard input ends
HELD_JOB = """
import socket, sys
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as channel:
    channel.connect(sys.argv[1])
    channel.send(b"open job=7 step=extern uid=0 job_cpus=1")
    print(channel.recv(4096).decode(), flush=True)
    sys.stdin.read()
    channel.send(b"end job=7")
    print(channel.recv(4096).decode(), flush=True)
"""


@pytest.fixture
def node(joulemarkd: Path, tmp_path: Path, broker: Broker) -> Iterator[TestNode]:
    keys = (
        f"transport: mqtt\nstore: {tmp_path}/store.sqlite\nprofile_max_hz: {MOST_HZ}\n"
        f"mqtt: {{host: localhost, port: {broker.port}}}\n"
    )
    with TestNode(joulemarkd, tmp_path, keys) as started:
        broker.wait_log(f"0 {TOP}/watch")
        yield started


@contextlib.contextmanager
def held_job(node: TestNode) -> Iterator[None]:
    words = [sys.executable, "-c", HELD_JOB, str(node.socket)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as job:
        assert job.stdout and job.stdout.readline().startswith("ok")
        yield
        assert job.communicate(timeout=60)[0].startswith("ok")


def live(broker: Broker) -> int:
    """How many messages on their energy nodes have sent."""
    return len(re.findall(f"Received PUBLISH from .*'{TOP}/live/", broker.log()))


def watch(config: Path, interval_s: float, named: list[str] | None = None) -> mqtt.Live:
    return mqtt.Live(Site.load(config, OPERATOR, None, None), CLUSTER, interval_s, {}, named)


def heard(nodes: mqtt.Live, seconds: float) -> list[dict[str, str]]:
    """What nodes told in this time, by the names of the figures."""
    lines = list(nodes.until(time.monotonic() + seconds))
    assert all(line.startswith(f"node={node} ") for node, line in lines)
    return [dict(word.split("=", 1) for word in line.split()) for _, line in lines]


def test_what_is_told_is_in_the_daemons_books(node: TestNode, broker: Broker) -> None:
    """Of the same tick both say the same, of a job and of nobody's energy."""
    assert live(broker) == 0
    told: dict[str, dict] = {}
    books: dict[str, dict] = {}
    with held_job(node), watch(node.config, 0.2) as nodes:

        def both() -> set[str]:
            told.update((one["time_ns"], one) for one in heard(nodes, 0.05))
            answer = node.ask("node_energy")
            books[answer["time_ns"]] = answer
            return {time_ns for time_ns in set(told) & set(books) if told[time_ns]["jobs"] == "1"}

        same = wait_for(lambda: len(both()) >= 3 and both(), what="three ticks that both saw")
    assert nodes.refused == 0
    for time_ns in same:
        assert told[time_ns] == books[time_ns]
    for one in told.values():
        assert int(one["energy_uj"]) == int(one["charged_uj"]) + int(one["unallocated_uj"])
    charged = [int(told[time_ns]["charged_uj"]) for time_ns in sorted(same, key=int)]
    assert charged[0] < charged[-1] <= sum(node.books().values())


def test_who_is_not_named_tells_nothing(node: TestNode, broker: Broker) -> None:
    asked = f"Sending PUBLISH to .*'{TOP}/watch'"
    with watch(node.config, 0.1, ["n8", "n9"]) as nodes:
        wait_for(
            lambda: not heard(nodes, 0.1) and re.search(asked, broker.log()), what="a request"
        )
        assert heard(nodes, 1.0) == [] and live(broker) == 0
    with watch(node.config, 0.1, ["n8", "n1"]) as nodes:
        wait_for(lambda: heard(nodes, 0.1), what="it to tell")


def test_a_command_that_names_none_asks_all(node: TestNode, broker: Broker) -> None:
    """As those of earlier releases do, also of the nodes that they want to see alone."""
    broker.publish(f"{TOP}/watch", "watch interval_ms=100 lasts_ms=15000")
    wait_for(lambda: live(broker) > 3, what="it to tell")


def test_nobody_is_told_after_the_watcher_has_gone(
    node: TestNode, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mqtt, "LASTS_S", 1.0)
    monkeypatch.setattr(mqtt, "RENEW_S", 0.3)
    with watch(node.config, 0.2) as nodes:
        wait_for(lambda: heard(nodes, 0.2) and live(broker) > 8, what="it to last over a second")

    def has_stopped() -> bool:
        before = live(broker)
        pause(1.0)  # five times as long as it told at
        return live(broker) == before

    wait_for(has_stopped, 30, what="it to tell no more")


def test_it_is_no_oftener_than_profiles_whatever_is_asked_for(
    node: TestNode, broker: Broker
) -> None:
    broker.publish(f"{TOP}/watch", *["watch interval_ms=1 lasts_ms=60000"] * 20)
    wait_for(lambda: live(broker) > 0, what="a first one")
    began, before = time.monotonic(), live(broker)
    pause(2.0)
    told, lasted_s = live(broker) - before, time.monotonic() - began
    assert 1 < told <= MOST_HZ * lasted_s + 1


def test_what_is_no_request_is_ignored(node: TestNode, broker: Broker) -> None:
    """Nor is one that the broker has kept, of whenever it was, for a node that comes later."""
    nonsense = ("x", "watch", "watch interval_ms=-1 lasts_ms=1", "open job=1 step=extern", "\xff")
    broker.publish(f"{TOP}/watch", *nonsense, "watch interval_ms=9 lasts_ms=9 " + "x" * 100_000)
    broker.publish(f"{TOP}/watch", "watch interval_ms=100 lasts_ms=60000", retain=True)
    wait_for(lambda: live(broker) > 0, what="the sound one, which reached who was there already")
    node.kill()
    before = broker.log().count(f"0 {TOP}/watch")
    node.start()
    wait_for(lambda: broker.log().count(f"0 {TOP}/watch") > before, what="its subscription")
    count = live(broker)
    pause(0.5)
    assert live(broker) == count
    broker.publish(f"{TOP}/watch", "watch interval_ms=100 lasts_ms=1000")
    wait_for(lambda: live(broker) > count, what="it to be told all the same")


def test_a_broker_where_nodes_may_not_be_watched_takes_records(
    joulemarkd: Path, tmp_path: Path
) -> None:
    """One that refuses subscriptions, as mosquitto does by its plugin alone."""
    (plugin,) = Path("/usr/lib").glob("*/mosquitto_dynamic_security.so")
    broker = Broker(tmp_path / "strict")
    own = {"acltype": "subscribePattern", "topic": f"{TOP}/receipt/n1", "allow": True}
    rights = {
        "defaultACLAccess": dict.fromkeys(("publishClientSend", "publishClientReceive"), True),
        "roles": [{"rolename": "node", "acls": [own]}],
        "groups": [{"groupname": "nodes", "roles": [{"rolename": "node"}]}],
        "anonymousGroup": "nodes",
    }
    (broker.folder / "rights.json").write_text(json.dumps(rights))
    with (broker.folder / "mosquitto.conf").open("a") as conf:
        conf.write(f"plugin {plugin}\nplugin_opt_config_file {broker.folder}/rights.json\n")
    keys = (
        f"transport: mqtt\nstore: {tmp_path}/store.sqlite\n"
        f"mqtt: {{host: localhost, port: {broker.port}}}\n"
    )
    with broker, TestNode(joulemarkd, tmp_path, keys) as node:
        node.job(1)
        broker.wait_log(f"'{TOP}/record/n1/1'")
        # asked for; mosquitto 2.1 says so by its answer
        assert re.search(rf"{TOP}/watch \((QoS 0|denied)\)", broker.log())
        assert f" 0 {TOP}/watch\n" not in broker.log()  # not granted


def test_of_a_thousand_nodes_none_is_lost(broker: Broker, tmp_path: Path) -> None:
    from paho.mqtt import publish

    config = tmp_path / "joulemark.yaml"
    config.write_text(f"mqtt: {{host: localhost, port: {broker.port}}}\n")
    names = [f"n{number:04}" for number in range(1000)]
    with watch(config, 1.0) as nodes:
        messages = [(f"{TOP}/live/{name}", f"node={name} energy_uj=1") for name in names]
        found: set[str] = set()
        began_s = time.process_time()
        publish.multiple(messages, "localhost", broker.port)
        wait_for(
            lambda: found.update(one["node"] for one in heard(nodes, 0.1)) or len(found) >= 1000,
            what=lambda: f"all nodes: {len(found)}",
        )
        took_s = time.process_time() - began_s
    assert found == set(names) and nodes.refused == 0
    assert took_s < 3.0  # of the CPU: a half; a wait for each message has wait_for's end


def test_a_broker_that_is_away_or_refuses_us_is_named(tmp_path: Path) -> None:
    broker = Broker(tmp_path / "mosquitto", password=True)
    config = tmp_path / "joulemark.yaml"
    wrong = secret(tmp_path / "secret", "wrong")
    config.write_text(
        f"mqtt: {{host: localhost, port: {broker.port}, user: {USER}, password_file: {wrong}}}\n"
    )
    where = f"^broker localhost:{broker.port}: .*"
    with pytest.raises(UserError, match=where + "refused: check `mqtt:`"), watch(config, 1.0):
        pass
    with broker, pytest.raises(UserError, match=where + "[Nn]ot authori.ed"), watch(config, 1.0):
        pass


def test_nodes_of_which_none_answers_are_no_empty_table(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mqtt, "PATIENCE_S", 0.5)
    monkeypatch.setattr(mqtt, "RENEW_S", 0.1)
    config = tmp_path / "joulemark.yaml"
    config.write_text(f"mqtt: {{host: localhost, port: {broker.port}}}\n")
    said = f"no node tells .* asked by {TOP}/watch"
    with watch(config, 0.1) as nodes, pytest.raises(UserError, match=said):
        heard(nodes, 60.0)


def test_the_command_shows_a_node_and_why_another_is_silent(
    node: TestNode, tmp_path: Path
) -> None:
    """Slurm knows of two; it says of the other why it is away."""
    (tmp_path / "slurm.conf").write_text("ClusterName=test\nNodeName=n[1-2] CPUs=1\n")
    sinfo = tmp_path / "sinfo"
    sinfo.write_text("#!/bin/sh\necho 'n2|down*|Not responding'\n")
    sinfo.chmod(0o755)
    env = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PYTHONPATH": str(CHECKOUT / "packages/joulemark/src"),
        "SLURM_CONF": str(tmp_path / "slurm.conf"),
        "JOULEMARK_CONFIG": str(node.config),
    }
    words = [sys.executable, "-m", "joulemark", "top", "--nodes", "all", "--once", "--json"]
    words += ["--every", "0.5"]
    with held_job(node):
        done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1, done.stderr  # for n2 gave no answer
    (told,) = map(json.loads, done.stdout.splitlines())
    assert told["silent"] == {"n2": "down* (Not responding)"}
    (only,) = told["nodes"]
    assert only["node"] == "n1" and only["jobs"] == 1 and only["estimated"] is True
    assert only["charged_w"] > 0 and only["unallocated_w"] >= 0
    assert only["power_w"] == pytest.approx(only["charged_w"] + only["unallocated_w"], rel=1e-6)
    assert 39.9 < only["power_w"] < 120.1  # as the model has it
