"""Every job template as a user submits it, on a small case: verified results with their energy."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import os
import shutil

import pytest

from tests.cluster import CHECKOUT, Cluster
from tests.e2e.jobs import cooked
from tests.e2e.outcome import ended_well

TEMPLATES = sorted(path.stem for path in CHECKOUT.glob("job-templates/*.sbatch"))
#: a small case, where the knobs that most templates have are not enough
SMALL = {"JM_MIN_SECONDS": "0.1", "JM_MAX_SECONDS": "20"}
KNOBS = {
    "dhrystone": {"JM_SIZES": "10000"},
    "hpl": {"JM_N": "500", "JM_NB": "64", "JM_HPL": "hpcc"},
    "hydro": {"JM_SIZES": "60"},
    "jm-linpack": {"JM_SIZES": "200"},
    "mod2am": {"JM_SIZES": "40"},
    "mod2as": {"JM_SIZES": "500"},
    "mod2f": {"JM_SIZES": "1024"},
    "qcd": {"JM_SIZES": "4"},
    "scaling": {"JM_BENCHMARK": "hydro", "JM_SIZE": "60", "JM_RANKS_PER_NODE": "1"},
    "stream": {"JM_SIZES": "65536"},
    "thermal": {"JM_SIZES": "512", "JM_SECONDS": "2"},
    "triad": {"JM_SIZES": "4096"},
}
OPTIONS = {"scaling": ["--nodes=2"]}


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_runs(steady: Cluster, name: str) -> None:
    results = steady.state / "templates" / name
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)
    job = steady.sbatch(
        *OPTIONS.get(name, []),
        CHECKOUT / "job-templates" / f"{name}.sbatch",
        env={
            **SMALL,
            **KNOBS.get(name, {}),
            "JOULEMARK_RESULTS": str(results),
            "OMPI_ALLOW_RUN_AS_ROOT": str(int(os.geteuid() == 0)),
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": str(int(os.geteuid() == 0)),
        },
    )
    done = ended_well(steady, job, timeout_s=300)
    lines = cooked(results)
    assert lines, list(results.iterdir())
    release = steady.run(["sinfo", "-V"]).split()[1]
    for line in lines:
        assert line["verified"] and line["job"] == str(job), line
        assert line["energy_j"] > 0 and line["estimated"] is False
        manifest = line["manifest"]
        assert manifest["slurm"] == release and line["node"] in ("n1", "n2"), line
        assert manifest["instruments"] == "replay/node", manifest  # the tests' trace of power
    assert done.sacct_j() > 0
