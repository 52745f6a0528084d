# `joulemark job`: what a job cost; an array's tasks, a job's components and its runs are summed.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import json
import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import accumulate

from joulemark.accounting import comment, usage
from joulemark.accounting.jobid import Allocation, JobId
from joulemark.accounting.jobrecord import bound_uj, few, summarise
from joulemark.accounting.runs import runs_of
from joulemark.config import Config
from joulemark.errors import UserError
from joulemark.profile import hdf5
from joulemark.profile.spans import peak_w
from joulemark.store import corrections, jobs, nodes, whose
from joulemark.store.session import Session
from joulemark.store.sums import Use
from joulemark.store.whose import Whose
from joulemark.units import NS_PER_S, UJ_PER_J, known_sum

S_PER_HOUR = 3600
OF_ROW = {
    **{"energy_uj": "ConsumedEnergy_uj", "systematic_uj": "UncertaintySystematic_uj"},
    **{"overhead_uj": "EnergyOverhead_uj", "overhead_systematic_uj": "OverheadSystematic_uj"},
    **{"storage_uj": "EnergyStorage_uj", "storage_systematic_uj": "StorageSystematic_uj"},
    **{"read_bytes": "BytesRead", "written_bytes": "BytesWritten", "metadata_ops": "MetadataOps"},
    **{"carbon_g": "Carbon_g", "carbon_error_g": "CarbonError_g"},
    **{"cost": "Cost", "cost_error": "CostError", "currency": "Currency"},
    **{"estimated": "Estimated", "incomplete": "Incomplete"},
}
VARIANCES = {
    "random_uj2": "UncertaintyRandom_uj",
    "overhead_random_uj2": "OverheadRandom_uj",
    "storage_random_uj2": "StorageRandom_uj",
}
ERRORS = (
    ("UncertaintyJoules", "UncertaintySystematic_uj", "UncertaintyRandom_uj"),
    ("OverheadJoules", "OverheadSystematic_uj", "OverheadRandom_uj"),
    ("StorageJoules", "StorageSystematic_uj", "StorageRandom_uj"),
)


@dataclass(frozen=True)
class Part:
    """A job of those that were asked for: a task, a component or the whole."""

    job_id: str
    raw: int
    allocations: list[Allocation]  # of all its runs
    rows: list[dict]  # the store's, of all its runs and their steps
    measured: list[dict]  # its runs, of which a correction may charge more or less

    @property
    def runs(self) -> list[dict]:
        """Its stored runs."""
        return [row for row in self.rows if row["Step"] == "job"]

    @property
    def state(self) -> str | None:
        """That of the last run, as Slurm says it; None: sacct did not tell."""
        return self.allocations[-1].state if self.allocations else None

    @property
    def lacks_record(self) -> bool:
        """Of its last run, which has not ended, or whose records have not come."""
        if not self.allocations:
            return False
        last = self.allocations[-1]
        if last.end_ns is None:
            return True
        more = last.cpus > 0 and len(self.allocations) > len(self.runs)
        return more and not any(map(last.is_of, self.runs))


@dataclass(frozen=True)
class Job:
    """What was asked for."""

    job_id: str
    cluster: str
    parts: list[Part]
    sacct_silent: str | None = None  # why sacct told nothing
    store_silent: str | None = None  # why the store told nothing: the rows are by AdminComment
    peak_w: float | None = None  # of the sum over nodes; only a profile knows it
    peak_silent: str | None = None  # why it is not known

    @property
    def runs(self) -> list[tuple[Part, dict]]:
        """All that Slurm started and the store knows; each was paid for."""
        return [(part, run) for part in self.parts for run in part.runs]

    @property
    def rows(self) -> list[dict]:
        """The store's, of these."""
        return [run for _, run in self.runs]

    @property
    def measured(self) -> list[dict]:
        """Likewise, whatever is charged of them."""
        return [run for part in self.parts for run in part.measured]

    @property
    def steps(self) -> dict[str, list[dict]]:
        """The rows of each step, of all runs."""
        found: dict[str, list[dict]] = {}
        for part in self.parts:
            for row in part.rows:
                if row["Step"] != "job":
                    found.setdefault(row["Step"], []).append(row)
        return {name: found[name] for name in sorted(found, key=_step_order)}


def _step_order(name: str) -> tuple:
    return (not name.isdecimal(), int(name) if name.isdecimal() else 0, name)


# ---- finding ----


def find(
    session: Session,
    cluster: str,
    asked: JobId,
    told: list[Allocation],
    silent: str | None,
    of: Whose | None = None,
) -> Job:
    """The job in the store; told: what sacct says of this and others; silent: why it cannot; of:
    whose jobs alone are shown.

    UserError says why nothing is known, and what to do.
    """
    by_raw, silent = _by_raw(asked, told, silent)
    corrected = corrections.by_job(session)
    parts = []
    for raw, known in by_raw.items():
        rows = _rows(session, cluster, raw, of)
        measured = [row for row in rows if row["Step"] == "job"]
        if (cluster, raw) in corrected:
            measured = _as_measured(session, cluster, raw, measured)
        parts.append(Part(_name(asked, known), raw, known, rows, measured))
    if not any(part.rows for part in parts):
        raise UserError(f"job {asked.text}: {_why_unknown(parts, cluster, silent)}")
    return Job(asked.text, cluster, parts, silent)


def find_told(
    cluster: str, asked: JobId, told: list[Allocation], silent: str | None, why: str
) -> Job:
    """Likewise by what sacct tells alone, for who cannot read the store; why: he cannot."""
    by_raw, silent = _by_raw(asked, told, silent)
    parts = []
    for raw, known in by_raw.items():
        rows = list(_told_runs(cluster, known))
        parts.append(Part(_name(asked, known), raw, known, rows, rows))
    if not any(part.rows for part in parts):
        raise UserError(f"job {asked.text}: {_why_unknown(parts, cluster, silent, why)}")
    return Job(asked.text, cluster, parts, silent, why)


def _by_raw(
    asked: JobId, told: list[Allocation], silent: str | None
) -> tuple[dict[int, list[Allocation]], str | None]:
    """The runs of each raw id that is meant, and why sacct tells of none."""
    found: dict[int, list[Allocation]] = {}
    for allocation in filter(asked.covers, told):
        found.setdefault(allocation.raw, []).append(allocation)
    if found:
        return found, silent
    if not asked.is_whole:
        raise UserError(f"job {asked.text}: {why_no_part(asked, told, silent)}")
    return {asked.job: []}, silent or "sacct does not know it"


def _told_runs(cluster: str, known: list[Allocation]) -> Iterator[dict]:
    """The runs of a job by their AdminComment; nothing where none has any of ours."""
    runs = _ended_runs(known)
    if not any(row for _, row in runs):
        return
    is_over = known[-1].end_ns is not None and not known[-1].cpus  # it never ran again
    if runs[-1][1] is None and not is_over:  # its record may still come
        del runs[-1]
    for number, (one, row) in enumerate(runs):
        row_of = row or comment.nothing(one.raw)
        yield {
            **row_of,
            **_as_systematic(row_of),
            **{"Cluster": cluster, "Run": number, "Regions": "[]"},
            **{"Start_ns": one.start_ns, "End_ns": one.end_ns},
            "Incomplete": int(row is None or row["Missing"] is not None),
        }


def _ended_runs(known: list[Allocation]) -> list[tuple[Allocation, dict | None]]:
    """With what their comments tell. A resized one has several rows, and the one comment of all is
    that of the last; a row of what goes on, or never ran, has the comment of the run before."""
    runs: list[tuple[Allocation, dict | None]] = []
    begun_ns = None
    for one in known:
        row = comment.read(one.admin_comment, one.raw)
        if None in (one.start_ns, one.end_ns) or not one.cpus:
            if runs and runs[-1][1] is None:
                runs[-1] = (runs[-1][0], row)
            continue
        begun_ns = one.start_ns if begun_ns is None else begun_ns
        if one.state != "RESIZING":
            runs.append((replace(one, start_ns=begun_ns), row))
            begun_ns = None
    return runs


def _rows(session: Session, cluster: str, raw: int, of: Whose | None) -> list[dict]:
    rows = jobs.job_rows(session, cluster, raw)
    if of is None:
        return rows
    theirs = whose.runs(session, of, cluster, raw)
    return [row for row in rows if row["Run"] in theirs]


def _as_measured(session: Session, cluster: str, raw: int, of_runs: list[dict]) -> list[dict]:
    """By the nodes' records, which no correction changes."""
    found = nodes.node_records(session, cluster, raw, {})
    runs = runs_of(found, nodes.slurm_runs(session, cluster, raw))
    shown = {row["Run"]: row for row in of_runs}
    return [{**shown[run.number], **summarise(run)[0]} for run in runs if run.number in shown]


def _as_systematic(row: dict) -> dict:
    """Errors whose parts its line does not tell, as if they were alike in all runs."""
    found = {}
    for whole, *parts in ERRORS:
        if row[whole] is not None and None in (row[part] for part in parts):
            found.update(zip(parts, (row[whole] / 2 * UJ_PER_J, 0.0)))  # k=2 of k=1
    return found


def _name(asked: JobId, known: list[Allocation]) -> str:
    return (known[-1].job_id if known else asked).text


def why_no_part(asked: JobId, told: list[Allocation], silent: str | None) -> str:
    if silent:
        return (
            f"only sacct knows its raw id ({silent}): ask by that, which is SLURM_JOB_ID within "
            "the job"
        )
    known = dict.fromkeys(one.job_id.text for one in told if one.job_id.job == asked.job)
    if not known:
        return f"sacct knows no job {asked.job}"
    kind = "task" if asked.tasks else "component"
    return f"job {asked.job} has no such {kind}: sacct knows {few(list(known))}"


def _why_unknown(
    parts: list[Part], cluster: str, silent: str | None, no_store: str | None = None
) -> str:
    """no_store: why only sacct was asked."""
    last = [part.allocations[-1] for part in parts if part.allocations]
    if not last and no_store:
        return f"Slurm shows you no such job ({silent}); {no_store}"
    if not last:
        return (
            f"the store has no record of it ({silent}): is it a job of cluster {cluster}, has it "
            "ended, has `joulemark merge` run?"
        )
    said = states(last)
    if any(one.end_ns is None for one in last):
        return f"{said}: its energy is known when it has ended"
    if not any(one.cpus for one in last):
        return f"{said}: it never ran, and used no energy"
    if no_store:
        return f"{said}, but Slurm's accounting (AdminComment) has no energy of it; {no_store}"
    return (
        f"{said}, but the store has no record of it: run `joulemark merge`; "
        "`joulemark doctor` says what may keep nodes' records away"
    )


def states(last: list[Allocation]) -> str:
    """`COMPLETED` of a job, `2 COMPLETED, 7 PENDING` of several."""
    if len(last) == 1:
        return last[0].state
    found: Counter[str] = Counter()
    for one in last:
        found[one.state] += one.job_id.count
    return ", ".join(f"{count} {state}" for state, count in sorted(found.items()))


def with_peak(job: Job, config: Config) -> Job:
    """Its peak power, where each of its parts ran once and has a profile; else why it has none."""
    raws = [part.raw for part in job.parts if part.rows]
    # os.path: what lies in a folder that is closed to us is not there.
    lacking = [raw for raw in raws if not os.path.exists(hdf5.path_of(config, job.cluster, raw))]
    if lacking:
        of = "" if lacking == raws else f" of job {few(list(map(str, lacking)))}"
        return replace(job, peak_silent=f"no profile{of} (--energy=profile keeps one)")
    if len(job.runs) > len(raws):
        return replace(job, peak_silent="a profile is of the last run alone")
    of_cluster = replace(config, cluster=job.cluster)
    try:
        found = peak_w([node for raw in raws for node in hdf5.load(of_cluster, raw)])
    except UserError as error:
        return replace(job, peak_silent=str(error))
    silent = "the profile has no two samples" if found is None else None
    return replace(job, peak_w=found, peak_silent=silent)


# ---- sums ----


def used(rows: Iterable[dict]) -> usage.Group:
    """Sums of runs or of steps: systematic parts add up, random ones add in quadrature."""
    (found,) = usage.group(map(_use, rows), [])
    return found


def _use(row: dict) -> Use:
    known = {key: row[column] for key, column in OF_ROW.items()}
    variances = {key: (row[column] or 0.0) ** 2 for key, column in VARIANCES.items()}
    return usage.of_one(**known, **variances)


def sum_uj(rows: list[dict], column: str) -> int | None:
    """Of those that know it; None: none does."""
    return known_sum([row[column] for row in rows])


def seconds(rows: list[dict], since_ns: float = -math.inf, before_ns: float = math.inf) -> float:
    """The time in which at least one of those whose energy is known ran, within these bounds."""
    times = sorted(
        (max(row["Start_ns"], since_ns), min(row["End_ns"], before_ns))
        for row in rows
        if row["ConsumedEnergy_uj"] is not None
    )
    total_ns, until_ns = 0, -math.inf
    for start_ns, end_ns in times:
        total_ns += max(0, end_ns - max(start_ns, until_ns))
        until_ns = max(until_ns, end_ns)
    return total_ns / NS_PER_S


def mean_w(rows: list[dict]) -> float | None:
    """Their energy over that time."""
    if len(rows) == 1:
        return rows[0]["AveWatts"]
    energy_uj, time_s = sum_uj(rows, "ConsumedEnergy_uj"), seconds(rows)
    return energy_uj / UJ_PER_J / time_s if energy_uj is not None and time_s else None


def peak_bound_w(rows: list[dict]) -> float | None:
    """No more did all nodes together draw: the sum of their peaks, of runs at one time."""
    if not rows or any(row["PeakWatts"] is None for row in rows):
        return None
    begins = ((row["Start_ns"], 0, row["PeakWatts"]) for row in rows)
    ends = ((row["End_ns"], 1, -row["PeakWatts"]) for row in rows)
    return max(accumulate(change_w for *_, change_w in sorted([*begins, *ends])))


@dataclass(frozen=True)
class CpuTime:
    """Of the runs whose energy is known."""

    allocated_s: float  # by the nodes' records: Slurm has whole seconds
    used_s: float


def cpu_time(job: Job) -> CpuTime | None:
    """None where sacct does not tell of each of these runs."""
    allocated_s, used_s = 0.0, 0.0
    for part in job.parts:
        runs = [run for run in part.measured if run["ConsumedEnergy_uj"] is not None]
        if not all(any(one.is_of(run) for one in part.allocations) for run in runs):
            return None
        ran = [one for one in part.allocations if any(map(one.is_of, runs))]
        for one, bounds in zip(ran, _bounds(ran)):
            allocated_s += one.cpus * seconds(list(filter(one.is_of, runs)), *bounds)
            used_s += one.used_cpu_s
    return CpuTime(allocated_s, used_s)


def _bounds(ran: list[Allocation]) -> Iterable[tuple[float, float]]:
    """Of a resized job's sizes, and of its runs, each one's time; these are told in their order.

    Between two it is the middle, for nodes' clocks and Slurm's may differ."""
    inner = [(one.end_ns + after.start_ns) // 2 for one, after in zip(ran, ran[1:])]
    return zip((-math.inf, *inner), (*inner, math.inf))


def j_per_cpu_hour(job: Job) -> float | None:
    """Over the time in which the energy was counted: it is mean power, by the CPU."""
    time, energy_uj = cpu_time(job), sum_uj(job.measured, "ConsumedEnergy_uj")
    if time is None or not time.allocated_s or energy_uj is None:
        return None
    return energy_uj / UJ_PER_J / (time.allocated_s / S_PER_HOUR)


def cpu_use(job: Job) -> float | None:
    """CPU time used over that allocated."""
    time = cpu_time(job)
    known = time is not None and time.allocated_s and time.used_s
    return time.used_s / time.allocated_s if known else None


def regions(job: Job) -> list[dict]:
    """Those of each step, by name; of several runs, counts, times, energies and bounds add up."""
    found: dict[tuple[str, str], dict] = {}
    # What was marked outside of steps is in the job's own rows.
    for step, rows in (("job", job.rows), *job.steps.items()):
        of_step = (_region(row, one) for row in rows for one in json.loads(row["Regions"]))
        for region in sorted(of_step, key=_natural_order):
            key = step, region["name"]
            found[key] = _added(found.get(key), region)
    return list(found.values())


def _region(row: dict, region: dict) -> dict:
    """Of one run; energy_seconds: of which the energy is known."""
    known = region["energy_uj"] is not None
    counts = {"energy_jobs": int(known), "estimated_jobs": row["Estimated"]}
    energy_seconds = region["seconds"] if known else 0.0
    return {"step": row["Step"], **region, **counts, "energy_seconds": energy_seconds}


def _natural_order(region: dict) -> list:
    """copy/1024 before copy/16384 before copy/1048576."""
    texts = re.split(r"(\d+)", region["name"], flags=re.ASCII)
    return [(int(text), "") if at % 2 else (0, text) for at, text in enumerate(texts)]


def _added(one: dict | None, other: dict) -> dict:
    if one is None:
        return other
    added = {
        key: value if key in ("step", "name", "parent") else known_sum([one[key], value])
        for key, value in other.items()
        if key in one
    }
    return {**added, "uncertainty_uj": bound_uj([one, other])}
