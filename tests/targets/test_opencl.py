"""Every benchmark's OpenCL backend runs on PoCL, OpenCL on the CPU, and verifies."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

from pathlib import Path

import pytest

from tests.targets import backends, pocl

BENCHMARKS = {source.name: source for source in backends.having("opencl")}


@pytest.fixture(scope="module")
def folder() -> Path:
    pocl.require()
    made = backends.kept("opencl")
    backends.build_benchkit(made)
    return made


def test_there_are_backends():
    assert BENCHMARKS, "no packages/*/src/opencl beside a src/main.c"


@pytest.mark.parametrize("name", BENCHMARKS)
def test_it_verifies_on_pocl(folder, tmp_path, name):
    said = backends.build(BENCHMARKS[name], folder, "-DBENCH_OPENCL=ON")
    assert "warning:" not in said
    program = folder / "prefix" / "bin" / name
    _, lines = backends.measured(program, tmp_path, "--quick")
    on_device = backends.on_device(lines)
    assert on_device, "no measurement names a device"
    assert all(line["verified"] and line["performance"] > 0 for line in on_device)
