"""A Debian root as a machine: its own systemd runs it, in namespaces of its own.

    with Booted(root, log_file) as machine:
        machine.must("systemctl restart munge")

It sees no process of the host's, and no network but loopback. Its end is that of a power cut.
"""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.peers.peer import END_S, Peer

COMMAND_LIMIT_S = 300.0
#: of slurm.conf: where Debian's packages keep what runs
SLURM_PLACES = """
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmdSpoolDir=/var/lib/slurm/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/slurmd.log
"""
ENV = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
#: a cgroup of version 2 that is systemd's own, whatever the host's systemd has; $1 the root
BEGIN = """set -e
mount -t cgroup2 cgroup2 "$1/mnt"
mkdir "$1/mnt/$2"
echo $$ >"$1/mnt/$2/cgroup.procs"
umount "$1/mnt"
exec unshare --mount --pid --uts --ipc --net --cgroup --fork --kill-child sh -c "$3" sh "$1"
"""
#: what systemd demands of a container: https://systemd.io/CONTAINER_INTERFACE
BOOT = """set -e
mount --bind "$1" "$1"
cd "$1"
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs dev
for name in null zero full random urandom tty; do
    touch dev/$name
    mount --bind /dev/$name dev/$name
done
mkdir dev/pts
mount -t devpts -o newinstance,ptmxmode=666,gid=5 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
pivot_root . mnt
cd /
systemd="/lib/systemd/systemd --unit=multi-user.target"
exec env -i container=joulemark sh -c "umount -l /mnt; exec $systemd"
"""
END = """set -e
mount -t cgroup2 cgroup2 "$1/mnt"
find "$1/mnt/$2" -depth -type d -exec rmdir {} ';'
"""


class Booted(Peer):
    """`with Booted(root, log_file) as machine:`; systemd's log is in the root's journal."""

    start_s = 180.0

    def __init__(self, root: Path, log_file: Path) -> None:
        self.root, self.log_file = root, log_file
        self.cgroup = f"joulemark-{os.getpid()}-{root.name}"

    def command(self) -> Sequence[object]:
        return ["unshare", "--mount", "sh", "-c", BEGIN, "sh", self.root, self.cgroup, BOOT]

    def ready(self) -> bool:
        return bool(self.first()) and self.done("systemctl is-system-running --wait").stdout in (
            "running\n",
            "degraded\n",
        )

    def first(self) -> str:
        """Its process 1, as the host numbers it; empty: not yet."""
        pid = self.process.pid
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().strip()

    def kill(self, number: int = signal.SIGKILL) -> int | None:
        """All of its processes have ended when process 1 has."""
        if self.alive and self.first():
            os.kill(int(self.first()), signal.SIGKILL)
            self.process.wait(END_S)
        status = super().kill(number)
        words = ["unshare", "--mount", "sh", "-c", END, "sh", self.root, self.cgroup]
        subprocess.run(words, check=True, timeout=END_S)
        return status

    # -- what a test does with it -----------------------------------------------------------------

    def words(self, *command: str) -> list[str]:
        """What runs a command in it, as root."""
        spaces = [f"--{name}" for name in ("mount", "uts", "ipc", "net", "pid", "cgroup")]
        env = [f"{name}={value}" for name, value in ENV.items()]
        return ["nsenter", "--target", self.first(), *spaces, "env", "-i", *env, *command]

    def done(self, command: str) -> subprocess.CompletedProcess[str]:
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        streams["stdin"] = subprocess.DEVNULL
        words = self.words("sh", "-c", command)
        return subprocess.run(words, text=True, timeout=COMMAND_LIMIT_S, **streams)

    def must(self, command: str) -> str:
        ended = self.done(command)
        assert ended.returncode == 0, f"{command}: exit {ended.returncode}\n{ended.stdout[-4000:]}"
        return ended.stdout
