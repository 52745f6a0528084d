"""Who can be stopped for a while, as by swap, a paused machine or a debugger; then goes on."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import functools
import random
import signal
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.jobs import Job, submit_brief, wait_ended, wait_epilogs
from tests.chaos.kills import at_epilog
from tests.cluster import Cluster, Node, Waited, meanwhile, processes, wait_for
from tests.cluster.processes import start_ticks
from tests.e2e.outcome import open_accounts
from tests.peers.joulemarkd import ask

PAUSED = ("joulemarkd", "slurmd", "slurmstepd", "epilog")
SHORTEST_S = 0.05
BRIEF_JOBS = 4
BATCH_STEP = 0xFFFFFFFB  # SLURM_BATCH_SCRIPT, in the name of its slurmstepd's socket
BRIEF_S = 30.0  # in which brief jobs end, where no node is drained
CLOSED_S = 20.0  # an epilog comes, or nothing of the job is found for 5 s, and a machine is busy


@dataclass
class Pauser:
    """Stops one process at a time for 0.05 s to longest_s, short ones as often as long ones."""

    cluster: Cluster
    dice: random.Random
    longest_s: float
    tally: Counter[str] = field(default_factory=Counter)
    held: int = 0  # slurmstepds of brief jobs
    _timers: list[threading.Timer] = field(default_factory=list)

    def choose(self) -> str:
        """Each as often as the others."""
        least = min(self.tally[name] for name in PAUSED)
        return self.dice.choice([name for name in PAUSED if self.tally[name] == least])

    def pause(self, what: str, jobs: Sequence[Job]) -> None:
        """A daemon, a slurmd or a job's slurmstepd; nothing waits for its end."""
        node = self.cluster.node(self.dice.choice(self.dice.choice(list(jobs)).nodes))
        if what == "slurmstepd":
            stepds = [pid for job in jobs for pid in node.stepds(job.id).values()]
            self._stop(what, [self.dice.choice(stepds)] if stepds else [])
        else:
            service = node.daemon if what == "joulemarkd" else node.slurmd
            self._stop(what, [service.pid] if service.pid else [])

    def pause_through_jobs(self, node: Node) -> list[Job]:
        """Brief jobs whose whole life the daemon misses, so that all that they sent waits for it.

        Their batch scripts' slurmstepds live on, held up when Slurm has done with them, so that
        the daemon hears them after an epilog that had no patience.
        """
        self.tally["joulemarkd"] += 1
        held: list[tuple[int, int | None]] = []
        try:
            with node.daemon.stopped():
                mine = [
                    submit_brief(self.cluster, self.dice, node.name) for _ in range(BRIEF_JOBS)
                ]
                hold = functools.partial(_hold_at_end, node, mine, held)
                with meanwhile(hold), contextlib.suppress(Waited):
                    wait_ended(self.cluster, mine, BRIEF_S)
                    wait_epilogs(self.cluster, mine)
            ask(node.socket, "status")  # answered behind all that waited
        finally:
            for pid, began in held:
                _go_on(pid, began)
        self.held += len(held)
        return mine

    def pause_epilog(self, node: Node, end: Path) -> None:
        """The daemon that holds it up goes on first."""
        at_epilog(node, end, functools.partial(self._stop, "epilog"))

    def _stop(self, what: str, pids: Sequence[int]) -> None:
        self.tally[what] += 1
        seconds = SHORTEST_S * (self.longest_s / SHORTEST_S) ** self.dice.random()
        for pid in pids:
            began = start_ticks(pid)
            if processes.send(pid, signal.SIGSTOP):
                timer = threading.Timer(seconds, _go_on, [pid, began])
                self._timers.append(timer)
                timer.start()

    def wait(self) -> None:
        """Until all of them go on."""
        while self._timers:
            self._timers.pop().join()

    def left_open(self) -> list[str]:
        """Accounts that are open though no job is here any more."""

        def found() -> list[str]:
            return [
                f"{node.name}: the account of {job}.{step} is open, and the job is not here"
                for node in self.cluster.nodes.values()
                for job, step in open_accounts(node)
            ]

        with contextlib.suppress(Waited):
            wait_for(lambda: not found(), CLOSED_S, poll_s=0.2)
        return found()


def _hold_at_end(
    node: Node, jobs: Sequence[Job], held: list[tuple[int, int | None]], done: threading.Event
) -> None:
    """Stops each slurmstepd of a batch script that has closed its socket, its last act."""
    folder = node.cluster.state / "spool" / node.name
    sockets = {folder / f"{node.name}_{job.id}.{BATCH_STEP}": job for job in jobs}
    stepds: dict[Path, tuple[int, int | None]] = {}
    while sockets and not done.wait(0.001):
        for path in list(sockets):
            there = path.exists()
            if there and path not in stepds:
                pid = node.stepds(sockets[path].id).get("batch")
                if pid:
                    stepds[path] = pid, start_ticks(pid)
            elif not there and path in stepds:
                pid, began = stepds[path]
                if start_ticks(pid) == began and processes.send(pid, signal.SIGSTOP):
                    held.append(stepds[path])
                del sockets[path]


def _go_on(pid: int, began: int | None) -> None:
    if start_ticks(pid) == began:  # not another one with its number
        processes.send(pid, signal.SIGCONT)
