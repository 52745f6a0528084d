# What the real squeue tells of jobs that run.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import os
from dataclasses import dataclass

from joulemark.errors import UserError
from joulemark.slurm import command
from joulemark.slurm.allocations import cpu_seconds

FIELDS = "%A|%i|%T|%D|%M|%j"  # the name is last: it may have any character, also a newline
OF_A_JOB = ("SLURM_", "SRUN_", "SBATCH_", "SALLOC_", "SQUEUE_", "JOULEMARK_SOCKET")


@dataclass(frozen=True)
class Running:
    """A job that runs or is suspended."""

    raw: int
    job_id: str  # 12, 12_3 or 12+1
    name: str
    nodes: int
    elapsed_s: float  # without the time in which it was suspended
    suspended: bool

    @property
    def named(self) -> list[str]:
        """Srun's options for a step in it: a component goes by its heterogeneous job's number."""
        leader, _, component = self.job_id.partition("+")
        if component:
            return [f"--jobid={leader}", f"--het-group={component}"]
        return [f"--jobid={self.raw}"]


def running(jobs: list[str]) -> list[Running]:
    """These jobs, without any the user's own; those alone that run."""
    chosen = ["-j", ",".join(jobs)] if jobs else ["--me"]
    mark = command.mark()  # of where a job begins
    words = ["squeue", "-h", "-t", "RUNNING,SUSPENDED", "-o", mark + FIELDS, *chosen]
    done = command.run("does slurmctld run?", *words, env=own_environment())
    if done.returncode != 0 and "Invalid job id" not in done.stderr:  # it is gone
        raise UserError(f"squeue: {' '.join(done.stderr.split())}")
    return [_parsed(text.removesuffix("\n")) for text in done.stdout.split(mark)[1:]]


def _parsed(text: str) -> Running:
    raw, job_id, state, nodes, elapsed, name = text.split("|", 5)
    return Running(
        raw=int(raw),
        job_id=job_id,
        name=name,
        nodes=int(nodes),
        elapsed_s=_elapsed_s(elapsed),
        suspended=state == "SUSPENDED",
    )


def _elapsed_s(text: str) -> float:
    """`INVALID`: it is less than 0, for the clock here is behind slurmctld's."""
    try:
        return cpu_seconds(text)
    except ValueError:
        return 0.0


def own_environment() -> dict[str, str]:
    """Without what a job that this runs in has set for its own steps."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(OF_A_JOB) or name == "SLURM_CONF"
    }
