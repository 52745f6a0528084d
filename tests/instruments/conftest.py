"""`probe`, `described`, `watch`, `daemon`: what joulemarkd reads from a test's own instrument."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.peers.joulemarkd import NODE, Daemon, configure
from tests.peers.watching import Probe, Watch

PATIENCE_S = 120.0


@pytest.fixture
def configuration(tmp_path: Path) -> Callable[[str], Path]:
    """Writes joulemark.yaml around the YAML text of `instruments:`; its path."""

    def write(instruments: str) -> Path:
        return configure(tmp_path, instruments, "test")

    return write


@pytest.fixture
def probe(joulemarkd: Path, configuration: Callable[[str], Path]) -> Callable[..., Probe]:
    """`probe("  - {type: snmp, ...}\\n", count=3)` reads each instrument count times."""

    def run(instruments: str, count: int = 1) -> Probe:
        words = [joulemarkd, "-N", NODE, "-c", configuration(instruments), "--probe", str(count)]
        return Probe(subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S))

    return run


@pytest.fixture
def described(
    joulemarkd: Path, configuration: Callable[[str], Path]
) -> Callable[[str], dict[str, dict]]:
    """`described("  - {type: snmp, ...}\n")`: what --describe says of each channel."""

    def run(instruments: str) -> dict[str, dict]:
        words = [joulemarkd, "--describe", "-N", NODE, "-c", configuration(instruments)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode == 0, done.stderr
        return {line["channel"]: line for line in map(json.loads, done.stdout.splitlines())}

    return run


@pytest.fixture
def watch(joulemarkd: Path, configuration: Callable[[str], Path]) -> Callable[..., Watch]:
    """`with watch("  - {type: snmp, ...}\\n") as seen: seen.wait_value(100)`."""

    def prepare(instruments: str, program: Path = joulemarkd) -> Watch:
        return Watch(program, configuration(instruments))

    return prepare


@pytest.fixture
def daemon(joulemarkd: Path, configuration: Callable[[str], Path]) -> Callable[[str], Daemon]:
    """`with daemon("  - {type: snmp, ...}\n") as running: running.books()`."""
    return lambda instruments: Daemon(joulemarkd, configuration(instruments))
