# What a machine without a network needs to build: sources, Spack, its mirror, wheels; in one file.
# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import shutil
from pathlib import Path

from building import with_spack
from building.steps import CHECKOUT, Steps

#: the command with each of its stores and formats, as PyPI has them
COMMAND = "packages/joulemark[plots,mariadb,postgresql,parquet,profile,mqtt]"
#: into the folder $1, in which with_spack.BUNDLE is then
SOURCES = 'git -C "$2" archive --prefix=joulemark/ HEAD | tar -x -C "$1"'


def make(steps: Steps, environment: str, out: Path) -> None:
    """Write OUT, a .tar.gz with one folder `joulemark`; what the site brings is not in it."""
    place = steps.cache / "bundle"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    out.parent.mkdir(parents=True, exist_ok=True)
    try:
        steps.run("take sources", "bash", "-o", "pipefail", "-c", SOURCES, "sh", place, CHECKOUT)
        fill(steps, environment, place / "joulemark" / with_spack.BUNDLE.name)
        # its owner is who unpacks it: git and Spack refuse another's
        owner = ("--owner=0", "--group=0", "--numeric-owner", "--sort=name")
        steps.run("write bundle", "tar", "-c", "-z", "-f", out, *owner, "-C", place, "joulemark")
    finally:
        shutil.rmtree(place, ignore_errors=True)


def fill(steps: Steps, environment: str, bundle: Path) -> None:
    """All that environments/build and pip would fetch."""
    spack = with_spack.obtain(steps)
    pinned = {"spack": with_spack.SPACK_COMMIT, "spack-packages": with_spack.PACKAGES_COMMIT}
    unneeded = shutil.ignore_patterns(".git", ".github", "__pycache__")
    for name, commit in pinned.items():
        shutil.copytree(
            with_spack.fetch(steps, name, commit), bundle / name, symlinks=True, ignore=unneeded
        )
    here = (spack, "-c", f"config:source_cache:{bundle}/mirror", "-e")
    folder = with_spack.prepare_environment(steps, environment)
    steps.run("concretize", *here, folder, "concretize", "-f")
    sources = with_spack.FETCH.format(or_here="")
    steps.run("fetch all sources", *here, folder, "python", "-c", sources)
    pip = (with_spack.python_with_clingo(steps), "-m", "pip", "wheel", "--wheel-dir")
    command = CHECKOUT / COMMAND
    steps.run("make wheels", *pip, bundle / "wheels", with_spack.CLINGO, command)
