"""`probe`: what joulemarkd's own pollers read from an instrument that a test configures."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster import Build, cache_folder

PATIENCE_S = 120.0


@pytest.fixture(scope="session")
def joulemarkd() -> Path:
    """The daemon under test: $JOULEMARKD, or what environments/build made."""
    given = os.environ.get("JOULEMARKD")
    if given:
        return Path(given)
    return Path(Build.load(cache_folder()).slurm_prefix) / "sbin" / "joulemarkd"


@pytest.fixture
def configuration(tmp_path: Path) -> Callable[[str], Path]:
    """Writes joulemark.yaml around the YAML text of `instruments:`; its path."""

    def write(instruments: str) -> Path:
        path = tmp_path / "joulemark.yaml"
        head = f"cluster: test\nsocket: {tmp_path}/d.sock\nstate_dir: {tmp_path}/state\n"
        path.write_text(f"{head}record_dir: {tmp_path}/records\ninstruments:\n{instruments}")
        return path

    return write


class Probe:
    """One run of `joulemarkd --probe`: its readings, its exit status, what it said besides."""

    def __init__(self, done: subprocess.CompletedProcess) -> None:
        self.status: int = done.returncode
        self.errors: str = done.stderr
        self.readings: list[dict] = [json.loads(line) for line in done.stdout.splitlines()]

    def values(self, channel: str | None = None) -> list[float]:
        """The good values, of one channel or of all."""
        return [
            reading["value"]
            for reading in self.readings
            if reading["fault"] is None and channel in (None, reading["channel"])
        ]

    def faults(self) -> list[str]:
        return [reading["fault"] for reading in self.readings if reading["fault"] is not None]


@pytest.fixture
def probe(joulemarkd: Path, configuration: Callable[[str], Path]) -> Callable[..., Probe]:
    """`probe("  - {type: snmp, ...}\\n", count=3)` reads each instrument count times."""

    def run(instruments: str, count: int = 1, env: dict[str, str] | None = None) -> Probe:
        words = [joulemarkd, "-N", "n1", "-c", configuration(instruments), "--probe", str(count)]
        done = subprocess.run(
            list(map(str, words)),
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            env={**os.environ, **(env or {})},
        )
        return Probe(done)

    return run
