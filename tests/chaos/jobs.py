"""Jobs with an end of their own, so that a disturbed one is seen."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import os
import random
import re
from dataclasses import dataclass
from pathlib import Path

from tests.cluster import Cluster, pause, wait_for
from tests.cluster.client import ENDED

START_S = 60.0
END_S = 180.0
EPILOG_S = 3.0  # they wait 1 s for a daemon
# Slurm may be longer about a job whose node it holds for broken
OVER = {*ENDED, "COMPLETING"}


@dataclass
class Job:
    """One job, what it must end with, and what is held to have ended it otherwise."""

    id: int
    code: int  # its script's exit status
    nodes: list[str]
    go: Path  # it ends soon after this file is there
    has_step: bool
    alone: bool  # has its nodes to itself
    excuse: str = ""

    @property
    def steps(self) -> set[str]:
        """Steps on each of its nodes; the script itself runs on the first alone."""
        return {"extern", "0"} if self.has_step else {"extern"}


def submit(cluster: Cluster, dice: random.Random, go: Path, **chosen: object) -> Job:
    """A job of random shape; `chosen` fixes parts of it: nodes, alone, has_step, rest_s."""
    nodes = chosen.get("nodes") or dice.choice([["n1"], ["n1"], ["n2"], ["n2"], ["n1", "n2"]])
    assert isinstance(nodes, list)
    code = dice.choice([0, 0, 0, 7])
    rest_s = chosen.get("rest_s", round(dice.uniform(0.0, 1.0), 2))
    has_step = bool(chosen.get("has_step", dice.random() < 0.7))
    alone = bool(chosen.get("alone", False))
    busy = "timeout 0.2 yes >/dev/null; " if dice.random() < 0.3 else ""
    wait = f"while [ ! -e {go} ]; do sleep 0.05; done; {busy}sleep {rest_s}"
    work = f"srun sh -c '{wait}'" if has_step else wait
    script = f"date +%s%N; {work}; date +%s%N; exit {code}"
    place = [f"-w{','.join(nodes)}", f"-N{len(nodes)}", f"-n{len(nodes)}"]
    share = ["--exclusive"] if alone else []
    job = cluster.sbatch(*place, *share, "--wrap", script)
    return Job(job, code, nodes, go, has_step, alone)


def submit_brief(cluster: Cluster, dice: random.Random, node: str) -> Job:
    """A job of milliseconds."""
    has_step = dice.random() < 0.5
    job = cluster.sbatch("-w", node, "-N1", "-n1", "--wrap", "srun true" if has_step else "true")
    return Job(job, 0, [node], Path(os.devnull), has_step, alone=False)


def wait_started(cluster: Cluster, jobs: list[Job]) -> None:
    """Until every step of every job runs."""

    def missing() -> list[str]:
        return [
            f"{job.id}.{step} on {name}"
            for job in jobs
            for name in job.nodes
            for step in job.steps - set(cluster.node(name).stepds(job.id))
        ]

    wait_for(lambda: not missing(), START_S, "all steps to run", poll_s=0.1)


def start(cluster: Cluster, dice: random.Random, go: Path, **chosen: object) -> Job:
    """As submit(); returns when all of it has run for a second."""
    job = submit(cluster, dice, go, **chosen)
    wait_started(cluster, [job])
    pause(1.0)
    return job


def facts(cluster: Cluster, job: Job) -> tuple[str, str]:
    """(JobState, ExitCode) as slurmctld knows them: sacct may have lost them with slurmctld."""
    text = cluster.run(["scontrol", "show", "job", str(job.id)], check=False)
    state = re.search(r"JobState=(\w+)", text)
    code = re.search(r"ExitCode=(\d+:\d+)", text)
    return (state[1] if state else "", code[1] if code else "")


def wait_ended(cluster: Cluster, jobs: list[Job], timeout_s: float = END_S) -> None:
    def running() -> list[int]:
        return [job.id for job in jobs if facts(cluster, job)[0] not in OVER]

    wait_for(lambda: not running(), timeout_s, "the jobs to end", poll_s=0.2)


def wait_epilogs(cluster: Cluster, jobs: list[Job]) -> None:
    """Until those of ended jobs have come and gone; Slurm may be longer about the jobs."""

    def completing() -> list[int]:
        return [job.id for job in jobs if facts(cluster, job)[0] == "COMPLETING"]

    wait_for(lambda: not completing(), EPILOG_S, "the epilogs", poll_s=0.2)


def disturbance(cluster: Cluster, job: Job) -> str:
    """What a job that nothing of its own was killed of ended with, where it is not its own end."""
    state, code = facts(cluster, job)
    want = "COMPLETED" if job.code == 0 else "FAILED"
    if job.excuse or (state in (want, "COMPLETING") and code == f"{job.code}:0"):
        return ""
    return f"job {job.id}: {state} {code}, not {want} {job.code}:0"


def span_ns(cluster: Cluster, job: Job) -> tuple[int, int] | None:
    """The job's own word for when its script began and ended; None: it was not let say so."""
    try:
        times = [int(line) for line in cluster.job_output(job.id).splitlines() if line.isdigit()]
    except FileNotFoundError:
        return None
    return (times[0], times[1]) if len(times) == 2 else None
