"""Slurm and Joulemark upgraded under running jobs, by the commands of guides/upgrade.md: a tally
of jobs and joules is printed."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import re
import shlex
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import pytest

from tests.chaos.books import (
    ROUNDING_UJ,
    TICKS,
    UJ,
    Watch,
    charges,
    gained_more_than_true,
    snapshot,
    unbalanced,
)
from tests.cluster import (
    CHECKOUT,
    Build,
    ClusterError,
    Service,
    cache_folder,
    meanwhile,
    state_folder,
    wait_for,
)
from tests.e2e.outcome import apart_from_launch, ended_well
from tests.e2e.waveform import RAMP
from tests.long.shown import begins
from tests.long.test_guides import Command, commands
from tests.versions.rolling import LOGIN, RollingCluster
from tests.versions.slurm import (
    EARLIER,
    NotToBeHad,
    Slurm,
    all_built,
    build_earlier,
    build_plugins,
    upgradable,
)

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be other users")

PAGE = CHECKOUT / "packages" / "joulemark" / "guides" / "upgrade.md"
BRIEF_EVERY_S = 3.0
MERGE_S = 120.0
STOP_S = 30.0
#: it works: beside jobs that do, one that only sleeps may have used nothing
STEP = "srun sh -c 'sleep 0.5; for n in $(seq 200000); do :; done; sleep 0.5'"
MIXED = "mixed: joulemark of an earlier release, protocol 1, asked "


@dataclass
class Releases:
    old: Slurm
    new: Slurm

    def places(self, current: Path) -> dict[str, Path]:
        """What the page's folders are here."""
        return {
            "/opt/slurm/current": current / "slurm",
            "/opt/slurm/26.05": self.new.prefix,
            "/opt/joulemark/current": current / "joulemark",
            "/opt/joulemark/0.1.0-slurm24.11": self.old.earlier,
            "/opt/joulemark/0.2.0-slurm24.11": self.old.plugins,
            "/opt/joulemark/0.2.0-slurm26.05": self.new.plugins,
        }


@pytest.fixture(scope="module")
def releases() -> Releases:
    pairs = [pair for pair in itertools.combinations(all_built(), 2) if upgradable(*pair)]
    if not pairs:
        pytest.skip(
            "no Slurm is built here that another one can be upgraded to: "
            "`tests/slurm-versions --build trixie forky`"
        )
    old, new = pairs[-1]
    try:
        build_earlier(old)
    except NotToBeHad as why:
        pytest.skip(f"no earlier Joulemark: {why}")
    build_plugins(old)
    build_plugins(new)
    return Releases(old, new)


@pytest.fixture(scope="module")
def rolling(releases: Releases) -> Iterator[RollingCluster]:
    """All of it old; each node's power is known at every moment."""
    old, ours = releases.old, Build.load(cache_folder())
    state = state_folder() / "rolling"
    cluster = RollingCluster(state, ours, old.prefix, old.earlier, name="rolling", cpus=4)
    power = RAMP.instrument(state / "traces")
    cluster.options = dataclasses.replace(cluster.options, instruments=[power])
    try:
        yield cluster.up()
    finally:
        cluster.down()


@dataclass
class Jobs:
    """Some that run through all of it, with a step, and brief ones all the time."""

    cluster: RollingCluster
    long: list[int] = field(default_factory=list)
    brief: list[int] = field(default_factory=list)
    stepped: list[int] = field(default_factory=list)
    refused: int = 0  # slurmctld was away

    def begin_long(self) -> None:
        wait = f"while [ ! -e {self._go} ]; do sleep 0.1; done"
        for nodes in ("n1", "n2", "n1,n2"):
            count = len(nodes.split(","))
            words = [f"-w{nodes}", f"-N{count}", f"-n{count}", "--wrap", f"srun sh -c '{wait}'"]
            self.long.append(self.cluster.sbatch(*words))
        wait_for(self._steps_run, what="the long jobs' steps to run", poll_s=0.2)

    @property
    def _go(self) -> Path:
        return self.cluster.jobs_folder / "go"

    def _steps_run(self) -> bool:
        n1, n2 = (self.cluster.node(name) for name in ("n1", "n2"))
        places = zip(self.long, ([n1], [n2], [n1, n2]))
        return all("0" in node.stepds(job) for job, nodes in places for node in nodes)

    def submit_brief(self, done: threading.Event) -> None:
        for node in itertools.cycle(self.cluster.nodes):
            if done.wait(BRIEF_EVERY_S):
                return
            try:
                self.brief.append(self.cluster.sbatch(f"-w{node}", "-n1", "--wrap", "sleep 1"))
            except ClusterError:
                self.refused += 1

    def run_stepped(self, *nodes: str) -> None:
        """One on each with a step, whose record and row are good."""
        ids = [self.cluster.sbatch(f"-w{n}", "-n1", "--wrap", STEP) for n in nodes]
        self.stepped += ids
        for job in ids:
            for account in ended_well(self.cluster, job, MERGE_S).accounts("0").values():
                assert apart_from_launch(account)[0] == 0 and account["energy_uj"] > 0, account

    def end(self) -> None:
        """All of them, and their records are merged."""
        self._go.touch()
        wait_for(self._over, MERGE_S, "all jobs to end and to be merged", poll_s=0.5)

    def _over(self) -> bool:
        cluster = self.cluster
        return not (cluster.run(["squeue", "-h"]) or cluster.notices() or cluster.merging())

    @property
    def all(self) -> list[int]:
        return sorted([*self.long, *self.brief, *self.stepped])

    @property
    def listed(self) -> str:
        return ",".join(map(str, self.all))

    def disturbed(self) -> list[str]:
        """Those that ended otherwise than by themselves, or began twice."""
        fields = "JobIDRaw,State,ExitCode,Restarts"
        ends: dict[int, list[tuple[str, ...]]] = {job: [] for job in self.all}
        for row in self.cluster.sacct(self.listed, fields, "-D", "-X"):
            job, *end = row.values()
            ends[int(job)].append(tuple(end))
        good = [("COMPLETED", "0:0", "0")]
        return [f"job {job}: {end}" for job, end in ends.items() if end != good]


@dataclass
class Site:
    """Types what the page says, on the machine that it says; `systemctl` is the cluster's."""

    cluster: RollingCluster
    releases: Releases

    def follow(self, section: str, on: str, *machines: str) -> None:
        """The commands below the line that has `on`, up to the next line of text."""
        found = re.search(rf"(?m)^.*{re.escape(on)}.*\n((?:\n|    .*\n)+)", part(section))
        assert found, f"{PAGE}: {section}: {on}"
        for machine in machines:
            for command in commands(found[1]):
                self.type(command, machine)

    def type(self, command: Command, machine: str) -> None:
        places = self.releases.places(self.cluster.current)
        line = re.sub(r"/opt/[\w./-]+", lambda m: str(places[m[0]]), command.line)
        line = line.replace("$NODE", machine)
        status, printed = self._run(line, machine)
        said = f"{machine}$ {line}\nexit status {status}\n{printed}"
        assert status in command.statuses, said
        assert begins(printed, command.shown), f"{said}\nthe page shows:\n{command.shown}"

    def _run(self, line: str, machine: str) -> tuple[int, str]:
        words = shlex.split(line, comments=True)
        if words[0] == "systemctl":
            return self.systemctl(words[1], self._unit(words[2], machine)), ""
        done = subprocess.run(
            [*self.cluster.within(machine), "sh", "-c", line],
            env=self.cluster.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return done.returncode, done.stdout

    def _unit(self, name: str, machine: str) -> Service:
        if name in ("slurmdbd", "slurmctld"):
            return getattr(self.cluster, name)
        node = self.cluster.node(machine)
        return {"slurmd": node.slurmd, "joulemarkd": node.daemon}[name]

    @staticmethod
    def systemctl(verb: str, service: Service) -> int:
        if verb in ("stop", "restart"):
            service.stop(STOP_S)
        if verb in ("start", "restart"):
            try:
                service.start()
            except ClusterError:
                return 1
        return 0


def part(section: str) -> str:
    text = PAGE.read_text().partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    assert text, f"{PAGE}: {section}"
    return text


class Tally:
    """What the instruments have drawn since it began, and what of it is in the books.

    A reading that comes late lets one tick miss what the next one has: of a few ticks the median.
    """

    def __init__(self, cluster: RollingCluster, jobs: Jobs) -> None:
        self.cluster, self.jobs = cluster, jobs
        self.watch = Watch(list(cluster.nodes.values()))
        self.began_s = time.monotonic()
        self.above_uj: dict[str, float] = {}  # the books at first, by node
        self.rows: list[tuple[str, float, int]] = []  # until when, drawn and lost [uJ]

    @contextlib.contextmanager
    def begun(self) -> Iterator[Tally]:
        with self.watch.watching():
            self.above_uj = {node: self._above_uj(node) for node in self.cluster.nodes}
            yield self

    def note(self, until: str) -> None:
        lost_uj = sum(above_uj - self._above_uj(n) for n, above_uj in self.above_uj.items())
        taken = self.watch.taken.values()
        drawn_uj = sum(RAMP.energy_j(s[0].real_ns, s[-1].real_ns) * UJ for s in taken)
        self.rows.append((until, drawn_uj, round(lost_uj)))

    def _above_uj(self, node: str) -> float:
        """How far the books are above what was drawn since their first tick, by the next few."""
        taken = self.watch.taken.setdefault(node, [])
        before = len(taken)
        wait_for(lambda: len(taken) >= before + TICKS, what=f"{TICKS} ticks of {node}")
        return median(
            shot.total_uj - RAMP.energy_j(taken[0].real_ns, shot.real_ns) * UJ
            for shot in taken[-TICKS:]
        )

    def demand(self) -> None:
        """0 jobs disturbed, 0 J lost, to the microjoule in the books."""
        assert self.jobs.disturbed() == []
        for until, _, lost_uj in self.rows:
            assert abs(lost_uj) <= len(self.cluster.nodes) * TICKS * ROUNDING_UJ, (until, lost_uj)
        for node, taken in self.watch.taken.items():
            assert unbalanced(taken) == [] and gained_more_than_true(taken, RAMP.energy_j) == []
            assert self.recorded_uj(node) == snapshot(self.cluster.node(node).ledger).settled_uj

    def recorded_uj(self, node: str) -> int:
        return sum(charge.energy_uj for charge in charges(self.cluster, node).values())

    def text(self, releases: Releases) -> str:
        jobs, disturbed = self.jobs, self.jobs.disturbed()
        recorded_j = sum(map(self.recorded_uj, self.cluster.nodes)) / UJ
        rows = self.cluster.sacct(jobs.listed, "ConsumedEnergyRaw", "-X")
        sacct_j = sum(int(row["ConsumedEnergyRaw"] or 0) for row in rows)
        took_s = time.monotonic() - self.began_s
        lines = [
            f"Slurm {releases.old.version} -> {releases.new.version}, Joulemark of {EARLIER[:7]} "
            f"-> this one, {len(self.cluster.nodes)} nodes, {took_s:.0f} s",
            f"jobs run          {len(jobs.all)}: {len(jobs.long)} through all of it, "
            f"{len(jobs.brief)} brief, {len(jobs.stepped)} with a step between two commands",
            f"refused by sbatch {jobs.refused}, while slurmctld was away",
            f"jobs disturbed    {len(disturbed)}",
            *(f"  {line}" for line in disturbed),
            f"{'until':32}{'drawn [J]':>14}{'in books [J]':>14}{'lost [J]':>12}",
        ]
        for until, drawn_uj, lost_uj in self.rows:
            booked_j = (drawn_uj - lost_uj) / UJ
            lines.append(f"{until:32}{drawn_uj / UJ:14.3f}{booked_j:14.3f}{lost_uj / UJ:12.6f}")
        of_jobs = f"in the jobs' records {recorded_j:.6f} J, in sacct {sacct_j} J"
        return "\n".join([*lines, of_jobs])


def status(cluster: RollingCluster, node: str) -> str:
    return cluster.run([*cluster.within(node), "joulemarkctl", "-N", node, "status"])


def test_slurm_conf_is_as_the_page_has_it(rolling: RollingCluster, releases: Releases) -> None:
    lines = re.findall(r"(?m)^    (\w+=/opt/.*)$", part("Laid out for it"))
    assert len(lines) == 2
    written = rolling.slurm_conf.read_text().splitlines()
    for line in lines:
        for name in ("slurm", "joulemark"):
            line = line.replace(f"/opt/{name}/current", str(rolling.current / name))
        assert line in written


def test_no_job_is_disturbed_and_no_joule_lost(
    rolling: RollingCluster, releases: Releases, record_property: Callable[[str, object], None]
) -> None:
    site, jobs = Site(rolling, releases), Jobs(rolling)
    with Tally(rolling, jobs).begun() as tally:
        jobs.begin_long()
        with meanwhile(jobs.submit_brief):
            tally.note("all is old")
            upgrade_joulemark(site, jobs)
            tally.note("Joulemark is upgraded")
            go_back_and_forth(site, jobs)
            upgrade_slurm(site, jobs)
            tally.note("Slurm is upgraded")
        jobs.end()
        tally.note("all jobs have ended")
    record_property("tally", tally.text(releases))
    tally.demand()


def upgrade_joulemark(site: Site, jobs: Jobs) -> None:
    """Slurm stays. At first n1 has new plugins and the old daemon, n2 the reverse."""
    cluster, old, new = site.cluster, site.releases.old.earlier, site.releases.old.plugins
    site.follow("Joulemark", "On slurmctld's machine", "slurmctld")
    cluster.link("n1", "joulemark", new)
    site.systemctl("restart", cluster.node("n1").slurmd)
    cluster.link("n2", "joulemark", new)
    site.systemctl("restart", cluster.node("n2").daemon)
    cluster.link("n2", "joulemark", old)
    cluster.wait_nodes()
    jobs.run_stepped("n1", "n2")
    assert "protocol:" not in status(cluster, "n1") and MIXED in status(cluster, "n2")
    site.follow("Joulemark", "On each node", "n1", "n2")
    site.follow("Joulemark", "On login nodes", LOGIN)
    jobs.run_stepped("n1", "n2")
    for node in cluster.nodes:  # the long jobs' plugins ask each second
        wait_for(lambda node=node: MIXED in status(cluster, node), what=f"{node} to tell the mix")


def go_back_and_forth(site: Site, jobs: Jobs) -> None:
    """Only those run there that run through all of it."""
    cluster = site.cluster
    cluster.run(["scontrol", "update", "NodeName=n2", "State=DRAIN", "Reason=upgrade"])
    running = ["squeue", "-h", "-w", "n2", "-t", "RUNNING,COMPLETING", "-o", "%A"]
    wait_for(
        lambda: set(map(int, cluster.run(running).split())) <= set(jobs.long),
        what="brief jobs of n2 to end",
        poll_s=0.5,
    )
    site.follow("Back", "goes on with its books.", "n2")
    cluster.wait_nodes()
    jobs.run_stepped("n2")


def upgrade_slurm(site: Site, jobs: Jobs) -> None:
    cluster, new = site.cluster, site.releases.new.version
    site.follow("Slurm", "On slurmdbd's machine", "slurmdbd")
    jobs.run_stepped("n1", "n2")
    site.follow("Slurm", "On slurmctld's machine", "slurmctld")
    cluster.wait_nodes()
    assert f"= {new}" in cluster.run(["scontrol", "show", "config"])
    jobs.run_stepped("n1", "n2")
    site.follow("Slurm", "On each node", "n1")
    cluster.wait_nodes()
    jobs.run_stepped("n1", "n2")
    site.follow("Slurm", "On each node", "n2")
    site.follow("Slurm", "On login nodes", LOGIN)
    cluster.wait_nodes()
    for node in cluster.nodes:
        shown = cluster.run(["scontrol", "show", "node", node])
        assert f"Version={new}" in shown, shown
    jobs.run_stepped("n1", "n2")
