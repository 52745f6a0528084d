"""Each daemon knows how many cores Slurm gives to jobs on its node, whoever was away before."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.cluster import Cluster, Node, wait_for
from tests.cluster.ports import connected
from tests.e2e.outcome import forget, wait_told

NO_POLLS = {"AcctGatherNodeFreq": "0", "MessageTimeout": "2"}
PATIENT = {**NO_POLLS, "MessageTimeout": "90"}
#: slurmd answers this by what it asks of the energy plugin
NODE_ENERGY = """
import ctypes
slurm = ctypes.CDLL("libslurm.so", ctypes.RTLD_GLOBAL)
sensors, energy = ctypes.c_uint16(), ctypes.c_void_p()
if hasattr(slurm, "slurm_init"):
    slurm.slurm_init(None)
assert slurm.slurm_get_node_energy(b"n1", 0, 0, ctypes.byref(sensors), ctypes.byref(energy)) == 0
"""


@pytest.fixture
def node(steady: Cluster) -> Iterator[Node]:
    """One that slurmctld polls no power of: slurmd calls the plugin as it registers alone."""
    with steady.changed(slurm_conf=NO_POLLS) as changed:
        yield changed.node("n1")


def test_a_new_daemon_is_told(node: Node) -> None:
    forget(node)
    wait_told(node, node.cluster.options.cpus)


def test_slurmctld_was_down_as_slurmd_began(node: Node) -> None:
    slurmctld = node.cluster.slurmctld
    slurmctld.stop()
    said = node.slurmd.news()
    node.slurmd.restart()
    forget(node)
    wait_for(lambda: "Unable to register" in said(), what="slurmd to find no slurmctld")
    slurmctld.start()
    wait_told(node, node.cluster.options.cpus)


def test_slurmd_goes_by_its_host_name(node: Node) -> None:
    """As where each node has a slurmd alone: which is not told its NodeName."""
    node.slurmd.command = [*node.slurmd.command[:-2]]
    del node.slurmd.env["SLURMD_NODENAME"]
    forget(node)
    node.slurmd.restart()
    wait_told(node, node.cluster.options.cpus)


def test_a_slurmctld_that_hangs_holds_nobody_up(steady: Cluster) -> None:
    with steady.changed(slurm_conf=PATIENT) as cluster, cluster.slurmctld.stopped():
        cluster.node("n1").slurmd.restart()
        ask = [sys.executable, "-c", NODE_ENERGY]
        subprocess.run(ask, env=cluster.env, timeout=30, check=True)


def test_slurmd_ends_at_once_while_slurmctld_hangs(steady: Cluster) -> None:
    with steady.changed(slurm_conf=PATIENT) as cluster:
        slurmctld, slurmd = cluster.slurmctld, cluster.node("n1").slurmd
        slurmd.env["SLURMD_NODENAME"] = "stranger"  # so that it asks again once it has registered
        said, asked = slurmd.news(), slurmctld.news()
        slurmd.restart()
        wait_for(lambda: asked().count('"stranger"') > 2, what="slurmctld to be asked again")
        with slurmctld.stopped():
            port = cluster.ports["slurmctld"]
            wait_for(lambda: connected(port), what="a question to slurmctld")
            slurmd.terminate()
            wait_for(lambda: not slurmd.alive, what="slurmd to end")
        assert "Slurmd shutdown completing" in said()


def test_slurmd_tells_on_after_it_has_reconfigured(node: Node) -> None:
    said = node.slurmd.news()
    node.slurmd.kill(signal.SIGHUP)
    wait_for(lambda: "reconfigure" in said(), what="slurmd to take SIGHUP")
    status = ["scontrol", "show", "slurmd"]  # answered once it has
    node.cluster.run(status, env={"SLURMD_NODENAME": node.name})
    forget(node)
    wait_told(node, node.cluster.options.cpus)


def test_a_node_without_a_core_for_jobs_is_named(steady: Cluster) -> None:
    all_special = {"n1": "CPUs=2 CpuSpecList=0-1"}
    said = steady.node("n1").slurmd.news()
    with steady.changed(slurm_conf=NO_POLLS, topology=all_special):
        wait_for(lambda: "leaves none to jobs" in said(), what="slurmd to say why")
    assert "no node is named" not in said()


def test_a_name_that_no_node_has_is_said_once(node: Node) -> None:
    node.slurmd.env["SLURMD_NODENAME"] = "stranger"
    said, asked = node.slurmd.news(), node.cluster.slurmctld.news()
    node.slurmd.restart()
    wait_for(lambda: asked().count('"stranger"') > 2, what="slurmctld to be asked again and again")
    assert said().count("no node is named stranger") == 1
