"""Every benchmark compiles with clang as with GCC, without a warning, and verifies. Most compilers
of the field (AMD's, ARM's, Intel's) are clang's kin: they fuse products where GCC does not."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

from pathlib import Path

import pytest

from tests.targets import backends

BENCHMARKS = {source.name: source for source in backends.having("serial")}
THREADED = {source.name for source in backends.having("omp")}
DEVICES = tuple(f"-DBENCH_{name}=OFF" for name in ("CUDA", "OPENCL"))


@pytest.fixture(scope="module")
def compiler() -> str:
    return f"-DCMAKE_C_COMPILER={backends.clang()}"


@pytest.fixture(scope="module")
def folder(compiler: str) -> Path:
    made = backends.kept("clang")
    backends.build(backends.PACKAGES / "benchkit", made, compiler)
    return made


@pytest.mark.parametrize("name", BENCHMARKS)
def test_it_compiles_and_verifies(folder, compiler, tmp_path, name):
    said = backends.build(BENCHMARKS[name], folder, compiler, *DEVICES)
    assert "warning:" not in said
    program = folder / "prefix" / "bin" / name
    _, lines = backends.measured(program, tmp_path, "--quick")
    assert lines and all(line["verified"] for line in lines)
    if name in THREADED:  # clang's OpenMP is Debian's libomp-dev
        assert any("omp" in line["variant"] for line in lines)
