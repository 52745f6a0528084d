"""Each example site: all of Joulemark takes its compiler, MPI, BLAS and target."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import pytest

from tests.spack.sites import (
    COMPUTE,
    LOGIN,
    SITES,
    concretized,
    environments,
    must_be_as_told,
)

__all__ = ["environments"]


@pytest.mark.parametrize("name", SITES)
def test_an_example_site_concretizes(name, environments):
    site = SITES[name]
    specs = concretized(site, name, environments, site.environment)
    must_be_as_told(specs, site, *COMPUTE, *LOGIN)
    built = [spec for spec in specs.values() if "external" not in spec]
    mpis = [spec["parameters"] for spec in built if spec["name"] == "openmpi"]
    assert all("slurm" in mpi["schedulers"] for mpi in mpis), mpis  # srun starts their ranks
