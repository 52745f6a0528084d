"""`environments/bundle`: what it writes is built where there is no network and no cache."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from building.steps import OWN

from tests.checkout import PROJECT, copy_to, repository_of
from tests.cluster import CHECKOUT, Build
from tests.stranger import need_spack

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")

ALONE = CHECKOUT / "tests/alone"
LIMIT_S = 1000
#: nothing of the machine's Spack, where it has one: a mirror of its own, perhaps
WITHOUT_SPACK = 'if [ -d /etc/spack ]; then mount -t tmpfs none /etc/spack; fi; exec "$@"'


@pytest.fixture(scope="module")
def unpacked() -> Iterator[Path]:
    """The bundle's one folder, in a place of a short name."""
    need_spack()
    with tempfile.TemporaryDirectory(prefix="jm-", dir="/var/tmp") as name:
        folder = Path(name)
        work = repository_of(copy_to(folder / "work", *PROJECT))
        where = ("--state", folder / "state", "--out", folder / "bundle.tar.gz")
        subprocess.run([work / "environments/bundle", *where], check=True, timeout=LIMIT_S)
        for old in ("work", "state"):
            shutil.rmtree(folder / old)
        subprocess.run(
            ["tar", "-C", folder, "-xf", folder / "bundle.tar.gz"], check=True, timeout=60
        )
        yield folder / "joulemark"


def alone(folder: Path, *words: str | Path) -> str:
    """What a command says, with an empty HOME and without a network."""
    home = folder.parent / "home"
    home.mkdir(exist_ok=True)
    env = {"HOME": str(home), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
    hidden = ("unshare", "--mount", "sh", "-c", WITHOUT_SPACK, "sh")
    done = subprocess.run(
        [ALONE, *hidden, *words], env=env, capture_output=True, text=True, timeout=LIMIT_S
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_spack_builds_all_of_it_without_a_network(unpacked):
    state = unpacked.parent / "away"
    alone(unpacked, unpacked / "environments/build", "--state", state)
    build = Build.load(state / "cache")
    assert build.built_by == "spack", build.why
    said = alone(
        unpacked, state / f"cache/environments/{OWN}/.spack-env/view/bin/dhrystone", "--quick"
    )
    assert "DMIPS" in said


def test_the_command_with_all_stores_and_formats_is_installed_without_a_network(unpacked):
    venv, wheels = unpacked.parent / "venv", unpacked / "bundle/wheels"
    alone(unpacked, sys.executable, "-m", "venv", venv)
    extras = "joulemark[plots,mariadb,postgresql,parquet,profile,mqtt]"
    install = ("-m", "pip", "install", "--no-index", "--find-links", wheels, extras)
    alone(unpacked, venv / "bin/python", *install)
    assert "merge" in alone(unpacked, venv / "bin/joulemark", "--help")
