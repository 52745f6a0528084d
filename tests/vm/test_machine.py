"""The machine itself: Debian's kernel with systemd, and what this one's kernel has not."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster import ClusterError
from tests.vm import Machine


def test_it_is_whole_and_as_asked_for(tmp_path: Path) -> None:
    with Machine(tmp_path, topology="sockets=2,cores=1,threads=2", nodes=2) as machine:
        assert machine.run("ps -p 1 -o comm=").strip() == "systemd"
        assert machine.run("systemctl is-system-running --wait").strip() == "running"
        assert machine.run("stat -fc %T /sys/fs/cgroup").strip() == "cgroup2fs"
        cpus = [line.split(",") for line in machine.run("lscpu -p=CPU,CORE,SOCKET,NODE").split()]
        rows = [row for row in cpus if row[0].isdigit()]
        assert [row[1:] for row in rows] == [list(c) for c in ("000", "000", "111", "111")]


def test_what_fails_in_it_is_an_error_that_says_why(tmp_path: Path) -> None:
    with Machine(tmp_path) as machine:
        with pytest.raises(ClusterError, match=r"exit 3: no\n"):
            machine.run("echo no >&2; exit 3")
        machine.write("/root/kept", "on the disk\n")
        machine.run("sync; echo 'not yet' >/root/lost")
        machine.cut_power()
        assert machine.run("cat /root/kept") == "on the disk\n"
        assert "not yet" not in machine.ssh("cat /root/lost").stdout
    assert "login:" in machine.log()
