"""What the tests of the whole share: one real cluster a session, and an honest count of skips."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import collections
import os
from collections.abc import Callable, Iterator

import pytest

from tests.cluster import Build, Cluster, cache_folder, state_folder, stop_on_signals


def pytest_configure() -> None:
    stop_on_signals()


@pytest.fixture(scope="session")
def build() -> Build:
    """What environments/build made: `make test` ran it before."""
    return Build.load(cache_folder())


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


@pytest.fixture(scope="module")
def cluster_with(cluster: Cluster) -> Iterator[Callable[..., Cluster]]:
    """`cluster_with(contain=False, instruments=[...])`: other options until the module ends."""
    with cluster.changed():
        yield cluster.change


@pytest.fixture(autouse=True)
def _healthy_cluster(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test finds the cluster whole and empty, whatever the one before killed or left running."""
    if "cluster" not in request.fixturenames:
        yield
        return
    cluster = request.getfixturevalue("cluster")
    cluster.up()
    yield
    cluster.end_jobs()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """`SKIPPED n: reason`, so that no skip hides in a dot."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = collections.Counter(
        report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        for report in skipped
    )
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"SKIPPED {count}: {reason.removeprefix('Skipped: ')}")
