"""Spack as it is without the project: builtin's recipes alone, its files in one folder."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster import Build, ClusterError, cache_folder

LIMIT_S = 900


def need_spack() -> None:
    """Skips the test where nothing was built by the state's own Spack."""
    try:
        built = Build.load(cache_folder())
    except ClusterError as why:
        pytest.skip(f"nothing was built through Spack: {why}")
    if built.built_by != "spack":
        pytest.skip(f"no Spack: {built.why}")


def stranger_in(folder: Path, **more: str) -> Callable[..., str]:
    """`stranger("install", "hpl")`: what it says; AssertionError where it fails. It knows the
    machine's externals; MORE is of its environment. Skips the test where there is no Spack."""
    need_spack()
    config, environments = folder / "config", cache_folder() / "environments"
    shutil.copytree(environments / "sites/debian", config)
    shutil.copy(environments / "common/concretizer.yaml", config)
    shutil.copy(cache_folder() / "spack-config/repos.yaml", config)
    places = {
        "install_tree": {"root": f"{folder}/store"},
        "build_stage": [f"{folder}/stage"],
        "source_cache": f"{folder}/sources",
    }
    indexes = cache_folder() / "spack-cache/cache"  # of builtin's recipes: half a minute's work
    shutil.copytree(indexes, folder / "cache/cache", ignore=shutil.ignore_patterns("joulemark*"))
    (config / "config.yaml").write_text(json.dumps({"config": places}))
    python = cache_folder() / "spack-python/bin/python"
    env = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(folder),
        "SPACK_USER_CACHE_PATH": str(folder / "cache"),
        "SPACK_USER_CONFIG_PATH": str(config),
        "SPACK_PYTHON": str(python),
        **more,
    }

    def spack(*words: str | Path) -> str:
        command = [str(cache_folder() / "spack/bin/spack"), *map(str, words)]
        here = {"cwd": folder, "env": env}
        done = subprocess.run(command, text=True, capture_output=True, timeout=LIMIT_S, **here)
        assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    return spack
