"""`joulemark io collect` of a compute node, of mounts that are one job's each."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.cluster import CHECKOUT
from tests.peers.peer import Peer

SOURCES = CHECKOUT / "packages" / "joulemark" / "src"


class Collector(Peer):
    """Mounts are at PLACE/JOB, the node is n1; its lines are in FOLDER/records."""

    def __init__(self, folder: Path, place: Path, period_s: float = 0.2) -> None:
        self.period_s = period_s
        self.log_file, self.records = folder / "collector.log", folder / "records"
        self.records.mkdir()
        config = folder / "joulemark.yaml"
        config.write_text(f"cluster: demo\nrecord_dir: {self.records}\n")
        self.env = {"JOULEMARK_CONFIG": str(config), "PYTHONPATH": str(SOURCES)}
        words = [sys.executable, "-m", "joulemark", "io", "collect", "--server", "n1"]
        self.words = [*words, "--mounts", f"{place}/%j"]

    def command(self) -> list[object]:
        return [*self.words, "--period", f"{self.period_s:g}"]

    def ready(self) -> bool:
        return len(self.lines()) > 1

    def ask(self) -> None:
        """As an epilog does before it unmounts."""
        subprocess.run([*self.words, "--once"], env={**os.environ, **self.env}, check=True)

    def lines(self) -> list[dict]:
        path = self.records / "io" / "nodes" / "n1.jsonl"
        text = path.read_text() if path.exists() else ""
        return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]

    def work(self, job: int) -> list[int]:
        """Bytes read, bytes written and operations, over all lines."""
        works = [line["jobs"].get(f"{job}.", [0, 0, 0]) for line in self.lines()]
        return [sum(one) for one in zip(*works)]

    @property
    def unread(self) -> int:
        return sum(line["unread"] for line in self.lines())
