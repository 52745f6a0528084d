"""`joulemark doctor` on a real cluster that is set up wrongly in one way at a time."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.chaos.events import Clock
from tests.cluster import Cluster, wait_for
from tests.cluster.config import has_pmix, slurm_plugin_folder
from tests.e2e.jobs import need_pmix
from tests.e2e.outcome import forget, record_dir
from tests.peers.machines import write_files

RANKS = """\
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int size;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    printf("%d\\n", size);
    return MPI_Finalize();
}
"""
#: a virtual machine may have no NTP, and a Slurm no PMIx; that is no fault of the cluster
OF_THE_MACHINE = {"clock-sync"} if has_pmix() else {"clock-sync", "mpi"}
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def examine(cluster: Cluster, *options: str, env: Mapping[str, str] | None = None) -> list[dict]:
    """All that the doctor finds."""
    command = ["joulemark", "doctor", "--json", *options]
    return json.loads(cluster.run(command, check=False, env=env))["findings"]


def found(findings: list[dict], check: str, text: str = "") -> list[dict]:
    """The findings of one check that say the text somewhere."""
    return [one for one in findings if one["check"] == check and text in json.dumps(one)]


def checks(findings: list[dict]) -> set[str]:
    return {one["check"] for one in findings} - OF_THE_MACHINE


class Etc:
    """A copy of the cluster's configuration, to be spoilt."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        shutil.copytree(cluster.state / "etc", folder)
        self.cluster, self.folder, self.slurm_conf = cluster, folder, folder / "slurm.conf"
        self.env = {"SLURM_CONF": str(self.slurm_conf)}

    def spoil(self, key: str, value: object) -> None:
        spoil(self.slurm_conf, key, value)

    def spoil_epilog(self, mode: int) -> None:
        script = self.folder / "epilog-of-the-site"
        script.write_text("#!/bin/sh\nexec /opt/joulemark/libexec/joulemark/epilogslurmctld\n")
        script.chmod(mode)
        self.spoil("EpilogSlurmctld", script)

    def found(self, check: str, text: str = "") -> list[dict]:
        return found(examine(self.cluster, env=self.env), check, text)


@pytest.fixture
def etc(steady: Cluster, tmp_path: Path) -> Etc:
    return Etc(steady, tmp_path / "etc")


def spoil(path: Path, key: str, value: object) -> None:
    """Another value for a key of slurm.conf, or none."""
    text = re.sub(rf"^{key}=.*\n", "", path.read_text(), flags=re.MULTILINE)
    path.write_text(text if value is None else f"{text}{key}={value}\n")


def stub(folder: Path, name: str, version: int) -> Path:
    """A plugin that was built for another Slurm."""
    folder.mkdir(parents=True, exist_ok=True)
    words = ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(folder / name)]
    source = f"const unsigned int plugin_version = {version};"
    subprocess.run(words, input=source, text=True, check=True)
    return folder / name


def test_a_sound_cluster_has_nothing_to_be_found(steady: Cluster) -> None:
    findings = examine(steady, "--node", "n1", "--nodes", "all")
    assert not checks(findings), findings


def test_people_get_a_line_and_programs_an_exit_code(steady: Cluster, etc: Etc) -> None:
    etc.spoil("PrologFlags", None)
    env = {**steady.env, **etc.env}
    done = subprocess.run(["joulemark", "doctor"], env=env, capture_output=True, text=True)
    assert done.returncode == 1
    assert f"error: contain: {etc.slurm_conf}: no PrologFlags: add Contain" in done.stdout


# -- slurm.conf ----------------------------------------------------------------

SPOILT = [
    ("AcctGatherEnergyType", None, "energy-type"),
    ("AcctGatherEnergyType", "acct_gather_energy/rapl", "energy-type"),
    ("PluginDir", slurm_plugin_folder(), "plugin-dir"),
    ("PrologFlags", None, "contain"),
    ("PrologFlags", "Alloc", "contain"),
    ("AcctGatherNodeFreq", "0", "node-frequency"),
    ("AcctGatherNodeFreq", None, "node-frequency"),
    ("JobAcctGatherType", None, "job-gathering"),
    ("JobAcctGatherFrequency", "task=0", "job-gathering"),
    ("AccountingStorageType", None, "accounting"),
    ("Epilog", None, "epilog"),
    ("EpilogSlurmctld", "/bin/true", "epilog"),
    ("PlugStackConfig", "/dev/null", "spank"),
    ("MpiDefault", "pmix_v1", "mpi"),
]


@pytest.mark.parametrize(("key", "value", "check"), SPOILT, ids=lambda value: str(value))
def test_a_wrong_slurm_conf(etc: Etc, key: str, value: str | None, check: str) -> None:
    etc.spoil(key, value)
    (one,) = etc.found(check)
    assert value is None or value in one["value"] + one["where"]
    assert one["fix"]


def test_what_slurmctld_runs_with_is_not_what_is_written(etc: Etc) -> None:
    etc.spoil("JobAcctGatherType", "jobacct_gather/cgroup")
    (one,) = etc.found("running-config")
    assert one["value"] == "jobacct_gather/linux" and "restart" in one["fix"]


def test_a_slurmctld_that_does_not_answer(steady: Cluster) -> None:
    steady.slurmctld.kill(signal.SIGKILL)
    assert checks(examine(steady)) == {"slurmctld"}


def test_plugins_of_another_slurm(etc: Etc, tmp_path: Path) -> None:
    """Of 20.11.9: the energy plugin's must fit exactly, SPANK's in its first two numbers."""
    plugins, plugstack = tmp_path / "plugins", tmp_path / "plugstack.conf"
    stub(plugins, "acct_gather_energy_joulemark.so", 0x140B09)
    spank = stub(plugins, "spank_joulemark.so", 0x140B09)
    etc.spoil("PluginDir", f"{slurm_plugin_folder()}:{plugins}")
    etc.spoil("PlugStackConfig", plugstack)
    plugstack.write_text(f"required {spank}\n")
    assert len(etc.found("plugin-version", "built for 20.11.9")) == 2
    assert etc.found("spank", "say `optional`")
    spank.unlink()
    assert etc.found("spank", "does not exist")


@pytest.mark.parametrize("plugin", ["pmi2", "pmix"])
def test_ranks_start_as_one_job_where_it_says_so(
    steady: Cluster, etc: Etc, tmp_path: Path, plugin: str
) -> None:
    """Debian's Open MPI speaks PMIx alone."""
    need_pmix()
    program = tmp_path / "ranks"
    words = ["mpicc", "-x", "c", "-", "-o", str(program)]
    subprocess.run(words, input=RANKS, text=True, check=True)
    srun = ["srun", "-n2", f"--mpi={plugin}", str(program)]
    done = subprocess.run(srun, env=steady.env, capture_output=True, text=True, timeout=60)
    etc.spoil("MpiDefault", plugin)
    findings = etc.found("mpi")
    assert bool(findings) == (done.stdout != "2\n2\n"), (findings, done)
    assert bool(findings) == (plugin == "pmi2")
    assert all("MpiDefault=pmix" in one["fix"] for one in findings)


def test_an_epilog_that_cannot_run_or_does_not_know_its_configuration(
    steady: Cluster, etc: Etc
) -> None:
    etc.spoil_epilog(mode=0o644)
    assert etc.found("epilog", "not executable")
    assert etc.found("epilog-environment", str(steady.state / "etc" / "joulemark.yaml"))
    assert etc.found("epilog-environment", "SLURM_CONF is not set")


def test_an_epilog_that_does_not_find_the_command(etc: Etc, tmp_path: Path) -> None:
    """As where Spack gives joulemark and joulemark-slurm a prefix each."""
    prefix = tmp_path / "prefix"
    stub(prefix / "lib/slurm", "acct_gather_energy_joulemark.so", 0x160508)
    etc.spoil_epilog(mode=0o755)
    etc.spoil("PluginDir", f"{slurm_plugin_folder()}:{prefix}/lib/slurm")
    (one,) = etc.found("epilog-environment", "JOULEMARK_BIN")
    assert Path(one["fix"].split()[3], "joulemark").exists()
    (prefix / "bin").mkdir()
    (prefix / "bin/joulemark").symlink_to("/bin/true")
    assert not etc.found("epilog-environment", "JOULEMARK_BIN")


# -- joulemark.yaml and the daemon ----------------------------------------------------------------


def test_a_wrong_configuration(etc: Etc) -> None:
    config = etc.folder / "joulemark.yaml"
    etc.env = {"JOULEMARK_CONFIG": str(config)}
    good = config.read_text()
    config.write_text(good.replace("period_s: 1.0", "period_s: soon"))
    assert etc.found("config", "period_s")
    config.write_text(good.replace('cluster: "test"', 'cluster: "other"'))
    (one,) = etc.found("config")
    assert one["value"] == "cluster: other" and "ClusterName" in one["fix"]
    config.write_text(good)
    config.chmod(0o666)
    (one,) = etc.found("config")
    assert "0666" in one["value"]
    config.unlink()
    assert etc.found("config", "does not exist")


def test_a_daemon_that_does_not_answer(steady: Cluster) -> None:
    steady.node("n1").daemon.kill(signal.SIGKILL)
    findings = examine(steady, "--nodes", "all")
    assert checks(findings) == {"daemon"}
    assert found(findings, "daemon", "does not answer")[0]["node"] == "n1"


def test_a_daemon_that_was_not_told_its_nodes_cores(steady: Cluster) -> None:
    node = steady.node("n1")
    node.slurmd.kill(signal.SIGKILL)
    forget(node)
    (one,) = found(examine(steady, "--node", "n1"), "cores")
    assert "n1" in one["where"] and one["fix"]


def test_a_ledger_that_is_not_on_disk(steady: Cluster, tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(0o555)  # another user's, or the daemon's own that it may not write
    with steady.node("n1").configured(state_dir=str(locked)) as node:
        env = {"JOULEMARK_CONFIG": str(node.config_file)}
        findings = examine(steady, "--node", "n1", env=env)
        assert found(findings, "daemon", "cannot be opened")
        assert found(findings, "folders", "joulemarkd cannot write there")


@ROOT_ONLY
def test_a_daemon_with_more_rights_than_it_needs(steady: Cluster) -> None:
    daemon = steady.node("n1").daemon
    user, capabilities = daemon.user, daemon.capabilities
    try:
        daemon.capabilities = "dac_read_search,+sys_ptrace"
        daemon.restart()
        assert found(examine(steady, "--node", "n1"), "privileges", "capabilities 0x80004")
        daemon.user = None
        daemon.restart()
        assert found(examine(steady, "--node", "n1"), "privileges", "runs as root")
    finally:
        daemon.user, daemon.capabilities = user, capabilities
        shutil.rmtree(steady.node("n1").ledger)  # root's files are in it
        daemon.stop()


@ROOT_ONLY
def test_counters_that_the_daemon_may_not_read(steady: Cluster, tmp_path: Path) -> None:
    zone = tmp_path / "powercap" / "intel-rapl:0"
    own = {"name": "package-0", "max_energy_range_uj": 262143328850, "energy_uj": 5}
    write_files(zone, own)
    (zone / "energy_uj").chmod(0o400)
    tmp_path.chmod(0o755)
    for folder in tmp_path.parents:
        if folder.stat().st_uid == 0 and str(folder).startswith("/tmp/"):
            folder.chmod(0o755)
    rapl = {"name": "rapl", "type": "powercap", "root": str(tmp_path / "powercap")}
    with steady.changed():
        node = steady.node("n1")
        node.daemon.capabilities = ""
        node.configure(instruments=[*steady.options.instruments, rapl])
        env = {"JOULEMARK_CONFIG": str(node.config_file)}
        (one,) = found(examine(steady, "--node", "n1", env=env), "sensors")
        assert "0400" in one["value"] and "CAP_DAC_READ_SEARCH" in one["fix"]


def test_a_record_folder_that_others_can_write(steady: Cluster) -> None:
    folder = record_dir(steady)
    folder.chmod(0o777)
    try:
        (one,) = found(examine(steady), "folders")
        assert "0777" in one["value"]
    finally:
        folder.chmod(0o755)


def test_files_that_nobody_takes(steady: Cluster) -> None:
    folder = record_dir(steady)
    old = [
        folder / "test.999999.n1.json",
        folder / "comments" / "999999",
        folder / "rejected" / "x.json",
    ]
    try:
        for path in old:
            path.parent.mkdir(exist_ok=True)
            path.write_text("{}")
            os.utime(path, (time.time() - 3600, time.time() - 3600))
        wheres = {one["where"] for one in found(examine(steady), "heaps")}
        assert wheres == {str(path.parent) for path in old}
    finally:
        for path in old:
            path.unlink(missing_ok=True)
        (folder / "rejected").rmdir()  # root made it: SlurmUser's merge could not use it


# -- other nodes ----------------------------------------------------------------


def prolog(cluster: Cluster, script: str) -> dict[str, str]:
    """A TaskProlog: what it prints as `export A=b` is the environment of n2's tasks alone."""
    path = cluster.state / "scripts" / "taskprolog"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f'#!/bin/sh\n[ "$SLURMD_NODENAME" = n2 ] || exit 0\n{script}\n')
    path.chmod(0o755)
    return {"TaskProlog": str(path)}


def test_a_node_whose_clock_is_off(steady: Cluster) -> None:
    clock = Clock(steady.state / "clock")
    clock.set(3600)
    script = "\n".join(f"echo export {key}={value}" for key, value in clock.env.items())
    with steady.changed(slurm_conf=prolog(steady, script)):
        (one,) = found(examine(steady, "--nodes", "all"), "clock")
    off_s = float(re.match(r"\+(\d+\.\d) s", one["value"])[1])
    assert one["node"] == "n2" and 3600 - 60 < off_s <= 3600  # less what the answer took


def test_a_node_with_another_slurm_conf(steady: Cluster) -> None:
    other = steady.state / "scripts" / "slurm.conf"
    other.parent.mkdir(exist_ok=True)
    shutil.copy(steady.slurm_conf, other)
    spoil(other, "AcctGatherNodeFreq", "60")
    with steady.changed(slurm_conf=prolog(steady, f"echo export SLURM_CONF={other}")):
        (one,) = found(examine(steady, "--nodes", "all"), "slurm-conf")
    assert one["node"] == "n2" and one["value"] == "60"


def test_a_node_that_cannot_be_asked(steady: Cluster) -> None:
    (one,) = found(examine(steady, "--nodes", "n9"), "node")
    assert one["node"] == "n9" and one["level"] == "error"
    wait_for(lambda: not steady.run(["squeue", "-h"]), what="no job to be left")
