"""`environments/bundle`: what it writes is built in a Debian that has what guides/install.md has
apt install, no network, no Spack and nothing of this checkout."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from building.steps import OWN

from tests.checkout import PROJECT, copy_to, repository_of
from tests.cluster import CHECKOUT
from tests.long.test_first_install import HERE, blocks, chapter, debian
from tests.long.test_packages import Root
from tests.stranger import need_spack

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be in another root")

ALONE = CHECKOUT / "tests/alone"
TREE, STATE, VENV = "/srv/joulemark", "/srv/state", "/srv/venv"
LIMIT_S = 1000


@pytest.fixture(scope="module")
def away(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Root]:
    """The machine without a network, and on it the bundle's one folder."""
    need_spack()
    folder: Path = tmp_path_factory.mktemp("away") / "root"
    with debian(folder, "ca-certificates", HERE) as root:
        root.run(next(b for b in blocks(chapter("install", "By Spack")) if "apt" in b))
        make_bundle(folder / "srv/bundle.tar.gz", tmp_path_factory.mktemp("here"))
        root.run(f"tar -C {Path(TREE).parent} -xf /srv/bundle.tar.gz")
        yield Root(folder, HERE, around=(ALONE,))


def make_bundle(place: Path, beside: Path) -> None:
    work = repository_of(copy_to(beside / "work", *PROJECT))
    where = ("--state", beside / "state", "--out", place)
    subprocess.run([work / "environments/bundle", *where], check=True, timeout=LIMIT_S)
    shutil.rmtree(beside)


def test_it_has_no_network(away: Root) -> None:
    asks = "import socket; socket.create_connection(('1.1.1.1', 53), 5)"
    assert "unreachable" in away.done(f'python3 -c "{asks}"').stdout


def test_spack_builds_all_of_it_without_a_network(away: Root) -> None:
    away.run(f"{TREE}/environments/build --state {STATE}")
    built_by = away.run(f"grep JOULEMARK_BUILT_BY= {STATE}/cache/build.env")
    assert "spack" in built_by
    view = f"{STATE}/cache/environments/{OWN}/.spack-env/view"
    assert "DMIPS" in away.run(f"{view}/bin/dhrystone --quick")


def test_the_command_with_all_stores_and_formats_is_installed_without_a_network(
    away: Root,
) -> None:
    extras = "joulemark[plots,mariadb,postgresql,parquet,profile,mqtt]"
    install = f"install --no-index --find-links {TREE}/bundle/wheels"
    away.run(f"python3 -m venv {VENV}; {VENV}/bin/pip {install} '{extras}'")
    assert "merge" in away.run(f"{VENV}/bin/joulemark --help")
