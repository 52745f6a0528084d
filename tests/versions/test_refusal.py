"""Slurm refuses a plugin that was built for another release of it, at once, with a fatal error."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster import Build, Cluster, ClusterError, Service, state_folder, wait_for
from tests.versions.slurm import Slurm

REFUSED = "Incompatible Slurm plugin"


@pytest.fixture(params=["own plugin, other Slurm", "other plugin, own Slurm"])
def mixed(
    request: pytest.FixtureRequest, other: Slurm, machines_build: Build
) -> Iterator[Cluster]:
    """A cluster whose plugins were built for another Slurm than the one that runs."""
    if request.param == "own plugin, other Slurm":
        build = Build(machines_build.slurm_prefix, slurm_root=other.prefix)
    else:
        build = Build(other.plugins)
    cluster = Cluster(state_folder() / "mixed", nodes=1, build=build)
    cluster.remove()
    yield cluster
    cluster.remove()


def assert_refuses(service: Service) -> None:
    service.launch()
    # a later controller opens its port before it loads its plugins: that it answers says nothing
    wait_for(lambda: not service.alive, what=f"{service.name} to refuse the plugin and end")
    said = service.log_text()
    assert REFUSED in said and "acct_gather_energy_joulemark.so" in said
    assert "fatal: " in said


def test_a_plugin_of_another_slurm_is_refused(mixed: Cluster) -> None:
    """By the controller, so the cluster does not come up; and by a node, asked by itself."""
    either = r"(slurmctld|slurmd-n1) ended right after its start"  # the scheduler's choice
    with pytest.raises(ClusterError, match=either):
        mixed.up()
    mixed.munged.start()
    assert_refuses(mixed.slurmctld)
    assert_refuses(mixed.node("n1").slurmd)
