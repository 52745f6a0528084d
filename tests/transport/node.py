"""One node without Slurm: a joulemarkd, and jobs that are opened and ended through its socket."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import json
import socket
import time
from pathlib import Path

from tests.peers import Peer

CLUSTER, NODE = "test", "n1"
PACKET_MAX = 4096


class TestNode(Peer):
    """`with TestNode(...) as node: node.job(1)`; what it wrote is in node.records."""

    __test__ = False

    def __init__(self, program: Path, folder: Path, keys: str = "", node: str = NODE) -> None:
        self.program, self.folder, self.node = program, folder, node
        self.socket, self.state = folder / "d.sock", folder / "state"
        self.records = folder / "records"
        self.config, self.log_file = folder / "joulemark.yaml", folder / "log"
        self.configure(keys)

    def configure(self, keys: str = "", records: Path | None = None) -> None:
        self.records = records or self.records
        self.config.write_text(
            f"cluster: {CLUSTER}\nsocket: {self.socket}\nstate_dir: {self.state}\n"
            f"record_dir: {self.records}\nlog_file: {self.log_file}\nperiod_s: 0.1\n{keys}"
            "instruments:\n- {type: model, idle_w: 40, full_w: 120}\n"
        )

    def command(self) -> list[object]:
        return [self.program, "-N", self.node, "-c", self.config]

    def ready(self) -> bool:
        return self.ask("status").startswith("ok")

    def ask(self, request: str) -> str:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as channel:
            channel.settimeout(5)
            try:
                channel.connect(str(self.socket))
                channel.send(request.encode())
                return channel.recv(PACKET_MAX).decode()
            except OSError as error:
                return f"no answer: {error}"

    def job(self, number: int) -> float:
        """Opens and ends a job; how long the slower of the two answers took."""
        took_s = 0.0
        for request in (f"open job={number} step=extern uid=0 job_cpus=1", f"end job={number}"):
            began = time.monotonic()
            answer = self.ask(request)
            took_s = max(took_s, time.monotonic() - began)
            assert answer.startswith("ok"), answer
        return took_s

    def forwarder(self) -> int:
        """Pid of the forwarder; 0: there is none."""
        assert self.process
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        with contextlib.suppress(FileNotFoundError):
            return int((path.read_text().split() or ["0"])[0])
        return 0

    def file_name(self, job: int) -> str:
        return f"{CLUSTER}.{job}.{self.node}.json"

    def outbox(self) -> list[str]:
        return sorted(path.name for path in (self.state / "outbox").glob("*.json"))

    def arrived(self, folder: Path | None = None) -> list[int]:
        """Jobs with a whole record there, which is checked."""
        jobs = []
        for path in (folder or self.records).glob("*.json"):
            record = json.loads(path.read_text())
            assert path.name == self.file_name(record["JobIDRaw"]) and record["missing"] is None
            jobs.append(record["JobIDRaw"])
        return sorted(jobs)
