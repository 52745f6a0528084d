# `joulemark job`: what is told of a job, to people and to programs.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from joulemark.accounting import usage
from joulemark.accounting.columns import fault_text
from joulemark.accounting.job import (
    Job,
    Part,
    cpu_time,
    cpu_use,
    j_per_cpu_hour,
    mean_w,
    peak_bound_w,
    regions,
    seconds,
    states,
    sum_uj,
    used,
)
from joulemark.accounting.jobrecord import few
from joulemark.accounting.rates import J_PER_KWH
from joulemark.layout import ESTIMATED, LEGEND_ESTIMATED, Text
from joulemark.units import UJ_PER_J, digits, rough

LEAST_KWH = 0.1  # below it joules are as easy to read
LOW_CPU_USE = 0.4  # one thread on each core of two threads is a use of a half
SHOWN_RUNS = 20  # of an array, in a table for people
DOMAINS = ("CPU", "DRAM", "GPU", "Rest")
LEGEND = (
    "+-: k=2. Overhead (shared channels) and Storage (file servers' work) are not in Energy; "
    "carbon and cost are of Energy alone. "
    "-: not known; what no instrument tells apart is in the rest."
)
LEGEND_PARTIAL = "(2 of 3): the sum of 2 of 3 runs; the other has none, or it is not known."
PARTIAL = re.compile(r" \(\d+ of \d+\)$")
LEGEND_STEPS = "The batch step includes the steps that ran meanwhile."
LEGEND_REGIONS = "A region includes those inside it."
SOURCE = (
    "This is what Slurm's accounting tells (AdminComment), rounded; who reads the store is told "
    "more, such as steps and regions; here: {}."
)
NO_CPU_TIME = "CPU use is not known: Slurm measured no CPU time (JobAcctGatherType)."


def knowledge(job: Job) -> list[str]:
    """What is missing, and what nodes and instruments say: alike things once."""
    return [
        *_without_record(job),
        *_alike(job, _missing),
        *_alike(job, lambda run: map(fault_text, json.loads(run["Faults"]))),
        *_alike(job, lambda run: filter(None, [run["Notes"]])),
        *_why_no_cpu_time(job),
        *_why_no_peak(job),
    ]


def _without_record(job: Job) -> list[str]:
    lacking = [f"{part.job_id} ({part.state})" for part in job.parts if part.lacks_record]
    return [f"No record (yet): {few(lacking)}."] if lacking else []


def _missing(run: dict) -> list[str]:
    return [f"more than this, for it lacks {run['Missing']}"] if run["Missing"] else []


def _alike(job: Job, said_of: Callable[[dict], Iterable[str]]) -> list[str]:
    said: dict[str, list[str]] = {}
    for part, run in job.runs:
        for text in said_of(run):
            said.setdefault(text, []).append(_name(part, run))
    return [f"Job {few(names)}: {text}." for text, names in said.items()]


def _name(part: Part, run: dict) -> str:
    return f"{part.job_id} (run {run['Run']})" if run["Run"] else part.job_id


def _why_no_cpu_time(job: Job) -> list[str]:
    time = cpu_time(job)
    if time is None:
        why = job.sacct_silent or "sacct does not tell of each run"
    elif not time.allocated_s and sum_uj(job.measured, "ConsumedEnergy_uj") is not None:
        why = "it ran for less than a second, as Slurm counts"
    elif not time.allocated_s:
        why = "no run was measured"
    else:
        return [] if time.used_s else [NO_CPU_TIME]
    return [f"CPU-hours and CPU use are not known: {why}."]


def _why_no_peak(job: Job) -> list[str]:
    return [f"Peak power is not known: {job.peak_silent}."] if job.peak_silent else []


def source(job: Job) -> list[str]:
    """Where its figures are from, where that is not the store."""
    return [SOURCE.format(job.store_silent)] if job.store_silent else []


def hints(job: Job) -> list[str]:
    """What would change its energy, whatever is charged of it."""
    energy_uj, idle_uj = (
        sum_uj(job.measured, name) for name in ("ConsumedEnergy_uj", "EnergyIdle_uj")
    )
    found = []
    if energy_uj and idle_uj:
        energy_j, idle_j, group = energy_uj / UJ_PER_J, idle_uj / UJ_PER_J, used(job.measured)
        mark = usage.estimate_mark(group)
        half, twice = (
            mark + rough(joules, group.energy_error_j, "J")
            for joules in (energy_j - idle_j / 2, energy_j + idle_j)
        )
        found.append(
            f"{idle_j / energy_j:.0%} of the energy is the idle power of its part of the nodes: "
            "that grows with run time, the rest with the work. The same work in half the time "
            f"would take about {half}, in twice the time {twice}."
        )
    use = cpu_use(job)
    if use is not None and use < LOW_CPU_USE:
        worked = f"worked {use:.0%} of the time"
        if any(one.cpus > 1 for part in job.parts for one in part.allocations):
            found.append(
                f"Its CPUs {worked}: with fewer, or none that wait, it would have a smaller part "
                "of the idle power."
            )
        else:
            found.append(
                f"Its CPU {worked}: what waits less ends sooner, with less of the idle power."
            )
    return found


# ---- for programs ----


def as_records(jobs: list[Job]) -> list[dict]:
    """Plain numbers; null: not known."""
    sums = usage.as_records([used(job.rows) for job in jobs])
    return [{**_figures(*each), **_details(each[0])} for each in zip(jobs, sums)]


def as_rows(jobs: list[Job]) -> list[dict]:
    """What of as_records() is one figure a job."""
    sums = usage.as_records([used(job.rows) for job in jobs])
    return list(map(_figures, jobs, sums))


def columns() -> list[str]:
    """The keys of as_rows() also where there is no job."""
    return list(_figures(Job("", "", []), *usage.as_records([usage.summed({}, [])])))


def _figures(job: Job, sums: dict) -> dict:
    time = cpu_time(job)
    return {
        "job_id": job.job_id,
        "cluster": job.cluster,
        **sums,
        **_parts_of(job.rows),
        "mean_w": mean_w(job.measured),
        "peak_w": job.peak_w,
        "peak_bound_w": peak_bound_w(job.measured),
        "time_s": seconds(job.rows),
        "allocated_cpu_s": time.allocated_s if time else None,
        "used_cpu_s": time.used_s or None if time else None,
        "energy_per_cpu_hour_j": j_per_cpu_hour(job),
    }


def _details(job: Job) -> dict:
    return {
        "runs": [_run_record(part, run) for part, run in job.runs],
        "no_record": [
            {"job_id": part.job_id, "state": part.state} for part in job.parts if part.lacks_record
        ],
        "steps": [{"step": name, **_short(rows)} for name, rows in job.steps.items()],
        "regions": [_region_record(region) for region in regions(job)],
        "notes": [*knowledge(job), *source(job)],
        "hints": hints(job),
    }


def _parts_of(rows: list[dict]) -> dict:
    found = {}
    for part in (*DOMAINS, "Idle"):
        column, name = f"Energy{part}_uj", f"energy_{part.lower()}"
        value_uj = sum_uj(rows, column)
        found[f"{name}_j"] = None if value_uj is None else value_uj / UJ_PER_J
        found[f"{name}_uj"] = value_uj
        found[f"{name}_jobs"] = sum(row[column] is not None for row in rows)
    return found


def _short(rows: list[dict]) -> dict:
    (sums,) = usage.as_records([used(rows)])
    names = ("energy_j", "energy_uj", "energy_error_j", "energy_jobs")
    return {
        **{name: sums[name] for name in names},
        **_parts_of(rows),
        "mean_w": mean_w(rows),
        "time_s": seconds(rows),
        "estimated": bool(sums["estimated_jobs"]),
    }


def _run_record(part: Part, run: dict) -> dict:
    return {
        "job_id": part.job_id,
        "job_id_raw": part.raw,
        "run": run["Run"],
        "state": part.state if run is part.runs[-1] else None,
        "complete": not run["Incomplete"],
        "method": run["Method"],
        **_short([run]),
    }


def _region_record(region: dict) -> dict:
    in_j = {
        key[: -len("_uj")] + "_j": None if value is None else value / UJ_PER_J
        for key, value in region.items()
        if key.endswith("_uj")
    }
    return {**region, **in_j}


# ---- for people ----


def as_text(job: Job, names_cluster: bool = False) -> tuple[list[Text], list[str]]:
    """Tables, and what must be known to read them."""
    group = used(job.rows)
    tables = [_whole(job, group, f" of {job.cluster}" if names_cluster else "")]
    if len(job.runs) > 1:
        tables.append(_of_runs(job))
    if job.steps:
        body = [[name, *_cells(rows, len(job.runs))] for name, rows in job.steps.items()]
        tables.append(_table("Steps", ["Step", *HEADS], body))
    found = regions(job)
    if found:
        tables.append(_of_regions(found, len(job.runs)))
    cells = (cell for table in tables for _, cells in table.body for cell in cells)
    notes = [*knowledge(job), *hints(job), LEGEND]
    notes += [LEGEND_ESTIMATED] if group.estimated_jobs else []
    notes += [LEGEND_PARTIAL] if any(map(PARTIAL.search, cells)) else []
    notes += [LEGEND_STEPS] if "batch" in job.steps and len(job.steps) > 1 else []
    notes += [LEGEND_REGIONS] if found else []
    notes += source(job)
    return tables, notes


def _table(title: str, heads: list[str], body: list[list[str]]) -> Text:
    return Text(title, heads, [("value", cells) for cells in body])


def _title(job: Job, group: usage.Group, where: str) -> str:
    last = [part.allocations[-1] for part in job.parts if part.allocations]
    said = [states(last)] if last else []
    said.append(_kind(group))
    if group.incomplete_jobs or any(part.lacks_record for part in job.parts):
        said.append("INCOMPLETE")
    return f"Job {job.job_id}{where}: {', '.join(said)}"


def _kind(group: usage.Group) -> str:
    if group.energy_uj is None:
        return "energy not measured"
    return ESTIMATED if group.estimated_jobs else "energy measured"


def _whole(job: Job, group: usage.Group, where: str) -> Text:
    body = [*_energy(group), *_rates(job), *_domains(job), *_charges(group), *_work(group)]
    return _table(_title(job, group, where), ["", "Value", "+-", "of Energy"], body)


def _energy(group: usage.Group) -> list[list[str]]:
    body = [["Energy [J]", *_energy_cells(group, group.jobs), ""]]
    kwh, error_kwh = (
        (joules or 0) / J_PER_KWH for joules in (group.energy_j, group.energy_error_j)
    )
    if kwh >= LEAST_KWH:
        value = usage.told(kwh, "kWh", group) + usage.of_all(group.energy_jobs, group.jobs)
        body.append(["Energy [kWh]", value, f"{error_kwh:.2g}", ""])
    return body


def _rates(job: Job) -> list[list[str]]:
    """Of what was measured, whatever is charged of it."""
    group = used(job.measured)
    rates = [
        ("Mean power", "W", mean_w(job.measured)),
        ("Peak power", "W", job.peak_w),
        ("Energy per CPU-hour", "J", j_per_cpu_hour(job)),
    ]
    bound_w = peak_bound_w(job.measured)
    if job.peak_w is None and bound_w is not None:
        rates.insert(2, ("Peak power, at most", "W", bound_w))
    body = [
        [f"{name} [{unit}]", usage.told(value, unit, group), "", ""] for name, unit, value in rates
    ]
    use = cpu_use(job)
    return body if use is None else [*body, ["CPU use", f"{use:.0%}", "", ""]]


def _domains(job: Job) -> list[list[str]]:
    """Of the runs that know a domain, and its share of those runs' energy."""
    body = []
    for name, label in (*zip(DOMAINS, DOMAINS), ("Idle", "Idle part")):
        known = [row for row in job.rows if row[f"Energy{name}_uj"] is not None]
        value_uj, energy_uj = (
            sum_uj(known, f"{of}_uj") for of in (f"Energy{name}", "ConsumedEnergy")
        )
        text = "-"
        if value_uj is not None:
            covered = usage.of_all(len(known), len(job.rows))
            text = usage.told(value_uj / UJ_PER_J, "J", used(known)) + covered
        share = f"{value_uj / energy_uj:.0%}" if value_uj and energy_uj else ""
        body.append([f"{label} [J]", text, "", share])
    return body


def _charges(group: usage.Group) -> list[list[str]]:
    body = [
        [f"{head} [{usage.UNITS[suffix]}]", *usage.cells(group, name, suffix), ""]
        for head in ("Overhead", "Storage", "CO2e")
        for name, suffix in [usage.QUANTITIES[head]]
        if getattr(group, f"{name}_{suffix}") is not None
    ]
    mark, covered = usage.estimate_mark(group), usage.of_all(group.cost_jobs, group.jobs)
    for currency, cost in group.costs.items():
        value, error = map(usage.money, (cost.value, cost.error))
        body.append([f"Cost [{currency}]", mark + value + covered, error, ""])
    return body


def _work(group: usage.Group) -> list[list[str]]:
    if not group.work_jobs:
        return []
    return [[head, usage.work_cell(group, name), "", ""] for head, name in usage.WORK.items()]


HEADS = ["Energy [J]", "+-", "Mean [W]", "Time [s]"]


def _cells(rows: list[dict], runs: int = 1) -> list[str]:
    """Of a run, or of a step in so many runs."""
    group = used(rows)
    if group.energy_j is None:
        return ["-", "", "-", "-"]
    return [
        *_energy_cells(group, runs),
        usage.told(mean_w(rows), "W", group),
        digits(seconds(rows)),
    ]


def _energy_cells(group: usage.Group, runs: int) -> list[str]:
    return usage.cells(replace(group, jobs=runs), *usage.QUANTITIES["Energy"])


def _of_runs(job: Job) -> Text:
    """The greatest ones first."""
    runs = sorted(job.runs, key=lambda pair: -(pair[1]["ConsumedEnergy_uj"] or 0))
    more = len(runs) > SHOWN_RUNS
    title = f"Runs, the {SHOWN_RUNS} greatest of {len(runs)}" if more else "Runs"
    body = [[_name(part, run), *_cells([run])] for part, run in runs[:SHOWN_RUNS]]
    return _table(title, ["Job", *HEADS], body)


def _of_regions(found: list[dict], runs: int) -> Text:
    body = [
        [
            f"{region['step']} {region['name']}",
            *_region_energy(region, group, runs),
            usage.told(_power_w(region), "W", group),
            digits(region["seconds"]),
            str(region["count"]),
        ]
        for region, group in zip(found, map(_of_region, found))
    ]
    return _table("Regions", ["Step, region", *HEADS, "Times"], body)


def _region_energy(region: dict, group: usage.Group, runs: int) -> list[str]:
    value, error = _energy_cells(group, runs)
    return [value, "-" if error and region["uncertainty_uj"] is None else error]


def _of_region(region: dict) -> usage.Group:
    """Its energy and error."""
    known = {"energy_uj": region["energy_uj"], "estimated": region["estimated_jobs"]}
    one = usage.of_one(**known, systematic_uj=(region["uncertainty_uj"] or 0) / 2)  # k=2
    return usage.summed({}, [one._replace(energy_jobs=region["energy_jobs"])])


def _power_w(region: dict) -> float | None:
    energy_uj, time_s = region["energy_uj"], region["energy_seconds"]
    return energy_uj / UJ_PER_J / time_s if energy_uj is not None and time_s else None
