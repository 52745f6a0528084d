"""A machine for all tests of a file: deployed as the README says, with Debian's own Slurm."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.booted import SLURM_PLACES
from tests.cluster import CHECKOUT, cache_folder
from tests.vm import Machine

CPUS, IDLE_W, FULL_W = 4, 40, 120
BMC = ("ipmi-bmc-sim,id=bmc", "isa-ipmi-kcs,bmc=bmc")
RECORDS = "/srv/records"

JOULEMARK_YAML = f"""
cluster: machine
record_dir: {RECORDS}
instruments:
- {{type: model, idle_w: {IDLE_W}, full_w: {FULL_W}}}
"""
SLURM_CONF = """{places}
ClusterName=machine
SlurmctldHost=node1
SlurmUser=slurm
AuthType=auth/munge
ReturnToService=2
RebootProgram=/usr/sbin/reboot
ResumeTimeout=600
JobRequeue=0
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ProctrackType=proctrack/cgroup
TaskPlugin=task/affinity,task/cgroup
JobAcctGatherType=jobacct_gather/cgroup
PluginDir=/usr/lib/x86_64-linux-gnu/slurm-wlm:{prefix}/lib/slurm
AcctGatherEnergyType=acct_gather_energy/joulemark
AcctGatherNodeFreq=30
PrologFlags=Contain
Epilog={prefix}/libexec/joulemark/epilog
# QEMU interprets each instruction: all takes fifty times as long
MessageTimeout=60
NodeName=node1 CPUs={cpus} RealMemory=1000
PartitionName=main Nodes=ALL Default=YES State=UP
"""
# else slurmctld may not hear of its node for as long as it waits for one
SLURMD_AFTER_SLURMCTLD = """
[Unit]
After=slurmctld.service
[Service]
ExecStartPre=/bin/sh -c "until scontrol ping | grep -q UP; do sleep 1; done"
TimeoutStartSec=300
"""
CGROUP_CONF = "CgroupPlugin=cgroup/v2\nConstrainCores=yes\n"


@pytest.fixture(scope="session")
def prefix() -> Path:
    """joulemark-slurm for any x86-64: Spack's is for this machine's own, which QEMU's is not."""
    place = cache_folder() / "machine"
    source, build, prefix = CHECKOUT / "slurm-plugins", place / "build", place / "prefix"
    kind = ("-DCMAKE_BUILD_TYPE=Release", f"-DCMAKE_INSTALL_PREFIX={prefix}")
    for words in (
        ("cmake", "-S", source, "-B", build, *kind),
        ("cmake", "--build", build, "--parallel", "2"),
        ("cmake", "--install", build),
    ):
        done = subprocess.run(words, capture_output=True, text=True)
        assert done.returncode == 0, f"{done.stdout[-2000:]}{done.stderr[-2000:]}"
    return prefix


@pytest.fixture(scope="module")
def machine(prefix: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """Its services are there and enabled; none has begun."""
    folder: Path = tmp_path_factory.mktemp("machine")
    with Machine(folder, topology=str(CPUS), devices=BMC) as machine:
        deploy(machine, prefix)
        yield machine


def deploy(machine: Machine, prefix: Path) -> None:
    machine.put(prefix)
    write_configuration(machine, prefix)
    machine.run(
        "install -d -o slurm -g slurm /srv/records && "
        f"cp {prefix}/share/joulemark/joulemarkd.service /etc/systemd/system/ && "
        f"ln -s {prefix}/bin/joulemarkctl /usr/local/bin/ && "
        "systemctl daemon-reload && systemctl --quiet enable joulemarkd munge slurmctld slurmd"
    )


def write_configuration(machine: Machine, prefix: Path) -> None:
    machine.write("/etc/slurm/joulemark.yaml", JOULEMARK_YAML)
    machine.write(
        "/etc/slurm/slurm.conf", SLURM_CONF.format(places=SLURM_PLACES, prefix=prefix, cpus=CPUS)
    )
    machine.write("/etc/slurm/cgroup.conf", CGROUP_CONF)
    machine.write("/etc/systemd/system/slurmd.service.d/after.conf", SLURMD_AFTER_SLURMCTLD)
    spank = f"optional {prefix}/lib/slurm/spank_joulemark.so\n"
    machine.write("/etc/slurm/plugstack.conf", spank)
