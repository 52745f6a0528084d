# `joulemark export benchpark`: workspaces as Benchpark and its Ramble leave them: a .cali file for
# each experiment, and results.latest.json.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from joulemark import output
from joulemark.bench.cooked import Measurement
from joulemark.bench.export import cali, figures
from joulemark.bench.export.figures import Figure
from joulemark.bench.export.profiles import Profile, profiles

# What is the same for all experiments of a workspace, by what Benchpark's study varies.
CONSTANT = {
    "throughput": lambda one: f"nodes{one.nodes}-ranks{one.ranks}",
    "strong": lambda one: str(one.size),
    "weak": lambda one: f"{one.size / one.ranks:g}",
}
_STUDY = ("benchmark", "variant", "threads", "target", "cpu", "device", "unit", "manifest")

TIME = "Avg time/rank (exc)"
CALLS = "Calls/rank (max)"  # all is of one iteration
SUCCESS, FAILED = "SUCCESS", "FAILED"
NO_CONTEXT = "null"
FOM_TYPES = {
    "time_s": ("TIME", "LOWER"),
    "performance": ("THROUGHPUT", "HIGHER"),
    "efficiency": ("THROUGHPUT", "HIGHER"),
    "energy_j": ("MEASURE", "LOWER"),
}
MEASURE = ("MEASURE", "INDETERMINATE")


@dataclass(frozen=True)
class Experiment:
    """A profile under a name that no other one of its workspace has."""

    profile: Profile
    name: str

    @property
    def has_succeeded(self) -> bool:
        """All kernels were verified."""
        return all(one.verified for one in self.profile.runs)

    @property
    def folder(self) -> str:
        """Below the workspace."""
        one = self.profile.first
        return "/".join(
            ("experiments", *map(figures.as_file_name, (one.benchmark, one.variant)), self.name)
        )


def files(measurements: Iterable[Measurement], scaling: str) -> Iterator[tuple[str, str]]:
    """Each file's path below the folder, and its text."""
    for path, experiments in _workspaces(measurements, scaling).items():
        for each in experiments:
            if any(one.verified for one in each.profile.runs):  # else no program would have one
                yield f"{path}/{each.folder}/{each.name}.cali", _cali(each.profile, scaling)
        yield f"{path}/results.latest.json", _results(path.replace("/", "-"), experiments)


def _workspaces(measurements: Iterable[Measurement], scaling: str) -> dict[str, list[Experiment]]:
    studies: dict[tuple, list[Profile]] = {}
    for profile in profiles(_placed(measurements)):
        one = profile.first
        key = (*(getattr(one, name) for name in _STUDY), figures.cluster(one))
        studies.setdefault((*key, _what_varies(profile, scaling)), []).append(profile)
    found: dict[str, list[Experiment]] = {}
    for found_profiles in studies.values():
        one = found_profiles[0].first
        parts = (one.benchmark, f"{one.variant}-threads{one.threads}")
        parts += (_what_varies(found_profiles[0], scaling), figures.cluster(one))
        path = _unused("/".join(map(figures.as_file_name, parts)), found)
        found[path] = _experiments(found_profiles)
    return found


def _what_varies(profile: Profile, scaling: str) -> str:
    """And what does not; one curve has no estimates beside joules that were measured."""
    is_estimate = figures.ESTIMATED in profile.energy_source
    constant = CONSTANT[scaling](profile.first)
    return f"{scaling}-{constant}-{figures.ESTIMATED}" if is_estimate else f"{scaling}-{constant}"


def _placed(measurements: Iterable[Measurement]) -> Iterator[Measurement]:
    """Without those of which nobody told on how many nodes they were."""
    for one in measurements:
        if one.nodes:
            yield one
        else:
            what = f"{one.benchmark} {one.kernel} {one.variant} {one.size}, {one.ranks} ranks"
            output.tell([f"{what}: nodes: not told: left out"])


def _experiments(found: list[Profile]) -> list[Experiment]:
    named: dict[str, Experiment] = {}
    for profile in found:
        one = profile.first
        counts = (f"nodes{one.nodes}", f"ranks{one.ranks}", f"threads{one.threads}")
        name = _unused(figures.as_file_name(one.benchmark, one.size, *counts), named)
        named[name] = Experiment(profile, name)
    return list(named.values())


def _unused(name: str, used: dict) -> str:
    number, free = 1, name
    while free in used:
        number += 1
        free = f"{name}-{number}"
    return free


def _counts(one: Measurement) -> dict[str, float]:
    """By Benchpark's own names."""
    return {
        "n_nodes": one.nodes,
        "n_resources": one.ranks,
        "total_problem_size": one.size,
        "process_problem_size": one.size / one.ranks,
    }


# -- for Caliper's readers ------------------------------------------------------------------------


def _cali(profile: Profile, scaling: str) -> str:
    one = profile.first
    metadata = {
        "version": figures.UNKNOWN,
        **profile.metadata(),
        "benchpark_spec": f"[{one.benchmark}+{scaling}{_model(one)}]",
        **_counts(one),
    }
    regions = profile.regions({"time_s": TIME})
    for metrics in regions.values():
        if TIME in metrics:
            metrics[CALLS] = 1
    return cali.text(metadata, regions)


def _model(one: Measurement) -> str:
    """The programming model; Benchpark has no name for OpenCL."""
    if not one.device:
        return "+openmp" if one.threads > 1 else ""
    if one.variant == "opencl":
        return ""
    return "+rocm" if one.variant.startswith("hip") else "+cuda"


# -- for Ramble -----------------------------------------------------------------------------------


def _results(name: str, experiments: list[Experiment]) -> str:
    found = [_result(name, each) for each in experiments]
    digest = hashlib.sha256(json.dumps(found).encode()).hexdigest()
    workspace = {"workspace_name": name, "workspace_hash": digest, "experiments": found}
    return json.dumps(workspace, indent=2) + "\n"


def _result(workspace: str, each: Experiment) -> dict:
    one = each.profile.first
    workload = f"{one.benchmark}.{one.variant}"
    namespace = f"{workload}.{each.name}"
    keys = {
        "application_name": one.benchmark,
        "application_namespace": one.benchmark,
        "workload_name": one.variant,
        "workload_namespace": workload,
        "simplified_workload_namespace": workload.replace(".", "_"),
        "experiment_name": each.name,
        "experiment_namespace": namespace,
        "simplified_experiment_namespace": namespace.replace(".", "_"),
        "n_nodes": str(one.nodes),
        "n_ranks": str(one.ranks),
        "n_threads": str(one.threads),
        "processes_per_node": str(-(-one.ranks // one.nodes)),
    }
    known = {**each.profile.metadata(), **_counts(one)}
    told = {key: str(value) for key, value in known.items()}
    variables = {**told, "workspace_name": workspace, "repeat_index": "0"}
    status = SUCCESS if each.has_succeeded else FAILED
    return {
        "name": namespace,
        "RAMBLE_STATUS": status,
        "EXPERIMENT_STATUS": status,
        "N_REPEATS": 0,
        **keys,
        "CONTEXTS": [_context(one) for one in each.profile.runs],
        "RAMBLE_VARIABLES": variables,
        "RAMBLE_RAW_VARIABLES": variables,
        "TAGS": [],
        "EXPERIMENT_CHAIN": [],
    }


def _context(one: Measurement) -> dict:
    """A kernel's figures of merit; one that is called as its benchmark needs no context."""
    name = NO_CONTEXT if one.kernel == one.benchmark else one.kernel
    foms = [_fom(one, each) for each in figures.figures(one)]
    return {"name": name, "display_name": name, "foms": foms}


def _fom(one: Measurement, figure: Figure) -> dict:
    kind, direction = FOM_TYPES.get(figure.name, MEASURE)
    return {
        "name": figure.name,
        "value": figure.value,
        "units": figures.unit_told(figure, one),
        "origin": one.benchmark,
        "origin_type": "application",
        "fom_type": {"name": kind, "better_direction": direction},
    }
