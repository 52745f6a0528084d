"""environments/opencl and environments/cuda build through Spack, and what they install runs."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster import CHECKOUT, Build, ClusterError, cache_folder
from tests.targets import backends, cuda

CACHE = cache_folder()
EXTERNAL = """\
  cuda:
    externals:
    - spec: cuda@{version}
      prefix: {prefix}
"""


@pytest.fixture(scope="module")
def spack() -> Path:
    """The state's own Spack, with all that the environment of this machine has in its store."""
    try:
        build = Build.load(CACHE)
    except ClusterError as why:
        pytest.skip(f"nothing was built through Spack: {why}")
    if build.built_by != "spack":
        pytest.skip(f"no Spack: {build.why}")
    return CACHE / "bin" / "spack"


@pytest.fixture(scope="module")
def installed(spack) -> Callable[[str, str], Path]:
    """Installs an environment, with more externals; returns the folder of its programs."""
    place = CACHE / "targets" / "environments"

    def install(name: str, externals: str = "") -> Path:
        for part, source in (("common", CACHE), (name, CHECKOUT)):
            shutil.rmtree(place / part, ignore_errors=True)
            shutil.copytree(source / "environments" / part, place / part)
        detected = place / "common" / "detected.yaml"
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
    sources, programs = having_recipes("opencl"), installed("opencl")
    for source in sources:
        status, said, lines = backends.measured(programs / source.name, tmp_path, "--quick")
        assert status == 0, said
        assert all(line["verified"] for line in backends.on_device(lines))
        assert backends.on_device(lines), f"{source.name}: no measurement names a device"


def test_cuda_is_built_by_spack(installed, tmp_path):
    nvcc = cuda.find(CACHE / "cuda")
    if nvcc is None:
        pytest.skip("CUDA was not built through Spack: there is no nvcc (see test_cuda.py)")
    prefix = nvcc.resolve().parents[1]
    external = EXTERNAL.format(version=cuda.version(nvcc), prefix=prefix)
    sources, programs = having_recipes("cuda"), installed("cuda", external)
    for source in sources:
        assert cuda.is_for_a_gpu(programs / source.name)
        status, said, lines = backends.measured(programs / source.name, tmp_path, "--quick")
        assert status == 0 and lines, said
