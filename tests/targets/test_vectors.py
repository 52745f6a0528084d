"""Vectors as wide as the machine's: AVX-512's, and SVE's of three lengths by qemu-user."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.targets import backends

#: benchmarks and a function whose loops the compiler makes vectors of
AVX512 = {
    "hydro": "hydro_sweep",
    "thermal": "columns",
    "triad": "triad_loop",
}

#: a solution takes minutes in qemu
DSLASH = ("--kernels", "dslash-single,dslash-double", "--min-seconds", "0.01")
#: benchmarks, the function that has their vectors, and what is run
SVE = {
    "mod2am": ("bk_gemm_edge", ("--variant", "blocked")),
    "mod2f": ("run_stage", ("--variant", "serial", "--plan", "fixed")),
    "qcd": ("qcd_dslash_double", ("--variant", "serial", "--sizes", "4", *DSLASH)),
}
SVE_BITS = (128, 256, 512)
#: qcd's check of every site takes qemu a minute where vectors are longer than NEON's
LENGTHS = [(one, bits) for one in SVE for bits in SVE_BITS if one != "qcd" or bits == 128]

HOST_ALONE = [f"-DBENCH_{name}=OFF" for name in ("BLAS", "CUDA", "FFTW", "MPI", "OPENCL")]
TRIPLE = "aarch64-linux-gnu"


@pytest.fixture(scope="module")
def avx512() -> Path:
    """Programs for a target that the compiler is told as Spack tells it."""
    if os.uname().machine != "x86_64":
        pytest.skip("AVX-512 is of x86-64")
    return built("avx512", AVX512, "-DBENCH_NATIVE=OFF", "-DCMAKE_C_FLAGS=-march=skylake-avx512")


@pytest.fixture(scope="module")
def sve() -> Path:
    cross = ["-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=aarch64"]
    cross += [f"-DCMAKE_C_COMPILER={TRIPLE}-gcc", "-DCMAKE_C_FLAGS=-march=armv8.2-a+sve"]
    return built("sve", SVE, *cross)


def built(name: str, benchmarks: dict, *options: str) -> Path:
    """The folder of the programs, which are compiled again only where they have changed."""
    folder = backends.kept(name)
    for benchmark in ("benchkit", *benchmarks):
        backends.build(backends.PACKAGES / benchmark, folder, *options, *HOST_ALONE)
    return folder / "prefix" / "bin"


def code(objdump: str, program: Path, function: str) -> str:
    """The instructions of all functions of that name."""
    said = backends.must(objdump, "--disassemble", "--no-show-raw-insn", program)
    found = re.findall(rf"^[0-9a-f]+ <{function}>:\n((?:.+\n)+)", said, re.MULTILINE)
    assert found, function
    return "".join(found)


@pytest.mark.parametrize("benchmark", AVX512)
def test_avx512_is_used_at_its_whole_width(avx512, benchmark):
    assert "%zmm" in code("objdump", avx512 / benchmark, AVX512[benchmark])


@pytest.mark.parametrize("benchmark", SVE)
def test_sve_is_used(sve, benchmark):
    function, _ = SVE[benchmark]
    assert re.search(r"\tfc?mla\tz\d+\.d", code(f"{TRIPLE}-objdump", sve / benchmark, function))


@pytest.mark.parametrize(("benchmark", "bits"), LENGTHS)
def test_sve_of_each_length_is_verified(sve, tmp_path, benchmark, bits):
    qemu = ("qemu-aarch64", "-L", f"/usr/{TRIPLE}", "-cpu", f"max,sve-max-vq={bits // 128}")
    _, options = SVE[benchmark]
    _, lines = backends.measured(sve / benchmark, tmp_path, "--quick", *options, runner=qemu)
    assert lines and all(line["verified"] for line in lines)
