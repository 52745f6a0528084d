"""The environments for GPUs build through Spack, and what they install runs; another target= and
an ARM machine of one's own get what Spack's users expect."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import os
import shutil

import pytest

from tests.cluster import CHECKOUT, cache_folder
from tests.stranger import need_spack
from tests.targets import backends, cuda, environments, pocl

CACHE = cache_folder()
#: an environment of one program, which keeps the words of the compiler's command line
OTHER_TARGET = """\
# SPDX-License-Identifier: Apache-2.0 OR MIT
spack:
  include: [../sites, ../common]
  specs: ["dhrystone@main target=x86_64_v2 cflags=-frecord-gcc-switches"]
  view: {default: {root: .spack-env/view}}
"""
#: Python's start-up file for a Spack that believes to run on another machine
ELSEWHERE = """\
import os, platform
machine, here = os.environ["MACHINE"], os.uname()
platform.machine = lambda: machine
os.uname = lambda: os.uname_result((*here[:4], machine))
"""
CLUSTER = ("joulemark-slurm", "joulemark", "joulemark-templates", "fs-scan", "benchkit")
CLUSTER += ("joulemark-suite",)
USER_SPECS = "import spack.environment as e; print(*map(str, e.active_environment().user_specs))"


def test_opencl_is_built_by_spack_and_verifies_on_pocl(tmp_path):
    pocl.require()
    sources, programs = environments.having_recipes("opencl"), environments.install("opencl")
    assert sources
    for source in sources:
        _, lines = backends.measured(programs / source.name, tmp_path, "--quick")
        assert all(line["verified"] for line in backends.on_device(lines))
        assert backends.on_device(lines), f"{source.name}: no measurement names a device"


def test_cuda_is_built_by_spack(tmp_path):
    nvcc = cuda.find(CACHE / "cuda")
    if nvcc is None:
        pytest.skip("CUDA was not built through Spack: there is no nvcc (see test_cuda.py)")
    prefix = nvcc.resolve().parents[1]
    external = environments.external("cuda", cuda.version(nvcc), prefix)
    sources, programs = environments.having_recipes("cuda"), environments.install("cuda", external)
    assert sources
    for source in sources:
        assert cuda.is_for_a_gpu(programs / source.name)
        _, lines = backends.measured(programs / source.name, tmp_path, "--quick")
        assert lines


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="x86_64_v2 is a target of x86-64")
def test_another_target_has_its_own_flags():
    programs = environments.install("other-target", files={"spack.yaml": OTHER_TARGET})
    words = backends.must("readelf", "-p", ".GCC.command.line", programs / "dhrystone").split()
    assert "-march=x86-64-v2" in words and "-march=native" not in words, words
    backends.must(programs / "dhrystone", "--quick")


@pytest.mark.parametrize(("name", "machine"), [("aarch64", "aarch64"), ("armv7", "armv7l")])
def test_on_arm_all_of_joulemark_is_built(tmp_path, name, machine):
    need_spack()
    (tmp_path / "sitecustomize.py").write_text(ELSEWHERE)
    env = {"PYTHONPATH": str(tmp_path), "MACHINE": machine}
    here = CACHE / "environments" / name
    shutil.copytree(CHECKOUT / "environments" / name, here, dirs_exist_ok=True)
    done = backends.run(environments.SPACK, "-e", here, "python", "-c", USER_SPECS, env=env)
    assert done.stdout.split() == [f"{name}@main" for name in CLUSTER]


def test_without_an_mpi_cmake_builds_the_rest(tmp_path):
    backends.build_benchkit(tmp_path)
    without = ("-DMPI_C_COMPILER=/none", "-DMPI_HOME=/none")
    said = backends.build(backends.PACKAGES / "jm-stream", tmp_path, *without)
    assert "jm-stream: no backend mpi: MPI was not found" in said
