# A user's running jobs: one step of each looks on and tells what its nodes were charged.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import time
from dataclasses import dataclass, field

from joulemark.errors import UserError
from joulemark.layout import ESTIMATE_MARK, LEGEND_ESTIMATED, Text, joules
from joulemark.slurm import jobenergy, queue
from joulemark.slurm.queue import Running
from joulemark.top import columns, readings
from joulemark.top.readings import OnNode, Reading, Sum
from joulemark.top.streams import STEP_NAME, Streams, joulemarkctl
from joulemark.units import UJ_PER_J

# So often slurmctld is asked which jobs run.
LIST_S = 10.0
# So long its record is waited for when a job has ended, and so often looked for.
RECORD_S, RECORD_EVERY_S = 10.0, 1.0
PLACE_S = 10  # a step has a place, or none: it shares the job's
MOST_JOBS = 100  # each takes an srun here
HEADS = ("Job", "Name", "Nodes", "Elapsed", "Now [W]", "+-", "Mean [W]", "So far [J]", "+-")
HEADS += ("CPU [W]", "GPU [W]")
OPTIONAL = ((1,), (10,), (9,), (3,), (6,))
LEGEND = "+-: k=2. Now: since the reading before. -: not known (yet), and in no sum."
COLUMNS = ("time", "job_id", "job_id_raw", "name", "nodes", "nodes_told", "elapsed_s")
COLUMNS += ("power_w", "power_error_w", "mean_w", "energy_j", "energy_error_j", "cpu_w", "gpu_w")
COLUMNS += ("estimated", "said")
LEGEND_PART = "2 of 3: so many of its nodes tell."


@dataclass
class Job:
    """One that runs, and what its nodes have told."""

    running: Running
    listed_s: float  # time.monotonic() of when squeue had it last
    nodes: dict[str, OnNode] = field(default_factory=dict)
    said: str = ""  # last, by srun or joulemarkctl, that is no reading
    asked: bool = False  # its program runs
    told: bool = False  # something since that was started
    was_refused: bool = False  # it ended before anything was told

    def elapsed_s(self, now_s: float) -> float:
        """Without the time in which it was suspended."""
        still = self.running.suspended
        return self.running.elapsed_s + (0.0 if still else now_s - self.listed_s)

    @property
    def has_power(self) -> bool:
        """On all of its nodes."""
        told = sum(node.before is not None for node in self.nodes.values())
        return told >= self.running.nodes


class Jobs:
    """What is watched: the user's jobs, or those that were named."""

    columns = COLUMNS

    def __init__(self, named: list[str], every_s: float):
        self._named = named
        self._asked_every_s = every_s
        self.every_s = every_s  # as asked for, but no finer than the nodes let it be
        self._streams = Streams()
        self._jobs: dict[int, Job] = {}
        self._ended: dict[int, tuple[Job, float]] = {}  # until when their records are waited for
        self._records_s = 0.0
        self._refused: set[int] = set()
        self._more = 0  # jobs that run beside these
        self._listed_s = 0.0
        self._news: list[str] = []
        self._problems: list[str] = []
        self.failed = False  # something could not be told of

    def __enter__(self) -> Jobs:
        return self

    def begin(self) -> None:
        """A step in each."""
        self._list()
        found = {name for job in self._jobs.values() for name in _names(job.running)}
        for name in self._named:
            if name not in found:
                self._fail(f"job {name}: does not run; if it has: joulemark sacct -j {name}")
        if not self._named and not self._jobs:
            self._news.append("no job of yours runs")

    def __exit__(self, *reason) -> None:
        self._streams.__exit__(*reason)

    @property
    def is_over(self) -> bool:
        """None is left."""
        return not self._jobs

    def wait(self, moment_s: float, *, for_all: bool = False, is_last: bool = False) -> None:
        """Takes in what comes up to a moment, or, for_all, until all have told of their power.

        When none is left, it waits for the records of the last ones; is_last: for none."""
        self._take_in(moment_s, for_all)
        self._look_for_records(patient=not is_last)
        while self.is_over and self._ended:
            time.sleep(RECORD_EVERY_S)
            self._look_for_records()

    def _take_in(self, moment_s: float, for_all: bool) -> None:
        left = {raw for raw in self._jobs if self._is_awaited(raw)}
        if for_all and not left:
            return
        for raw, line in self._streams.until(moment_s):
            if line is None:
                self._stopped(raw)
            else:
                self._take(self._jobs[raw], line)
            if not self._is_awaited(raw):
                left.discard(raw)
            if self.is_over or (for_all and not left):
                return
        for job in self._jobs.values():
            if len(self._heard(job)) == job.running.nodes:
                job.said = ""  # what kept one silent is over
        if time.monotonic() - self._listed_s >= LIST_S:
            self._list_again()

    def _is_awaited(self, raw: int) -> bool:
        """Its power is not known, and it was asked for: of one that is suspended it is not."""
        job = self._jobs.get(raw)
        return job is not None and job.asked and not job.has_power

    def news(self) -> list[str]:
        """What happened since it was asked last."""
        news, self._news = self._news, []
        return news

    def problems(self) -> list[str]:
        """What could not be told of since it was asked last."""
        problems, self._problems = self._problems, []
        return problems

    def _list(self) -> None:
        self._listed_s, self._more = time.monotonic(), 0
        for one in queue.running(self._named):
            if one.raw in self._refused:
                continue
            if one.raw not in self._jobs and len(self._jobs) >= MOST_JOBS:
                self._more += 1
                continue
            job = self._jobs.setdefault(one.raw, Job(one, self._listed_s))
            job.running, job.listed_s = one, self._listed_s
        for job in list(self._jobs.values()):
            if not job.asked:
                self._go_on(job)

    def _go_on(self, job: Job) -> None:
        """With one of which no program tells (any more)."""
        raw = job.running.raw
        if job.listed_s < self._listed_s:
            del self._jobs[raw]
            self._ended[raw] = job, time.monotonic() + RECORD_S
        elif job.was_refused:
            del self._jobs[raw]
            self._refused.add(raw)
            self._fail(f"job {job.running.job_id}: {job.said or 'srun ended without a word'}")
        elif not job.running.suspended:  # a step would wait until it goes on
            self._start(job)

    def _list_again(self) -> None:
        try:
            self._list()
        except UserError as error:  # slurmctld may be away for a moment
            self._problems.append(str(error))

    def _start(self, job: Job) -> None:
        job.asked, job.told, job.was_refused = True, False, False
        nodes = job.running.nodes
        step = ["srun", *job.running.named, "--overlap", f"--job-name={STEP_NAME}", "--quiet"]
        step += [f"--nodes={nodes}", f"--ntasks={nodes}", "--ntasks-per-node=1"]
        step += ["--cpus-per-task=1", "--mpi=none", "--gres=none", f"--immediate={PLACE_S}"]
        step += ["--kill-on-bad-exit=0", "--wait=0"]  # what ends on one node goes on on others
        ask = [joulemarkctl(), "job", "--look-on", f"--every={self._asked_every_s:g}"]
        self._streams.start(job.running.raw, [*step, *ask])

    def _take(self, job: Job, line: str) -> None:
        reading = Reading.parse(line)
        if reading is None:
            job.said = line.strip() or job.said
            return
        now_s = time.monotonic()
        job.told = True
        self.every_s = max(self.every_s, 1 / reading.max_hz)
        if reading.node in job.nodes:
            job.nodes[reading.node].take(reading, now_s)
        else:
            job.nodes[reading.node] = OnNode(reading, now_s)

    def _stopped(self, raw: int) -> None:
        """The job has ended, or its step has, or was refused: the next list tells."""
        job = self._jobs[raw]
        job.asked, job.was_refused = False, not job.told
        self._list_again()

    def _fail(self, text: str) -> None:
        self.failed = True
        self._problems.append(text)

    def _look_for_records(self, patient: bool = True) -> None:
        """Of jobs that have ended: all that each used, or what was told of it last."""
        now_s = time.monotonic()
        if not self._ended or (patient and now_s < self._records_s + RECORD_EVERY_S):
            return
        self._records_s = now_s
        records = jobenergy.of_ended(self._ended)
        for raw, (job, until_s) in list(self._ended.items()):
            record = (records or {}).get(raw)
            is_whole = record and not record["Missing"]
            if is_whole or records is None or not patient or now_s >= until_s:
                del self._ended[raw]
                self._news.append(_in_all(job, record) if record else self._last_word(job))

    def _last_word(self, job: Job) -> str:
        if not job.nodes:
            return f"job {job.running.job_id} ended before its nodes told anything"
        last = self._sum(job)
        age_s = time.monotonic() - min(node.heard_s for node in job.nodes.values())
        used = _used(last.energy_j, last.error_j, last.estimated)
        return f"job {job.running.job_id} ended; at {columns.clock(age_s)} it had used {used}"

    def _sum(self, job: Job) -> Sum:
        return readings.of_job(job.nodes.values(), list(self._heard(job).values()))

    def _heard(self, job: Job) -> dict[str, OnNode]:
        since_s = time.monotonic() - columns.silent_s(self.every_s)
        return {name: node for name, node in job.nodes.items() if node.heard_s >= since_s}

    # ---- for people ----

    def table(self) -> tuple[Text, list[str]]:
        """The jobs, and what must be known to read them."""
        jobs = list(self._jobs.values())
        sums = [self._sum(job) for job in jobs]
        whole = readings.total(sums)
        energies = columns.Joules([*(one.energy_j for one in sums), whole.energy_j])
        rows = [
            [*self._about(job), *_cells(one, energies, bool(job.nodes))]
            for job, one in zip(jobs, sums)
        ]
        body = [("value", row) for row in rows]
        if len(rows) > 1:
            told = any(job.nodes for job in jobs)
            body.append(("total", ["all", "", "", "", *_cells(whole, energies, told)]))
        notes = [LEGEND]
        notes += [LEGEND_ESTIMATED] if whole.estimated else []
        notes += [LEGEND_PART] if any(" of " in row[2] for row in rows) else []
        if self.every_s > self._asked_every_s:
            notes.append(f"Every {self.every_s:g} s: no finer, by the site's profile_max_hz.")
        if self._more:
            notes.append(f"{self._more} more jobs run; name those that you want to see.")
        notes += [f"Job {job.running.job_id}: {job.said}" for job in jobs if job.said]
        heads = [energies.head(head) for head in HEADS]
        return Text(columns.clock(), heads, body, OPTIONAL), notes

    def _about(self, job: Job) -> list[str]:
        tell, nodes = len(self._heard(job)), job.running.nodes
        return [
            job.running.job_id,
            job.running.name,
            f"{tell} of {nodes}" if job.nodes and tell < nodes else str(nodes),
            columns.elapsed(job.elapsed_s(time.monotonic())),
        ]

    # ---- for programs ----

    def rows(self) -> list[dict]:
        """A job each, with the time of the round and what keeps figures away."""
        now = time.time()
        pairs = [(job, self._job_record(job)) for job in self._jobs.values()]
        return [
            {"time": now, **one, "nodes_told": ",".join(one["nodes_told"]), "said": job.said}
            for job, one in pairs
        ]

    def record(self) -> dict:
        """Joules, watts, seconds; null: not known."""
        return {
            "time": time.time(),
            "jobs": [self._job_record(job) for job in self._jobs.values()],
            "more": self._more,
            "news": self.news(),
        }

    def _job_record(self, job: Job) -> dict:
        one, known = self._sum(job), bool(job.nodes)
        return {
            "job_id": job.running.job_id,
            "job_id_raw": job.running.raw,
            "name": job.running.name,
            "nodes": job.running.nodes,
            "nodes_told": sorted(self._heard(job)),
            "elapsed_s": job.elapsed_s(time.monotonic()),
            "power_w": one.power_w,
            "power_error_w": one.error_w,
            "mean_w": one.mean_w,
            "energy_j": one.energy_j if known else None,
            "energy_error_j": one.error_j if known else None,
            "cpu_w": one.cpu_w,
            "gpu_w": one.gpu_w,
            "estimated": one.estimated,
        }


def _names(job: Running) -> set[str]:
    """By which it may have been asked for: an array's or heterogeneous job's own number, too."""
    return {str(job.raw), job.job_id, job.job_id.partition("_")[0].partition("+")[0]}


def _in_all(job: Job, record: dict) -> str:
    used = _used(
        record["ConsumedEnergy_uj"] / UJ_PER_J,
        record["UncertaintyJoules"],
        record["Estimated"],
    )
    lacking = f", and what is missing: {record['Missing']}" if record["Missing"] else ""
    return f"job {job.running.job_id} ended; it used {used}{lacking}"


def _used(energy_j: float, error_j: float, estimated: bool) -> str:
    return f"{joules(energy_j, error_j, estimated)} (k=2)"


def _cells(one: Sum, energies: columns.Joules, known: bool) -> list[str]:
    mark = ESTIMATE_MARK if one.estimated else ""
    error_w, error_j = (one.error_w or 0.0, one.error_j) if one.estimated else (0.0, 0.0)
    # the mean is as sure as the energy that it is of
    mean_error_w = (one.mean_w or 0.0) * error_j / one.energy_j if one.energy_j else 0.0
    return [
        columns.watts(one.power_w, mark, error_w),
        columns.watts(one.error_w, "", error_w),
        columns.watts(one.mean_w, mark, mean_error_w),
        energies.cell(one.energy_j, mark, error_j) if known else "-",
        energies.error(one.error_j, error_j) if known else "-",
        columns.watts(one.cpu_w, mark),
        columns.watts(one.gpu_w, mark),
    ]
