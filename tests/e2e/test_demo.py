"""The whole chain as a user goes it: job template, sbatch, sacct, table and plot."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.cluster import CHECKOUT, Cluster
from tests.e2e.jobs import cooked
from tests.e2e.outcome import Outcome, ended_well

TINY = {
    "stream": {"JM_SIZES": "4096,65536", "JM_MIN_SECONDS": "0.3"},
    "mod2am": {"JM_SIZES": "20,40", "JM_MIN_SECONDS": "0.3"},
}
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def runs(steady: Cluster) -> dict[str, Outcome]:
    """Each template, one a node, at the same time."""
    results = steady.state / "results"
    results.mkdir(exist_ok=True)
    jobs = {
        name: steady.sbatch(
            CHECKOUT / "job-templates" / f"{name}.sbatch",
            env={**knobs, "JOULEMARK_RESULTS": str(results), "JOULEMARK_ENERGY": "summary"},
        )
        for name, knobs in TINY.items()
    }
    return {name: ended_well(steady, job, timeout_s=120) for name, job in jobs.items()}


@pytest.fixture
def results(steady: Cluster, runs: dict[str, Outcome]) -> Path:
    """What they have left."""
    return steady.state / "results"


@pytest.mark.parametrize("name, benchmark", [("stream", "jm-stream"), ("mod2am", "mod2am")])
def test_a_template_leaves_verified_results_with_their_energy(
    steady: Cluster, results: Path, runs: dict[str, Outcome], name: str, benchmark: str
) -> None:
    done = runs[name]
    assert done.sacct_j() > 0
    assert "Energy: " in steady.job_output(done.job).splitlines()[-1]
    lines = cooked(results, f"{benchmark}.{done.job}")
    assert lines
    for line in lines:
        assert line["verified"] and line["estimated"] is False and line["job"] == str(done.job)
        # 100 W, so the energy of one iteration is 100 W times its time
        error_j = line["energy_uncertainty_j"] + 0.02 * line["energy_j"]
        assert abs(line["energy_j"] - 100 * line["time_s"]) <= error_j, line["region"]


@pytest.mark.parametrize("kernel", ["triad", "mod2am"])
def test_a_table_has_the_energy(steady: Cluster, results: Path, kernel: str) -> None:
    text = steady.run(["joulemark", "report", "table", kernel, "--from", results])
    for column in ("Size", "N", "Time", "Power", "Energy", "Perf.", "Eff."):
        assert column in text
    assert "~" not in text  # measured, not estimated
    table = ["joulemark", "report", "table", kernel, "--format", "csv", "--from", results]
    rows = list(csv.DictReader(steady.run(table).splitlines()))
    assert rows and all(float(row["power_w"]) == pytest.approx(100, rel=0.05) for row in rows)


def test_plots_show_performance_and_energy(steady: Cluster, results: Path) -> None:
    folder = steady.jobs_folder / "plots"
    said = steady.run(["joulemark", "report", "plot", "triad", "--from", results, "--out", folder])
    paths = [Path(line) for line in said.splitlines()]
    kinds = {path.name.partition("triad-")[2] for path in paths}
    assert kinds == {"performance.png", "efficiency.png", "energy-efficiency.png"}
    for path in paths:
        assert path.read_bytes().startswith(PNG) and path.stat().st_size > 5000
