"""One node without Slurm: a joulemarkd, and jobs that are opened and ended through its socket."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from pathlib import Path

from tests.cluster import wait_for
from tests.peers.joulemarkd import NODE, Daemon

CLUSTER = "test"

JOB = """
import socket, sys, time
took_s = 0
for request in ("open job=%s step=extern uid=0 job_cpus=64", "end job=%s"):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as channel:
        channel.settimeout(60)
        channel.connect(sys.argv[1])
        began = time.monotonic()
        channel.send((request % sys.argv[2]).encode())
        answer = channel.recv(4096).decode()
        took_s = max(took_s, time.monotonic() - began)
        assert answer.startswith("ok"), answer
    time.sleep(float(sys.argv[3]) if request.startswith("open") else 0)
print(took_s)
"""


class TestNode(Daemon):
    """`with TestNode(...) as node: node.job(1)`; what it wrote is in node.records."""

    __test__ = False

    def __init__(self, program: Path, folder: Path, keys: str = "", node: str = NODE) -> None:
        super().__init__(program, folder / "joulemark.yaml", node)
        self.folder, self.state, self.records = folder, folder / "state", folder / "records"
        self.configure(keys)

    def configure(self, keys: str = "", records: Path | None = None) -> None:
        self.records = records or self.records
        self.config.write_text(
            f"cluster: {CLUSTER}\nsocket: {self.socket}\nstate_dir: {self.state}\n"
            f"record_dir: {self.records}\nlog_file: {self.log_file}\nperiod_s: 0.1\n{keys}"
            "instruments:\n- {type: model, idle_w: 40, full_w: 120}\n"
        )

    def job(self, number: int, seconds: float = 0) -> float:
        """Opens and ends a job, as a process of its own; how long the slower answer took."""
        time.sleep(0.02)  # a process's start is known to 10 ms: this one is of no earlier run
        words = [sys.executable, "-c", JOB, str(self.socket), str(number), str(seconds)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return float(done.stdout)

    def forwarder(self) -> int:
        """Pid of the forwarder; 0: there is none."""
        assert self.process
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        with contextlib.suppress(FileNotFoundError):
            return int((path.read_text().split() or ["0"])[0])
        return 0

    def file_name(self, job: int) -> str:
        return f"{CLUSTER}.{job}.{self.node}.json"

    def wait_arrived(self, *jobs: int) -> None:
        """Until the records of these jobs, and no others, are where they go."""
        wait_for(lambda: self.arrived() == sorted(jobs), what=f"jobs {jobs}; {self.log_file}")
        wait_for(lambda: not self.outbox(), what="the outbox to be empty")

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
