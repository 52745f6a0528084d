"""Each example site: all of Joulemark takes its compiler, MPI, BLAS and target. On Debian what is
built of Spack's own recipes is what the pinned Spack says, in each environment."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import shutil

import pytest

from tests.cluster import cache_folder
from tests.spack.sites import (
    COMPUTE,
    LEFT_TO_LOCK,
    LOGIN,
    SITES,
    built_in,
    concretized,
    environments,
    left_to_lock,
    locked,
    must_be_as_told,
    spack_at,
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


def test_without_a_site_spack_takes_what_it_finds_and_builds_the_rest(environments):
    """Off Debian: a compiler is found, the environment's choices hold."""
    spack_at(SITES["hercules"].login, "", environments)("x86_64", "concretize", "-f")
    specs, built = locked(environments / "x86_64"), built_in(environments / "x86_64")
    assert {spec["name"] for spec in specs if "external" in spec} == {"gcc", "glibc"}
    assert built.keys() >= {"joulemark-slurm", "slurm", "openmpi", "openblas", "python"}
    assert built["openmpi"]["parameters"]["schedulers"] == ["slurm"]


TOOLKIT = "packages: {cuda: {externals: [{spec: cuda@12.8.1, prefix: /usr/local/cuda}]}}\n"


@pytest.mark.parametrize("environment", ["cuda", "opencl", "dsp-c66x", "tools"])
def test_nothing_else_is_left_to_lock(environment, environments):
    """As of x86_64 and ARM, which tests/spack and tests/targets look at."""
    debian = "sites/debian/detected.yaml"
    shutil.copy(cache_folder() / "environments" / debian, environments / debian)
    here = environments / environment
    (environments / "packages.yaml").write_text(TOOLKIT)  # of a site that has CUDA
    scope = ("-C", environments, "-e", here)
    backends.must(cache_folder() / "bin/spack", *scope, "concretize", "-f")
    assert left_to_lock(here) == LEFT_TO_LOCK
