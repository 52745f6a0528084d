"""One machine: it boots, commands run in it, files go into it, its power can be cut."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import shlex
import socket
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.cluster import ClusterError, Waited, wait_for
from tests.cluster.ports import free_port
from tests.peers.peer import Peer
from tests.vm.image import Image, image

BOOT_LIMIT_S = 300.0  # a minute on a machine that does nothing else
COMMAND_LIMIT_S = 120.0
SSH_FAILED = 255
#: with AMD's name QEMU would give its threads no cores to share
CPU = "max,vendor=GenuineIntel"


class Machine(Peer):
    """`with Machine(folder) as machine: machine.run("uname -r")`; its console's log lies there.

    topology: QEMU's -smp, as "sockets=2,cores=2,threads=2"; nodes: NUMA nodes, each with a part
    of the CPUs and of the memory; devices: QEMU's -device, as a BMC.
    """

    start_s = BOOT_LIMIT_S

    def __init__(
        self,
        folder: Path,
        topology: str = "2",
        nodes: int = 1,
        devices: Sequence[str] = (),
        memory_mb: int = 2048,
    ) -> None:
        self.image: Image = image()
        self.topology, self.nodes, self.devices = topology, nodes, devices
        self.memory_mb = memory_mb
        self.port = free_port()
        self.log_file, self.monitor = folder / "console.log", folder / "monitor"

    def command(self) -> Sequence[object]:
        network = f"user,model=virtio,restrict=on,hostfwd=tcp:127.0.0.1:{self.port}-:22"
        return [
            *("qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", CPU),
            *("-smp", self.topology, "-m", self.memory_mb, *self._numa()),
            *("-kernel", self.image.kernel, "-initrd", self.image.initrd),
            # on a busy host its timer's test comes too late, and it would panic
            *("-append", "root=/dev/vda rw console=ttyS0 no_timer_check"),
            *("-drive", f"file={self.image.disk},if=virtio,format=raw,snapshot=on"),
            *("-nic", network, "-display", "none", "-serial", "stdio"),
            *("-monitor", f"unix:{self.monitor},server=on,wait=off"),
            *(word for device in self.devices for word in ("-device", device)),
        ]

    def _numa(self) -> list[object]:
        words: list[object] = []
        for number in range(self.nodes if self.nodes > 1 else 0):
            size = f"{self.memory_mb // self.nodes}M"
            words += ["-object", f"memory-backend-ram,id=memory{number},size={size}"]
            words += ["-numa", f"node,nodeid={number},memdev=memory{number}"]
        return words

    def ready(self) -> bool:
        return self.ssh("true").returncode == 0

    # -- what a test does with it -----------------------------------------------------------------

    def run(self, command: str, input: str | None = None, limit_s: float = COMMAND_LIMIT_S) -> str:
        """What a shell command of root's prints; raises ClusterError where it fails."""
        done = self.ssh(command, input, limit_s)
        if done.returncode:
            text = f"{done.stdout}{done.stderr}"[-2000:]
            raise ClusterError(f"in the machine: {command}: exit {done.returncode}: {text}")
        return done.stdout

    def ssh(
        self, command: str, input: str | None = None, limit_s: float = COMMAND_LIMIT_S
    ) -> subprocess.CompletedProcess[str]:
        """As run(), but any exit status is an answer; 255: the machine did not let us in."""
        words = [*self._ssh(), command]
        stdin = {"stdin": subprocess.DEVNULL} if input is None else {"input": input}
        return subprocess.run(words, capture_output=True, text=True, timeout=limit_s, **stdin)

    def _ssh(self) -> list[str]:
        options = {
            "BatchMode": "yes",
            "StrictHostKeyChecking": "no",
            "UserKnownHostsFile": "/dev/null",
            "LogLevel": "ERROR",
            "ConnectTimeout": "10",
        }
        chosen = [f"-o{name}={value}" for name, value in options.items()]
        where = ["-i", str(self.image.key), "-p", str(self.port), "root@127.0.0.1"]
        return ["ssh", "-F", "none", *chosen, *where]

    def put(self, *paths: Path) -> None:
        """Copies files and folders to where they are here, as root's."""
        names = [str(path.relative_to("/")) for path in paths]
        words = ["tar", "-C", "/", "--owner=root", "--group=root", "-c", *names]
        with subprocess.Popen(words, stdout=subprocess.PIPE) as packed:
            into = [*self._ssh(), "tar -C / -x"]
            subprocess.run(into, stdin=packed.stdout, check=True, timeout=COMMAND_LIMIT_S)
        if packed.returncode:
            raise ClusterError(f"{shlex.join(words)}: exit {packed.returncode}")

    def write(self, path: str, text: str, mode: str = "644") -> None:
        self.run(f"install -D -m {mode} /dev/stdin {shlex.quote(path)}", input=text)

    # -- how it ends, and begins again ------------------------------------------------------------

    def reboot(self, command: str = "systemctl reboot") -> None:
        """As an administrator does."""
        self._begin_again(lambda: self.ssh(command))

    def cut_power(self) -> None:
        """What was not on its disk is lost."""
        self._begin_again(lambda: self._tell("system_reset"))

    def _begin_again(self, end: Callable[[], object]) -> None:
        before = self._boot()
        end()
        try:
            wait_for(lambda: self._boot() not in ("", before), BOOT_LIMIT_S, "another boot", 0.5)
        except Waited as late:
            raise Waited(f"{late}; console: {self.log()[-2000:]}") from None

    def _boot(self) -> str:
        return self.ssh("cat /proc/sys/kernel/random/boot_id").stdout

    def _tell(self, command: str) -> None:
        """QEMU itself; it answers with its prompt."""
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(COMMAND_LIMIT_S)
            line.connect(str(self.monitor))
            for words in ("", f"{command}\n"):
                line.sendall(words.encode())
                while not line.recv(4096).endswith(b"(qemu) "):
                    continue
