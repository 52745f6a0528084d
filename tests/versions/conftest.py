"""The tests of the whole, with every other Slurm that `tests/slurm-versions` has built."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import pytest

from tests.cluster import Build, cache_folder
from tests.e2e.conftest import powered, steady
from tests.versions.slurm import Slurm, all_built, build_plugins

__all__ = ["powered", "steady"]

MISSING = "no other Slurm is built here: `tests/slurm-versions` builds one (some minutes)"


@pytest.fixture(scope="session", params=all_built() or [None], ids=lambda s: s and s.version)
def other(request: pytest.FixtureRequest) -> Slurm:
    """Another Slurm, and plugins of this checkout for it."""
    if request.param is None:
        pytest.skip(MISSING)
    build_plugins(request.param)
    return request.param


@pytest.fixture(scope="session")
def machines_build() -> Build:
    """What environments/build made for the machine's own Slurm."""
    return Build.load(cache_folder())


@pytest.fixture(scope="session")
def build(other: Slurm, machines_build: Build) -> Build:
    """Takes the place of tests/conftest.py's: the cluster is one of the other Slurm."""
    return other.build_for(machines_build)
