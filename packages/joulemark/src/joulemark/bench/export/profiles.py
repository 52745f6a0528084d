# Runs as profiles of Caliper: a tree of a benchmark's kernels, and metadata by Adiak's names.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from joulemark import __version__
from joulemark.bench.cooked import Measurement
from joulemark.bench.export import cali, figures

# What all kernels of a profile have in common.
_KEY = ("benchmark", "variant", "size", "threads", "ranks", "nodes", "target", "cpu", "device")
_KEY += ("job", "node", "unit", "manifest", "options")


@dataclass(frozen=True)
class Profile:
    """One run of one problem: each kernel's."""

    runs: tuple[Measurement, ...]

    @property
    def first(self) -> Measurement:
        """What it has in common with the others."""
        return self.runs[0]

    @property
    def energy_source(self) -> str:
        """`measured`, `estimated`, or both where kernels differ; empty: no energy is known."""
        return ", ".join(sorted({*map(figures.energy_source, self.runs)} - {""}))

    def metadata(self) -> dict[str, cali.Value]:
        """Of what is known."""
        one = self.first
        operation = one.unit.partition("/")[0]
        found = {
            "application_name": one.benchmark,
            "variant": one.variant,
            "problem_size": one.size,
            "threads": one.threads,
            "jobsize": one.ranks,
            "numhosts": one.nodes,
            "hostname": one.node,
            "cluster": figures.cluster(one),
            "target": one.target,
            "cpu": one.cpu,
            "device": one.device,
            "jobid": one.job,
            "launchdate": int(figures.first_start_s(self.runs)),
            "performance_unit": one.unit,
            "efficiency_unit": f"{operation}/J",
            "energy_source": self.energy_source,
            **figures.manifest(one),
            "joulemark_version": __version__,
        }
        return {key: value for key, value in found.items() if value not in ("", 0)}

    def regions(self, names: Mapping[str, str]) -> dict[cali.Path, dict[str, cali.Value]]:
        """The benchmark, of which itself nothing was measured, and its kernels; a kernel that is
        called as its benchmark is this one's root. names: of figures, where another is usual."""
        found: dict[cali.Path, dict[str, cali.Value]] = {(self.first.benchmark,): {}}
        for one in self.runs:
            known = {names.get(each.name, each.name): each.value for each in figures.figures(one)}
            if figures.energy_source(one):
                known["estimated"] = int(one.estimated)
            path = tuple(dict.fromkeys((one.benchmark, one.kernel)))
            found[path] = {**known, "verified": int(one.verified)}
        return found


def profiles(measurements: Iterable[Measurement]) -> list[Profile]:
    """In the order of their first kernel; a kernel that ran again begins a new one."""
    found: list[list[Measurement]] = []
    open_ones: dict[tuple, list[Measurement]] = {}
    for one in measurements:
        key = tuple(getattr(one, name) for name in _KEY)
        runs = open_ones.get(key)
        if runs is None or any(other.kernel == one.kernel for other in runs):
            open_ones[key] = runs = []
            found.append(runs)
        runs.append(one)
    return [Profile(tuple(runs)) for runs in found]
