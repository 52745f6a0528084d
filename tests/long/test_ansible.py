"""slurm-plugins/site/ansible over ssh on four Debians under their own systemd, with a network of
their own: a server with slurmctld and slurmdbd, two nodes, and a gateway that users log in to.

Beside them a machine has the site's repository: our packages, and what they depend on.
"""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests import pypi
from tests.booted import Booted
from tests.cluster import CHECKOUT, cache_folder
from tests.long.test_first_install import (
    CGROUP_CONF,
    SLURM,
    SLURM_CONF,
    SLURMDBD_CONF,
    USER,
    begin_slurm,
    make_slurms_own,
    settles,
)
from tests.long.test_packages import SITE, Root, bootstrap, must
from tests.peers.peer import Peer

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be other users")

ROLE = SITE / "ansible"
LIMIT_S = 300
#: those whose libraries the site needs not
WITHOUT = ("IPMI", "REDFISH", "PROMETHEUS", "SNMP", "MODBUS")
MACHINES = ("server", "n1", "n2", "gw")
ADDRESS = {name: f"10.77.0.{number}" for number, name in enumerate(MACHINES, start=1)}
WATTS = {"n1": 100, "n2": 200}
#: the gateway's meters
METERS = "; ".join(f"mosquitto_pub -t meter/{node} -m {watts}" for node, watts in WATTS.items())
REPOSITORY = "10.77.0.254"
NEAR = 0.3  # of some ten seconds, which Slurm has as whole ones
HOSTS = "127.0.0.1 localhost\n" + "".join(f"{at} {name}\n" for name, at in ADDRESS.items())
FILES = {
    "etc/hosts": HOSTS,
    "etc/mosquitto/conf.d/site.conf": "listener 1883\nallow_anonymous true\n",
    "etc/slurm/cgroup.conf": CGROUP_CONF,
    "etc/slurm/slurm.conf": SLURM_CONF.replace("Host=node1", "Host=server").replace(
        "NodeName=node1", "NodeName=n[1-2]"
    ),
    "etc/slurm/slurmdbd.conf": SLURMDBD_CONF.replace("node1", "server"),
}
MORE = ("openssh-server", "iproute2", "mosquitto", "mosquitto-clients")
MORE += ("python3-apt", "python3-paho-mqtt")
BROKER = {"host": "server"}
POWER = {**BROKER, "type": "mqtt"}
INVENTORY = {
    "joulemark_server": {"hosts": {"server": {}}},
    "joulemark_gateway": {"hosts": {"gw": {}}},
    "joulemark_login": {"hosts": {"gw": {}}},
    "joulemark_nodes": {"hosts": {"n1": {}, "n2": {}}},
}
VARIABLES = {
    "ansible_user": "root",
    "ansible_ssh_common_args": "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null",
    "ansible_python_interpreter": "/usr/bin/python3",
    "joulemark_repository": f"http://{REPOSITORY}:8000",
    "joulemark_config": {
        "cluster": "site",
        "transport": "mqtt",
        "mqtt": BROKER,
        "instruments": [{**POWER, "topic": "joulemark/site/power/%n"}],
    },
    "joulemark_gateway_config": {
        "cluster": "site",
        "socket": "/run/joulemark/gateway.sock",
        "state_dir": "/var/lib/joulemark-gateway",
        "mqtt": BROKER,
        "gateway": {"nodes": "n[1-2]"},
        "instruments": [
            {**POWER, "channels": [{"nodes": node, "topic": f"meter/{node}"} for node in WATTS]}
        ],
    },
}


class Switch(Peer):
    """A network namespace with a bridge, where the repository is served."""

    def __init__(self, folder: Path, log_file: Path) -> None:
        self.folder, self.log_file = folder, log_file

    def command(self) -> Sequence[object]:
        serve = f"{sys.executable} -m http.server --bind {REPOSITORY} 8000"
        bridge = f"ip link add br0 type bridge; ip addr add {REPOSITORY}/24 dev br0"
        return ["unshare", "--net", "sh", "-ec", f"{bridge}; ip link set br0 up; exec {serve}"]

    def ready(self) -> bool:
        return "Serving" in self.log()

    def within(self, *words: object) -> list[object]:
        return ["nsenter", f"--net=/proc/{self.process.pid}/ns/net", *words]

    def plug(self, machine: Machine) -> None:
        """A cable to it."""
        pid, name = machine.first(), machine.root.name
        must(*self.within(*f"ip link add {name} type veth peer eth0 netns {pid}".split()))
        must(*self.within(*f"ip link set {name} master br0 up".split()))
        address = f"ip addr add {ADDRESS[name]}/24 dev eth0"
        machine.must(f"{address} && ip link set lo up && ip link set eth0 up")


class Machine(Booted):
    """Over the root that all have, a layer of its own."""

    def __init__(self, root: Path, place: Path, name: str) -> None:
        super().__init__(place / name, place / f"{name}.log")
        self.lower, self.layer = root, place / f"{name}.layer"

    def command(self) -> Sequence[object]:
        upper, work = self.layer / "upper", self.layer / "work"
        for folder in (self.root / "mnt", upper / "etc", work):
            folder.mkdir(parents=True)
        (upper / "etc/hostname").write_text(f"{self.root.name}\n")
        options = f"lowerdir={self.lower},upperdir={upper},workdir={work}"
        mount = f'mount -t overlay -o {options} overlay {self.root} && exec "$@"'
        return ["unshare", "--mount", "sh", "-c", mount, "sh", *super().command()]


class Site:
    """Its machines, and who runs the playbook."""

    def __init__(self, switch: Switch, machines: dict[str, Machine], key: Path) -> None:
        self.switch, self.machines = switch, machines
        hosts = {name: {"ansible_host": at} for name, at in ADDRESS.items()}
        (plugins,) = switch.folder.glob("joulemark-slurm-*")
        variables = {
            **VARIABLES,
            "ansible_ssh_private_key_file": str(key),
            "joulemark_slurm_release": plugins.name.split("_")[0].rpartition("-")[2],
        }
        self.inventory = key.with_name("inventory.json")
        self.inventory.write_text(
            json.dumps({"all": {"hosts": hosts, "vars": variables}, **INVENTORY})
        )

    def play(self, *options: str) -> tuple[bool, str]:
        """Whether it succeeded, and what it printed."""
        words = ["playbook", "-i", self.inventory, *options, ROLE / "playbook.yml"]
        alone = ("unshare", "--pid", "--fork", "--kill-child")  # ssh's masters end with it
        env = ansible_env(self.inventory.parent / "ansible")
        done = subprocess.run(
            list(map(str, self.switch.within(*alone, sys.executable, "-m", "ansible", *words))),
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=LIMIT_S,
        )
        return done.returncode == 0, done.stdout

    def long_jobs(self) -> list[str]:
        """On all CPUs of each node until /run/go is there."""
        jobs = []
        for node in WATTS:
            self.machines[node].must("rm -f /run/go")
            jobs.append(self.sbatch(node, "while [ ! -e /run/go ]; do sleep 0.5; done"))
        settles(lambda: {self.state(node) for node in WATTS} == {"allocated"}, "long jobs")
        return jobs

    def sbatch(self, node: str, command: str) -> str:
        """A user's, who has all of the node."""
        options = f"--parsable --no-requeue --exclusive -w {node} -D / -o /dev/null"
        line = f"runuser -u {USER} -- sbatch {options} --wrap '{command}'"
        return self.machines["gw"].must(line).strip()

    def sacct(self, job: str, fields: str) -> list[str]:
        said = self.machines["gw"].must(f"sacct -nXP -j {job} -o {fields}")
        return said.strip().split("|")

    def comment(self, job: str) -> str:
        return self.sacct(job, "AdminComment")[0]

    def state(self, node: str) -> str:
        return self.machines["server"].must(f"sinfo -hN -n {node} -o %T").strip()

    def revision(self, machine: str) -> int:
        said = self.machines[machine].must("dpkg-query -Wf '${Version}' joulemark-cli")
        return int(said.rpartition("site")[2])


def ansible_env(home: Path) -> dict[str, str]:
    programs = ansible()
    return {
        "HOME": str(home),
        "PATH": f"{programs}/bin:{os.environ['PATH']}:/usr/sbin:/sbin",
        "PYTHONPATH": str(programs),
        "LANG": "C.UTF-8",
        "ANSIBLE_GATHERING": "smart",
        "ANSIBLE_PIPELINING": "1",
        "ANSIBLE_NOCOLOR": "1",
    }


@functools.lru_cache
def ansible() -> Path:
    folder = cache_folder() / "ansible-{}.{}".format(*sys.version_info)
    try:
        pypi.install("Ansible", CHECKOUT / "tests/requirements-ansible.txt", folder)
    except pypi.Unavailable as why:
        pytest.skip(str(why))
    return folder


def changes(said: str) -> dict[str, int]:
    """By machine, of the recap."""
    return {name: int(n) for name, n in re.findall(r"(?m)^(\w+) +: ok=\d+ +changed=(\d+)", said)}


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("key") / "key"
    must("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", file)
    return file


@pytest.fixture(scope="module")
def debs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two revisions of each of our packages."""
    folder: Path = tmp_path_factory.mktemp("debs")
    env = {**os.environ, "DEBFULLNAME": "A site", "DEBEMAIL": "hpc@joulemark.org"}
    for revision in (1, 2):
        options = [f"-DJM_{name}=OFF" for name in WITHOUT] + [f"-DJM_REVISION={revision}"]
        must(SITE / "make-debs", folder, *options, env=env)
    return folder


@pytest.fixture(scope="module")
def root(key: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What all machines have: Debian's Slurm, none of whose services begins by itself."""
    folder: Path = tmp_path_factory.mktemp("debian") / "root"
    bootstrap(folder, ",".join((*SLURM, *MORE)))
    try:
        for name, text in FILES.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        (folder / "root/.ssh").mkdir(mode=0o700, exist_ok=True)
        shutil.copy(key.with_suffix(".pub"), folder / "root/.ssh/authorized_keys")
        make_slurms_own(Root(folder))
        Root(folder).run("systemctl disable mariadb mosquitto")
        yield folder
    finally:
        must("rm", "-rf", "--one-file-system", folder)


@pytest.fixture(scope="module")
def repository(root: Path, debs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first revision, and what apt fetches with it; then the machines know no other source."""
    folder: Path = tmp_path_factory.mktemp("repository")
    offer(folder, debs, 1)
    shutil.copytree(folder, root / "srv/ours")
    Root(root).run("apt-get install --download-only /srv/ours/*.deb")
    for package in (root / "var/cache/apt/archives").glob("*.deb"):
        shutil.move(package, folder)
    offer(folder, debs, 1)
    shutil.rmtree(root / "srv/ours")
    (root / "etc/apt/sources.list").unlink()
    return folder


def offer(repository: Path, debs: Path, revision: int) -> None:
    for package in debs.glob(f"*site{revision}_*.deb"):
        shutil.copy(package, repository)
    index = must("sh", "-c", f"cd {repository} && dpkg-scanpackages --multiversion . 2>/dev/null")
    (repository / "Packages").write_text(index)


@pytest.fixture(scope="module")
def site(
    root: Path, repository: Path, key: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    """A cluster without us."""
    place: Path = tmp_path_factory.mktemp("machines")
    with contextlib.ExitStack() as stack:
        switch = stack.enter_context(Switch(repository, place / "switch.log"))
        machines = {name: Machine(root, place, name) for name in MACHINES}
        for machine in machines.values():
            stack.enter_context(machine)
            switch.plug(machine)
        server = machines["server"]
        server.must("systemctl enable --now mariadb mosquitto")
        server.must(f"systemd-run sh -c 'while sleep 0.5; do {METERS}; done'")
        begin_slurm(server)
        for name in WATTS:
            machines[name].must("systemctl enable --now slurmd")
        settles(lambda: server.done("sinfo -hN -o %T").stdout == "idle\nidle\n", "the nodes")
        yield Site(switch, machines, key)


def test_the_linter_has_nothing_to_say(tmp_path: Path) -> None:
    shutil.copytree(ROLE, tmp_path / "ansible")
    words = [sys.executable, "-m", "ansiblelint", "--offline", "--profile", "production"]
    must(*words, cwd=tmp_path / "ansible", env=ansible_env(tmp_path))


def test_a_first_run_leads_to_joules(site: Site) -> None:
    well, said = site.play()
    assert well, said
    jobs = {node: site.sbatch(node, "sleep 10") for node in WATTS}
    for node, job in jobs.items():
        settles(lambda job=job: site.comment(job), f"job {job} to be merged")
        state, joules, time_s = site.sacct(job, "State,ConsumedEnergyRaw,ElapsedRaw")
        assert state == "COMPLETED"
        assert int(joules) == pytest.approx(WATTS[node] * int(time_s), rel=NEAR)


def test_a_second_run_changes_nothing(site: Site) -> None:
    well, said = site.play("-e", "joulemark_serial=2")
    assert well and changes(said) == dict.fromkeys(MACHINES, 0), said


def test_another_release_of_slurm_is_not_brought(site: Site) -> None:
    """Its packages would come with a Slurm of theirs, on all machines at once."""
    well, said = site.play("-e", "joulemark_slurm_release=99.05")
    assert not well and re.search(r"joulemark_slurm_release is 99\.05, here is slurm", said), said
    assert changes(said) == dict.fromkeys(MACHINES, 0), said


def test_an_upgrade_waits_for_the_jobs_of_one_node_after_the_other(
    site: Site, repository: Path, debs: Path
) -> None:
    """n1 has packages of before they had a link to Slurm's own plugins."""
    n1, conf = site.machines["n1"], "/etc/slurm/slurm.conf"
    triplet = must("dpkg-architecture", "-qDEB_HOST_MULTIARCH").strip()
    n1.must(f"sed -i 's|=/usr/lib/slurm/slurm-wlm|=/usr/lib/{triplet}/slurm-wlm|' {conf}")
    n1.must("rm /usr/lib/slurm/slurm-wlm && systemctl restart slurmd")
    settles(lambda: site.state("n1") == "idle", "n1 to be idle")
    jobs = site.long_jobs()
    offer(repository, debs, 2)
    with ThreadPoolExecutor() as pool:
        run = pool.submit(site.play)
        for node, other in (("n1", "n2"), ("n2", "n1")):
            settles(lambda node=node: run.done() or site.state(node) == "draining", node)
            assert not run.done(), run.result()[1]
            assert "drain" not in site.state(other)
            assert site.revision(node) == 1
            site.machines[node].must("touch /run/go")
        well, said = run.result()
        assert "=/usr/lib/slurm/slurm-wlm:" in n1.must(f"grep PluginDir {conf}")
    assert well, said
    assert [site.revision(name) for name in MACHINES] == [2] * len(MACHINES)
    assert {site.state(node) for node in WATTS} == {"idle"}
    for job in jobs:
        state, status, joules = site.sacct(job, "State,ExitCode,ConsumedEnergyRaw")
        assert (state, status) == ("COMPLETED", "0:0") and int(joules) > 0


def test_without_draining_jobs_run_on(site: Site) -> None:
    """No CPU is left for the doctor, who warns."""
    jobs = site.long_jobs()
    more = '{"joulemark_serial": 2, "joulemark_drain": false, '
    more += '"joulemark_slurm_conf": {"AcctGatherNodeFreq": 20}}'
    well, said = site.play("-v", "-e", more)
    assert well and min(changes(said)[node] for node in WATTS) > 0, said
    assert set(re.findall(r"warning: (n\d): node: .*?Requested nodes are busy", said)) == set(
        WATTS
    )
    assert {site.state(node) for node in WATTS} == {"allocated"}
    for node in WATTS:
        site.machines[node].must("touch /run/go")
    for job in jobs:
        settles(lambda job=job: site.sacct(job, "State,ExitCode") == ["COMPLETED", "0:0"], job)


def test_an_error_of_the_doctors_ends_the_run(site: Site) -> None:
    """Slurm takes the last of two lines."""
    n2 = site.machines["n2"]
    n2.must("echo PrologFlags=Alloc >>/etc/slurm/slurm.conf")
    well, said = site.play("-e", '{"joulemark_slurm_conf": {"AcctGatherNodeFreq": 10}}')
    assert not well and re.findall(r"(?m)^fatal: \[(\w+)\]", said) == ["n2"], said
    assert set(re.findall(r"error: ([\w-]+): ", said)) == {"contain"}, said
    assert (site.state("n1"), site.state("n2")) == ("idle", "drained")
    n2.must("sed -i /PrologFlags=Alloc/d /etc/slurm/slurm.conf")
    well, said = site.play()
    assert well and site.state("n2") == "idle", said
