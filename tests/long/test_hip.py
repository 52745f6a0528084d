"""HIP compiles what it has of CUDA's kernels for MI200 and MI300, without a warning; without a GPU
the programs do without. tests/targets/test_cuda_on_cpu.py runs them."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.targets import backends

TARGETS = ("gfx90a", "gfx942")
BENCHMARKS = {source.name: source for source in backends.having("hip")}
MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
AMDGPU = 224  # ELF's number of the machine


@pytest.fixture(scope="module")
def targets() -> set[str]:
    """Those that the compiler knows: LLVM 15 does not know the second."""
    empty = ("-x", "hip", "-c", "/dev/null", "-o", "/dev/null")
    known = {
        one
        for one in TARGETS
        if not backends.run("hipcc", f"--offload-arch={one}", *empty).returncode
    }
    assert TARGETS[0] in known
    return known


@pytest.fixture(scope="module")
def folder() -> Path:
    made = backends.kept("hip")
    backends.build_benchkit(made)
    return made


def code_objects(program: Path) -> Iterator[tuple[str, bytes]]:
    """The targets of the code for GPUs that is in a program, with that code."""
    everything = program.read_bytes()
    for found in re.finditer(MAGIC, everything):
        bundle = everything[found.start() :]
        (count,) = struct.unpack_from("<Q", bundle, len(MAGIC))
        at = len(MAGIC) + 8
        for _ in range(count):
            begin, size, length = struct.unpack_from("<3Q", bundle, at)
            name = bundle[at + 24 : at + 24 + length].decode()
            at += 24 + length
            if not name.startswith("host"):
                yield name, bundle[begin : begin + size]


@pytest.mark.parametrize("name", BENCHMARKS)
def test_it_compiles_without_a_warning_and_does_without_a_gpu(folder, targets, name, tmp_path):
    option = f"-DCMAKE_HIP_ARCHITECTURES={';'.join(sorted(targets))}"
    said = backends.build(BENCHMARKS[name], folder, "-DBENCH_HIP=ON", option)
    assert not re.findall(r".*warning[ :#].*", said)
    program = folder / "prefix" / "bin" / name
    code = list(code_objects(program))
    assert {target.rpartition("--")[2] for target, _ in code} == targets
    assert {struct.unpack_from("<H", one, 18) for _, one in code} == {(AMDGPU,)}
    kernels = [one for _, one in code if b".kd\0" in one]  # not all files have some
    assert kernels and all(b".wavefront_size\x40" in one for one in kernels)
    _, lines = backends.measured(program, tmp_path, "--quick")
    assert lines and all(line["verified"] for line in lines)
