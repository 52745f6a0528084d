"""ARM: the benchmarks built through Spack for aarch64 and armv7, run, and verified.

On x86-64 they are cross-compiled and run by qemu-user; on ARM the machine's own environment is
built and its programs run as they are.
"""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cluster import CHECKOUT, cache_folder, state_folder

sys.path.insert(0, str(CHECKOUT / "environments"))
from building.with_cmake import BENCHMARKS

NO_SPACK = 3  # environments/build's exit status


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

    @property
    def runner(self) -> list[str]:
        return [] if self.native else [f"qemu-{self.family}", "-L", f"/usr/{self.triple}"]


AARCH64 = Target("aarch64", "aarch64", "aarch64-linux-gnu", "AArch64", "aarch64")
ARMV7 = Target("armv7", "arm", "arm-linux-gnueabihf", "ARM", "armv7l")


@pytest.fixture(scope="module", params=[AARCH64, ARMV7], ids=lambda target: target.environment)
def target(request: pytest.FixtureRequest) -> Target:
    wanted: Target = request.param
    if not wanted.native:
        for tool in (f"{wanted.triple}-gcc", wanted.runner[0]):
            if not shutil.which(tool):
                pytest.skip(f"no {tool}: tests/packages.txt names Debian's package")
    return wanted


@pytest.fixture(scope="module")
def programs(target: Target) -> Path:
    """The folder of the environment's programs, after environments/build made them."""
    build = [CHECKOUT / "environments/build", "--state", state_folder()]
    done = subprocess.run(
        [*build, "--environment", target.environment], stderr=subprocess.PIPE, text=True
    )
    if done.returncode == NO_SPACK:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stderr
    name = "build.env" if target.native else f"build-{target.environment}.env"
    words = dict(word.split("=", 1) for word in shlex.split((cache_folder() / name).read_text()))
    return Path(words["JOULEMARK_VIEW"], "bin")


@pytest.fixture(scope="module")
def run(target: Target, programs: Path) -> Callable[..., subprocess.CompletedProcess]:
    def call(benchmark: str, *options: str | Path) -> subprocess.CompletedProcess:
        words = [*target.runner, programs / benchmark, *options]
        # emulated threads that spin take the processors of those that work
        env = {**os.environ, "OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "passive"}
        return subprocess.run(words, capture_output=True, text=True, timeout=300, env=env)

    return call


def test_every_benchmark_is_built_for_the_target(target: Target, programs: Path) -> None:
    for benchmark in BENCHMARKS:
        words = ["readelf", "--file-header", "--arch-specific", programs / benchmark]
        said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        assert re.search(rf"Machine: +{target.machine}$", said, re.MULTILINE), (benchmark, said)
        if target is ARMV7:  # hard float: doubles in VFP registers
            assert "Tag_ABI_VFP_args: VFP registers" in said, benchmark


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_every_quick_run_is_verified(
    target: Target, run: Callable[..., subprocess.CompletedProcess], benchmark: str, tmp_path: Path
) -> None:
    cooked = tmp_path / "quick.cooked.jsonl"
    done = run(benchmark, "--quick", "--cooked", cooked)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [json.loads(line) for line in cooked.read_text().splitlines()]
    assert lines
    for line in lines:
        assert line["verified"] and line["performance"] is not None, line
        assert line["target"] == target.uname, line


def test_a_program_tells_a_wrong_option_there_too(
    run: Callable[..., subprocess.CompletedProcess],
) -> None:
    done = run(BENCHMARKS[0], "--sizes", "0")
    assert done.returncode == 2 and "--sizes '0'" in done.stderr
