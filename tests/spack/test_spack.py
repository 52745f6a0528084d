"""Spack and the build: recipes, externals, edits, modules, and the way without Spack."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import fcntl
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from building.steps import modules_by_library
from building.with_cmake import BENCHMARKS
from building.with_spack import PACKAGES_COMMIT, SOURCES
from spack_repo.joulemark.build_systems.benchmarks import (
    COMMON_NAMES,
    backends_in_recipe,
    backends_of,
    module_of,
)

from tests.checkout import PROJECT, copy_to, repository_of
from tests.cluster import CHECKOUT, Build, cache_folder, state_folder
from tests.spack.lmod import Lmod, loading
from tests.spack.sites import LEFT_TO_LOCK, built_in, left_to_lock
from tests.stranger import stranger_in

RECIPES = sorted(CHECKOUT.glob("spack-repo/spack_repo/joulemark/**/*.py"))
PACKAGES = [path.parent.name.replace("_", "-") for path in RECIPES if path.name == "package.py"]
GENERATED = ("detected.yaml", "aarch64-here.yaml", "armv7-here.yaml")
#: by its name alone Lmod would load it
LEFT = Path("joulemark/99.lua")

#: Debian's package of an external
DEBIAN = {
    **{name: name for name in ("bison", "cmake", "flex", "lmod", "m4", "pkgconf")},
    **{n: f"lib{n}-dev" for n in ("freeipmi", "gmp", "hdf5", "jansson", "mpc", "mpfr", "slurm")},
    **{f"py-{n}": f"python3-{n}" for n in ("h5py", "matplotlib", "paho-mqtt", "pip", "psycopg2")},
    **{f"py-{n}": f"python3-{n}" for n in ("pymysql", "rich", "setuptools", "wheel")},
    "curl": "libcurl4-openssl-dev",
    "fftw": "libfftw3-dev",
    "gmake": "make",
    "libmodbus": "libmodbus-dev",
    "libyaml": "libyaml-dev",
    "mosquitto": "libmosquitto-dev",
    "net-snmp": "libsnmp-dev",
    "netlib-scalapack": "libscalapack-openmpi-dev",
    "ocl-icd": "ocl-icd-opencl-dev",
    "openblas": "libopenblas-openmp-dev",
    "openmpi": "libopenmpi-dev",
    "py-pyyaml": "python3-yaml",
    "python": "python{}.{}".format(*sys.version_info),  # python3 may be of another day
    "sqlite": "libsqlite3-dev",
    "zlib": "zlib1g-dev",
}


def run(*command: str | Path, **options) -> subprocess.CompletedProcess:
    """A command that must succeed; its output is in the failure's message."""
    done = subprocess.run(
        list(map(str, command)), text=True, capture_output=True, timeout=300, **options
    )
    assert done.returncode == 0, f"{done.args}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def build_in(
    state: Path, *options: str, checkout: Path = CHECKOUT, env: dict | None = None
) -> subprocess.Popen:
    return subprocess.Popen(
        [checkout / "environments/build", "--state", state, *options],
        stderr=subprocess.PIPE,
        text=True,
        env=env,
    )


def finish(child: subprocess.Popen, status: int = 0) -> str:
    try:
        said = child.communicate(timeout=400)[1]
    except subprocess.TimeoutExpired:
        child.terminate()  # its commands end with it
        raise
    assert child.returncode == status, said
    return said


def steps_in(said: str) -> list[str]:
    """The steps that a build has taken."""
    return re.findall(r"^build: (?!done by )(.+) [\d.]+ s$", said, re.MULTILINE)


def leave_module(modules: Path) -> Path:
    """What a build of another version has left there."""
    left = modules / LEFT
    left.parent.mkdir(parents=True, exist_ok=True)
    left.write_text("")
    return left


@pytest.fixture(scope="session")
def built() -> Build:
    """The state's build, brought up to date."""
    finish(build_in(state_folder()))
    return Build.load(cache_folder())


@pytest.fixture(scope="session")
def offline(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """A state built where there is no Spack, and where git reaches nothing."""
    folder = tmp_path_factory.mktemp("offline")
    git = folder / "bin/git"
    git.parent.mkdir()
    git.write_text("#!/bin/sh\necho 'fatal: Could not resolve host: github.com' >&2\nexit 128\n")
    git.chmod(0o755)
    env = {"PATH": f"{git.parent}:/usr/bin:/bin", "HOME": str(folder)}
    leave_module(folder / "state/cache/modules")
    said = finish(build_in(folder / "state", env=env))
    assert "building by CMake, without Spack: https://github.com/spack/" in said
    return Build.load(folder / "state/cache")


@pytest.fixture(scope="session", params=["built", "offline"])
def made(request: pytest.FixtureRequest) -> Build:
    """One of the two: what is built is for the same use."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="session")
def spack(built: Build) -> Callable[..., str]:
    """`spack("audit", ...)` in the environment that the state was built from."""
    if built.built_by != "spack":
        pytest.skip(f"no Spack: {built.why}")
    return lambda *words: run(cache_folder() / "bin/spack", "-e", environment(), *words).stdout


def environment() -> Path:
    return cache_folder() / "environments" / os.uname().machine


def hashes(folder: Path) -> dict[str, str]:
    """What the environment in this folder is to install: name and hash."""
    specs = json.loads((folder / "spack.lock").read_text())["concrete_specs"]
    return {spec["name"]: key for key, spec in specs.items()}


@pytest.fixture(scope="session")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources as a clone has them, in another place."""
    copy = tmp_path_factory.mktemp("elsewhere") / "checkout"
    return copy_to(copy, *SOURCES)


@pytest.fixture(scope="session")
def spack_elsewhere(spack: Callable[..., str], elsewhere: Path) -> Callable[..., str]:
    """`spack -e environments/x86_64 ...`, as a user types it in that other place."""
    detected = "sites/debian/detected.yaml"
    shutil.copy(environment().parent / detected, elsewhere / "environments" / detected)
    command = cache_folder() / "bin/spack"
    return lambda *words: run(command, "-e", environment_of(elsewhere), *words).stdout


def environment_of(checkout: Path) -> Path:
    return checkout / "environments" / os.uname().machine


def in_module(made: Build, name: str, command: str, home: Path) -> str:
    """Run a command after `module load NAME`, as a job template loads it."""
    return Lmod(made.modules, home)(f"{loading(name)} || exit", command)


# What is built


def test_a_second_build_builds_nothing(spack):
    said = finish(build_in(state_folder()))
    assert "nothing has changed" in said
    assert steps_in(said) == ["detect externals"]


def test_builtins_recipes_are_those_of_one_commit_whatever_the_users_are(spack, tmp_path):
    (tmp_path / ".spack").mkdir()
    (tmp_path / ".spack/repos.yaml").write_text("repos: {builtin: /that/have/moved/on}\n")
    env = {**os.environ, "HOME": str(tmp_path)}
    place = run(cache_folder() / "bin/spack", "location", "--repo", "builtin", env=env).stdout
    assert run("git", "-C", place.strip(), "rev-parse", "HEAD").stdout.strip() == PACKAGES_COMMIT


def test_nothing_else_is_left_to_lock(spack):
    """The rest is the machine's, or this tree's, whose hashes each commit changes."""
    assert left_to_lock(environment()) == LEFT_TO_LOCK
    assert set(BENCHMARKS) < set(built_in(environment()))


def test_what_an_earlier_version_left_is_no_module(built, offline):
    left = leave_module(built.modules)
    (cache_folder() / "build.stamp").unlink()  # as an edit would
    finish(build_in(state_folder()))
    for modules in (left, offline.modules / LEFT):
        assert not modules.exists()
        assert list(modules.parent.iterdir())


def test_the_build_is_whole(made):
    programs = ("sbin/joulemarkd", "bin/joulemarkctl", "libexec/joulemark/joulemark-cores")
    for part in (*programs, "lib/slurm/spank_joulemark.so"):
        assert (made.slurm_prefix / part).is_file()
    modules = {path.stem for path in (made.slurm_prefix / "lib/joulemark").glob("*.so")}
    assert modules == {module for module, has in modules_by_library().items() if has}
    assert "usage: joulemark" in run(made.bin / "joulemark", "--help").stdout


def test_the_daemon_links_with_no_instruments_library(made):
    said = run("readelf", "-d", made.slurm_prefix / "sbin/joulemarkd").stdout
    needed = set(re.findall(r"\(NEEDED\).*\[(lib[\w+-]+)\.so", said))
    assert needed <= {"libyaml-0", "libsqlite3", "libm", "libc"}, needed


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_a_loaded_module_runs(made, benchmark, tmp_path):
    in_module(made, module_of(benchmark), f"{benchmark} --quick --cooked cooked.jsonl", tmp_path)
    lines = (tmp_path / "cooked.jsonl").read_text().splitlines()
    assert lines and all(json.loads(line)["verified"] for line in lines)


def test_loading_the_command_hides_no_other_python(made, tmp_path):
    where = "command -v joulemark python3"
    command, python = in_module(made, "joulemark", where, tmp_path).split()
    assert (command, python) == (str(made.bin / "joulemark"), "/usr/bin/python3")


def test_a_users_python_program_finds_the_regions(made, tmp_path):
    program = "from joulemark import region\nwith region('solve'): print('solved')"
    command = f"env -C / python3 -c {shlex.quote(program)}"
    assert in_module(made, "joulemark", command, tmp_path) == "solved\n"


def test_the_commands_module_shows_the_job_templates(made, tmp_path):
    shown = in_module(made, "joulemark", "ls $JOULEMARK_TEMPLATES", tmp_path)
    templates = (path.name for path in CHECKOUT.glob("job-templates/*.sbatch"))
    assert sorted(shown.split()) == sorted([*templates, "joulemark-job.sh"])


def test_the_commands_module_knows_the_applications(made, tmp_path):
    shown = in_module(made, "joulemark", "joulemark app list --format csv", tmp_path)
    names = [line.partition(",")[0] for line in shown.splitlines()[1:]]
    assert names == sorted(path.stem for path in CHECKOUT.glob("packages/apps/*.yaml"))


def test_a_benchmarks_module_has_one_name_everywhere():
    """In Spack's tree, in CMake's, and where the templates load it."""
    script = (CHECKOUT / "job-templates/joulemark-job.sh").read_text()
    prefixed = re.search(r"case \$1 in (.*)\) name=jm-\$1", script)[1].split(" | ")
    set_of_ours = (CHECKOUT / "environments/common/modules.yaml").read_text()
    projected = re.findall(r"^        (\S+): jm-\{name\}", set_of_ours, re.MULTILINE)
    assert prefixed == projected == list(COMMON_NAMES)
    assert set(COMMON_NAMES) < set(BENCHMARKS)


# Recipes


def test_recipes_pass_the_audit(spack):
    spack("audit", "packages", *PACKAGES)
    spack("audit", "configs")
    spack("audit", "externals", *PACKAGES)


def test_recipes_have_spacks_style(spack):
    spack("style", "-t", "import", *map(str, RECIPES))
    rules = Path(spack("location", "--repo", "builtin").strip()).parents[2] / "pyproject.toml"
    if subprocess.run([sys.executable, "-m", "ruff", "--version"], capture_output=True).returncode:
        pytest.skip("no ruff in the tests' Python environment")
    ruff = (sys.executable, "-m", "ruff")
    run(*ruff, "check", "--no-fix", "--no-cache", "--config", rules, *RECIPES)
    run(*ruff, "format", "--check", "--no-cache", "--config", rules, *RECIPES)


def test_each_module_of_cmake_is_a_variant(spack):
    said = spack("info", "--no-dependencies", "joulemark-slurm")
    for module in modules_by_library():
        assert re.search(rf"^ +{module} \[", said, re.MULTILINE), (module, said)


def test_recipes_are_short():
    for recipe in RECIPES:
        if recipe.name == "package.py":
            lines = recipe.read_text().splitlines()  # each release brings one
            own = [line for line in lines if not line.startswith("    version(")]
            assert len(own) < 60, recipe


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_each_benchmark_has_a_recipe_of_its_backends_and_a_template(benchmark):
    assert backends_in_recipe(benchmark) is not None
    assert sorted(backends_in_recipe(benchmark)) == sorted(backends_of(benchmark))
    templates = [path.read_text() for path in CHECKOUT.glob("job-templates/*.sbatch")]
    assert any(f"\njm_load {benchmark}\n" in text for text in templates)


def test_slurms_that_the_plugins_are_for_are_taken_and_no_other(spack):
    ask = "import spack.repo, spack.spec; d = spack.repo.PATH.get_pkg_class('joulemark-slurm')"
    ask += ".dependencies_by_name(); s = next(iter(d['slurm'])).spec; "
    ask += "print(*(spack.spec.Spec('slurm@' + v).satisfies(s) for v in '{}'.split()))"
    for known, versions in (
        ("True", "22-05-8-1 22-05-9-1 24-11-5-1 25-11-6-1 26-05-1-1 26-05-5-1"),
        ("False", "21-08-8-2 26-11-0-1 27-05-0-1"),
    ):
        assert set(spack("python", "-c", ask.format(versions)).split()) == {known}


def test_spack_runs_each_small_verified_case(spack):
    tested = [*BENCHMARKS, "fs-scan", "joulemark", "joulemark-slurm", "joulemark-templates"]
    assert f"{len(tested)} passed of {len(tested)}" in spack("test", "run", *tested)


# Externals


def detected(file: Path) -> dict[str, str]:
    """What environments/detect writes: the version of each external by its name."""
    run(CHECKOUT / "environments/detect", file)
    packages = yaml.safe_load(file.read_text())["packages"]
    specs = {name: entry["externals"][0]["spec"] for name, entry in packages.items()}
    return {name: re.search(r"@([\w.-]+)", spec)[1] for name, spec in specs.items()}


@pytest.mark.skipif(not shutil.which("dpkg-query"), reason="not a Debian")
def test_each_external_has_the_machines_version(tmp_path):
    stated = detected(tmp_path / "detected.yaml")
    assert stated.pop("gcc") == run("gcc", "-dumpfullversion").stdout.strip()
    assert stated.keys() - {"cuda", "lustre"} == DEBIAN.keys()
    stated["slurm"] = stated["slurm"].removesuffix("-1").replace("-", ".")
    for name, debian in DEBIAN.items():
        there = run("dpkg-query", "-W", "-f", "${source:Upstream-Version}", debian).stdout
        upstream = there.rpartition("really")[2].replace("~", "")  # of 1.3.dfsg+really1.3.1
        assert stated[name] == re.match(r"\d+(\.\d\w*)+", upstream)[0], (name, there)


def test_what_is_missing_is_no_external(tmp_path):
    for name in ("make", "gcc"):
        (tmp_path / name).symlink_to(shutil.which(name))
    detect = (sys.executable, CHECKOUT / "environments/detect", tmp_path / "detected.yaml")
    run(*detect, env={"PATH": str(tmp_path)})
    text = (tmp_path / "detected.yaml").read_text()
    assert "languages:='c'" in text and "  gmake:\n" in text
    assert "None" not in text and "openmpi" not in text and "fftw" not in text


def test_no_version_is_written_by_hand():
    for file in CHECKOUT.glob("environments/**/*.yaml"):
        if file.name in GENERATED or "examples" in file.parts:
            continue
        text = yaml.safe_load(file.read_text())
        packages = text.get("spack", text).get("packages", {})
        assert not [name for name, entry in packages.items() if "externals" in entry], file


def test_mpi_and_libraries_come_from_the_site(spack):
    asked = ["openmpi", "netlib-scalapack", "fftw", "lmod", "slurm"]
    said = spack("spec", "--install-status", *asked)
    for name in asked:
        assert re.search(rf"^\[e\] +{name}@", said, re.MULTILINE), said


def test_a_suite_without_fftw_has_all_other_ranks(spack):
    """FFTW's own are what mod2f's need."""
    said = spack("spec", "joulemark-suite@main ~fftw+mpi")
    for name, variants in (("mod2f", "~fftw~mpi"), ("hydro", "+mpi"), ("mod2am", "+mpi")):
        (line,) = re.findall(rf"(?m)^.* \^{name}@.*$", said)
        assert all(one in line for one in re.findall(r"[+~]\w+", variants)), line


# Edits


def test_a_clone_elsewhere_has_the_same_hashes(spack_elsewhere, elsewhere):
    """What is read or tried there, and what editors and jobs leave, is no part of them."""
    hydro = ("README.md", "tests/more.c", "src/hydro.c~", "hydro.7.omp.raw.txt", "core")
    left = ("slurm-12.out", "jm-stream.12.cooked.jsonl", "core.4711")
    for name in (*(f"packages/hydro/{n}" for n in hydro), *(f"job-templates/{n}" for n in left)):
        (elsewhere / name).write_text("other")
    spack_elsewhere("concretize", "-f")
    assert hashes(environment_of(elsewhere)) == hashes(environment())


def test_an_edit_builds_anew_what_depends_on_it(spack_elsewhere, elsewhere):
    header = elsewhere / "packages/benchkit/include/benchkit.h"
    edit = f"/* edited {time.time_ns()} */\n"  # no earlier run of the tests has built it
    header.write_text(f"{header.read_text()}\n{edit}")
    spack_elsewhere("concretize", "-f")
    before, after = hashes(environment()), hashes(environment_of(elsewhere))
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"benchkit", "joulemark-suite", *BENCHMARKS}
    said = header.read_text()
    header.write_text(said + "/* again */\n")
    with pytest.raises(AssertionError, match="benchkit was edited since its hash: `spack concr"):
        spack_elsewhere("install", "benchkit")
    header.write_text(said)
    spack_elsewhere("install", "benchkit")
    prefix = Path(spack_elsewhere("location", "-i", "benchkit").strip())
    assert (prefix / "include/benchkit.h").read_text().endswith(edit)


def test_what_is_edited_while_it_is_built_is_not_installed(spack_elsewhere, elsewhere):
    """As by an editor between configuring and the end of a long `make`."""
    lists = elsewhere / "packages/dhrystone/CMakeLists.txt"
    late = f'file(APPEND ${{CMAKE_CURRENT_LIST_FILE}} "# {time.time_ns()}\\n")\n'
    lists.write_text(lists.read_text() + late)
    spack_elsewhere("concretize", "-f")
    with pytest.raises(AssertionError, match="dhrystone was edited since its hash"):
        spack_elsewhere("install", "dhrystone")
    assert "dhrystone" not in spack_elsewhere("find", "--format", "{name}")


def test_what_is_developed_is_built_again_after_each_edit(spack_elsewhere, elsewhere, tmp_path):
    source = shutil.copytree(elsewhere / "packages/dhrystone", tmp_path / "dhrystone")
    spack_elsewhere("develop", "--path", source, "dhrystone@main")
    spack_elsewhere("concretize", "-f")
    spack_elsewhere("install", "dhrystone")
    lists = source / "CMakeLists.txt"
    lists.write_text(lists.read_text() + "install(FILES README.md DESTINATION edited)\n")
    spack_elsewhere("install", "dhrystone")
    prefix = Path(spack_elsewhere("location", "-i", "dhrystone").strip())
    assert (prefix / "edited/README.md").is_file()
    spack_elsewhere("undevelop", "dhrystone")


# The repository from afar


@pytest.fixture
def stranger(spack, tmp_path) -> Callable[..., str]:
    """Spack as it is without the project."""
    return stranger_in(tmp_path)


def test_its_address_is_enough(stranger, tmp_path):
    """`spack repo add URL`: the recipes and, beside them, the sources."""
    repository_of(copy_to(tmp_path / "work", *PROJECT))
    run("git", "clone", "--quiet", "--bare", tmp_path / "work", tmp_path / "joulemark.git")
    stranger("repo", "add", f"file://{tmp_path}/joulemark.git")
    assert set(stranger("list", "--repo", "joulemark").split()) == set(PACKAGES)
    place = Path(stranger("location", "--repo", "joulemark").strip())
    assert (place.parents[2] / "packages/mod2am/src").is_dir()


@pytest.mark.parametrize("place", ["spack-repo/spack_repo", "apps/repos/spack_repo"])
def test_recipes_without_their_sources_are_refused(stranger, tmp_path, place):
    """Wherever a site keeps them."""
    shutil.copytree(CHECKOUT / "spack-repo/spack_repo", tmp_path / place)
    stranger("repo", "add", tmp_path / place / "joulemark")
    for package in ("c66x-sim", "joulemark-suite"):
        with pytest.raises(AssertionError, match="take the whole repository"):
            stranger("spec", package)


# The way without Spack, and what goes wrong


def test_without_spack_and_network_cmake_builds(offline):
    assert offline.built_by == "cmake" and "cannot be reached" in offline.why


def test_a_failed_build_shows_the_error_and_what_to_do(elsewhere, tmp_path):
    broken = tmp_path / "checkout"
    shutil.copytree(elsewhere, broken)
    next(broken.glob("packages/benchkit/src/*.c")).write_text("#error broken on purpose\n")
    said = finish(build_in(tmp_path, "--no-spack", checkout=broken), status=1)
    assert "broken on purpose" in said and "run this again" in said
    assert not (tmp_path / "cache/build.env").exists()


def test_a_network_that_swallows_all_is_found_soon_and_once_a_run(tmp_path):
    """Git's server takes the call and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        (tmp_path / ".gitconfig").write_text(f'[url "{url}"]\ninsteadOf = https://github.com/\n')
        run_of = {"JOULEMARK_RUN": str(tmp_path / "run")}
        env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), **run_of}

        def ask(state: str) -> tuple[str, list[str]]:
            said = finish(build_in(tmp_path / state, "--environment", "cuda", env=env), status=3)
            logs = sorted((tmp_path / state / "cache/log").iterdir())
            return said, [path.stem for path in logs]

        said, tried = ask("one")
        assert "cannot be reached" in said and tried == ["reach-spack-packages"]
        said, tried = ask("other")
        assert "as another build of this run has found" in said and tried == []


def test_a_second_build_waits_for_the_first(tmp_path):
    (tmp_path / "cache").mkdir()
    with open(tmp_path / "cache/build.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        child = build_in(tmp_path, "--no-spack")
        assert "waiting for another build" in child.stderr.readline()
        child.terminate()
    assert "interrupted" in finish(child, status=130)


LATE = """\
import os, signal, sys
from pathlib import Path
from building.steps import exit_code
class Deleted:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        pass  # here Python calls the handler
def work(steps):
    Deleted()
    steps.run("more", "touch", sys.argv[1] + "/more")
sys.exit(exit_code(Path(sys.argv[1]), work, ""))
"""


def test_an_interruption_while_an_object_is_deleted_is_one(tmp_path):
    """Seen once of a Popen: the build went on, and ended well."""
    paths = [str(CHECKOUT / name) for name in ("environments", "spack-repo")]
    env = {**os.environ, "PYTHONPATH": ":".join(paths)}
    words = [sys.executable, "-c", LATE, tmp_path]
    done = subprocess.run(words, env=env, capture_output=True, text=True)
    assert "Exception ignored" in done.stderr  # else nothing was tried
    assert done.returncode == 130 and "build: interrupted" in done.stderr
    assert not (tmp_path / "more").exists()


def test_an_interrupted_build_leaves_no_process(tmp_path):
    child = build_in(tmp_path, "--no-spack")
    while "configure" not in child.stderr.readline():  # a build step runs now
        assert child.poll() is None
    child.send_signal(signal.SIGINT)
    assert "interrupted" in finish(child, status=130)
    patience = time.monotonic() + 60  # a killed process ends when it gets a processor
    while subprocess.run(["pgrep", "-f", tmp_path], capture_output=True).returncode != 1:
        assert time.monotonic() < patience
        time.sleep(0.1)
