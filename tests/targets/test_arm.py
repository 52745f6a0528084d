"""ARM: the benchmarks built through Spack for aarch64 and armv7, run, and verified.

On x86-64 they are cross-compiled, with MPI and libraries of Debian's packages for ARM, and run by
qemu-user; on ARM the machine's own environment is built and its programs run as they are.
"""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from building.with_cmake import BENCHMARKS

from tests.cluster import CHECKOUT, cache_folder, state_folder
from tests.spack.sites import LEFT_TO_LOCK, left_to_lock
from tests.targets import backends

NO_SPACK = 3  # environments/build's exit status
#: benchmarks and the variants that libraries bring them; two ranks add those of MPI
BY_LIBRARIES = {"mod2am": {"blas"}, "mod2f": {"fftw"}, "jm-linpack": {"blas"}}
ON_RANKS = {"mod2am": "pdgemm", "mod2f": "mpi", "jm-stream": "mpi"}


@dataclass(frozen=True)
class Target:
    environment: str
    family: str  # Spack's and qemu's word
    triple: str  # Debian's
    machine: str  # readelf's word
    uname: str

    @property
    def native(self) -> bool:
        return os.uname().machine == self.uname


@dataclass(frozen=True)
class Built:
    """What environments/build says of the programs that it made."""

    programs: Path
    runner: list[str]  # runs a program; empty where none is needed


AARCH64 = Target("aarch64", "aarch64", "aarch64-linux-gnu", "AArch64", "aarch64")
ARMV7 = Target("armv7", "arm", "arm-linux-gnueabihf", "ARM", "armv7l")


@pytest.fixture(scope="module", params=[AARCH64, ARMV7], ids=lambda target: target.environment)
def target(request: pytest.FixtureRequest) -> Target:
    return request.param


@pytest.fixture(scope="module")
def built(target: Target) -> Built:
    build = [CHECKOUT / "environments/build", "--state", state_folder()]
    done = subprocess.run(
        [*build, "--environment", target.environment], stderr=subprocess.PIPE, text=True
    )
    if done.returncode == NO_SPACK:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stderr
    name = "build.env" if target.native else f"build-{target.environment}.env"
    words = dict(word.split("=", 1) for word in shlex.split((cache_folder() / name).read_text()))
    runner = words.get("JOULEMARK_RUNNER", "").split()
    return Built(Path(words["JOULEMARK_VIEW"], "bin"), runner)


@pytest.fixture(scope="module")
def libraries(target: Target, built: Built) -> Path:
    """The folder in which the target's libraries are."""
    return Path("/") if target.native else there(Path(built.runner[-1]), "versions", target).parent


@pytest.fixture(scope="module")
def mpiexec(target: Target, libraries: Path) -> Path:
    return there(libraries, "usr/bin/mpiexec", target)


def there(root: Path, file: str, target: Target) -> Path:
    """The file in the target's root; where it is not, environments/cross/prepare has said why."""
    if not (root / file).exists():
        log = cache_folder() / f"log/prepare-{target.environment}.log"
        said = [line for line in log.read_text().splitlines() if line.startswith("prepare: no ")]
        pytest.skip(" ".join(said))
    return root / file


@pytest.fixture
def run(built: Built, tmp_path: Path) -> Callable[..., list[dict]]:
    """Runs a benchmark's quick case, by a launcher where one is given; its cooked lines."""

    def call(benchmark: str, *launcher: str | Path) -> list[dict]:
        cooked = tmp_path / "quick.cooked.jsonl"
        words = [*launcher, *built.runner, built.programs / benchmark]
        words += ["--quick", "--cooked", cooked]
        done = backends.run(*words, env={"OMP_NUM_THREADS": "2"}, limit_s=300)
        assert done.returncode == 0, done.stdout
        lines = [json.loads(line) for line in cooked.read_text().splitlines()]
        assert all(line["verified"] for line in lines), lines
        return lines

    return call


def test_every_benchmark_is_built_for_the_target(target, built):
    for benchmark in BENCHMARKS:
        words = ("readelf", "--file-header", "--arch-specific", built.programs / benchmark)
        said = backends.must(*words)
        assert re.search(rf"Machine: +{target.machine}$", said, re.MULTILINE), (benchmark, said)
        if target is ARMV7:  # hard float: doubles in VFP registers
            assert "Tag_ABI_VFP_args: VFP registers" in said, benchmark


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_every_quick_run_is_verified(target, run, benchmark, request):
    lines = run(benchmark)
    assert lines
    for line in lines:
        assert line["performance"] is not None and line["target"] == target.uname, line
    if benchmark in BY_LIBRARIES:
        request.getfixturevalue("libraries")
        assert BY_LIBRARIES[benchmark] <= {line["variant"] for line in lines}


@pytest.mark.parametrize("benchmark", ON_RANKS)
def test_two_ranks_are_verified(mpiexec, run, benchmark):
    lines = run(benchmark, mpiexec, "-n", "2")
    on_ranks = [line for line in lines if line["variant"] == ON_RANKS[benchmark]]
    assert on_ranks and all(line["ranks"] == 2 for line in on_ranks)


def test_opencl_is_built_for_the_target(built, libraries):
    """No device can be had there; PoCL runs this machine's own in test_opencl.py."""
    if not built.runner:
        pytest.skip("on ARM itself OpenCL is for environments/opencl to build")
    for source in backends.having("opencl"):
        said = backends.must("readelf", "--dynamic", built.programs / source.name)
        assert "[libOpenCL.so.1]" in said


def test_nothing_else_is_left_to_lock(built):
    assert left_to_lock(built.programs.parents[2]) == LEFT_TO_LOCK


def test_a_program_tells_a_wrong_option_there_too(built):
    words = [*built.runner, built.programs / BENCHMARKS[0], "--sizes", "0"]
    done = backends.run(*words, limit_s=60)
    assert done.returncode == 2 and "--sizes '0'" in done.stdout
