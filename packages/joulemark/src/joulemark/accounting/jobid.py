# Which jobs an id names: a job, an array or some of its tasks, a heterogeneous job or a component.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from joulemark.units import NS_PER_S

JOB_ID = re.compile(r"([1-9]\d*)(?:_(\d+|\[[^\]]+\])|\+(\d+))?", re.ASCII)
TASKS = re.compile(r"(\d+)(?:-(\d+)(?::([1-9]\d*))?)?", re.ASCII)
MOST_ID = 1 << 32  # Slurm's have 32 bits, a task's, too
CLOCKS_NS = 5 * NS_PER_S  # by which Slurm's clock and a node's may differ


@dataclass(frozen=True)
class JobId:
    """As Slurm writes it: 12, an array's task 12_3 or tasks 12_[1-3,7], a component 12+1."""

    text: str
    job: int
    tasks: tuple[range, ...] = ()
    component: int | None = None

    @classmethod
    def parse(cls, text: str) -> JobId:
        """ValueError says what is wrong with it."""
        found = JOB_ID.fullmatch(text)
        if found is None or int(found[1]) >= MOST_ID:
            raise ValueError(f"'{text}' is not a job's id such as 12, 12_3, 12_[1-3] or 12+1")
        tasks = tuple(_ranges(text, found[2].strip("[]"))) if found[2] else ()
        return cls(text, int(found[1]), tasks, int(found[3]) if found[3] else None)

    @property
    def is_whole(self) -> bool:
        """Neither tasks nor a component: it may be a raw id, by which the store knows jobs."""
        return not self.tasks and self.component is None

    @property
    def count(self) -> int:
        """How many jobs it names where it is a line of sacct's."""
        return sum(map(len, self.tasks)) or 1

    def covers(self, allocation: Allocation) -> bool:
        """12 is the raw id of a job, and all of the array or of the heterogeneous job 12."""
        other = allocation.job_id
        if self.is_whole:
            return self.job in (other.job, allocation.raw)
        if self.job != other.job or self.component != other.component:
            return False
        return self.component is not None or any(
            _meet(one, another) for one in self.tasks for another in other.tasks
        )


def _ranges(whole: str, text: str) -> Iterator[range]:
    """Of `1-3,7` or `0-9:2`; `%4` says how many may run at once."""
    for part in text.partition("%")[0].split(","):
        found = TASKS.fullmatch(part)
        tasks = found and range(int(found[1]), int(found[2] or found[1]) + 1, int(found[3] or 1))
        if not tasks or tasks.stop > MOST_ID:
            raise ValueError(f"'{whole}': '{part}' is not a range of tasks such as 1-3 or 0-9:2")
        yield tasks


def _meet(one: range, other: range) -> bool:
    shorter, longer = sorted((one, other), key=len)
    return any(task in longer for task in shorter)


@dataclass(frozen=True)
class Allocation:
    """What sacct tells of one run of a job, its steps summed."""

    job_id: JobId  # 12_[4-9]: tasks that wait
    raw: int
    state: str
    cpus: int  # 0: it never ran
    used_cpu_s: float  # 0: Slurm does not measure it, for no process runs in no time
    start_ns: int | None
    end_ns: int | None  # None: it has not ended
    admin_comment: str = ""

    def is_of(self, run: dict) -> bool:
        """Whether the stored run was in this time."""
        if None in (self.start_ns, self.end_ns, run["Start_ns"]):
            return False
        has_begun = self.start_ns - CLOCKS_NS <= run["End_ns"]
        return has_begun and run["Start_ns"] <= self.end_ns + CLOCKS_NS
