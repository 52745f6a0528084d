# What the real sacct tells of jobs: which raw ids are an array's, CPUs, times, and CPU time used.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

from joulemark.accounting.jobid import Allocation, JobId
from joulemark.errors import UserError
from joulemark.slurm import command
from joulemark.units import NS_PER_S

FIELDS = ("AdminComment", "JobID", "JobIDRaw", "Cluster", "State", "AllocCPUS")
FIELDS += ("TotalCPU", "Start", "End", "NodeList")
NO_NODES = "None assigned"  # of what never ran; some releases give it CPUs
S_PER_DAY = 86_400
# Times as Unix seconds; the tasks that wait without an end of `...`.
ENVIRONMENT = {"SLURM_TIME_FORMAT": "%s", "SLURM_BITSTR_LEN": "0"}


def ask(cluster: str, jobs: Iterable[JobId], *options: str) -> tuple[list[Allocation], str | None]:
    """All runs of these jobs and of what they are part of; why, if sacct cannot tell.

    options: such as -M, without which sacct knows this cluster alone."""
    # Not -X: sacct sums TotalCPU over the steps that it reads. Not 12_[1-3]: 22.05 refuses it.
    numbers = ",".join(sorted({str(one.job) for one in jobs}))
    mark = command.mark()  # a comment may have any character
    words = ["-nPD", f"--delimiter={mark}", "-j", numbers, "-o", ",".join(FIELDS), *options]
    env = {**os.environ, **ENVIRONMENT}
    try:
        done = command.run("does slurmdbd run?", "sacct", *words, env=env)
    except UserError as error:
        return [], str(error)
    if done.returncode != 0:
        return [], _reason(done.stderr)
    return list(_allocations(cluster, command.split_rows(done.stdout, mark, len(FIELDS)))), None


def _reason(said: str) -> str:
    last = next(iter(said.strip().splitlines()[-1:]), "sacct: failed without a word")
    return re.sub(r"^sacct: (error|fatal): ", "sacct: ", last)


def _allocations(cluster: str, rows: list[list[str]]) -> Iterator[Allocation]:
    """The jobs' rows of this cluster, without their steps'."""
    for row in (dict(zip(FIELDS, values)) for values in rows):
        if row["JobIDRaw"].isdigit() and row["Cluster"] == cluster:
            yield Allocation(
                JobId.parse(row["JobID"]),
                int(row["JobIDRaw"]),
                row["State"].partition(" ")[0],  # `CANCELLED by 1000`
                0 if row["NodeList"] == NO_NODES else int(row["AllocCPUS"] or 0),
                cpu_seconds(row["TotalCPU"]),
                _time_ns(row["Start"]),
                _time_ns(row["End"]),
                row["AdminComment"],
            )


def cpu_seconds(text: str) -> float:
    """Of sacct's `1-02:03:04`, `02:03:04`, `03:04.567`; empty is 0."""
    days, _, clock = text.rpartition("-")
    total_s = 0.0
    for part in clock.split(":") if clock else ():
        total_s = total_s * 60 + float(part)
    return total_s + int(days or 0) * S_PER_DAY


def _time_ns(text: str) -> int | None:
    """None: Unknown, or None: not yet."""
    return int(text) * NS_PER_S if text.isdigit() else None
