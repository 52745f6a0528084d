"""The whole way: a PDU's outlet, a gateway, a broker, a node's ledger, a job, sacct, one store."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import CHECKOUT, Cluster, Node, pause, wait_for
from tests.e2e.jobs import alone, held, wait_step
from tests.e2e.outcome import UJ, ended_well, outcome, record_dir
from tests.peers.agent import Agent
from tests.peers.gateway import TREE, Gateway, outlets, watts
from tests.peers.joulemarkd import ask
from tests.peers.mosquitto import Broker
from tests.peers.receiver import Receiver

ERROR = {"relative": 0.01}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("transport")


@pytest.fixture(scope="module")
def broker(folder: Path) -> Iterator[Broker]:
    with Broker(folder / "mosquitto") as started:
        yield started


@pytest.fixture(scope="module")
def agent(folder: Path) -> Iterator[Agent]:
    with Agent(folder / "pdu", [TREE]) as running:
        running.set(watts(150, 250, 40, 80))
        yield running


@pytest.fixture(scope="module")
def gateway(
    cluster: Cluster, joulemarkd: Path, folder: Path, broker: Broker, agent: Agent
) -> Iterator[Gateway]:
    channels = (
        outlets("n[1-2]", "[1-2]")
        + outlets("n[1-2]", "3", ", name: rack, shared: equal")
        + outlets("n[1-2]", "4", ", name: fans, shared: energy")
    )
    more = {"nodes": "n[1-2]", "records": record_dir(cluster), "cluster": cluster.options.name}
    with Gateway(joulemarkd, folder / "gateway", broker, agent, channels, **more) as running:
        yield running


@pytest.fixture(scope="module")
def metered(cluster: Cluster, broker: Broker, gateway: Gateway) -> Iterator[Cluster]:
    """Every node's power comes from the gateway; records go by MQTT to `joulemark receive`."""
    topic = f"joulemark/{cluster.options.name}/power/%n"
    outlet = {"name": "outlet", "type": "mqtt", "host": "localhost", "port": broker.port}
    outlet |= {"topic": topic, "error": ERROR}
    keys = {"transport": "mqtt", "mqtt": {"host": "localhost", "port": broker.port}}
    # as root, who owns nothing that the merge could not read: files are given to SlurmUser
    receiver = Receiver(cluster.state / "etc" / "joulemark.yaml", cluster.state / "log")
    with cluster.changed(instruments=[outlet], daemon=keys) as changed, receiver:
        wait_for(lambda: len(gateway.lines("rack")) > 2, what="the rack's lines")
        for node in changed.nodes.values():
            wait_for(lambda node=node: hears(node), what=f"{node.name} to hear its power")
        yield changed


def hears(node: Node) -> bool:
    """Does its daemon know a power yet?"""
    words = dict(word.split("=") for word in ask(node.socket, "node").split()[1:])
    return float(words["watts"]) > 0


def assert_joules(cluster: Cluster, job: int, node: str, power_w: float) -> None:
    done = outcome(cluster, job)
    account = done.accounts()[node]
    uncertainty_j = account["uncertainty_uj"] / UJ
    assert abs(done.energy_j() - power_w * account.seconds) <= uncertainty_j
    assert abs(done.sacct_j() - power_w * account.seconds) <= uncertainty_j + 1


def run(cluster: Cluster, node: str, seconds: int) -> int:
    return alone(cluster, f"srun sleep {seconds}", node=node)


def test_sacct_shows_the_outlets_joules(metered: Cluster) -> None:
    for node, power_w in (("n1", 150.0), ("n2", 250.0)):
        assert_joules(metered, run(metered, node, 4), node, power_w)


def test_an_operator_sees_what_nodes_draw_and_who_is_charged(metered: Cluster) -> None:
    """By the outlets n1 draws 150 W, all of which is its job's, n2 250 W, which are nobody's."""
    ours = {"PYTHONPATH": str(CHECKOUT / "packages/joulemark/src")}  # has paho-mqtt
    words = [sys.executable, "-m", "joulemark", "top", "--nodes", "all", "--once", "--json"]
    with held(metered) as job:
        told = json.loads(metered.run(words, env=ours))
    ended_well(metered, job)
    assert told["silent"] == {}
    keys = ("jobs", "charged_w", "unallocated_w")
    powers = {one["node"]: [one[key] for key in keys] for one in told["nodes"]}
    assert powers["n1"] == [1, pytest.approx(150, rel=0.2), 0]
    assert powers["n2"] == [0, 0, pytest.approx(250, rel=0.2)]


def test_a_broker_that_is_killed_during_a_job_costs_no_record(
    metered: Cluster, broker: Broker
) -> None:
    job = run(metered, "n1", 6)
    wait_step(metered, job, "extern")
    broker.kill(signal.SIGKILL)
    pause(2)
    broker.start()
    done = ended_well(metered, job)
    account = done.accounts()["n1"]
    charged_j = 150 * (account.seconds - account["gap_seconds"])
    assert abs(done.energy_j() - charged_j) <= account["uncertainty_uj"] / UJ + 30


def test_records_wait_for_a_broker_and_a_daemon_that_die_together(
    metered: Cluster, broker: Broker
) -> None:
    """The job ends while nothing can be sent; then its daemon is killed as well."""
    node = metered.node("n1")
    broker.kill(signal.SIGKILL)
    job = run(metered, "n1", 1)
    box = node.ledger / "outbox"
    wait_for(lambda: list(box.glob(f"*.{job}.n1.json")), what="the record in the outbox")
    node.daemon.kill(signal.SIGKILL)
    node.daemon.start()
    broker.start()
    done = outcome(metered, job)
    assert done.records["n1"]["missing"] is None
    wait_for(lambda: not list(box.glob("*.json")), what="the outbox to be empty")
    merged = list((record_dir(metered) / "merged").glob(f"*.{job}.n1.json*"))
    assert len(merged) == 1


@pytest.mark.parametrize(("node", "overhead_w"), [("n1", 20 + 30), ("n2", 20 + 50)])
def test_shared_energy_becomes_overhead(metered: Cluster, node: str, overhead_w: float) -> None:
    """Half of the rack's 40 W, and of the fans' 80 W what the node's 150 or 250 W are of 400 W,
    as far as the gateway has written lines when the job is merged."""
    job = run(metered, node, 4)
    account = outcome(metered, job).accounts()[node]
    (row,) = metered.sacct(job, "EnergyOverhead,EnergyNotes", "-X", ours=True)
    overhead_j = float(row["EnergyOverhead"])
    assert 0.6 * overhead_w * account.seconds < overhead_j < 1.05 * overhead_w * account.seconds
    assert "split equally" not in row["EnergyNotes"]
