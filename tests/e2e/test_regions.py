"""Regions: a program's own marks, from the shell and from any language, and who may do what."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from tests.cluster import CHECKOUT, ORDINARY_USER, Cluster, wait_for
from tests.e2e import marking
from tests.e2e.jobs import alone
from tests.e2e.marking import client, python, say_outside
from tests.e2e.outcome import Outcome, ended_well, joulemarkctl, outcome
from tests.spack import lmod

USER = None if os.geteuid() else ORDINARY_USER  # marks are for everybody

NESTED = """
link = connect()
began = time.monotonic()
ask(link, "region_begin name=outer")
time.sleep(0.4)
inner_began = time.monotonic()
ask(link, "region_begin name=in%20ner")
time.sleep(0.5)
inner = ask(link, "region_end name=in%20ner"), 0.5, time.monotonic() - inner_began
time.sleep(0.3)
outer = ask(link, "region_end name=outer"), 1.2, time.monotonic() - began
print(json.dumps([inner, outer, ask(link, "region_end name=outer")]))
"""
FORBIDDEN = ["open job=1 step=0", "read", "close", "end job=1", "node", "books"]
FORBIDDEN_SCRIPT = f"print(json.dumps([ask(connect(), text) for text in {FORBIDDEN!r}]))"


@pytest.fixture(scope="module")
def folder(steady: Cluster) -> Path:
    """Where jobs of any user find the scripts."""
    return marking.folder(steady)


def run_job(cluster: Cluster, command: str) -> Outcome:
    return ended_well(cluster, alone(cluster, command, user=USER))


def regions(done: Outcome, step: str) -> dict[str, dict]:
    return {region["name"]: region for region in done.accounts(step)["n1"]["regions"]}


def assert_hundred_watts(told: Mapping[str, float]) -> None:
    expected_uj = 100e6 * told["seconds"]
    assert abs(told["energy_uj"] - expected_uj) <= told["uncertainty_uj"] + 0.01 * expected_uj


def told(cluster: Cluster, done: Outcome, name: str) -> tuple[float, float]:
    """Joules and seconds that `joulemarkctl region` has said of a region."""
    line = re.compile(rf"^{name}: ([\d.]+) J \+- .* in ([\d.]+) s", re.MULTILINE)
    ((joules, seconds),) = line.findall(cluster.job_output(done.job))
    return float(joules), float(seconds)


def test_a_shell_command_is_a_region_and_regions_nest(steady: Cluster) -> None:
    mark = f"{joulemarkctl(steady)} region"
    done = run_job(steady, f"srun {mark} outer -- {mark} inner -- sleep 0.6")
    found = regions(done, "0")
    assert set(found) == {"outer", "inner"}
    for region in found.values():
        assert region["count"] == 1 and region["seconds"] > 0.6
        assert_hundred_watts(region)
    assert found["inner"]["seconds"] <= found["outer"]["seconds"]
    assert found["inner"]["energy_uj"] <= found["outer"]["energy_uj"] <= done.energy_uj("0")
    told_j, _ = told(steady, done, "inner")
    # each rounds for itself, and what is told is rounded again
    assert told_j == pytest.approx(found["inner"]["energy_uj"] / 1e6, abs=0.0005 + 5e-6)


def test_regions_from_another_language(steady: Cluster) -> None:
    done = run_job(steady, client(steady, "nested", NESTED))
    inner, outer, again = json.loads(steady.job_output(done.job))
    recorded = regions(done, "batch")
    assert recorded["outer/in ner"]["parent"] == "outer" and recorded["outer"]["parent"] is None
    outer_alone = {"energy_uj": recorded["outer"]["exclusive_uj"]}
    for name in ("seconds", "uncertainty_uj"):
        outer_alone[name] = recorded["outer"][f"exclusive_{name}"]
    assert_hundred_watts(outer_alone)
    for (answer, least_s, most_s), name in ((inner, "outer/in ner"), (outer, "outer")):
        verb, *words = answer.split()
        told = {key: float(value) for key, value in (word.split("=") for word in words)}
        assert verb == "ok" and told["estimated"] == 0
        assert least_s <= told["seconds"] <= most_s
        assert_hundred_watts(told)
        assert abs(recorded[name]["energy_uj"] - told["energy_uj"]) <= 2  # each rounds for itself
    assert again.startswith("error")


def test_a_region_that_ran_often_is_one_line_with_its_count(steady: Cluster) -> None:
    mark = f"{joulemarkctl(steady)} region loop -- sleep 0.2"
    done = run_job(steady, f"{mark}; {mark}; {mark}")
    (region,) = regions(done, "batch").values()
    assert region["name"] == "loop" and region["count"] == 3
    assert_hundred_watts(region)


def test_a_scan_of_a_file_system_keeps_its_joules(steady: Cluster, folder: Path) -> None:
    packages = CHECKOUT / "packages"
    words = ["cc", "-std=c17", "-D_GNU_SOURCE", *packages.glob("fs-scan/src/*.c")]
    words += ["-o", folder / "fs-scan", "-lsqlite3", "-lpthread"]
    subprocess.run(words, check=True)
    found_by = f"PATH={folder}:$PATH PYTHONPATH={packages}/joulemark/src"
    scan = f"-m joulemark fs scan {packages} {folder}/scan.db --format json"
    done = ended_well(steady, alone(steady, f"env {found_by} {sys.executable} -B {scan}"))
    region = regions(done, "batch")["fs-scan"]
    assert_hundred_watts(region)
    (kept,) = json.loads(steady.job_output(done.job))
    assert kept["energy_j"] == pytest.approx(region["energy_uj"] / 1e6, abs=3e-6)
    assert kept["energy_error_j"] == pytest.approx(region["uncertainty_uj"] / 1e6, abs=3e-6)
    assert kept["estimated"] is False


PYTHON_THREADS = """
    import threading, time
    from joulemark import region

    def work(number):
        with region("work"):
            time.sleep(0.6)
            with region(f"part{number}"):
                time.sleep(0.3)

    with region("all", measure=True) as whole:
        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
    print(whole.energy.energy_j, whole.energy.seconds)
"""


def test_threads_of_a_python_program_are_counted_once(steady: Cluster) -> None:
    done = run_job(steady, "srun " + python(steady, "threads", PYTHON_THREADS))
    found = regions(done, "0")
    assert set(found) == {"all", "work", *(f"work/part{n}" for n in range(4))}
    assert found["work"]["count"] == 4 and found["work"]["parent"] is None
    assert 0.9 <= found["work"]["seconds"] <= found["all"]["seconds"]
    for region in found.values():
        assert_hundred_watts(region)
    energy_j, seconds = map(float, steady.job_output(done.job).split())
    assert energy_j == pytest.approx(100 * seconds, rel=0.01)


RANKS = """
    import os, sys, time
    from joulemark import region
    rank = int(os.environ["SLURM_PROCID"])
    open(f"{sys.argv[1]}.{rank}", "w").close()
    while not os.path.exists(f"{sys.argv[1]}.{1 - rank}"):
        time.sleep(0.01)
    time.sleep(0.3 * rank)
    stamps = [time.monotonic()]
    with region("solve"):
        stamps.append(time.monotonic())
        time.sleep(0.9)
        stamps.append(time.monotonic())
    stamps.append(time.monotonic())
    os.write(1, (" ".join(map(str, stamps)) + "\\n").encode())
"""


def assert_counted_once(cluster: Cluster, done: Outcome, solve: Mapping[str, float]) -> None:
    """As long as a rank at least was inside, not each rank's time: see what each one prints.

    When it was about to begin, inside, about to end, and done, by the clock of all.
    """
    lines = re.findall(r"^[\d.]+(?: [\d.]+){3}$", cluster.job_output(done.job), re.MULTILINE)
    begun, inside, ending, ended = zip(*([float(word) for word in line.split()] for line in lines))
    assert len(lines) == solve["count"] == 2
    assert together_s(inside, ending) <= solve["seconds"] <= together_s(begun, ended)


def together_s(begins: Sequence[float], ends: Sequence[float]) -> float:
    """Of two that overlap; where a busy machine keeps them apart, without the time between."""
    return max(ends) - min(begins) - max(0, max(begins) - min(ends))


def test_ranks_of_a_step_do_not_multiply_its_energy(steady: Cluster) -> None:
    command = python(steady, "ranks", RANKS)
    done = run_job(steady, f"srun --overlap -n2 {command} $(mktemp -u)")
    (solve,) = regions(done, "0").values()
    assert_counted_once(steady, done, solve)
    assert solve["energy_uj"] < done.energy_uj("0")
    assert_hundred_watts(solve)


C_PROGRAM = """
#include <joulemark.h>
int main(void) {
    joulemark_region_begin("outer");
    for (int i = 0; i < 5000; i++) {
        joulemark_region_begin("inner");
        joulemark_region_end("inner");
    }
    struct joulemark_energy energy;
    return joulemark_region_end_energy("outer", &energy) && energy.seconds > 0 ? 0 : 1;
}
"""
FORTRAN_PROGRAM = """
program marked
    use joulemark
    type(joulemark_energy) :: energy
    logical :: taken
    call joulemark_region_begin("outer", taken)
    call joulemark_region_begin("inner")
    call joulemark_region_end("inner")
    call joulemark_region_end("outer", energy, taken)
    if (.not. taken) stop 1
end program marked
"""
KIT = CHECKOUT / "packages" / "benchkit"
COMPILERS = {
    "c": (["cc", "-std=gnu11"], "program.c", C_PROGRAM, 5000),
    "fortran": (["gfortran", KIT / "src" / "joulemark.f90"], "program.f90", FORTRAN_PROGRAM, 1),
}


@pytest.fixture(scope="module")
def compiled(folder: Path) -> Callable[..., Path]:
    """`compiled(["cc"], "program.c", TEXT)`, with libjoulemark as a user's own build has it."""
    library = folder / "region.o"
    flags = ["-std=gnu17", "-O2", "-D_GNU_SOURCE", f"-I{KIT / 'include'}"]
    subprocess.run(["cc", *flags, "-c", KIT / "src" / "region.c", "-o", library], check=True)

    def build(compiler: list[str | Path], name: str, text: str) -> Path:
        source, program = folder / name, folder / f"{name}.marked"
        source.write_text(text)
        words = [*compiler, f"-I{KIT / 'include'}", source, library, "-o", program, "-pthread"]
        subprocess.run(words, check=True, cwd=folder)
        return program

    return build


@pytest.mark.parametrize("language", COMPILERS)
def test_compiled_programs_mark(
    steady: Cluster, compiled: Callable[..., Path], language: str
) -> None:
    *program, count = COMPILERS[language]
    found = regions(run_job(steady, str(compiled(*program))), "batch")
    assert {name: region["count"] for name, region in found.items()} == {
        "outer": 1,
        "outer/inner": count,
    }


MPI_PROGRAM = """
#include <joulemark.h>
#include <mpi.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
int main(int argc, char **argv) {
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Barrier(MPI_COMM_WORLD);
    usleep(300000 * (unsigned)rank);
    double begun = now();
    joulemark_region_begin("solve");
    double inside = now();
    usleep(900000);
    double ending = now();
    joulemark_region_end("solve");
    double ended = now();
    dprintf(1, "%.9f %.9f %.9f %.9f\\n", begun, inside, ending, ended);
    MPI_Finalize();
    return ranks == 2 ? 0 : 1;
}
"""


def test_ranks_of_mpi_mark_together(steady: Cluster, compiled: Callable[..., Path]) -> None:
    """Open MPI's mpirun has srun start them, as a step of their own."""
    version = subprocess.run(["mpicc", "--showme:version"], capture_output=True, text=True).stdout
    late = re.search(r"Open MPI [5-9]", version)
    if late and [name for _, name in socket.if_nameindex()] == ["lo"]:
        pytest.skip(f"mpirun of {late[0]} ends early where lo is the only interface")
    program = compiled(["mpicc"], "ranks.c", MPI_PROGRAM)
    done = run_job(steady, f"mpirun --allow-run-as-root --oversubscribe -n 2 {program}")
    solve = regions(done, "0")["solve"]
    assert_counted_once(steady, done, solve)
    assert_hundred_watts(solve)


def test_a_shell_script_marks_with_begin_and_end(steady: Cluster) -> None:
    mark = f"{joulemarkctl(steady)} region"
    script = f"{mark} begin load; sleep 0.3; {mark} begin sort; sleep 0.3; {mark} end sort; "
    done = run_job(steady, f"{script} {mark} end load; {mark} end never")
    found = regions(done, "batch")
    assert set(found) == {"load", "load/sort"}
    load, sort = found["load"], found["load/sort"]
    assert sort["seconds"] > 0.3 and load["seconds"] > 0.6
    assert load["exclusive_seconds"] == pytest.approx(load["seconds"] - sort["seconds"], abs=1e-6)
    for name, region in ("load", load), ("sort", sort):
        _, told_s = told(steady, done, name)
        # it was rounded to microseconds first
        assert told_s == pytest.approx(region["seconds"], abs=0.0005 + 1e-6), name


def test_a_daemon_that_restarts_is_marked_again(steady: Cluster) -> None:
    program = """
        import time
        from joulemark import region
        with region("before"):
            time.sleep(0.3)
        print("ready", flush=True)
        end = time.monotonic() + 60
        while time.monotonic() < end:
            with region("after", measure=True) as after:
                time.sleep(0.1)
            if after.energy:
                break
    """
    command = python(steady, "restart", program)
    job = alone(steady, command, user=USER)
    output = steady.jobs_folder / f"{job}.out"
    wait_for(lambda: output.exists() and "ready" in output.read_text(), what="it to be ready")
    steady.node("n1").daemon.kill()
    steady.up()
    found = regions(outcome(steady, job), "batch")
    assert found["after"]["count"] >= 1


@pytest.mark.skipif(USER is None, reason="only root can be another user than the daemon's")
def test_another_user_may_not_touch_accounts(steady: Cluster) -> None:
    """Neither from outside nor from within a job: the daemon asks the kernel who calls."""
    command = client(steady, "forbidden", FORBIDDEN_SCRIPT)
    outside = say_outside(steady, command, USER)
    inside = steady.job_output(run_job(steady, command).job)
    for answers in (json.loads(outside), json.loads(inside)):
        assert len(answers) == len(FORBIDDEN)
        for answer in answers:
            assert answer.startswith("error") and "not%20permitted" in answer, answer


def test_marks_outside_a_job_are_refused(steady: Cluster) -> None:
    command = client(steady, "stray", 'print(ask(connect(), "region_begin name=stray"))')
    answer = say_outside(steady, command, USER)
    assert answer.startswith("error") and "no%20job%20step" in answer


@pytest.mark.parametrize("socket", ["/nowhere/joulemarkd.sock", ""], ids=["gone", "empty"])
def test_marks_without_a_daemon_do_nothing(steady: Cluster, tmp_path: Path, socket: str) -> None:
    prefix = steady.options.build.slurm_prefix
    env = {**steady.env, "JOULEMARK_SOCKET": socket}
    run = {"env": env, "cwd": tmp_path, "capture_output": True, "text": True}
    done = subprocess.run([prefix / "bin" / "joulemarkctl", "region", "x", "--", "true"], **run)
    assert done.returncode == 0
    use = f". {lmod.INIT} && module use {steady.options.build.modules}"
    load = lmod.loading("jm-stream")
    quick = f"{use} && {load} && jm-stream --quick --cooked c.jsonl"
    done = subprocess.run(["bash", "-c", quick], **run)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in (tmp_path / "c.jsonl").read_text().splitlines()]
    assert lines and all(line["verified"] and line["energy_j"] is None for line in lines)
