"""A real snmpd on a private port, configuration and state in a folder of the test's own."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import socket
import sys
from pathlib import Path

from tests.cluster.ports import free_port
from tests.peers.peer import Peer

OUTLETS = Path(__file__).with_name("outlets.py")
COMMUNITY = "outlets-only"
USER, AUTH_PASSWORD, PRIV_PASSWORD = "joule", "an auth password", "a priv password"


class Agent(Peer):
    """One PDU. `set` changes what it answers; as a context it runs."""

    def __init__(self, folder: Path, trees: list[str], port: int = 0) -> None:
        self.folder = folder
        self.port = port or free_port()
        self.values = folder / "values"
        self.log_file = folder / "snmpd.log"
        self.env = {"SNMP_PERSISTENT_DIR": str(folder / "state"), "MIBS": ""}
        folder.mkdir(parents=True)
        lines = [
            f"agentaddress udp:127.0.0.1:{self.port}",
            f"rocommunity {COMMUNITY} 127.0.0.1",
            f'createUser {USER} SHA-256 "{AUTH_PASSWORD}" AES "{PRIV_PASSWORD}"',
            f"rouser {USER} priv",
            *(f"pass_persist {tree} {sys.executable} {OUTLETS} {self.values}" for tree in trees),
        ]
        (folder / "snmpd.conf").write_text("\n".join(lines) + "\n")
        self.set({})

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def set(self, objects: dict[str, tuple[str, object]]) -> None:
        """All its objects: {".1.3.6...": ("gauge", 230)}."""
        text = "".join(f"{oid} {kind} {value}\n" for oid, (kind, value) in objects.items())
        fresh = self.values.with_suffix(".new")
        fresh.write_text(text)
        fresh.rename(self.values)

    def command(self) -> list[object]:
        return ["snmpd", "-f", "-r", "-C", "-c", self.folder / "snmpd.conf", "-Le"]

    def ready(self) -> bool:
        """It answers anybody: the empty question of SNMP 3 that every agent answers."""
        question = bytes.fromhex(
            "303e020103301102044a4d0001020300ffe30401040201030410300e0400020100020100040004000400"
            "30140400 0400a00e02044a4d0002020100020100 3000".replace(" ", "")
        )
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            asking.connect(("127.0.0.1", self.port))
            asking.settimeout(0.2)
            try:
                asking.send(question)
                return bool(asking.recv(2048))
            except OSError:  # not up yet
                return False
