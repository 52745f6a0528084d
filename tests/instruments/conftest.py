"""`probe`, `described`, `watch`, `daemon`: what joulemarkd reads from a test's own instrument."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster import CHECKOUT
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
    """`described("  - {type: snmp, ...}\n")`: what --describe says, by INSTRUMENT/CHANNEL."""

    def run(instruments: str) -> dict[str, dict]:
        words = [joulemarkd, "--describe", "-N", NODE, "-c", configuration(instruments)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode == 0, done.stderr
        lines = map(json.loads, done.stdout.splitlines())
        return {f"{line['instrument']}/{line['channel']}": line for line in lines}

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


@pytest.fixture(scope="session")
def stub_folder(tmp_path_factory) -> Path:
    """Where libnvidia-ml.so.1 of the tests is."""
    folder = tmp_path_factory.mktemp("nvml")
    compiler = os.environ.get("CC") or shutil.which("gcc") or "cc"
    source = CHECKOUT / "tests" / "peers" / "nvml_stub.c"
    library = folder / "libnvidia-ml.so.1"
    words = [compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", library, source]
    subprocess.run(list(map(str, words)), check=True, timeout=120)
    return folder


@pytest.fixture
def gpus(stub_folder, tmp_path, monkeypatch) -> Callable[..., None]:
    """`gpus((minor, result, energy_mj, power_mw, mig), ...)` sets what the library says."""
    values = tmp_path / "gpus"
    monkeypatch.setenv("LD_LIBRARY_PATH", str(stub_folder))
    monkeypatch.setenv("NVML_STUB", str(values))

    def put(*devices: tuple[int, int, int, int, int]) -> None:
        lines = [f"GPU-{device[0]:08x} " + " ".join(map(str, device)) for device in devices]
        new = values.with_suffix(".new")
        new.write_text("".join(f"{line}\n" for line in lines))
        new.replace(values)

    return put
