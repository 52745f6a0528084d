"""The stages of `make test` and `make test-long`, in the order of their lanes."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from tests.checkout import tracked
from tests.cluster import CHECKOUT, cache_folder, state_folder
from tests.launchers import launchers
from tests.suite.outcome import Outcome, read_junit
from tests.suite.runner import SPARE, Run, Stage

CACHE = cache_folder()
PYTHON = CACHE / "venv" / "bin" / "python"
RESULTS = CACHE / "test-results"
PRESETS = ("release", "asan")
JOBS = str(len(os.sched_getaffinity(0)))

#: Lanes run side by side. What measures time shares the machine with others that mostly wait,
#: never with a compiler: it comes when these have ended.
PHASES = (("compile", "spack"), ("e2e", "instruments", "clusters"))
LIMIT_S = 45 * 60
LONG_LIMIT_S = 4 * 3600

TEST_LIMIT_S = 240  # one test; the slowest of a cluster takes a fourth
BUILDING_TEST_LIMIT_S = 1200  # one that builds by Spack, a cross compiler or a machine
FAILURES_THAT_END_A_STAGE = 5
CANNOT_BE_ALONE = 77  # tests/alone's status

BUILD = ("environments/build", "--state", state_folder())
#: two releases of Slurm of which the one can be upgraded to the other
SLURM_PAIR = ("tests/slurm-versions", "--build", "trixie", "forky")
LONG_FAULTS = ("--kills", "200", "--longest-pause", "30")

#: what an ordinary user can do otherwise than root, where loopback is the only interface
AS_USER = (
    "tests/e2e/test_demo.py",
    "tests/e2e/test_doctor.py::test_a_ledger_that_is_not_on_disk",
    "tests/e2e/test_regions.py",
    "tests/e2e/test_site.py::test_records_of_a_cluster_rebuild_the_same_in_a_server",
    "tests/instruments/test_mqtt.py::test_plain_numbers",
    "--deselect=tests/e2e/test_regions.py::test_another_user_may_not_touch_accounts",  # root's
)

C_FILES = ("*.c", "*.h", "*.cpp", "*.cu", "*.cuh", "*.hip")
#: they take Spack's lock in turn, and `environments` the compiler that `cuda` has fetched
BY_SPACK = {"test_arm", "test_cuda", "test_environments"}
#: of tests/long: they wait for clusters and machines of their own; the others compute
OF_SITES = {
    "ansible",
    "backup",
    "demo",
    "first_install",
    "guides",
    "rolling_upgrade",
    "storage_energy",
}


def stages() -> list[Stage]:
    """All of them; in each lane in order."""
    return [
        *lint(),
        *(
            Stage(f"unit {s.name} {p}", "compile", 600, lambda run, s=s, p=p: c_tests(run, s, p))
            for p in PRESETS
            for s in c_sources()
        ),
        python_tests("unit joulemark", "compile", 900, "packages/joulemark"),
        python_tests("unit chaos", "compile", 120, "tests/chaos"),
        program("build", "spack", 900, *BUILD),
        python_tests("spack", "spack", 900, "tests/spack", test_limit_s=BUILDING_TEST_LIMIT_S),
        *map(targets, sorted((CHECKOUT / "tests" / "targets").glob("test_*.py"))),
        program("fuzz", "compile", 600, "tests/fuzz"),
        program("other slurm", SPARE, 900, "tests/slurm-versions", "--build", no_source=3),
        python_tests("e2e", "e2e", 900, "tests/e2e", workers=4),
        python_tests("instruments", "instruments", 600, "tests/instruments", workers=2),
        python_tests("transport", "instruments", 600, "tests/transport"),
        Stage("user", "instruments", 600, user_tests),
        program("faults", "clusters", 600, "tests/faults", "--kills", "20", "--seed", "1"),
        python_tests("versions", "clusters", 600, "tests/versions"),
        python_tests("unit cluster", "clusters", 600, "tests/cluster"),
        program("long slurm", "compile", 3600, *SLURM_PAIR, no_source=3, long=True),
        program("long build", "spack", 900, *BUILD, long=True),  # beside long fuzz
        program("long fuzz", "compile", 3600, "tests/fuzz", "--seconds", "60", long=True),
        program("long faults", "clusters", 3600, "tests/faults", *LONG_FAULTS, long=True),
        python_tests("long versions", "clusters", 1800, "tests/versions", long=True),
        python_tests(
            "long vm", "clusters", 3600, "tests/vm", test_limit_s=BUILDING_TEST_LIMIT_S, long=True
        ),
        *map(long_tests, sorted((CHECKOUT / "tests" / "long").glob("test_*.py"))),
    ]


def lint() -> list[Stage]:
    ruff, clang_format = PYTHON.with_name("ruff"), PYTHON.with_name("clang-format")
    without_suffix = (name for name in scripts("python3") if not name.endswith(".py"))
    python = [".", *without_suffix]  # ruff finds *.py on its own

    def stage(name: str, checker: str | Path, *words: str) -> Stage:
        def run_it(run: Run) -> Outcome:
            if not shutil.which(checker):  # PyPI could not be reached
                return Outcome(skips=[f"{checker} is not installed"])
            return run.check([checker, *words])

        return Stage(f"lint {name}", "spack", 120, run_it)

    return [
        stage("clang-format", clang_format, "--dry-run", "-Werror", *tracked(*C_FILES)),
        stage("shellcheck", "shellcheck", *scripts("sh"), *tracked("job-templates/*.sh")),
        stage("ruff check", ruff, "check", *python),
        stage("ruff format", ruff, "format", "--check", *python),
    ]


def targets(path: Path) -> Stage:
    lane = "spack" if path.stem in BY_SPACK else SPARE
    name = path.stem.removeprefix("test_").replace("_", " ")
    folder = str(path.relative_to(CHECKOUT))
    return python_tests(f"targets {name}", lane, 1500, folder, test_limit_s=BUILDING_TEST_LIMIT_S)


def long_tests(path: Path) -> Stage:
    name = path.stem.removeprefix("test_")
    lane = "e2e" if name in OF_SITES else SPARE
    title = f"long {name.replace('_', ' ')}"
    file = str(path.relative_to(CHECKOUT))
    return python_tests(title, lane, 3600, file, test_limit_s=BUILDING_TEST_LIMIT_S, long=True)


def program(
    name: str,
    lane: str,
    limit_s: float,
    path: str,
    *words: str | Path,
    no_source: int | None = None,
    long: bool = False,
) -> Stage:
    """A program of the checkout that passes or fails as one test."""
    command = [CHECKOUT / path, *words]
    return Stage(name, lane, limit_s, lambda run: run.check(command, no_source), long)


def python_tests(
    name: str,
    lane: str,
    limit_s: float,
    folder: str,
    workers: int = 1,
    test_limit_s: float = TEST_LIMIT_S,
    long: bool = False,
) -> Stage:
    """A folder's or file's tests; workers have a cluster each, and a file's tests one worker."""

    def run_them(run: Run) -> Outcome:
        words = pytest(run.junit, test_limit_s)
        if workers > 1:
            words += ["--numprocesses", str(workers), "--dist", "loadfile"]
        # a package's own tests are no part of the tree's rootdir
        env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": python_path(folder)}
        status = run.program([*words, folder], env=env)
        return read_junit(run.junit, folder, status)

    return Stage(name, lane, limit_s, run_them, long)


def user_tests(run: Run) -> Outcome:
    """AS_USER by an ordinary user, whose results are where he may write: tests/alone's state."""
    results = state_folder() / "user" / "results.xml"
    results.unlink(missing_ok=True)
    words = [CHECKOUT / "tests" / "alone", "--user", *pytest(results, TEST_LIMIT_S)]
    status = run.program([*words, *AS_USER])
    if status == CANNOT_BE_ALONE:
        return Outcome(skips=[run.log.read_text().strip()])
    if results.exists():
        shutil.copyfile(results, run.junit)
    return read_junit(run.junit, "user", status)


def pytest(junit: Path, test_limit_s: float) -> list[str | Path]:
    words = [PYTHON, "-m", "pytest", "-v", "-p", "no:cacheprovider", f"--junitxml={junit}"]
    return [*words, f"--maxfail={FAILURES_THAT_END_A_STAGE}", f"--timeout={test_limit_s}"]


def python_path(folder: str) -> str:
    source = CHECKOUT / folder / "src"
    return os.pathsep.join(map(str, [source, CHECKOUT] if source.exists() else [CHECKOUT]))


def c_tests(run: Run, source: Path, preset: str) -> Outcome:
    """Builds one C project with one preset outside the checkout and runs its ctest."""
    folder = CACHE / f"build-{preset}"
    build, prefix = folder / source.name, folder / "prefix"
    folder.mkdir(parents=True, exist_ok=True)
    configure = ["cmake", "--preset", preset, "-B", build, "-Wno-dev"]
    configure += [f"-DCMAKE_INSTALL_PREFIX={prefix}", f"-DCMAKE_PREFIX_PATH={prefix}"]
    configure.append("-DCMAKE_COMPILE_WARNING_AS_ERROR=ON")  # of ours alone: users' compilers vary
    configure += launchers()
    steps = [
        configure,
        ["cmake", "--build", build, "--parallel", JOBS],
        ["cmake", "--install", build],  # the next project may need it
    ]
    name = f"{source.name} {preset}"
    for step in steps:
        if run.program(step, source):
            return Outcome(failures=[f"{name}: {step[1]} failed"])
    warnings = [line for line in run.log.read_text().splitlines() if "warning:" in line]
    if warnings:  # a linker's, too
        return Outcome(failures=[f"{name}: {line}" for line in warnings])
    # many ranks have no other errors of memory than a few, and are slow under ASan
    fewer = ("--label-exclude", "many_ranks") if preset == "asan" else ()
    return ctest(run, build, name, *fewer)


def ctest(run: Run, build: Path, name: str, *options: str) -> Outcome:
    """ctest ends at the first failure or never: it is asked again for what it has not run."""
    outcome = Outcome()
    words = ["ctest", "--test-dir", build, "--output-on-failure", "--stop-on-failure"]
    words += ["--timeout", str(TEST_LIMIT_S), "--output-junit", run.junit, *options]
    rest = ["--no-tests=error"]
    while len(outcome.failures) < FAILURES_THAT_END_A_STAGE:
        run.junit.unlink(missing_ok=True)
        status = run.program([*words, *rest])
        outcome.add(read_junit(run.junit, name, status))
        run.failures = outcome.failures
        if not status:
            break
        ran = (re.escape(title.removeprefix(f"{name}: ")) for title in outcome.seconds_of)
        rest = ["--no-tests=ignore", "--exclude-regex", f"^({'|'.join(ran)})$"]
    return outcome


# -- what there is to test -----------------------------------------------------------------------


def c_sources() -> list[Path]:
    """benchkit first: the benchmarks link with it."""
    benchkit = CHECKOUT / "packages" / "benchkit"
    presets = sorted((CHECKOUT / "packages").glob("*/CMakePresets.json"))
    others = [path.parent for path in presets if path.parent != benchkit]
    return [benchkit, *others, CHECKOUT / "slurm-plugins"]


def scripts(interpreter: str) -> list[str]:
    """By their first line; templates are scripts only once they are filled in."""

    def fits(name: str) -> bool:
        with (CHECKOUT / name).open("rb") as file:
            first = file.readline(100).decode(errors="replace").strip()
        return first.startswith("#!") and first.removesuffix(" -l").endswith(interpreter)

    return [name for name in tracked() if "/templates/" not in name and fits(name)]
