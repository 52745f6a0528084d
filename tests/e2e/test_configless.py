"""A node that has its slurm.conf from slurmctld, and /etc/slurm/joulemark.yaml of its own."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator

import pytest

from tests.cluster import Cluster
from tests.e2e.jobs import alone
from tests.e2e.outcome import assert_whole, ended_well, outcome

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")

# slurmd asks by the machine's munge before it has slurm.conf, and leaves a link in /run/slurm
MACHINE_OF_ITS_OWN = """
mount --bind "$1" /etc/slurm && mount -t tmpfs none /run &&
mkdir /run/munge && ln -s "$2" /run/munge/munge.socket.2 && shift 2 && exec "$@"
"""
SENT = {"SlurmctldParameters": "enable_configless", "PlugStackConfig": None}


@pytest.fixture
def configless(steady: Cluster) -> Iterator[Cluster]:
    """n1 is such a node."""
    with steady.changed(slurm_conf=SENT) as cluster:
        node = cluster.node("n1")
        etc, cache = cluster.state / "etc-n1", cluster.state / "spool" / "n1" / "conf-cache"
        etc.mkdir(exist_ok=True)
        shutil.copy(cluster.state / "etc" / "joulemark.yaml", etc)
        slurmd = node.slurmd
        slurmd.command = [
            *("unshare", "--mount", "sh", "-c", MACHINE_OF_ITS_OWN, "sh"),
            *(str(etc), f"{cluster.state}/run/munge.sock"),
            *(slurmd.program("slurmd"), *slurmd.command[1:]),
            f"--conf-server=127.0.0.1:{cluster.ports['slurmctld']}",
        ]
        slurmd.env = {key: value for key, value in slurmd.env.items() if key != "SLURM_CONF"}
        try:
            slurmd.restart()
            cluster.wait_nodes()
            yield cluster
        finally:
            slurmd.stop()
            for folder in (etc, cache):
                shutil.rmtree(folder, ignore_errors=True)


def test_a_job_there_has_its_joules_by_the_site_s_own_socket(configless: Cluster) -> None:
    told = "unset JOULEMARK_CONFIG; echo $SLURM_CONF; joulemarkctl config socket"
    job = alone(configless, f"{told}; srun sleep 2", "--energy=summary")
    done = ended_well(configless, job)
    node = configless.node("n1")
    cache, socket, *rest = configless.job_output(job).splitlines()
    assert cache == f"{configless.state}/spool/n1/conf-cache/slurm.conf"
    assert socket == str(node.socket)
    assert [line for line in rest if line.startswith("Energy: ")]
    assert_whole(done, "0", "job", within_j=1e-4)
    assert done.sacct_j() == pytest.approx(done.energy_j(), abs=1)


def test_its_epilog_leaves_a_record_of_what_a_dead_daemon_missed(configless: Cluster) -> None:
    node = configless.node("n1")
    node.daemon.stop()
    done = outcome(configless, alone(configless, "true"))
    assert f"joulemarkd does not answer at {node.socket}" in done.records["n1"]["missing"]


def test_the_doctor_there_reads_what_was_sent(configless: Cluster) -> None:
    there = ["nsenter", "--mount", "--root", f"--target={configless.node('n1').slurmd.pid}"]
    bare = ["env", "--unset=SLURM_CONF", "--unset=JOULEMARK_CONFIG"]
    doctor = [*there, *bare, "joulemark", "doctor", "--json", "--node", "n1"]
    said = json.loads(configless.run(doctor, check=False))
    assert not [one for one in said["findings"] if one["level"] == "error"], said["findings"]
