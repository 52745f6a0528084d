"""The daemon under test, by itself: no Slurm, asked over its socket."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import os
import signal
import socket
import struct
from pathlib import Path

from tests.cluster import Build, cache_folder
from tests.peers.peer import Peer

NODE = "n1"
ANSWER_S = 30
PACKET_MAX = 4096


def program() -> Path:
    """$JOULEMARKD, or what environments/build made."""
    given = os.environ.get("JOULEMARKD")
    return Path(given or Build.load(cache_folder()).slurm_prefix / "sbin" / "joulemarkd")


def connect(path: Path) -> socket.socket:
    link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        # bounded, and not by settimeout(): with that a connect would not wait in a long queue
        link.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", ANSWER_S, 0))
        link.connect(str(path))
    except OSError:
        link.close()
        raise
    link.settimeout(ANSWER_S)
    return link


def ask(path: Path, request: str) -> str:
    """One question to the daemon that listens there, and its answer."""
    with connect(path) as link:
        link.send(request.encode())
        return link.recv(PACKET_MAX).decode()


def tell(link: socket.socket, request: str) -> dict[str, str]:
    """The fields of the answer to one request; OSError where it is refused."""
    link.send(request.encode())
    verb, *fields = link.recv(PACKET_MAX).decode().split()
    if verb != "ok":
        raise OSError(f"{request}: {verb} {fields}")
    return dict(field.split("=", 1) for field in fields)


def configure(folder: Path, instruments: str, cluster: str = "bench", more: str = "") -> Path:
    """joulemark.yaml of a daemon that keeps all it has in the folder: YAML of `instruments:`, and
    more lines before it."""
    path = folder / "joulemark.yaml"
    path.write_text(
        f"cluster: {cluster}\nsocket: {folder}/d.sock\nstate_dir: {folder}/state\n"
        f"record_dir: {folder}/records\n{more}instruments:\n{instruments}"
    )
    return path


class Daemon(Peer):
    """`with Daemon(...) as daemon: daemon.ask("node")`; socket and log lie beside its file."""

    def __init__(self, program: Path, config: Path, node: str = NODE) -> None:
        self.program, self.config, self.node = program, config, node
        self.socket, self.log_file = config.with_name("d.sock"), config.with_name("log")

    def command(self) -> list[object]:
        return [self.program, "-N", self.node, "-c", self.config]

    def __exit__(self, *_: object) -> None:
        self.kill(signal.SIGTERM)

    def ready(self) -> bool:
        try:
            return bool(self.ask("status"))
        except OSError:
            return False

    def ask(self, request: str) -> dict[str, str]:
        with connect(self.socket) as link:
            return tell(link, request)

    def books(self) -> dict[str, int]:
        """Each channel's energy since the daemon began, in microjoules."""
        totals, count = {}, 1
        while len(totals) < count:
            answer = self.ask(f"books channel={len(totals)}")
            count = int(answer["channels"])
            totals[answer["name"]] = int(answer["total_uj"])
        return totals

    def node_uj(self) -> int:
        return int(self.ask("node")["energy_uj"])
