"""A gateway: outlets of a real snmpd, over a real mosquitto, to the ledger of a node."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster import meanwhile, pause, wait_for
from tests.peers.agent import Agent
from tests.peers.gateway import CHANNELS, TREE, Gateway, outlets, watts
from tests.peers.mosquitto import Broker
from tests.peers.node import TestNode


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    with Agent(tmp_path / "pdu", [TREE]) as running:
        running.set(watts(100, 200, 300, 60, 30))
        yield running


@pytest.fixture
def gateway(joulemarkd: Path, tmp_path: Path, broker: Broker, agent: Agent) -> Callable:
    def make(channels: str = CHANNELS, **more: object) -> Gateway:
        return Gateway(joulemarkd, tmp_path / "gateway", broker, agent, channels, **more)

    return make


def listen(broker: Broker, count: int) -> list[tuple[str, dict]]:
    """The next messages of all nodes' power."""
    words = [*broker.client_words("mosquitto_sub"), "-v", "-t", "joulemark/test/power/+"]
    words += ["-C", str(count), "-W", "60"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=120)
    pairs = [line.partition(" ") for line in done.stdout.splitlines()]
    return [(topic, json.loads(payload)) for topic, _, payload in pairs]


def test_each_node_has_its_outlets_power(gateway: Callable, broker: Broker) -> None:
    with gateway():
        heard = listen(broker, 12)
        for topic, payload in heard:
            node = int(topic.removeprefix("joulemark/test/power/n"))
            assert payload["watts"] == 100 * node and payload["period_s"] == 0.2
            assert abs(payload["time"] - time.time()) < 30
        assert len({topic for topic, _ in heard}) == 3


def test_a_nodes_ledger_takes_what_the_gateway_publishes(
    gateway: Callable, broker: Broker, agent: Agent, joulemarkd: Path, tmp_path: Path
) -> None:
    """n2's job is charged for outlet 2, within its error bar."""
    folder = tmp_path / "node"
    folder.mkdir()
    node = TestNode(joulemarkd, folder, node="n2")
    node.config.write_text(
        node.config.read_text().partition("instruments:")[0] + "instruments:\n"
        f"- {{type: mqtt, host: localhost, port: {broker.port}, period_s: 0.2,"
        " topic: joulemark/test/power/%n, error: {relative: 0.01}}\n"
    )
    with gateway(), node:
        wait_for(
            lambda: node.ask("node")["watts"].startswith("200."), what="200 W at the node's ledger"
        )
        node.ask("open job=7 step=extern uid=0 job_cpus=64")
        pause(3)
        node.ask("end job=7")
        wait_for(lambda: node.arrived() == [7], what="the record")
    record = json.loads((node.records / node.file_name(7)).read_text())
    (job,) = [account for account in record["accounts"] if account["step"] == "job"]
    seconds = (job["end_ns"] - job["start_ns"]) / 1e9
    assert seconds > 2.5 and job["samples"] > 5
    energy_j, error_j = job["energy_uj"] / 1e6, job["uncertainty_uj"] / 1e6
    seen_s = seconds - job["gap_seconds"]  # no message for more than five periods
    assert 200 * seen_s - error_j <= energy_j <= 200 * seconds + error_j


def late_power(
    broker: Broker, topic: str, watts: float, late_s: float
) -> contextlib.AbstractContextManager[None]:
    """A value each 0.2 s, which is so long on its way, is published meanwhile."""

    def publish(over: threading.Event) -> None:
        while not over.wait(0.2):
            broker.publish(topic, json.dumps({"time": time.time() - late_s, "watts": watts}))

    return meanwhile(publish)


def test_a_short_job_is_charged_its_own_of_a_power_that_comes_late(
    broker: Broker, joulemarkd: Path, tmp_path: Path
) -> None:
    """The fault: of values from before it came it was charged all that was held since them."""
    node = TestNode(joulemarkd, tmp_path)
    node.config.write_text(
        node.config.read_text().partition("instruments:")[0] + "instruments:\n"
        f"- {{type: mqtt, host: localhost, port: {broker.port}, period_s: 1,"
        " topic: power/%n, error: {relative: 0.01}}\n"
    )
    jobs = range(1, 11)
    with node, late_power(broker, f"power/{node.node}", 100, late_s=1):
        wait_for(lambda: node.ask("node")["watts"].startswith("100."), what="100 W at the ledger")
        for number in jobs:
            node.job(number, seconds=0.3)
            pause(0.3)
        node.wait_arrived(*jobs)
    for number in jobs:
        record = json.loads((node.records / node.file_name(number)).read_text())
        (job,) = [account for account in record["accounts"] if account["step"] == "job"]
        seconds = (job["end_ns"] - job["start_ns"]) / 1e9
        energy_j, error_j = job["energy_uj"] / 1e6, job["uncertainty_uj"] / 1e6
        seen_s = seconds - job["gap_seconds"]
        assert 100 * seen_s - error_j <= energy_j <= 100 * seconds + error_j


def test_shared_channels_leave_cumulative_lines(gateway: Callable) -> None:
    with gateway() as running:
        wait_for(lambda: len(running.lines("rack")) >= 5, what="lines")
        assert running.kill(signal.SIGTERM) == 0
        for name, power_w in (("rack", 60), ("switch", 30)):
            lines = running.lines(name)
            first, last = lines[0], lines[-1]
            seconds = (last["time_ns"] - first["time_ns"]) / 1e9
            gained_j = (last["energy_uj"] - first["energy_uj"]) / 1e6
            assert gained_j == pytest.approx(power_w * seconds, rel=0.02, abs=power_w * 0.3)
            assert all(a["energy_uj"] <= b["energy_uj"] for a, b in zip(lines, lines[1:]))
            assert {line["run"] for line in lines} == {first["run"]}
            assert last["nodes"] == "n[1-3]" and last["systematic_uj"] > 0
        rack = running.lines("rack")
        used = {n: rack[-1]["nodes_uj"][n] - rack[0]["nodes_uj"][n] for n in ("n1", "n2", "n3")}
        assert used["n2"] == pytest.approx(2 * used["n1"], rel=0.02)
        assert "nodes_uj" not in running.lines("switch")[0]


def test_a_killed_gateway_begins_a_new_run_and_tears_no_line(gateway: Callable) -> None:
    with gateway() as running:
        wait_for(lambda: len(running.lines("rack")) >= 2, what="lines")
        running.kill(signal.SIGKILL)
        path = running.records / "shared" / "rack.jsonl"
        with path.open("a") as torn:
            torn.write('{"time_ns": 1')
        before = len(path.read_text().splitlines())
        running.start()
        wait_for(lambda: len(path.read_text().splitlines()) >= before + 2, what="new lines")
        text = path.read_text().splitlines()
        assert text[before - 1] == '{"time_ns": 1'
        runs = [json.loads(line)["run"] for line in text if line.endswith("}")]
        assert len(set(runs)) == 2 and runs == sorted(runs)


def test_a_dead_pdu_and_a_dead_broker_are_said_and_survived(
    gateway: Callable, broker: Broker, agent: Agent
) -> None:
    with gateway() as running:
        listen(broker, 3)
        agent.kill()
        running.wait_log("instrument pdu, channel n1: ")
        agent.start()
        running.wait_log("reads well again")
        broker.kill(signal.SIGKILL)
        running.wait_log("power is not published")
        broker.start()
        assert len(listen(broker, 6)) == 6


SUM = ", sum: true"
SUPPLIES = outlets("n[1-3]", "[1-3]", SUM)


@pytest.fixture
def second(tmp_path: Path) -> Iterator[Agent]:
    """Another PDU, for the nodes' second power supplies."""
    with Agent(tmp_path / "pdu-b", [TREE]) as running:
        running.set(watts(11, 22, 33))
        yield running


def test_a_node_with_two_power_supplies_has_their_sum(
    gateway: Callable, broker: Broker, second: Agent
) -> None:
    with gateway(SUPPLIES).add("pdu-b", second, SUPPLIES) as running:
        assert running.check() == ""
        for topic, payload in listen(broker, 12):
            node = int(topic.removeprefix("joulemark/test/power/n"))
            assert payload["watts"] == 111 * node


def test_two_outlets_of_one_pdu_are_summed_and_named(gateway: Callable, broker: Broker) -> None:
    """n1 has outlets 1 and 2, in one entry; n2's and n3's have entries of their own."""
    both = outlets("n1,n1", "[1-2]", SUM)
    rest = outlets("n[2-3]", "[3-4]", SUM) + outlets("n2", "5", SUM)
    fans = outlets("n[1-3]", "5", ", name: fans, shared: energy")
    with gateway(both + rest + fans) as running:
        heard = {topic[-2:]: payload["watts"] for topic, payload in listen(broker, 12)}
        assert heard == {"n1": 300, "n2": 330, "n3": 60}
        wait_for(lambda: len(running.lines("fans")) >= 5, what="lines")
        first, *_, last = (line["nodes_uj"] for line in running.lines("fans")[1:])
        used = {node: last[node] - first[node] for node in ("n1", "n2", "n3")}
        assert used["n1"] == pytest.approx(5 * used["n3"], rel=0.02)
        assert used["n2"] == pytest.approx(5.5 * used["n3"], rel=0.02)


def test_half_of_a_node_is_never_published(
    gateway: Callable, broker: Broker, agent: Agent, second: Agent
) -> None:
    """n1 has both PDUs, n2 and n3 the first only; the second one dies and comes back."""
    only = outlets("n1", "1", SUM)
    with gateway(SUPPLIES).add("pdu-b", second, only) as running:
        assert {topic[-2:] for topic, _ in listen(broker, 12)} == {"n1", "n2", "n3"}
        second.kill()
        running.wait_log("channel n1: ")
        heard = listen(broker, 20)
        assert {topic[-2:] for topic, _ in heard} == {"n2", "n3"}
        second.start()
        wait_for(lambda: any(t[-2:] == "n1" for t, _ in listen(broker, 6)), what="n1's power")
        assert all(p["watts"] == 111 for t, p in listen(broker, 12) if t[-2:] == "n1")


def test_a_dead_outlet_leaves_its_node_out_of_the_lines(gateway: Callable, second: Agent) -> None:
    """Its energy since the last line is not known: no share can be told from it."""
    fans = outlets("n[1-3]", "4", ", name: fans, shared: energy")

    def known() -> set[str]:
        lines = running.lines("fans")
        return set(lines[-1]["nodes_uj"]) if lines else set()

    two = gateway(outlets("n[2-3]", "[2-3]") + fans)
    with two.add("pdu-b", second, outlets("n1", "1")) as running:
        wait_for(lambda: known() == {"n1", "n2", "n3"}, what="all nodes")
        second.kill()
        wait_for(lambda: known() == {"n2", "n3"}, what="n1 to be left out")
        second.start()
        wait_for(lambda: known() == {"n1", "n2", "n3"}, what="all nodes")


def test_a_storage_servers_outlet_is_of_no_node(gateway: Callable) -> None:
    """Its line names the server, whose jobs a merge finds by that name."""
    oss = outlets("oss1", "4", ", name: oss1-power, shared: io")
    made = gateway(outlets("n[1-3]", "[1-3]") + oss)
    assert made.check() == ""
    with made as running:
        wait_for(lambda: running.lines("oss1-power"), what="a line")
        line = running.lines("oss1-power")[0]
        assert (line["nodes"], line["split"]) == ("oss1", "io")
        assert "nodes_uj" not in line


AGAIN = outlets("n2", "4", ", name: again")
MAPPED = "node 'n2' is mapped already in line 17"
EQUAL = ", name: x, shared: equal"


@pytest.mark.parametrize(
    ("channels", "part"),
    [
        (outlets("n[1-3]", "[1-2]"), "names 2, but `nodes` names 3"),
        (outlets("n[1-4]", "[1-4]"), "'n4' is not of gateway.nodes"),
        (outlets("n[1-2]", "[1-2]"), "node 'n3' is measured by no channel"),
        (outlets("n[1-3]", "[1-3]") + AGAIN, f"{MAPPED}; remove one, or say 'sum: true' in both"),
        (SUPPLIES + AGAIN, f"{MAPPED}; remove one, or say 'sum: true' in both"),
        (
            SUPPLIES + outlets("n2", "2", SUM),
            "node 'n2' has this very outlet already in line 17",
        ),
        (outlets("n[1-3],n2", "[1-4]"), MAPPED),
        (
            CHANNELS + outlets("n1", "9", EQUAL + SUM),
            "which is for a node's own outlets",
        ),
        (SUPPLIES.replace("true", "both"), "must be true or false, is 'both'"),
        (outlets("n[1-", "1"), "must be a host list such as n[001-072]"),
        (CHANNELS + f"  - {{oid: {TREE}.9.1{EQUAL}}}\n", "by whom is missing"),
        (CHANNELS + outlets("n7", "9", EQUAL), "node 'n7' is not of gateway.nodes"),
        (CHANNELS + outlets("n1", "9", ", name: x, shared: mine"), "must be equal, energy or io"),
    ],
)
def test_mistakes_in_the_mapping_are_said_with_their_line(
    gateway: Callable, channels: str, part: str
) -> None:
    made = gateway(channels)
    complaint = made.check()
    assert part in complaint
    assert all(line.startswith(f"{made.config}:") for line in complaint.splitlines())
    assert len(complaint.splitlines()) == 1


def test_a_sound_mapping_is_good_and_is_no_nodes(gateway: Callable) -> None:
    made = gateway()
    assert made.check() == ""
    words = [str(made.program), "-N", "n1", "-c", str(made.config)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 78 and "start with --gateway" in done.stderr


def test_what_no_node_draws_is_refused_and_what_many_draw_is_not(
    gateway: Callable, agent: Agent
) -> None:
    """50 kW a node are believed: of one outlet, of three nodes' rack three times as much."""
    agent.set(watts(100, 60_000, 300, 90_000, 30))
    with gateway() as running:
        wait_for(lambda: len(running.lines("rack")) >= 5, what="lines")
        assert running.log().count("channel n2: reads more power than is believed (`max_w`)") == 1
        first, last = running.lines("rack")[0], running.lines("rack")[-1]
        seconds = (last["time_ns"] - first["time_ns"]) / 1e9
        gained_j = (last["energy_uj"] - first["energy_uj"]) / 1e6
        assert gained_j == pytest.approx(90_000 * seconds, rel=0.02, abs=90_000 * 0.3)
        assert set(last["nodes_uj"]) == {"n1", "n3"}
        words = [str(running.program), "--describe", "-N", "n1", "-c", str(running.config)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
        limits = {
            said["channel"]: said["max_w"] for said in map(json.loads, done.stdout.splitlines())
        }
        assert limits["rack"] == 150_000 and limits["n2"] == 50_000, done.stderr
