"""tests/setup on machines that lack something: it says what, and takes no failure for success."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from environments.building.lock import locked
from tests.cluster import CHECKOUT

PROGRAMS, FOLDERS = ("setup", "alone"), ("tests/cluster", "environments/building")
LISTS = ("tests/packages-demo.txt", "tests/packages.txt", "tests/requirements.txt")
LOCK = CHECKOUT / "environments" / "building" / "lock.py"


@pytest.fixture
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """tests/setup and what it needs; the lists of what it installs are empty."""
    copy = tmp_path_factory.mktemp("setup")
    for folder in FOLDERS:
        shutil.copytree(CHECKOUT / folder, copy / folder)
    for program in PROGRAMS:
        shutil.copy(CHECKOUT / "tests" / program, copy / "tests")
    for name in LISTS:
        (copy / name).touch()
    return copy


def setup(checkout: Path, *before: str | Path, **env: str) -> subprocess.CompletedProcess:
    pip = {key: value for key, value in os.environ.items() if not key.startswith("PIP_")}
    own = {"JOULEMARK_STATE": str(checkout / "state"), **env}
    words = [*before, checkout / "tests" / "setup"]
    return subprocess.run(words, env={**pip, **own}, capture_output=True, text=True, timeout=200)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_without_packages_and_network_it_says_what_is_missing(checkout: Path) -> None:
    (checkout / "tests" / "packages.txt").write_text("joulemark-of-tomorrow\nbash\n")
    apt = checkout / "apt"  # its own, as on a machine that has never asked for lists
    (apt / "state" / "lists" / "partial").mkdir(parents=True)
    (apt / "sources.list").write_text("deb http://deb.debian.org/debian stable main\n")
    places = {
        "Dir::State": apt / "state",
        "Dir::State::status": "/var/lib/dpkg/status",
        "Dir::Cache": apt,
        "Dir::Etc::sourcelist": apt / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
    }
    (apt / "conf").write_text("".join(f'{key} "{value}";\n' for key, value in places.items()))
    done = setup(checkout, checkout / "tests" / "alone", APT_CONFIG=str(apt / "conf"))
    assert done.returncode == 3, done.stderr
    said = done.stderr.splitlines()
    assert len(said) == 2  # that it begins to install, and why it cannot
    assert "no network (" in said[1] and said[1].endswith("are: joulemark-of-tomorrow")


def wheel(folder: Path, name: str) -> None:
    info = f"{name}-1.dist-info"
    with zipfile.ZipFile(folder / f"{name}-1-py3-none-any.whl", "w") as file:
        file.writestr(f"{name}.py", "")
        file.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", "")


def test_python_modules_that_did_not_come_are_asked_for_again(checkout: Path) -> None:
    (checkout / "tests" / "requirements.txt").write_text("joulemark_of_tomorrow\n")
    python = checkout / "state" / "cache" / "venv" / "bin" / "python"
    said = setup(checkout, PIP_NO_INDEX="1").stderr
    assert "PyPI cannot be reached" in said
    assert subprocess.run([python, "-c", "import yaml"]).returncode == 0  # Debian's
    wheel(checkout, "joulemark_of_tomorrow")
    said = setup(checkout, PIP_NO_INDEX="1", PIP_FIND_LINKS=str(checkout)).stderr
    assert "PyPI" not in said
    assert subprocess.run([python, "-c", "import joulemark_of_tomorrow"]).returncode == 0
    assert setup(checkout, PIP_NO_INDEX="1").stderr == ""  # it is there: nobody is asked


def test_a_shells_lock_names_its_holder_and_is_not_its_childrens(tmp_path: Path) -> None:
    def run(patience_s: float, *command: str) -> subprocess.CompletedProcess:
        words = [sys.executable, LOCK, tmp_path / "lock", str(patience_s), *command]
        return subprocess.run(words, stderr=subprocess.PIPE, text=True, timeout=60)

    with locked(tmp_path / "lock", 0):
        refused = run(0.2, "true")
    assert (
        refused.returncode == os.EX_TEMPFAIL and f"process {os.getpid()} since" in refused.stderr
    )
    left = tmp_path / "pid"
    run(5, "sh", "-c", f"exec 2>/dev/null; sleep 600 & echo $! > {left}")
    try:
        assert run(0, "sh", "-c", "exit 7").returncode == 7
    finally:
        os.kill(int(left.read_text()), 9)
