"""Who can be killed, what the kill costs by Slurm's own rules, and how the dead come back."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.jobs import Job, facts
from tests.cluster import (
    Cluster,
    ClusterError,
    Node,
    Service,
    Waited,
    pause,
    processes,
    wait_for,
)
from tests.peers.peer import Peer

# How often each is chosen. The epilog and the merge live for milliseconds and are waited for.
WEIGHTS = {
    "joulemarkd": 36,
    "slurmstepd": 10,
    "slurmd": 14,
    "slurmctld": 8,
    "slurmdbd": 10,
    "mariadb": 8,
    "epilog": 6,
    "merge": 8,
    "mosquitto": 5,
    "receive": 5,
}
ENDS_SLURMCTLD = ("slurmctld", "slurmdbd")  # the second at times: ended_itself()
AT_END = ("epilog", "merge")  # they run when a job ends
OPTIONAL = ("mosquitto", "receive")
HEAL_S, HEAL_TIMES = 5.0, 5
MERGE_S = 0.6  # a short one's, without what it waits for
SAVED_S = 15.0  # slurmctld saves its jobs within 5 s of a change


@dataclass
class Killer:
    """Kills, remembers what is dead, counts."""

    cluster: Cluster
    dice: random.Random
    tally: Counter[str] = field(default_factory=Counter)
    dead: list[Service | Peer] = field(default_factory=list)
    more: Mapping[str, Peer] = field(default_factory=dict)  # beside the cluster's own

    def choose(self, number: int) -> list[str]:
        there = {
            name: weight
            for name, weight in WEIGHTS.items()
            if name not in OPTIONAL or name in self.more
        }
        return self.dice.choices(list(there), weights=list(there.values()), k=number)

    def kill(self, what: str, jobs: Sequence[Job]) -> None:
        """One of what runs while jobs run; a service stays dead until revive()."""
        if what == "slurmstepd":
            self._kill_stepd(jobs)
            return
        service = self._service(what)
        if not service.alive:
            self.revive(service)
        if what in ENDS_SLURMCTLD:
            self._wait_saved(jobs)
        service.kill(signal.SIGKILL)
        self.tally[what] += 1
        self.dead.append(service)

    def _service(self, what: str) -> Service | Peer:
        node = self.dice.choice(list(self.cluster.nodes.values()))
        own = {"joulemarkd": node.daemon, "slurmd": node.slurmd, **self.more}
        return own.get(what) or getattr(self.cluster, what)

    def revive(self, *services: Service | Peer) -> None:
        """Starts these and what they need, or all that are dead, in the cluster's order."""
        known = [*self.more.values(), *self.cluster.services]
        last = max((known.index(service) for service in services), default=len(known))
        for service in known[: last + 1]:
            if service in services or service in self.dead:
                service.start()
                self.dead = [dead for dead in self.dead if dead is not service]

    def _wait_saved(self, jobs: Sequence[Job]) -> None:
        """Slurm itself forgets a change that slurmctld has not saved; that is no fault of ours."""
        if not self.cluster.slurmctld.alive:
            return
        since = time.time()
        states = {job.id: facts(self.cluster, job)[0] for job in jobs}
        file = self.cluster.state / "spool" / "slurmctld" / "job_state"
        changed = max((self._started(job) for job in jobs if states[job.id]), default=0.0)
        with contextlib.suppress(Waited):
            wait_for(
                lambda: file.exists() and file.stat().st_mtime > min(changed + 1, since),
                SAVED_S,
                "slurmctld to save its jobs",
                poll_s=0.1,
            )

    def _started(self, job: Job) -> float:
        """When its output was made: slurmctld knew of its start before."""
        path = self.cluster.jobs_folder / f"{job.id}.out"
        return path.stat().st_mtime if path.exists() else time.time()

    def _kill_stepd(self, jobs: Sequence[Job]) -> None:
        """The job's end is judged no more; its energy is."""
        job = self.dice.choice(list(jobs))
        node = self.cluster.node(self.dice.choice(job.nodes))
        stepds = node.stepds(job.id)
        if stepds:
            step = self.dice.choice(sorted(stepds))
            job.excuse = f"its slurmstepd {step} on {node.name} was killed"
            if processes.send(stepds[step]):
                self.tally["slurmstepd"] += 1

    # -- what lives for milliseconds, at a job's end ---------------------------------------------

    def kill_epilog(self, node: Node, end: Path) -> None:
        """Slurm drains its node then."""

        def kill(pids: list[int]) -> None:
            self.tally["epilog"] += sum(map(processes.send, pids))

        at_epilog(node, end, kill)

    def kill_merge(self, end: Path) -> None:
        """Any of EpilogSlurmctld's processes: the script, `joulemark merge`, admincomment."""
        end.touch()
        with contextlib.suppress(Waited):
            wait_for(self.cluster.notices, 30, "a notice of a job's end", poll_s=0.005)
            pause(self.dice.uniform(0.0, MERGE_S))
            wait_for(self._kill_one_merging, 5, "a merge", poll_s=0.005)
            self.tally["merge"] += 1

    def _kill_one_merging(self) -> bool:
        """Many live for a millisecond."""
        pids = _merging(self.cluster)
        return bool(pids) and processes.send(self.dice.choice(pids))

    def heal(self) -> None:
        """What an administrator does after this: takes nodes back that Slurm holds for broken.

        A failed epilog drains its node; a slurmctld that was killed may forget to ask a node, and
        one whose slurmdbd is killed may end itself.
        """
        if not self.cluster.slurmctld.alive and ended_itself(self.cluster):
            print("slurmctld ended itself (_conn_readable), and is started again", flush=True)
            self.cluster.slurmctld.start()
        for _ in range(HEAL_TIMES):
            with contextlib.suppress(ClusterError):
                self.cluster.wait_nodes(HEAL_S)
                return
            lines = self.cluster.run(["sinfo", "-h", "-N", "-o", "%N %T"]).splitlines()
            for name, state in (line.split() for line in lines):
                if "drain" in state:
                    self.cluster.run(["scontrol", "update", f"nodename={name}", "state=undrain"])
                if state != "idle":
                    self.cluster.node(name).slurmd.restart()
        self.cluster.wait_nodes()


def ended_itself(cluster: Cluster) -> bool:
    """Data and the hang-up of slurmdbd's connection at once are fatal to 22.05's slurmctld."""
    lines = (cluster.state / "log" / "slurmctld.log").read_text(errors="replace").splitlines()
    return bool(lines) and "fatal: _conn_readable: poll returned" in lines[-1]


def epilogs(node: Node) -> list[int]:
    below = processes.descendants(node.slurmd.pid)
    return [pid for pid in below if processes.name(pid) == "epilog"]


def at_epilog(node: Node, end: Path, act: Callable[[list[int]], object]) -> None:
    """Held up by a daemon that hangs, the epilog can be caught; the daemon goes on afterwards."""
    node.daemon.start()
    with node.daemon.stopped():
        end.touch()
        with contextlib.suppress(Waited):  # the job had lost its node before
            act(wait_for(lambda: epilogs(node), 10, "the epilog to run"))


def _merging(cluster: Cluster) -> list[int]:
    """And all that slurmctld's helper slurmscriptd has started."""
    helpers = processes.children(cluster.slurmctld.pid)
    epilogs = [pid for helper in helpers for pid in processes.descendants(helper)]
    return [*epilogs, *cluster.merging()]
