"""The environments for GPUs and the DSP build through Spack, and what they install runs; another
target= and an ARM machine of one's own get what Spack's users expect."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster import CHECKOUT, cache_folder
from tests.stranger import need_spack
from tests.targets import backends, c66x, cuda, pocl

CACHE = cache_folder()
EXTERNAL = """\
  {name}:
    externals:
    - spec: {name}@{version}
      prefix: {prefix}
"""
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
CLUSTER = ("joulemark-slurm", "joulemark", "joulemark-templates", "benchkit", "joulemark-suite")
USER_SPECS = "import spack.environment as e; print(*map(str, e.active_environment().user_specs))"


@pytest.fixture(scope="module")
def spack() -> Path:
    """The state's own Spack, with all that the environment of this machine has in its store."""
    need_spack()
    return CACHE / "bin" / "spack"


@pytest.fixture(scope="module")
def installed(spack) -> Callable[..., Path]:
    """Installs an environment, with more externals or files; returns its programs' folder."""
    place = CACHE / "targets" / "environments"

    def install(name: str, externals: str = "", files: dict[str, str] | None = None) -> Path:
        for part, source in (("common", CACHE), ("sites", CACHE), (name, CHECKOUT)):
            shutil.rmtree(place / part, ignore_errors=True)
            if (source / "environments" / part).exists():
                shutil.copytree(source / "environments" / part, place / part)
        for file, text in (files or {}).items():
            (place / name).mkdir(exist_ok=True)
            (place / name / file).write_text(text)
        detected = place / "sites" / "debian" / "detected.yaml"
        if externals.partition("\n")[0] not in detected.read_text().splitlines():
            detected.write_text(detected.read_text() + externals)
        link = place.parent / "spack-repo"
        link.unlink(missing_ok=True)
        link.symlink_to(CHECKOUT / "spack-repo")
        here = (spack, "-e", place / name)
        backends.must(*here, "concretize", "-f")
        backends.must(*here, "install", "-j", backends.JOBS)
        return place / name / ".spack-env" / "view" / "bin"

    return install


def having_recipes(backend: str) -> list[Path]:
    """The benchmarks that the suite takes, with their backend."""
    recipes = CHECKOUT / "spack-repo/spack_repo/joulemark/packages"
    found = backends.having(backend)
    return [one for one in found if (recipes / one.name.replace("-", "_")).is_dir()]


def test_opencl_is_built_by_spack_and_verifies_on_pocl(installed, tmp_path):
    pocl.require()
    sources, programs = having_recipes("opencl"), installed("opencl")
    assert sources
    for source in sources:
        _, lines = backends.measured(programs / source.name, tmp_path, "--quick")
        assert all(line["verified"] for line in backends.on_device(lines))
        assert backends.on_device(lines), f"{source.name}: no measurement names a device"


def test_cuda_is_built_by_spack(installed, tmp_path):
    nvcc = cuda.find(CACHE / "cuda")
    if nvcc is None:
        pytest.skip("CUDA was not built through Spack: there is no nvcc (see test_cuda.py)")
    prefix = nvcc.resolve().parents[1]
    external = EXTERNAL.format(name="cuda", version=cuda.version(nvcc), prefix=prefix)
    sources, programs = having_recipes("cuda"), installed("cuda", external)
    assert sources
    for source in sources:
        assert cuda.is_for_a_gpu(programs / source.name)
        _, lines = backends.measured(programs / source.name, tmp_path, "--quick")
        assert lines


def test_the_dsps_benchmarks_are_built_by_spack_and_run(installed, tmp_path):
    prefix = c66x.toolchain()
    version = backends.must(prefix / "bin/tic6x-elf-gcc", "-dumpfullversion").strip()
    external = EXTERNAL.format(name="tic6x-elf-gcc", version=version, prefix=prefix)
    sources, programs = having_recipes("c66x"), installed("dsp-c66x", external)
    assert sources
    words = ("--quick", "--variant", "c66x", "--min-seconds", "0.00005", "--cooked")
    for source in sources:
        program, cooked = programs / f"{source.name}.out", tmp_path / source.name
        header = c66x.Image(program, prefix).header()
        assert header["Machine"] == "Texas Instruments TMS320C6000 DSP family"
        c66x.simulate(programs / "c66x-sim", program, *words, cooked)
        lines = [json.loads(line) for line in cooked.read_text().splitlines()]
        assert lines and all(line["verified"] for line in lines)


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="x86_64_v2 is a target of x86-64")
def test_another_target_has_its_own_flags(installed):
    programs = installed("other-target", files={"spack.yaml": OTHER_TARGET})
    words = backends.must("readelf", "-p", ".GCC.command.line", programs / "dhrystone").split()
    assert "-march=x86-64-v2" in words and "-march=native" not in words, words
    backends.must(programs / "dhrystone", "--quick")


@pytest.mark.parametrize(("name", "machine"), [("aarch64", "aarch64"), ("armv7", "armv7l")])
def test_on_arm_all_of_joulemark_is_built(spack, tmp_path, name, machine):
    (tmp_path / "sitecustomize.py").write_text(ELSEWHERE)
    env = {"PYTHONPATH": str(tmp_path), "MACHINE": machine}
    here = CACHE / "environments" / name
    shutil.copytree(CHECKOUT / "environments" / name, here, dirs_exist_ok=True)
    done = backends.run(spack, "-e", here, "python", "-c", USER_SPECS, env=env)
    assert done.stdout.split() == [f"{name}@main" for name in CLUSTER]


def test_without_an_mpi_cmake_builds_the_rest(tmp_path):
    backends.build_benchkit(tmp_path)
    without = ("-DMPI_C_COMPILER=/none", "-DMPI_HOME=/none")
    said = backends.build(backends.PACKAGES / "jm-stream", tmp_path, *without)
    assert "jm-stream: no backend mpi: MPI was not found" in said
