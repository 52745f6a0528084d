# `joulemark export prometheus`: the store's sums as text for node_exporter's textfile collector.
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""All are gauges, what the books say now: a refund, a late record or a name that comes later makes
a sum smaller, and Prometheus takes a counter that falls for one that began again at 0."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Callable

from joulemark.accounting.bynode import Node
from joulemark.accounting.usage import Group, group
from joulemark.store.sums import Use
from joulemark.units import UJ_PER_J

BY = ["cluster", "user", "account", "partition"]


@dataclass(frozen=True)
class Metric:
    """One family, of groups or nodes; a `value` that is not known is None, and has no sample."""

    name: str
    help: str
    value: Callable[[Any], float | dict[str, float] | None]
    label: str = ""  # of a family that has several samples of a group, by this label's values


SUMS = ("energy", "overhead", "storage", "work", "carbon", "cost")
METRICS = (
    Metric("jobs", "Ended runs of jobs with a record.", lambda g: g.jobs),
    Metric(
        "energy_joules",
        "Energy that ended jobs are charged.",
        lambda g: None if g.energy_uj is None else g.energy_uj / UJ_PER_J,
    ),
    Metric(
        "energy_uncertainty_joules",
        "Uncertainty of joulemark_energy_joules: plus or minus, k=2.",
        lambda g: None if g.energy_uj is None else g.energy_error_j,
    ),
    Metric(
        "overhead_joules",
        "Ended jobs' part of shared channels, such as cooling; not in the energy.",
        lambda g: g.overhead_j,
    ),
    Metric(
        "storage_joules",
        "Ended jobs' part of file servers' work, above what those draw idle; not in the energy.",
        lambda g: g.storage_j,
    ),
    Metric(
        "storage_bytes",
        "What ended jobs read and wrote at file servers, as those counted it.",
        lambda g: {"read": g.read_bytes, "write": g.written_bytes} if g.work_jobs else {},
        label="direction",
    ),
    Metric(
        "storage_metadata_operations",
        "Operations on names and attributes that ended jobs asked of file servers.",
        lambda g: g.metadata_ops,
    ),
    Metric(
        "carbon_grams",
        "CO2 equivalent of the energy, by the site's factor.",
        lambda g: g.carbon_g,
    ),
    Metric(
        "cost",
        "Price of the energy, by currency.",
        lambda g: {currency: cost.value for currency, cost in g.costs.items()},
        label="currency",
    ),
    Metric(
        "cost_jobs",
        "Of joulemark_jobs those that joulemark_cost is of, by currency.",
        lambda g: {currency: cost.jobs for currency, cost in g.costs.items()},
        label="currency",
    ),
    Metric(
        "covered_jobs",
        "Of joulemark_jobs those that a sum, such as the cost, is of.",
        lambda g: {name: jobs for name in SUMS if (jobs := getattr(g, f"{name}_jobs"))},
        label="sum",
    ),
    Metric(
        "estimated_jobs",
        "Runs of jobs of whose energy a model estimated some or all.",
        lambda g: g.estimated_jobs,
    ),
    Metric(
        "incomplete_jobs",
        "Runs of jobs that lack a node's record.",
        lambda g: g.incomplete_jobs,
    ),
)


NODE_METRICS = (
    Metric("node_jobs", "Ended runs of jobs there.", lambda n: n.group.jobs),
    Metric(
        "node_energy_joules",
        "Energy that ended jobs used on the node.",
        lambda n: n.group.energy_j,
    ),
    Metric(
        "node_energy_uncertainty_joules",
        "Uncertainty of joulemark_node_energy_joules: plus or minus, k=2.",
        lambda n: None if n.group.energy_j is None else n.group.energy_error_j,
    ),
    Metric(
        "node_job_seconds",
        "Time of those jobs whose energy is known; two at once have two seconds in a second.",
        lambda n: n.seconds,
    ),
    Metric(
        "node_covered_jobs",
        "Of joulemark_node_jobs those whose energy is known; energy and time are of these.",
        lambda n: n.group.energy_jobs,
    ),
)


def lines(uses: Iterable[Use], nodes: Iterable[Node]) -> Iterator[str]:
    """The text format, version 0.0.4; families whole, one sample a group that knows the value."""
    yield from _families(METRICS, group(uses, BY))
    yield from _families(NODE_METRICS, nodes)


def _families(metrics: Iterable[Metric], groups: Iterable) -> Iterator[str]:
    groups = sorted(groups, key=lambda one: list(one.keys.values()))
    for metric in metrics:
        samples = [line for one in groups for line in _samples(metric, one)]
        if samples:
            yield f"# HELP joulemark_{metric.name} {metric.help}\n"
            yield f"# TYPE joulemark_{metric.name} gauge\n"
            yield from samples


def _samples(metric: Metric, one: Group | Node) -> Iterator[str]:
    value = metric.value(one)
    if metric.label:
        for name, part in value.items():
            yield _sample(metric, {**one.keys, metric.label: name}, part)
    elif value is not None:
        yield _sample(metric, one.keys, value)


def _sample(metric: Metric, labels: dict[str, str], value: float) -> str:
    text = ",".join(f'{name}="{_escaped(one)}"' for name, one in labels.items())
    return f"joulemark_{metric.name}{{{text}}} {value!r}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
