"""guides/install.md and guides/removal.md, word for word, in a Debian where this checkout is not,
under its own systemd with its own munge, MariaDB and Slurm: by Debian packages, then by Spack, of
which guides/upgrade.md makes the next release; on Debian 13, too.

It reaches no network. What a site's machine would fetch is there before: Debian's packages in
apt's cache; Spack, its recipes, its solver and its compiler wrapper; a bare repository of ours.
"""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from building.with_spack import CLINGO

from tests.booted import SLURM_PLACES, Booted
from tests.checkout import PROJECT, announce, copy_to, repository_of
from tests.cluster import CHECKOUT, cache_folder, wait_for
from tests.long.shown import begins
from tests.long.test_guides import STATUS, commands
from tests.long.test_packages import MADE, Root, bootstrap, must, suite
from tests.long.test_packages import commands as commands_of_packages
from tests.stranger import need_spack

HERE = suite()
#: the Debian, and the chapters of CHAPTERS
WAYS = dict.fromkeys(itertools.product((HERE, "trixie"), ("debs", "spack")))
pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can be other users"),
    pytest.mark.parametrize(("root", "chapters"), WAYS, indirect=True, scope="module"),
]

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
SLURM_CONF = f"""{SLURM_PLACES}
ClusterName=site
SlurmctldHost=node1
SlurmUser=slurm
CommunicationParameters=EnableIPv6  # with loopback alone it would find no address
AuthType=auth/munge
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=node1
JobAcctGatherType=jobacct_gather/linux
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
BARE = "joulemark.git"
URL = f"file:///srv/{BARE}"
RELEASES = ("9.9.0", "9.9.1")
#: what a site tells its root, and where the test has put what Spack finds in the network
PROFILE = f"export JOULEMARK_URL={URL} SPACK_PYTHON=/srv/spack-python/bin/python\n"
GITCONFIG = '[url "file:///srv/spack"]\n    insteadOf = https://github.com/spack/spack\n'
#: Slurm's plugin of version 2 refuses a kernel that has hierarchies of version 1, too
CGROUP_CONF = """
CgroupPlugin=cgroup/v1
"""
FILES = {
    "etc/hostname": "node1\n",
    "etc/hosts": "127.0.0.1 localhost node1\n",
    "etc/slurm/cgroup.conf": CGROUP_CONF,
    "etc/slurm/slurm.conf": SLURM_CONF,
    "etc/slurm/slurmdbd.conf": SLURMDBD_CONF,
    "etc/profile.d/site.sh": PROFILE,
    "etc/gitconfig": GITCONFIG,
    "etc/spack/config.yaml": "config: {source_cache: /srv/spack-sources}\n",
    "etc/spack/repos.yaml": "repos: {builtin: /srv/spack-packages/repos/spack_repo/builtin}\n",
}
#: the chapters of both guides
CHAPTERS = {
    "debs": ("By Debian packages", "Debian packages"),
    "spack": ("By Spack", "Spack's packages"),
}
MODULES = "Benchmarks as modules"
#: what is there of ours, but for what the guide keeps, and dpkg, apt and Spack do
KEPT = ["/opt/spack", "/proc", "/root", "/run", "/srv", "/var/cache", "/var/lib/dpkg", "/var/log"]
LEFT = (
    rf"find / \( {' -o '.join(f'-path {path}' for path in KEPT)} \) -prune "
    "-o -iname '*joulemark*' -prune -print"
)
#: Debian 13's slurmdbd makes no database: its libmariadb has another number for an unknown one
DATABASE = (
    "CREATE DATABASE slurm_acct_db; "
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
    """One of bash's, of who logs in now, from block to block."""

    def __init__(self, machine: Booted, user: str) -> None:
        words = machine.words("runuser", "--login", user, "-c", "exec bash -l")
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
        """What root's shell printed. It has no paths in mind of the guide before, whose removal
        left /usr/local/bin empty where this one fills /usr/bin."""
        self.root.must("hash -r")
        said = []
        for heading in headings:
            for block in blocks(chapter(guide, heading)):
                if block.startswith("$ "):
                    self.follow_user(block)
                else:
                    said.append(self.root.must(block))
        return "".join(said)

    def follow_user(self, block: str) -> None:
        for command in commands(re.sub(r"(?m)^", "    ", block)):
            printed = self.user.must(command.line)
            assert begins(printed, command.shown), f"$ {command.line}\n{printed}\n{command.shown}"
            settles(self._is_settled, "jobs to end and to be merged")

    def _is_settled(self) -> bool:
        notices = "find /var/lib/joulemark/ended -type f ! -name '.*' 2>/dev/null"
        return not self.machine.done(f"squeue -h; {notices}; pgrep -f 'merge --ende[d]'").stdout

    def sacct(self, job: str, fields: str) -> list[str]:
        return self.machine.must(f"sacct -nXP -j {job} -o {fields}").strip().split("|")

    def a_plain_job(self) -> list[str]:
        """What sacct has of it, of which it hears late where slurmctld has just begun."""
        job = self.user.must("sbatch --parsable --wait --wrap 'sleep 1'").strip()
        settles(lambda: self.sacct(job, "State") == ["COMPLETED"], f"job {job}")
        return self.sacct(job, "State,ConsumedEnergyRaw,AdminComment")


@contextlib.contextmanager
def debian(folder: Path, packages: str, of: str) -> Iterator[Root]:
    bootstrap(folder, packages, of)
    try:
        yield Root(folder, of)
    finally:
        must("rm", "-rf", "--one-file-system", folder)


@pytest.fixture(scope="module")
def root(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Root]:
    """A Debian with its Slurm, and beside it what is to be installed."""
    folder: Path = tmp_path_factory.mktemp("debian") / "root"
    with debian(folder, ",".join(SLURM), request.param) as root:
        for name, text in FILES.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        yield root


def make_packages(root: Root, beside: Path) -> None:
    """By their page, in another machine's root: what makes them is no part of the site's."""
    install, make = commands_of_packages("Making them")
    place = root.folder / MADE.lstrip("/")
    with debian(beside, "ca-certificates", root.suite) as maker:
        copy_to(beside / "root", *PROJECT)
        maker.run(install)
        maker.run(f"cd /root; {make}")
        place.mkdir()
        for package in (beside / MADE.lstrip("/")).glob("*.deb"):
            shutil.copy(package, place)


def take_archives(root: Root, heading: str) -> None:
    """apt fetches what the guide's chapter installs."""
    block = next(block for block in blocks(chapter("install", heading)) if "apt install" in block)
    root.run(block.replace("apt install", "apt-get install --download-only"))


def take_spack(root: Root) -> None:
    cache, srv = cache_folder(), root.folder / "srv"
    must("git", "clone", "-q", "--bare", f"file://{cache}/spack", srv / "spack")
    for name in ("spack-packages/repos", "spack-sources"):
        shutil.copytree(cache / name, srv / name, symlinks=True)
    make_spack_python(root)
    theirs = shutil.ignore_patterns("joulemark*")
    index = root.folder / "root/.spack/cache"  # of builtin's recipes: half a minute's work
    shutil.copytree(cache / "spack-cache/cache", index, ignore=theirs)


def make_spack_python(root: Root) -> None:
    """A virtual environment of the root's own Python, with Spack's solver."""
    said = root.run("apt-cache show --no-all-versions python3")
    version = re.search(r"(?m)^Version: (\d+\.\d+)", said)[1]
    venv, ours = root.folder / "srv/spack-python", cache_folder() / "spack-python"
    if (ours / f"lib/python{version}").exists():
        shutil.copytree(ours / "lib", venv / "lib", symlinks=True)
    (venv / "bin").mkdir(parents=True)
    (venv / "bin/python").symlink_to("/usr/bin/python3")
    (venv / "pyvenv.cfg").write_text("home = /usr/bin\n")
    modules = venv / f"lib/python{version}/site-packages"
    if not modules.exists():
        pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-cache-dir")
        must(*pip, "--only-binary=:all:", "--python-version", version, "--target", modules, CLINGO)


def make_repository(srv: Path) -> None:
    """The project's bare one, at its first release."""
    work = repository_of(copy_to(srv / "work", *PROJECT))
    must("git", "clone", "-q", "--bare", work, srv / BARE)
    offer(srv, RELEASES[0])


def offer(srv: Path, release: str) -> None:
    """As the project does: a release, and what its script says to push."""
    work = srv / "work"
    announce(work)
    must("git", "-C", work, "commit", "--quiet", "--all", "--allow-empty", "--message", "more")
    ours = ("--git", URL, "--maintainer", "nobody")
    must(work / "spack-repo/release", *ours, "--out", srv, release)
    must("git", "-C", work, "push", "--quiet", srv / BARE, "HEAD", f"v{release}")


def make_slurms_own(root: Root) -> None:
    """Its folders and a user; none of its services begins by itself."""
    root.run(
        f"useradd --create-home --shell /bin/bash {USER}; "
        "chown slurm /etc/slurm/slurmdbd.conf; chmod 600 /etc/slurm/slurmdbd.conf; "
        "install -d -o slurm -g slurm /var/lib/slurm /var/lib/slurm/slurmctld; "
        "systemctl disable slurmctld slurmd slurmdbd"
    )


def begin_slurm(machine: Booted) -> None:
    """On a server with MariaDB."""
    machine.must(f'mariadb -e "{DATABASE}"')
    machine.must("systemctl enable --now slurmdbd")
    settles(lambda: not machine.done("sacctmgr -i add cluster site").returncode, "slurmdbd")
    machine.must("systemctl enable --now slurmctld")


@pytest.fixture(scope="module")
def site(root: Root, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A site's, without us; a job runs on it."""
    log = tmp_path_factory.mktemp("log") / "console.log"
    make_slurms_own(root)
    with Booted(root.folder, log) as machine:
        begin_slurm(machine)
        settles(lambda: not machine.done("scontrol ping").returncode, "slurmctld")
        machine.must("systemctl enable --now slurmd")
        with (
            contextlib.closing(Shell(machine, "root")) as as_root,
            contextlib.closing(Shell(machine, USER)) as user,
        ):
            yield Cluster(machine, as_root, user)


@pytest.fixture(scope="module")
def chapters(
    root: Root, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, str]:
    """Install's and removal's, and what the first one takes is there."""
    if request.param == "debs":
        make_packages(root, tmp_path_factory.mktemp("maker") / "root")
    else:
        need_spack()
        take_spack(root)
        make_repository(root.folder / "srv")
    heading, _ = CHAPTERS[request.param]
    take_archives(root, heading)
    return CHAPTERS[request.param]


def test_a_first_install_leads_to_joules_in_sacct(
    site: Cluster, chapters: tuple[str, str]
) -> None:
    assert site.a_plain_job() == PLAIN
    site.user.must("hash -r")  # the chapter before had programs elsewhere
    runs = site.user.must("sbatch --parsable --wrap 'sleep 30'").strip()
    said = site.follow("install", chapters[0], "The ledger on each node", "Slurm")
    found = re.findall(r"(?m)^(?:error|warning): (?:node1: )?([\w-]+): ", said)
    assert set(found) <= FOUND, said
    site.follow("install", "Joules")
    job = site.user.must("echo $job").strip()
    state, joules, comment = site.sacct(job, "State,ConsumedEnergyRaw,AdminComment")
    assert state == "COMPLETED" and int(joules) > LEAST_W * 20, joules
    told = float(re.match(r"<joulemark 1: Energy[^:]*: ([\d.]+) J ", comment)[1])
    assert told == pytest.approx(int(joules), abs=1)
    settles(lambda: site.sacct(runs, "State") == ["COMPLETED"], "the job that ran")
    if chapters == CHAPTERS["spack"]:  # Debian's packages have no benchmarks, and apt no such link
        see_joules_of_a_module(site)
        see_one_link_that_an_upgrade_moves(site)
        see_an_upgrade_under_a_job(site)


def see_joules_of_a_module(site: Cluster) -> None:
    """By a user who logs in after the install."""
    *roots, of_who_logs_in = blocks(chapter("install", MODULES))
    for block in roots:
        site.root.must(block)
    with contextlib.closing(Shell(site.machine, USER)) as user:
        Cluster(site.machine, site.root, user).follow_user(of_who_logs_in)
        job = user.must("echo $job").strip()
    state, joules = site.sacct(job, "State,ConsumedEnergyRaw")
    assert state == "COMPLETED" and int(joules) > 0, joules


def see_one_link_that_an_upgrade_moves(site: Cluster) -> None:
    """And another, to Slurm's own plugins, that is the same on x86 and ARM."""
    [plugins] = site.machine.must("sed -n 's/^PluginDir=//p' /etc/slurm/slurm.conf").split()
    assert plugins == "/usr/local/lib/joulemark-slurm:/opt/joulemark/current/lib/slurm"
    assert release_now(site) == RELEASES[0]
    named = site.machine.must(
        "grep -ho '/opt/joulemark/[^/]*' /etc/slurm/*.conf /etc/systemd/system/joulemarkd.service;"
        "readlink /usr/local/bin/joulemark* | grep -o '/opt/joulemark/[^/]*'"
    )
    assert set(named.split()) == {"/opt/joulemark/current"}


def release_now(site: Cluster) -> str:
    current = site.machine.must("readlink /opt/joulemark/current")
    return re.match(r"/opt/joulemark/([\d.]+)-slurm\d+\.\d+", current)[1]


def see_an_upgrade_under_a_job(site: Cluster) -> None:
    """Built beside the release that runs; the books go on, both releases have modules."""
    wait = "until test -e end; do sleep 1; done"
    runs = site.user.must(f"sbatch --parsable --wrap '{wait}'").strip()
    settles(lambda: site.sacct(runs, "State") == ["RUNNING"], "the job that runs")
    offer(site.machine.root / "srv", RELEASES[1])
    said = site.follow("upgrade", "The next release by Spack")
    assert release_now(site) == RELEASES[1]
    assert re.search(rf"(?m)^version: +{re.escape(RELEASES[1])}\b", said), said
    assert re.search(r"\bbalanced$", said.strip()), said
    seconds = int(site.sacct(runs, "ElapsedRaw")[0])
    site.user.must("touch end")
    settles(lambda: site.sacct(runs, "State") == ["COMPLETED"], "the job that ran")
    assert int(site.sacct(runs, "ConsumedEnergyRaw")[0]) > LEAST_W * seconds
    see_joules_of_a_module(site)
    modules = "$(spack location -e joulemark)/.spack-env/lmod/linux-*/Core/joulemark/"
    there = site.root.must(f"ls {modules}").split()
    assert [name.partition("-")[0].removesuffix(".lua") for name in there] == list(RELEASES)


def test_a_removal_leaves_a_plain_cluster_and_its_joules(
    site: Cluster, chapters: tuple[str, str]
) -> None:
    job = site.user.must("echo $job").strip()
    site.follow("removal", "Drained", "Slurm", chapters[1])
    assert site.a_plain_job() == PLAIN
    assert int(site.sacct(job, "ConsumedEnergyRaw")[0]) > 0
    books = site.machine.must("cat /srv/joulemark-jobs.csv")
    assert re.search(rf"(?m)^(site,)?{job},", books), books
    site.follow("removal", "What is left")
    assert site.machine.must(LEFT) == ""
    assert site.machine.done("grep -ri joulemark /etc/slurm").stdout == ""
