"""guides/install.md and guides/removal.md, word for word, in a Debian where this checkout is not,
under its own systemd with its own munge, MariaDB and Slurm.

It reaches no network: what apt would fetch is in its cache before.
"""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.booted import Booted
from tests.cluster import CHECKOUT, wait_for
from tests.long.test_guides import STATUS, begins, commands
from tests.long.test_packages import APT, SITE, Root, must, suite
from tests.versions.slurm import MIRROR

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be other users")

GUIDES = CHECKOUT / "packages" / "joulemark" / "guides"
USER = "alice"
LIMIT_S = 300.0
END = "== the end of this block"
#: what sacct has of a job without us: state, energy, comment
PLAIN = ["COMPLETED", "", ""]
LEAST_W = 19  # of a node that idles at 40 W, by the model, the job has one CPU of two
#: what the doctor may find: the machine's clock is the host's to set
FOUND = {"clock-sync"}
SLURM = (
    *("systemd", "procps", "munge", "mariadb-server", "slurm-client"),
    *("slurmctld", "slurmd", "slurmdbd", "slurm-wlm-mysql-plugin"),
)
SLURM_CONF = """
ClusterName=site
SlurmctldHost=node1
SlurmUser=slurm
CommunicationParameters=EnableIPv6  # with loopback alone it would find no address
AuthType=auth/munge
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=node1
JobAcctGatherType=jobacct_gather/linux
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmdSpoolDir=/var/lib/slurm/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/slurmd.log
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmdParameters=config_overrides
ReturnToService=2
NodeName=node1 CPUs=2
PartitionName=main Nodes=ALL Default=YES
"""
SLURMDBD_CONF = """
DbdHost=node1
SlurmUser=slurm
CommunicationParameters=EnableIPv6
AuthType=auth/munge
StorageType=accounting_storage/mysql
StorageUser=slurm
LogFile=/var/log/slurm/slurmdbd.log
PidFile=/run/slurmdbd.pid
"""
#: Slurm's plugin of version 2 refuses a kernel that has hierarchies of version 1, too
CGROUP_CONF = """
CgroupPlugin=cgroup/v1
"""
FILES = {
    "etc/hostname": "node1\n",
    "etc/hosts": "127.0.0.1 localhost node1\n",
    "etc/apt/apt.conf.d/yes": APT,
    "etc/slurm/cgroup.conf": CGROUP_CONF,
    "etc/slurm/slurm.conf": SLURM_CONF,
    "etc/slurm/slurmdbd.conf": SLURMDBD_CONF,
}
#: what is there of ours, but for what the guide keeps and what dpkg and apt do
THEIRS = ("/proc", "/run", "/srv", "/var/cache", "/var/lib/dpkg", "/var/log")
LEFT = (
    rf"find / \( {' -o '.join(f'-path {path}' for path in THEIRS)} \) -prune "
    "-o -iname '*joulemark*' -prune -print"
)
DATABASE = (
    "CREATE USER slurm@localhost IDENTIFIED VIA unix_socket; GRANT ALL ON *.* TO slurm@localhost"
)


def settles(predicate: Callable[[], object], what: str) -> None:
    wait_for(predicate, LIMIT_S, what, poll_s=0.3)


def chapter(guide: str, heading: str) -> str:
    text = (GUIDES / f"{guide}.md").read_text().partition(f"\n## {heading}\n")[2]
    assert text, f"{guide}.md has no chapter '{heading}'"
    return text.partition("\n## ")[0]


def blocks(text: str) -> list[str]:
    """Its indented ones."""
    found = re.findall(r"(?m)(?:^    .*\n)+", f"{text}\n")
    return [re.sub(r"(?m)^    ", "", block) for block in found]


class Shell:
    """One of bash's, from block to block."""

    def __init__(self, machine: Booted, user: str) -> None:
        words = machine.words("runuser", "--login", user, "-c", "exec bash")
        streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.bash = subprocess.Popen(words, stderr=subprocess.STDOUT, **streams)
        self.run("export DEBIAN_FRONTEND=noninteractive LANG=C.UTF-8")

    def run(self, block: str) -> tuple[int, str]:
        """The exit status of what failed last, else 0, and what was printed."""
        self.bash.stdin.write(f"failed=0; trap 'failed=$?' ERR\n{{ {block}\n}} </dev/null\n")
        self.bash.stdin.write(f"trap - ERR; printf '\\n%s %s\\n' '{END}' $failed\n")
        self.bash.stdin.flush()
        said = []
        for line in self.bash.stdout:
            if line.startswith(END):
                return int(line.split()[-1]), "".join(said)
            said.append(line)
        raise AssertionError(f"{block}\nended the shell: {''.join(said)}")

    def must(self, block: str) -> str:
        """Each of its commands succeeds, or fails as its comment says."""
        stated = STATUS.search(block)
        statuses = {int(number) for number in stated.groups() if number} if stated else {0}
        status, printed = self.run(block)
        assert status in statuses, f"{block}\nexit status {status}\n{printed[-6000:]}"
        return printed

    def close(self) -> None:
        self.bash.communicate()


class Cluster:
    """The site: its machine, root's shell and a user's."""

    def __init__(self, machine: Booted, root: Shell, user: Shell) -> None:
        self.machine, self.root, self.user = machine, root, user

    def follow(self, guide: str, *headings: str) -> str:
        """What root's shell printed."""
        said = []
        for heading in headings:
            for block in blocks(chapter(guide, heading)):
                if block.startswith("$ "):
                    self._follow_user(block)
                else:
                    said.append(self.root.must(block))
        return "".join(said)

    def _follow_user(self, block: str) -> None:
        for command in commands(re.sub(r"(?m)^", "    ", block)):
            printed = self.user.must(command.line)
            assert begins(printed, command.shown), f"$ {command.line}\n{printed}\n{command.shown}"
            settles(self._is_settled, "jobs to end and to be merged")

    def _is_settled(self) -> bool:
        notices = "find /var/lib/joulemark/ended -type f ! -name '.*' 2>/dev/null"
        return not self.machine.done(f"squeue -h; {notices}; pgrep -f 'merge --ende[d]'").stdout

    def sacct(self, job: str, fields: str) -> list[str]:
        return self.machine.must(f"sacct -nXP -j {job} -o {fields}").strip().split("|")

    def a_plain_job(self) -> str:
        return self.user.must("sbatch --parsable --wait --wrap 'sleep 1'").strip()


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Root]:
    """A Debian with its Slurm, and beside it what is to be installed."""
    folder: Path = tmp_path_factory.mktemp("debian") / "root"
    must(
        *("unshare", "--mount", "mmdebstrap", "--mode=root", "--variant=apt", "--quiet"),
        "--skip=cleanup/apt/lists",
        *(f"--include={','.join(SLURM)}", "--dpkgopt=force-unsafe-io"),
        *(suite(), folder, MIRROR),
    )
    try:
        for name, text in FILES.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        make_packages(folder / "srv/joulemark")
        yield with_archives(folder)
    finally:
        must("rm", "-rf", "--one-file-system", folder)


def make_packages(place: Path) -> None:
    env = {**os.environ, "DEBFULLNAME": "A site", "DEBEMAIL": "hpc@joulemark.org"}
    must(SITE / "make-debs", place, env=env)
    shutil.rmtree(place / "build")


def with_archives(folder: Path) -> Root:
    """apt has fetched what the guide installs."""
    shutil.copy("/etc/resolv.conf", folder / "etc")
    root = Root(folder)
    block, *_ = blocks(chapter("install", "By Debian packages"))
    root.run(block.replace("apt install", "apt-get install --download-only"))
    return root


@pytest.fixture(scope="module")
def site(root: Root, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A site's, without us; a job runs on it."""
    log = tmp_path_factory.mktemp("log") / "console.log"
    root.run(
        "useradd --create-home --shell /bin/bash alice; "
        "chown slurm /etc/slurm/slurmdbd.conf; chmod 600 /etc/slurm/slurmdbd.conf; "
        "install -d -o slurm -g slurm /var/lib/slurm /var/lib/slurm/slurmctld; "
        "systemctl disable slurmctld slurmd slurmdbd"
    )
    with Booted(root.folder, log) as machine:
        machine.must(f'mariadb -e "{DATABASE}"')
        machine.must("systemctl enable --now slurmdbd")
        settles(lambda: not machine.done("sacctmgr -i add cluster site").returncode, "slurmdbd")
        machine.must("systemctl enable --now slurmctld")
        settles(lambda: not machine.done("scontrol ping").returncode, "slurmctld")
        machine.must("systemctl enable --now slurmd")
        with (
            contextlib.closing(Shell(machine, "root")) as as_root,
            contextlib.closing(Shell(machine, USER)) as user,
        ):
            yield Cluster(machine, as_root, user)


def test_a_first_install_leads_to_joules_in_sacct(site: Cluster) -> None:
    before = site.a_plain_job()
    assert site.sacct(before, "State,ConsumedEnergyRaw,AdminComment") == PLAIN
    runs = site.user.must("sbatch --parsable --wrap 'sleep 30'").strip()
    said = site.follow("install", "By Debian packages", "The ledger on each node", "Slurm")
    found = re.findall(r"(?m)^(?:error|warning): (?:node1: )?([\w-]+): ", said)
    assert set(found) <= FOUND, said
    site.follow("install", "Joules")
    job = site.user.must("echo $job").strip()
    state, joules, comment = site.sacct(job, "State,ConsumedEnergyRaw,AdminComment")
    assert state == "COMPLETED" and int(joules) > LEAST_W * 20, joules
    told = float(re.match(r"<joulemark 1: Energy[^:]*: ([\d.]+) J ", comment)[1])
    assert told == pytest.approx(int(joules), abs=1)
    settles(lambda: site.sacct(runs, "State") == ["COMPLETED"], "the job that ran")


def test_a_removal_leaves_a_plain_cluster_and_its_joules(site: Cluster) -> None:
    job = site.user.must("echo $job").strip()
    site.follow("removal", "Drained", "Slurm", "Debian packages")
    after = site.a_plain_job()
    assert site.sacct(after, "State,ConsumedEnergyRaw,AdminComment") == PLAIN
    assert int(site.sacct(job, "ConsumedEnergyRaw")[0]) > 0
    books = site.machine.must("cat /srv/joulemark-jobs.csv")
    assert re.search(rf"(?m)^(site,)?{job},", books), books
    site.follow("removal", "What is left")
    assert site.machine.must(LEFT) == ""
    assert site.machine.done("grep -ri joulemark /etc/slurm").stdout == ""
