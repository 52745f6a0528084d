"""Profiles of jobs as Joulemark leaves them: HDF5, a group a node and channel."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import h5py

from tests.cluster import Cluster, wait_for


def wait_profile(cluster: Cluster, job: int, nodes: int = 1) -> Path:
    """The job's file, once so many nodes are in it."""
    path = cluster.state / "profiles" / f"{cluster.options.name}.{job}.h5"

    def complete() -> bool:
        if not path.exists():
            return False
        with h5py.File(path) as file:
            return len(file["nodes"]) == nodes

    wait_for(complete, what=f"{path} to be complete")
    return path


def channel_of(node: h5py.Group) -> h5py.Group:
    """The only channel that the node has."""
    (channel,) = [group for name, group in node.items() if name != "marks"]
    return channel


@contextlib.contextmanager
def the_channel(path: Path) -> Iterator[h5py.Group]:
    """Of a file with one node and one channel."""
    with h5py.File(path) as file:
        (node,) = file["nodes"].values()
        yield channel_of(node)
