"""Who can be stopped for a while, as by swap, a paused machine or a debugger; then goes on."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.jobs import Job, submit_brief, wait_ended, wait_epilogs
from tests.chaos.kills import epilogs
from tests.cluster import Cluster, Node, Waited, wait_for
from tests.cluster.service import start_ticks
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
        node.daemon.kill(signal.SIGSTOP)
        try:
            mine = [submit_brief(self.cluster, self.dice, node.name) for _ in range(BRIEF_JOBS)]
            with _holding_at_end(self.cluster, node, mine, held), contextlib.suppress(Waited):
                wait_ended(self.cluster, mine, BRIEF_S)
                wait_epilogs(self.cluster, mine)
        finally:
            try:
                node.daemon.kill(signal.SIGCONT)
                ask(node.socket, "status")  # answered behind all that waited
            finally:
                for pid, began in held:
                    _go_on(pid, began)
        self.held += len(held)
        return mine

    def pause_epilog(self, node: Node, end: Path) -> None:
        """Held up by a daemon that hangs, the epilog can be caught; the daemon goes on first."""
        if not node.daemon.alive:
            node.daemon.start()
        node.daemon.kill(signal.SIGSTOP)
        try:
            end.touch()
            with contextlib.suppress(Waited):  # the job had lost its node before
                self._stop("epilog", wait_for(lambda: epilogs(node), 10, "the epilog to run"))
        finally:
            node.daemon.kill(signal.SIGCONT)

    def _stop(self, what: str, pids: Sequence[int]) -> None:
        self.tally[what] += 1
        seconds = SHORTEST_S * (self.longest_s / SHORTEST_S) ** self.dice.random()
        for pid in pids:
            began = start_ticks(pid)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
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


@contextlib.contextmanager
def _holding_at_end(
    cluster: Cluster, node: Node, jobs: Sequence[Job], held: list[tuple[int, int | None]]
) -> Iterator[None]:
    """Meanwhile a slurmstepd of a batch script that has closed its socket, its last act, stops."""
    done = threading.Event()

    def hold() -> None:
        folder = cluster.state / "spool" / node.name
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
                    with contextlib.suppress(ProcessLookupError):
                        if start_ticks(pid) == began:
                            os.kill(pid, signal.SIGSTOP)
                            held.append(stepds[path])
                    del sockets[path]

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _go_on(pid: int, began: int | None) -> None:
    with contextlib.suppress(ProcessLookupError):
        if start_ticks(pid) == began:  # not another one with its number
            os.kill(pid, signal.SIGCONT)
