"""Each example site: all of Joulemark takes its compiler, MPI, BLAS and target. On Debian what is
built of Spack's own recipes is what the pinned Spack says, in each environment."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import json
import shutil

import pytest

from tests.cluster import cache_folder
from tests.spack.sites import (
    COMPUTE,
    LOGIN,
    SITES,
    concretized,
    environments,
    must_be_as_told,
)
from tests.targets import backends

__all__ = ["environments"]


@pytest.mark.parametrize("name", SITES)
def test_an_example_site_concretizes(name, environments):
    site = SITES[name]
    specs = concretized(site, name, environments, site.environment)
    must_be_as_told(specs, site, *COMPUTE, *LOGIN)
    built = [spec for spec in specs.values() if "external" not in spec]
    mpis = [spec["parameters"] for spec in built if spec["name"] == "openmpi"]
    assert all("slurm" in mpi["schedulers"] for mpi in mpis), mpis  # srun starts their ranks


@pytest.mark.parametrize("environment", ["opencl", "dsp-c66x", "tools"])
def test_nothing_else_is_left_to_lock(environment, environments):
    """As of x86_64, which tests/spack looks at."""
    debian = "sites/debian/detected.yaml"
    shutil.copy(cache_folder() / "environments" / debian, environments / debian)
    here = environments / environment
    backends.must(cache_folder() / "bin/spack", "-e", here, "concretize", "-f")
    specs = json.loads((here / "spack.lock").read_text())["concrete_specs"].values()
    built = [spec for spec in specs if "external" not in spec]
    theirs = {spec["name"] for spec in built if spec["namespace"] == "builtin"}
    assert theirs == {"compiler-wrapper", "gcc-runtime"}
