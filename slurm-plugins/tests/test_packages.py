#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What each package will hold, by the install rules of a build: all that is installed, no file
twice, and all that units and dpkg are told of.

usage: test_packages.py CMAKE BUILD
"""

import os
import subprocess
import sys
import tempfile
from itertools import combinations
from pathlib import Path

SITE = Path(__file__).resolve().parents[1] / "site"
PACKAGES = {"node", "slurm", "server", "cli"}
FOR_COPYING = "share/joulemark/"  # what the packages have in its place


def main(cmake, build):
    subprocess.run([cmake, "--build", build, "--target", "documents"], check=True)
    with tempfile.TemporaryDirectory() as folder:
        everything = installed(cmake, build, Path(folder, "all"))
        files = {
            name: installed(cmake, build, Path(folder, name), "--component", name)
            for name in PACKAGES
        }
    for one, other in combinations(files, 2):
        assert not files[one].keys() & files[other].keys(), f"in {one} and in {other}"
    packed = {path: text for package in files.values() for path, text in package.items()}
    forgotten = {path for path in everything if not path.startswith(FOR_COPYING)} - packed.keys()
    assert not forgotten, f"in no package: {forgotten}"
    units = {path: text for path, text in packed.items() if path.endswith(".service")}
    assert len(units) == 3, units.keys()
    for path, text in units.items():
        program = Path(text.decode().partition("\nExecStart=")[2].split()[0])
        # systemd looks for a bare name in bin, too
        assert f"{program.parent.name or 'bin'}/{program.name}" in packed, f"{path}: no {program}"
    for name in PACKAGES:
        listed = SITE / "debian" / name / "conffiles"
        named = set(listed.read_text().split()) if listed.exists() else set()
        assert {f"/{path}" for path in files[name] if path.startswith("etc/")} == named, name
        documents = {path.split("/")[-1] for path in files[name] if path.startswith("share/doc/")}
        assert {"changelog.Debian.gz", "changelog.gz", "copyright"} <= documents, name


def installed(cmake, build, root, *words):
    """Each file's content by its path below the prefix."""
    env = {**os.environ, "DESTDIR": str(root)}
    subprocess.run(
        [cmake, "--install", build, *words], check=True, env=env, stdout=subprocess.DEVNULL
    )
    cache = Path(build, "CMakeCache.txt").read_text()
    prefix = cache.partition("\nCMAKE_INSTALL_PREFIX:PATH=")[2].partition("\n")[0]
    top = root / prefix.lstrip("/")
    paths = [path for path in root.rglob("*") if path.is_file()]
    # a prefix /usr has its configuration in /etc
    return {
        str(path.relative_to(top if top in path.parents else root)): path.read_bytes()
        for path in paths
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
