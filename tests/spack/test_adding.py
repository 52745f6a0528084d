"""Adding a benchmark: packages/README.md's, added to a copy of the checkout, builds and runs."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.checkout import copy_to
from tests.cluster import CHECKOUT, Build, cache_folder, state_folder
from tests.pages import files_of
from tests.targets.backends import must

FOLDERS = ("packages", "slurm-plugins", "spack-repo", "environments", "job-templates")
COMMAND = re.compile(r"^    ((?:cp|sed) .*)$", re.MULTILINE)
ENVIRONMENT = os.uname().machine


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout with the README's benchmark: its files, then its commands."""
    copy = tmp_path_factory.mktemp("adding") / "checkout"
    copy_to(copy, *FOLDERS)
    page = copy / "packages/README.md"
    files = files_of(page)
    assert "packages/dot/CMakeLists.txt" in files
    for name, text in files.items():
        path = copy / name
        assert not path.exists(), f"{name} is there already: the example changes nothing"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    commands = COMMAND.findall(page.read_text())
    assert len(commands) == 2
    for command in commands:
        must("sh", "-c", command, cwd=copy)
    return copy


def assert_verified(cooked: Path, variants: set[str]) -> dict:
    """All lines; returns the manifest, which they share."""
    lines = [json.loads(line) for line in cooked.read_text().splitlines()]
    assert {line["variant"] for line in lines} == variants
    assert all(line["benchmark"] == "dot" and line["verified"] for line in lines), lines
    manifest = lines[0]["manifest"]
    assert re.fullmatch(r"[\d.]+", manifest["version"])
    assert manifest["compiler"].split()[1][0].isdigit()
    assert "libc.so" in manifest["libraries"]
    return manifest


@pytest.mark.parametrize("preset", ["release", "asan"])
def test_it_builds_and_passes_its_tests_by_cmake(checkout, preset, tmp_path):
    prefix = tmp_path / "prefix"
    for name in ("benchkit", "dot"):
        build = tmp_path / name
        options = (f"-DCMAKE_INSTALL_PREFIX={prefix}", f"-DCMAKE_PREFIX_PATH={prefix}")
        testing = f"-DBUILD_TESTING={'ON' if name == 'dot' else 'OFF'}"
        source = checkout / "packages" / name
        must("cmake", "--preset", preset, "-B", build, *options, testing, cwd=source)
        must("cmake", "--build", build, "--parallel", "2")
        must("cmake", "--install", build)
    must("ctest", "--test-dir", tmp_path / "dot", "--no-tests=error")
    must(prefix / "bin/dot", "--quick", "--cooked", tmp_path / "cooked.jsonl")
    manifest = assert_verified(tmp_path / "cooked.jsonl", {"serial", "omp"})
    assert {"release": "-O3", "asan": "-O1"}[preset] in manifest["flags"].split()
    assert manifest["spack_hash"] is None


def test_the_build_without_spack_finds_it(checkout):
    ask = "from building.with_cmake import BENCHMARKS, PROJECTS; print(*BENCHMARKS, *PROJECTS)"
    path = f"PYTHONPATH={checkout / 'environments'}:{checkout / 'spack-repo'}"
    found = must("env", path, sys.executable, "-c", ask).split()
    assert {"dot", "packages/dot"} <= set(found)


def test_its_files_keep_to_the_houses_layout(checkout):
    sources = sorted((checkout / "packages/dot").rglob("*.[ch]"))
    style = f"--style=file:{CHECKOUT / '.clang-format'}"
    must(Path(sys.executable).with_name("clang-format"), style, "--dry-run", "-Werror", *sources)
    must("shellcheck", checkout / "job-templates/dot.sbatch")
    assert "\njm_load dot\n" in (checkout / "job-templates/dot.sbatch").read_text()


def test_it_builds_by_spack_with_the_suite_and_nothing_else_does(checkout, tmp_path):
    must(CHECKOUT / "environments/build", "--state", state_folder())
    built = Build.load(cache_folder())
    if built.built_by != "spack":
        pytest.skip(f"no Spack: {built.why}")
    environments = cache_folder() / "environments"
    here = checkout / "environments"
    detected = "sites/debian/detected.yaml"
    shutil.copy(environments / detected, here / detected)
    spack = (cache_folder() / "bin/spack", "-e", here / ENVIRONMENT)
    must(*spack, "concretize", "-f")
    before = installed_hashes(environments / ENVIRONMENT)
    after = installed_hashes(here / ENVIRONMENT)
    changed = {name for name, key in after.items() if before.get(name) != key}
    assert changed == {"dot", "joulemark-suite", "joulemark-templates"}
    must(*spack, "install")
    dot = here / ENVIRONMENT / ".spack-env/view/bin/dot"
    must(dot, "--quick", "--cooked", tmp_path / "cooked.jsonl")
    manifest = assert_verified(tmp_path / "cooked.jsonl", {"serial", "omp"})
    assert manifest["spack_hash"] == after["dot"]
    assert re.match(r"dot@main.*\+openmp", manifest["spack_spec"])
    assert "1 passed of 1" in must(*spack, "test", "run", "dot")


def installed_hashes(environment: Path) -> dict[str, str]:
    specs = json.loads((environment / "spack.lock").read_text())["concrete_specs"]
    return {spec["name"]: key for key, spec in specs.items()}
