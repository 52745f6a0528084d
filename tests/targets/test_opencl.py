"""Every benchmark's OpenCL backend runs on PoCL, OpenCL on the CPU, and verifies."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import ctypes
import ctypes.util
from pathlib import Path

import pytest

from tests.cluster import cache_folder
from tests.targets import backends

BENCHMARKS = {source.name: source for source in backends.having("opencl")}
PLATFORM_NAME = 0x0902


def platforms() -> list[str]:
    """The names of this machine's OpenCL platforms."""
    name = ctypes.util.find_library("OpenCL")
    if name is None:
        return []
    library = ctypes.CDLL(name)
    count = ctypes.c_uint()
    if library.clGetPlatformIDs(0, None, ctypes.byref(count)):
        return []
    found = (ctypes.c_void_p * count.value)()
    library.clGetPlatformIDs(count, found, None)
    names = []
    for one in found:
        text = ctypes.create_string_buffer(256)
        library.clGetPlatformInfo(ctypes.c_void_p(one), PLATFORM_NAME, 256, text, None)
        names.append(text.value.decode())
    return names


@pytest.fixture(scope="module")
def folder() -> Path:
    """Kept between runs: what has not changed is not compiled again."""
    if not any("Portable Computing Language" in name for name in platforms()):
        pytest.skip("OpenCL was not run: there is no PoCL (Debian: pocl-opencl-icd)")
    made = cache_folder() / "targets" / "opencl"
    made.mkdir(parents=True, exist_ok=True)
    backends.build_benchkit(made)
    return made


def test_there_are_backends():
    assert BENCHMARKS, "no packages/*/src/opencl beside a src/main.c"


@pytest.mark.parametrize("name", BENCHMARKS)
def test_it_verifies_on_pocl(folder, tmp_path, name):
    said = backends.build(BENCHMARKS[name], folder, "-DBENCH_OPENCL=ON", "-DBUILD_TESTING=OFF")
    assert "warning:" not in said
    program = folder / "prefix" / "bin" / name
    status, said, lines = backends.measured(program, tmp_path, "--quick")
    assert status == 0, said
    on_device = backends.on_device(lines)
    assert on_device, "no measurement names a device"
    assert all(line["verified"] and line["performance"] > 0 for line in on_device)
