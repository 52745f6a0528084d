"""A `joulemarkd --probe` in the background: its readings as they come, while the peer changes."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.cluster import PATIENCE_S, wait_for

FOREVER = 1000000


class Watch:
    """A context manager: the probe runs within it."""

    def __init__(self, joulemarkd: Path, config: Path, node: str = "n1") -> None:
        self.output, self.errors = config.with_name("readings"), config.with_name("errors")
        self.words = [joulemarkd, "-N", node, "-c", config, "--probe", FOREVER]

    def __enter__(self) -> Watch:
        with self.output.open("w") as output, self.errors.open("w") as errors:
            words = list(map(str, self.words))
            self.process = subprocess.Popen(words, stdout=output, stderr=errors)
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait(60)

    def readings(self) -> list[dict]:
        lines = self.output.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def values(self, channel: str | None = None) -> list[float]:
        return [
            reading["value"]
            for reading in self.readings()
            if reading["fault"] is None and channel in (None, reading["channel"])
        ]

    def faults(self) -> list[str]:
        return [reading["fault"] for reading in self.readings() if reading["fault"]]

    def wait_fault(self, part: str, timeout_s: float = PATIENCE_S) -> str:
        def found() -> str | None:
            return next((fault for fault in self.faults() if part in fault), None)

        def what() -> str:
            return f"a fault with '{part}'; there are {self.faults()}"

        return wait_for(found, timeout_s, what)

    def wait_value(self, value: float, timeout_s: float = PATIENCE_S) -> None:
        wait_for(lambda: value in self.values(), timeout_s, f"the value {value}")
