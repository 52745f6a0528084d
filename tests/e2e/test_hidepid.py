"""A site whose /proc hides users from one another: what joulemarkd sees there, and says."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import grp
import os
import subprocess
from collections.abc import Iterator

import pytest

from tests.cluster import ORDINARY_USER, Cluster, Node, pause, wait_for
from tests.e2e.jobs import alone, held
from tests.e2e.outcome import (
    assert_books_balance,
    assert_whole,
    ended_well,
    joulemarkctl,
    outcome,
)
from tests.e2e.test_doctor import examine, found

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")

GROUP = "daemon"
LONGER_THAN_ORPHANS_S = 6.5


@contextlib.contextmanager
def own_proc(node: Node, options: str, group: str | None = None) -> Iterator[Node]:
    """The node's daemon with a /proc of its own, and in one more group."""
    daemon = node.daemon
    before = daemon.command, daemon.user
    groups = f"--groups={grp.getgrnam(group).gr_gid}" if group else "--clear-groups"
    run = [groups if word == "--clear-groups" else word for word in daemon.as_user()]
    mount = f'mount -t proc -o {options} proc /proc && exec "$@"'
    daemon.command = ["unshare", "--mount", "sh", "-c", mount, "sh", *run, *daemon.command]
    daemon.user = None
    daemon.restart()
    try:
        yield node
    finally:
        daemon.command, daemon.user = before
        daemon.restart()


def remount(node: Node, options: str) -> None:
    """In its root, too: that of its mounts may be another."""
    words = ["nsenter", "--mount", "--root", f"--target={node.daemon.pid}"]
    subprocess.run([*words, "mount", "-o", f"remount,{options}", "/proc"], check=True)


def wait_blind(node: Node, blind: int) -> None:
    status = [joulemarkctl(node.cluster), "-N", node.name, "status"]
    wait_for(lambda: f"blind: {blind}\n" in node.cluster.run(status), what=f"blind: {blind}")


def test_hidden_processes_are_said_and_nothing_is_charged(steady: Cluster) -> None:
    said = steady.node("n1").daemon.news()
    with own_proc(steady.node("n1"), "hidepid=2") as node:
        wait_blind(node, 1)
        done = outcome(steady, alone(steady, "sleep 0.5"))
        assert done.records["n1"]["missing"]
        assert "no job is charged whose slurmstepd is another user's" in said()
        assert "is%20not%20seen:%20/proc%20hides%20it" in said()  # as the packet has it
        (finding,) = found(examine(steady, "--node", "n1"), "daemon", "hidepid=")
        assert (finding["level"], finding["where"]) == ("error", "/proc")
    assert_books_balance(steady)


def test_the_group_of_its_gid_option_sees_them(steady: Cluster) -> None:
    options = f"hidepid=2,gid={grp.getgrnam(GROUP).gr_gid}"
    with own_proc(steady.node("n1"), options, GROUP) as node:
        wait_blind(node, 0)
        mark = f"{joulemarkctl(steady)} region inner -- sleep 0.6"
        done = ended_well(steady, alone(steady, f"srun {mark}", user=ORDINARY_USER))
        assert_whole(done, "0", "job", within_j=1e-4)
        (region,) = done.accounts("0")["n1"]["regions"]
        assert region["name"] == "inner" and region["seconds"] > 0.6
        assert not found(examine(steady, "--node", "n1"), "daemon", "hidepid=")
    assert_books_balance(steady)


def test_a_job_whose_processes_are_hidden_meanwhile_stays_open(steady: Cluster) -> None:
    with own_proc(steady.node("n1"), "hidepid=0") as node:
        with held(steady) as job:
            remount(node, "hidepid=2")
            wait_blind(node, 1)
            pause(LONGER_THAN_ORPHANS_S)
            remount(node, "hidepid=0")
            wait_blind(node, 0)
        done = ended_well(steady, job)
        assert_whole(done, within_j=1e-4)
    assert_books_balance(steady)
