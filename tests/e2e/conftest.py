"""Fixtures of the tests of the whole: the cluster with a node power that is known beforehand."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.cluster import Cluster
from tests.e2e.waveform import STEADY, Waveform


@pytest.fixture(scope="module")
def powered(cluster: Cluster) -> Iterator[Callable[..., Cluster]]:
    """`powered(RAMP, idle_w=40)`: every node draws this from here on, until the module ends."""

    def power(waveform: Waveform, **keys: object) -> Cluster:
        instrument = waveform.instrument(cluster.state / "traces", **keys)
        return cluster.change(instruments=[instrument])

    with cluster.changed():
        yield power


@pytest.fixture(scope="module")
def steady(powered: Callable[..., Cluster]) -> Cluster:
    """Every node draws 100 W."""
    return powered(STEADY)
