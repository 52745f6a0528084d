"""The Debian packages of slurm-plugins/site on a node under systemd and Slurm: installed, upgraded
under a running job, removed, purged."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import CHECKOUT
from tests.vm import Machine
from tests.vm.conftest import CPUS, RECORDS, write_configuration
from tests.vm.test_service import accounts, balanced_uj, end, pid, started, wait_answer, wait_idle

#: those whose libraries the machine has not
WITHOUT = ("IPMI", "REDFISH", "MQTT", "PROMETHEUS", "SNMP", "MODBUS")
CONFIGURATION = "/etc/slurm/joulemark.yaml"


@pytest.fixture(scope="module")
def debs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two revisions of each."""
    folder: Path = tmp_path_factory.mktemp("debs")
    env = {**os.environ, "DEBFULLNAME": "A site", "DEBEMAIL": "hpc@joulemark.org"}
    for revision in "12":
        options = [f"-DJM_{name}=OFF" for name in WITHOUT] + [f"-DJM_REVISION={revision}"]
        words = [CHECKOUT / "slurm-plugins/site/make-debs", folder, *options]
        done = subprocess.run(words, capture_output=True, text=True, env=env)
        assert done.returncode == 0, f"{done.stdout[-2000:]}{done.stderr[-2000:]}"
    return folder


@pytest.fixture(scope="module")
def node(debs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """As its page says: installed, configured, enabled."""
    with Machine(tmp_path_factory.mktemp("machine"), topology=str(CPUS)) as machine:
        machine.put(*sorted(debs.glob("*.deb")))
        said = machine.run(install(debs, 1))
        assert machine.ssh("systemctl is-active joulemarkd").stdout.strip() == "inactive", said
        write_configuration(machine, Path("/usr"))
        machine.run(
            f"install -d -o slurm -g slurm {RECORDS} && joulemarkd --check && "
            "systemctl --quiet enable --now joulemarkd && systemctl start munge slurmctld slurmd"
        )
        wait_idle(machine)
        yield machine


def install(debs: Path, revision: int) -> str:
    return (
        f"dpkg --install {debs}/joulemark-node_*site{revision}_* {debs}/*-slurm-*site{revision}_*"
    )


def test_an_upgrade_under_a_running_job_loses_no_joule(node: Machine, debs: Path) -> None:
    job, before = started(node), pid(node)
    booked_uj, configured = balanced_uj(node), node.run(f"cat {CONFIGURATION}")
    node.run(install(debs, 2))
    wait_answer(node)
    assert pid(node) != before
    assert node.run(f"cat {CONFIGURATION}") == configured
    assert balanced_uj(node) > booked_uj
    end(node, job)
    assert set(accounts(node, job)) == {"job", "extern", "batch"}
    balanced_uj(node)


def test_a_removal_stops_it_and_a_purge_keeps_the_energy(node: Machine) -> None:
    node.run("dpkg --remove joulemark-node")
    assert node.ssh("systemctl is-active joulemarkd").stdout.strip() == "inactive"
    assert node.ssh("pgrep joulemarkd").returncode == 1
    node.run(f"test -e {CONFIGURATION}")
    assert "/var/lib/joulemark is kept" in node.run("dpkg --purge joulemark-node")
    assert node.ssh(f"test -e {CONFIGURATION}").returncode == 1
    node.run("ls /var/lib/joulemark/ledger*")
