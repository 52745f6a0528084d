"""A power meter with Modbus: modbus_server.py, whose registers a test sets."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path

from tests.cluster import wait_for
from tests.cluster.ports import free_port, listens
from tests.peers.peer import Peer

SERVER = Path(__file__).with_name("modbus_server.py")
HOLDING, INPUT = 3, 4


class Meter(Peer):
    """At a TCP port of 127.0.0.1, or on a serial line."""

    stdin = subprocess.PIPE

    def __init__(self, folder: Path, line: str | None = None) -> None:
        self.line, self.port = line, free_port()
        self.host, self.log_file = f"127.0.0.1:{self.port}", folder / "meter.log"

    def command(self) -> list[object]:
        place = ("serial", self.line) if self.line else ("tcp", self.port)
        return [sys.executable, SERVER, *place]

    def ready(self) -> bool:
        return "ready\n" in self.log() and (self.line is not None or listens(self.port))

    def set(self, address: int, form: str, value: float, function=HOLDING, slave=1) -> None:
        """form: of struct, such as '>f'; the registers in the order of its bytes."""
        assert self.process and self.process.stdin
        words = struct.unpack(f">{struct.calcsize(form) // 2}H", struct.pack(form, value))
        done = self.log().count("done\n")
        self.process.stdin.write(f"{slave} {function} {address} {' '.join(map(str, words))}\n")
        self.process.stdin.flush()
        wait_for(lambda: self.log().count("done\n") > done, what="the meter to take an order")
