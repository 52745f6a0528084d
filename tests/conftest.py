"""What the tests of the whole share: one real cluster a session."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import Build, Cluster, cache_folder, state_folder, stop_on_signals
from tests.cluster.config import Options
from tests.left_behind import left_behind
from tests.peers.glusterfs import Brick
from tests.peers.joulemarkd import program
from tests.peers.mosquitto import Broker


def pytest_configure() -> None:
    stop_on_signals()


@pytest.fixture(scope="session")
def build() -> Build:
    """What environments/build made: `make test` ran it before."""
    return Build.load(cache_folder())


@pytest.fixture(scope="session")
def joulemarkd() -> Path:
    return program()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    """One that lets everybody in; files have others of their own."""
    with Broker(tmp_path / "mosquitto") as started:
        yield started


@pytest.fixture
def bricks(tmp_path: Path) -> Iterator[list[Brick]]:
    """Two servers of a GlusterFS."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Brick(tmp_path, f"brick{number}")) for number in (1, 2)]


@pytest.fixture(scope="session")
def cluster(build: Build) -> Iterator[Cluster]:
    """Two nodes with Joulemark, fresh for the session; its logs stay for reading."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    folder = f"test-{worker}" if worker else "test"
    cluster = Cluster(state_folder() / folder, name="test", build=build)
    try:
        cluster.remove()
        yield cluster.up()
    finally:
        cluster.down()


# These change the cluster until their module ends.
CHANGING = {"beside", "powered", "steady"}


@pytest.fixture(autouse=True)
def _healthy_cluster(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test finds the cluster whole and empty, and fails by what it leaves there itself.

    What died is no fault: many tests kill. What stays open, waits, is mounted, runs or is
    configured otherwise would make later ones fail with figures that look like their own faults.
    """
    if "cluster" not in request.fixturenames:
        yield
        return
    cluster = request.getfixturevalue("cluster")
    cluster.up()
    before = cluster.options
    yield
    left = left_behind(cluster)
    if cluster.options != before and not CHANGING & set(request.fixturenames):
        left.append(f"changed options: {_changed(before, cluster.options)}")
        cluster.change(**vars(before))
    if left:
        pytest.fail("the test left behind:\n" + "\n".join(left), pytrace=False)


def _changed(before: Options, after: Options) -> str:
    names = [field.name for field in dataclasses.fields(before)]
    return ", ".join(
        f"{n}={getattr(after, n)}" for n in names if getattr(before, n) != getattr(after, n)
    )
