"""What a test leaves in the cluster: named, so that no later one fails by it, and put right."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import signal
import sqlite3
import subprocess
from collections.abc import Iterable
from pathlib import Path

from tests.cluster import Cluster, ClusterError, Node, Service, Waited, processes, wait_for
from tests.cluster.service import leftovers
from tests.e2e.outcome import open_accounts
from tests.peers.joulemarkd import ask

PATIENCE_S = 45.0  # a job whose record is missing is merged after 30 s


def left_behind(cluster: Cluster, patience_s: float = PATIENCE_S) -> list[str]:
    """All there is, a line each, after some patience with what ends by itself; then it is gone."""
    found = paused(cluster)
    cluster.end_jobs()
    if not all(service.alive for service in cluster.services):
        with contextlib.suppress(ClusterError):
            cluster.up()  # the dead are nothing to complain of, but they have to bring records
    found += what_stays(cluster, patience_s)
    if found:
        put_right(cluster, patience_s)
    return found


def what_stays(cluster: Cluster, patience_s: float) -> list[str]:
    """By the last look: one more, after a look that found nothing, may see what passes by."""
    looks: list[list[str]] = []

    def nothing() -> bool:
        looks.append(remains(cluster))
        return not looks[-1]

    with contextlib.suppress(Waited):
        wait_for(nothing, patience_s, poll_s=0.1)
    return looks[-1]


def remains(cluster: Cluster) -> list[str]:
    nodes = list(cluster.nodes.values()) if cluster.options.build else []
    return [
        *(
            f"{node.name}: open account of job {job}, {step}"
            for node, job, step in accounts(nodes)
        ),
        *(f"file in the outbox: {path}" for path in waiting(cluster)),
        *(f"job that is not merged: {path}" for path in cluster.notices()),
        *(f"mount: {path}" for path in mounts(cluster)),
        *(f"process {pid}: {' '.join(processes.command(pid))}" for pid in strays(cluster)),
    ]


def accounts(nodes: Iterable[Node]) -> list[tuple[Node, int, str]]:
    found = []
    for node in nodes:
        with contextlib.suppress(sqlite3.Error):  # another test has its ledger elsewhere
            found += [(node, job, step) for job, step in open_accounts(node)]
    return found


def waiting(cluster: Cluster) -> list[Path]:
    """Records and profiles that nobody has brought to where they go."""
    boxes = [node.ledger / "outbox" for node in cluster.nodes.values()]
    boxes += [Path(f"{node.socket}.outbox") for node in cluster.nodes.values()]
    return sorted(path for box in boxes for path in box.rglob("[!.]*.json*") if path.is_file())


def mounts(cluster: Cluster) -> list[str]:
    points = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    return [point for point in points if point.startswith(f"{cluster.state}/")]


def strays(cluster: Cluster) -> list[int]:
    """Of jobs that have ended; services and what they have started are none."""
    services = {service.pid for service in cluster.services if service.pid}
    found = leftovers(cluster.state, cluster.slurm_conf, but=services)
    return sorted(set(found).difference(cluster.merging()))


def paused(cluster: Cluster) -> list[str]:
    """Services that a test has stopped; they go on."""
    found = [service for service in cluster.services if is_stopped(service)]
    for service in found:
        service.kill(signal.SIGCONT)
    return [f"{service.name} is stopped" for service in found]


def is_stopped(service: Service) -> bool:
    return processes.state(service.pid) == "T"


def put_right(cluster: Cluster, patience_s: float) -> None:
    """So that the next test finds nothing of it."""
    for pid in strays(cluster):
        processes.send(pid)
    for point in mounts(cluster):
        subprocess.run(["umount", "--lazy", point], check=False)
    for node, job, _ in accounts(cluster.nodes.values()):
        ask(node.socket, f"end job={job}")
    with contextlib.suppress(Waited):
        wait_for(lambda: not remains(cluster), patience_s, poll_s=0.1)
    for path in [*waiting(cluster), *cluster.notices()]:
        path.unlink(missing_ok=True)
