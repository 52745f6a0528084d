# Builds the benchmarks that have a backend, and runs them. Needs only Python, CMake and compilers.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.cluster import CHECKOUT, cache_folder
from tests.launchers import launchers

PACKAGES = CHECKOUT / "packages"
JOBS = str(len(os.sched_getaffinity(0)))
LIMIT_S = 900
# Of a program started by hand: no rank of a job around it, a team that never spins in vain.
ENVIRONMENT = {
    "OMP_WAIT_POLICY": "passive",
    "POCL_MAX_PTHREAD_COUNT": "2",
    # Open MPI refuses root, and more ranks than cores, unless told otherwise
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


class Failed(Exception):
    """A command failed; the text has its words and the end of what it said."""


def having(backend: str) -> list[Path]:
    """The benchmarks that have this backend: a folder src/BACKEND beside the driver."""
    mains = sorted(PACKAGES.glob("*/src/main.c"))
    sources = (path.parents[1] for path in mains)
    return [source for source in sources if any((source / "src" / backend).glob("*.*"))]


def run(
    *words: str | Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    limit_s: float = LIMIT_S,
) -> subprocess.CompletedProcess:
    """A command's result, whatever its exit status; it has a time limit."""
    words = tuple(map(str, words))
    environment = {**os.environ, **ENVIRONMENT, **(env or {})}
    try:
        return subprocess.run(
            words,
            cwd=cwd,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=limit_s,
        )
    except subprocess.TimeoutExpired:
        raise Failed(f"{' '.join(words)}: no end after {limit_s:g} s") from None


def must(*words: str | Path, cwd: Path | None = None) -> str:
    """What a command said; Failed where it did not succeed."""
    done = run(*words, cwd=cwd)
    if done.returncode:
        end = "\n".join(done.stdout.splitlines()[-40:])
        raise Failed(f"{' '.join(map(str, words))}: exit {done.returncode}\n{end}")
    return done.stdout


def clang(program: str = "int main(void) { return 0; }", *flags: str) -> str:
    """The first that builds this program, the system's own before versioned ones."""
    said = "it is not installed"
    with tempfile.TemporaryDirectory(prefix="clang-") as folder:
        source = Path(folder) / "one.c"
        source.write_text(program)
        for name in ("clang", *(f"clang-{version}" for version in range(24, 12, -1))):
            if path := shutil.which(name):
                done = run(path, *flags, source, "-o", source.with_suffix(""))
                if done.returncode == 0:
                    return path
                said = f"{path}: {done.stdout.strip()}"
    raise Failed(f"no clang {' '.join(flags)} (Debian: clang, libclang-rt-dev): {said}")


def build(source: Path, folder: Path, *options: str) -> str:
    """Builds a project in FOLDER/build/NAME, no tests, and installs it into FOLDER/prefix."""
    made, prefix = folder / "build" / source.name, folder / "prefix"
    said = must(
        *("cmake", "--preset", "release", "-B", made, "-Wno-dev"),
        f"-DCMAKE_INSTALL_PREFIX={prefix}",
        f"-DCMAKE_PREFIX_PATH={prefix}",
        "-DCMAKE_INSTALL_RPATH_USE_LINK_PATH=ON",
        "-DBUILD_TESTING=OFF",
        *launchers(),
        *options,
        cwd=source,
    )
    said += must("cmake", "--build", made, "--parallel", JOBS)
    return said + must("cmake", "--install", made)


def kept(name: str) -> Path:
    """A folder that stays between runs: what has not changed is not compiled again."""
    folder = cache_folder() / "targets" / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def build_benchkit(folder: Path) -> None:
    """What all benchmarks need first."""
    build(PACKAGES / "benchkit", folder)


def measured(
    program: Path, folder: Path, *options: str, runner: Sequence[str] = ()
) -> tuple[str, list[dict]]:
    """What it said, and its cooked lines; Failed where it did not succeed."""
    cooked = folder / f"{program.name}.cooked.jsonl"
    cooked.unlink(missing_ok=True)
    words = (*runner, program, *options)
    said = must(*words, "--cooked", cooked, "--raw", folder / f"{program.name}.raw.txt")
    lines = cooked.read_text().splitlines() if cooked.exists() else []
    return said, [json.loads(line) for line in lines]


def on_device(lines: Sequence[dict]) -> list[dict]:
    """The measurements of which something other than the CPU's own code computed."""
    return [line for line in lines if line.get("device")]
