"""Each daemon knows how many cores Slurm gives to jobs on its node, whoever was away before."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.cluster import Cluster, Node, wait_for
from tests.e2e.outcome import forget, wait_told

NO_POLLS = {"AcctGatherNodeFreq": "0", "MessageTimeout": "2"}
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
    patient = {**NO_POLLS, "MessageTimeout": "90"}
    with steady.changed(slurm_conf=patient) as cluster, cluster.slurmctld.stopped():
        cluster.node("n1").slurmd.restart()
        ask = [sys.executable, "-c", NODE_ENERGY]
        subprocess.run(ask, env=cluster.env, timeout=30, check=True)


def test_a_name_that_no_node_has_is_said_once(node: Node) -> None:
    node.slurmd.env["SLURMD_NODENAME"] = "stranger"
    said, asked = node.slurmd.news(), node.cluster.slurmctld.news()
    node.slurmd.restart()
    wait_for(lambda: asked().count('"stranger"') > 2, what="slurmctld to be asked again and again")
    assert said().count("no node is named stranger") == 1
