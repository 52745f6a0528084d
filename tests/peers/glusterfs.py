"""A real GlusterFS of two servers, and clients that mount it, without its management daemon."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import os
import socket
import subprocess
import uuid
from pathlib import Path

from tests.cluster import wait_for
from tests.cluster.ports import free_port
from tests.peers.peer import Peer

VOLUME = "demo"
BRICK = """\
volume disk
  type storage/posix
  option directory {folder}
  option volume-id {id}
end-volume
{fault}
volume /{name}
  type features/locks
  subvolumes {below}
end-volume
volume server
  type protocol/server
  option transport-type socket
  option transport.socket.bind-address 127.0.0.1
  option transport.socket.listen-port {port}
  option auth.addr./{name}.allow 127.0.0.1
  subvolumes /{name}
end-volume
"""
FAULT = """\
volume fault
  type debug/{kind}
{options}  subvolumes disk
end-volume
"""
REMOTE = """\
volume {name}
  type protocol/client
  option transport-type socket
  option remote-host 127.0.0.1
  option remote-port {port}
  option remote-subvolume /{name}
end-volume
"""
CLIENT = """\
volume spread
  type cluster/distribute
  subvolumes {names}
end-volume
{shards}
volume {volume}
  type debug/io-stats
  option count-fop-hits on
  option latency-measurement on
  subvolumes {below}
end-volume
"""
SHARDS = """\
volume shards
  type features/shard
  option shard-block-size {size}
  subvolumes spread
end-volume
"""


class Brick(Peer):
    """One server with one folder; what GlusterFS' own debug/FAULT does to it by such options."""

    def __init__(self, folder: Path, name: str, fault: str = "", **options: object) -> None:
        self.name, self.port = name, free_port()
        self.log_file = folder / f"{name}.log"
        self.volume_file = folder / f"{name}.vol"
        self.disk = folder / name
        self.disk.mkdir(exist_ok=True)  # a test may have mounted one
        number = uuid.uuid4()
        os.setxattr(self.disk, "trusted.glusterfs.volume-id", number.bytes)
        lines = "".join(f"  option {key.replace('_', '-')} {options[key]}\n" for key in options)
        words = {"folder": self.disk, "id": number, "name": name, "port": self.port}
        words["fault"] = FAULT.format(kind=fault, options=lines) if fault else ""
        words["below"] = "fault" if fault else "disk"
        self.volume_file.write_text(BRICK.format(**words))

    def command(self) -> list[object]:
        pid_file = self.log_file.with_suffix(".pid")
        return ["glusterfsd", "-N", "-f", self.volume_file, "-l", "/dev/stderr", "-p", pid_file]

    def ready(self) -> bool:
        with socket.socket() as asking:
            return asking.connect_ex(("127.0.0.1", self.port)) == 0


class Mount(Peer):
    """One client; it counts what is done through it alone. shard: after so many bytes of a file
    the next ones may lie on another brick."""

    def __init__(
        self, bricks: list[Brick], place: Path, folder: Path, shard: str | None = None
    ) -> None:
        self.place = place
        self.log_file = folder / f"{place.name}.log"
        self.volume_file = folder / f"{place.name}.vol"
        names = " ".join(one.name for one in bricks)
        self.volume_file.write_text(
            "".join(REMOTE.format(name=one.name, port=one.port) for one in bricks)
            + CLIENT.format(
                names=names,
                volume=VOLUME,
                shards=SHARDS.format(size=shard) if shard else "",
                below="shards" if shard else "spread",
            )
        )
        place.mkdir(parents=True, exist_ok=True)

    def command(self) -> list[object]:
        """Nothing stays in the kernel's cache: all that is read is asked of the servers."""
        uncached = ["--direct-io-mode=enable", "--attribute-timeout=0", "--entry-timeout=0"]
        return [
            "glusterfs",
            "-N",
            "-f",
            self.volume_file,
            "-l",
            "/dev/stderr",
            *uncached,
            self.place,
        ]

    def ready(self) -> bool:
        return os.path.ismount(self.place) and (self.place / ".meta").is_dir()

    def unmount(self) -> None:
        """As an epilog does; the collector may be reading it."""
        umount = ["umount", self.place]
        wait_for(lambda: subprocess.run(umount).returncode == 0, what=f"umount of {self.place}")
        wait_for(lambda: not self.alive, what=f"{self.place} to be unmounted")

    def __exit__(self, *_: object) -> None:
        subprocess.run(["umount", "--lazy", self.place], capture_output=True)
        self.kill()
