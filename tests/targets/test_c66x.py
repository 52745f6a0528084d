"""The DSP's kernels, computed by a host: its cores run in turn. On the simulator they run in
tests/long/test_c66x.py, which builds the cross toolchain first."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.targets import backends, c66x


def test_every_benchmark_of_the_table_is_there():
    assert c66x.KERNELS.keys() <= c66x.BENCHMARKS.keys(), "a packages/*/src/c66x is missing"


@pytest.fixture(scope="module")
def folder() -> Path:
    made = backends.kept("c66x-on-host")
    backends.build_benchkit(made)
    return made


@pytest.mark.parametrize("name", c66x.BENCHMARKS)
def test_the_dsps_variants_verify_on_a_host(folder, tmp_path, name):
    program = c66x.build_for_host(c66x.BENCHMARKS[name], folder) / name
    backends.must(program, *c66x.SHORT, "--cooked", tmp_path / "cooked")
    assert c66x.results(tmp_path / "cooked")


def build_toolchain(cache: Path, *words: str | Path) -> subprocess.CompletedProcess:
    env = {**os.environ, "XDG_CACHE_HOME": str(cache), "TMPDIR": str(cache)}
    return subprocess.run(
        [c66x.BUILD_TOOLCHAIN, *words], env=env, capture_output=True, text=True, timeout=120
    )


def test_a_build_cut_short_leaves_no_toolchain(tmp_path):
    sources, cache = tmp_path / "binutils-2.40", tmp_path / "cache"
    sources.mkdir()
    cache.mkdir()
    configure = sources / "configure"
    configure.write_text('#!/bin/sh\necho "this machine lacks something" >&2\nexit 77\n')
    configure.chmod(0o755)
    shutil.make_archive(str(sources), "gztar", tmp_path, sources.name)
    done = build_toolchain(cache, "--sources", tmp_path)
    assert done.returncode == 1
    assert "this machine lacks something" in done.stderr and "binutils failed" in done.stderr
    assert build_toolchain(cache, "--where").returncode == 1
    assert not list(cache.glob("tic6x-elf.*")), "the build's own folder is left"
