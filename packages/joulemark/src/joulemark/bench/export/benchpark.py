# `joulemark export benchpark`: workspaces as Benchpark and its Ramble leave them: a .cali file for
# each experiment, and results.latest.json.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from joulemark import output
from joulemark.bench import stats
from joulemark.bench.cooked import Measurement
from joulemark.bench.export import cali, figures
from joulemark.bench.export.figures import Figure
from joulemark.bench.export.profiles import Profile, profiles

WEAK = "weak"
# What is the same for all experiments of another workspace, by what Benchpark's study varies.
CONSTANT = {
    "throughput": lambda one: f"nodes{one.nodes}-ranks{one.ranks}",
    "strong": lambda one: one.size,
}
# Of what a size is a side of, by which a weak series grows: JM_DIMENSION of scaling.sbatch.
DIMENSIONS = {"jm-stream": 1, "mod2f": 1, "qcd": 4}
DIMENSION = 2  # of all others: of a matrix, an area
STEPS = {"qcd": 8}  # of which that template makes multiples; of others it rounds
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
    rank_size: float  # that one rank alone would have

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
                yield f"{path}/{each.folder}/{each.name}.cali", _cali(each, scaling)
        yield f"{path}/results.latest.json", _results(path.replace("/", "-"), experiments)


def _workspaces(measurements: Iterable[Measurement], scaling: str) -> dict[str, list[Experiment]]:
    programs: dict[tuple, list[Profile]] = {}
    placed = list(_placed(measurements))
    label = stats.by_options(placed)
    for profile in profiles(placed):
        one = profile.first
        # One curve has no estimates beside joules that were measured.
        key = (figures.cluster(one), figures.ESTIMATED in profile.energy_source, label(one))
        key += tuple(getattr(one, name) for name in _STUDY)
        programs.setdefault(key, []).append(profile)
    found: dict[str, list[Experiment]] = {}
    for (cluster, is_estimate, told_options, *_), same in programs.items():
        one = same[0].first
        for constant, study in _studies(same, scaling).items():
            what = f"{constant:g}" if scaling == WEAK else constant
            parts = (one.benchmark, f"{one.variant}-threads{one.threads}")
            told = f"-{figures.ESTIMATED}" if is_estimate else ""
            told += f"-{told_options}" if told_options else ""
            parts += (f"{scaling}-{what}{told}", cluster)
            path = _unused("/".join(map(figures.as_file_name, parts)), found)
            found[path] = _experiments(study, constant if scaling == WEAK else None)
    return found


def _studies(found: list[Profile], scaling: str) -> dict[str | int | float, list[Profile]]:
    """By what is the same for all of one."""
    constant = _weak_constant(found) if scaling == WEAK else CONSTANT[scaling]
    studies: dict[str | int | float, list[Profile]] = {}
    for profile in found:
        studies.setdefault(constant(profile.first), []).append(profile)
    return studies


def _weak_constant(found: list[Profile]) -> Callable[[Measurement], float]:
    """The size for one rank, by the fewest ranks of its study: of more ranks it is another one by
    a little, because sizes are rounded, and Benchpark asks for one."""
    dimension, step = _dimension(found[0].first), STEPS.get(found[0].first.benchmark, 1)
    bases: list[tuple[int, int]] = []
    base_of: dict[tuple[int, int], tuple[int, int]] = {}
    for this in sorted({(one.first.ranks, one.first.size) for one in found}):
        base = next((each for each in bases if _is_grown(each, this, dimension, step)), this)
        if base is this:
            bases.append(this)
        base_of[this] = base
    return lambda one: _rank_size(*base_of[one.ranks, one.size], dimension)


def _is_grown(base: tuple[int, int], this: tuple[int, int], dimension: int, step: int) -> bool:
    """Whether the size grew as the ranks did, but for both roundings; both: ranks and size. Of
    multiples the base is none that was rounded."""
    factor = (this[0] / base[0]) ** (1 / dimension)
    if step > 1:
        return this[1] == (base[1] if factor == 1 else round(base[1] * factor / step) * step)
    return abs(base[1] * factor - this[1]) < 0.5 * factor + 0.5


def _rank_size(ranks: int, size: int, dimension: int) -> float:
    return size / ranks ** (1 / dimension)


def _dimension(one: Measurement) -> int:
    return DIMENSIONS.get(one.benchmark, DIMENSION)


def _placed(measurements: Iterable[Measurement]) -> Iterator[Measurement]:
    """Without those of which nobody told on how many nodes they were."""
    for one in measurements:
        if one.nodes:
            yield one
        else:
            what = f"{one.benchmark} {one.kernel} {one.variant} {one.size}, {one.ranks} ranks"
            output.tell([f"{what}: nodes: not told: left out"])


def _experiments(found: list[Profile], rank_size: float | None) -> list[Experiment]:
    """rank_size: of a weak study, else each has its own."""
    named: dict[str, Experiment] = {}
    for profile in found:
        one = profile.first
        counts = (f"nodes{one.nodes}", f"ranks{one.ranks}", f"threads{one.threads}")
        name = _unused(figures.as_file_name(one.benchmark, one.size, *counts), named)
        own_size = _rank_size(one.ranks, one.size, _dimension(one))
        named[name] = Experiment(profile, name, rank_size or own_size)
    return list(named.values())


def _unused(name: str, used: dict) -> str:
    number, free = 1, name
    while free in used:
        number += 1
        free = f"{name}-{number}"
    return free


def _counts(each: Experiment) -> dict[str, float]:
    """By Benchpark's own names."""
    one = each.profile.first
    return {
        "n_nodes": one.nodes,
        "n_resources": one.ranks,
        "total_problem_size": one.size,
        "process_problem_size": each.rank_size,
    }


# -- for Caliper's readers ------------------------------------------------------------------------


def _cali(each: Experiment, scaling: str) -> str:
    one = each.profile.first
    metadata = {
        "version": figures.UNKNOWN,
        **each.profile.metadata(),
        "benchpark_spec": f"[{one.benchmark}+{scaling}{_model(one)}]",
        **_counts(each),
    }
    regions = each.profile.regions({"time_s": TIME})
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
    known = {**each.profile.metadata(), **_counts(each)}
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
