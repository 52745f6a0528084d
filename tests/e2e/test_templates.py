"""Every job template as a user submits it, on nodes of two sockets whose cores have two threads:
verified results with their energy."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import CHECKOUT, Build, Cluster, state_folder, wait_for
from tests.e2e.jobs import cooked, need_pmix
from tests.e2e.outcome import ended_well

TEMPLATES = sorted(path.stem for path in CHECKOUT.glob("job-templates/*.sbatch"))
#: more than the machine has, which Slurm believes
TOPOLOGY, CORES = "CPUs=8 Sockets=2 CoresPerSocket=2 ThreadsPerCore=2", 4
#: a small case, where the knobs that most templates have are not enough
SMALL = {"JM_MIN_SECONDS": "0.1", "JM_MAX_SECONDS": "20"}
KNOBS = {
    "app": {"JM_SET": "size=1m block=64k processes=2"},
    "dhrystone": {"JM_SIZES": "10000"},
    "hpl": {"JM_MEMORY": "2MiB", "JM_NB": "64", "JM_HPL": "hpcc"},
    "hydro": {"JM_SIZES": "60"},
    "jm-io": {
        "JM_SIZES": "65536",
        "JM_TRANSFER": "16384",
        "JM_EDGE": "16",
        "JM_COUNT": "500",
        "JM_BLOCK": "64",
        "JM_EVENTS": "1000",
        "JM_STATE": "100000",
        "JM_MAX_SECONDS": "1",
    },
    "jm-linpack": {"JM_SIZES": "200"},
    "mod2am": {"JM_SIZES": "40"},
    "mod2as": {"JM_SIZES": "500"},
    "mod2f": {"JM_SIZES": "1024"},
    "qcd": {"JM_SIZES": "4"},
    "scaling": {"JM_BENCHMARK": "hydro", "JM_SIZE": "60", "JM_RANKS_PER_NODE": "1"},
    "stream": {"JM_SIZES": "65536"},
    "thermal": {"JM_SIZES": "512", "JM_SECONDS": "2"},
    "triad": {"JM_SIZES": "4096"},
}
OPTIONS = {"scaling": ["--nodes=2"]}
OF_RANKS = ("hpl", "jm-io", "scaling")
#: ranks and their threads, of the result that has the most of them
WORKERS = {"app": 2, "dhrystone": 1, "scaling": 2}
RANKS = {"hpl": CORES}  # one each; of others the threads differ
AS_ROOT = {
    "OMPI_ALLOW_RUN_AS_ROOT": str(int(os.geteuid() == 0)),
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": str(int(os.geteuid() == 0)),
}


@pytest.fixture(scope="module")
def sockets(steady: Cluster) -> Iterator[Cluster]:
    topology = dict.fromkeys(steady.nodes, TOPOLOGY)
    with steady.changed(topology=topology, daemon={"cpus": 8}) as changed:
        yield changed


def template(name: str) -> Path:
    return CHECKOUT / "job-templates" / f"{name}.sbatch"


def shared(name: str, folder: Path) -> Path:
    """A copy of an installed template that takes no whole node."""
    subprocess.run([CHECKOUT / "job-templates/install", folder], check=True)
    copy = folder / f"{name}.sbatch"
    copy.write_text(copy.read_text().replace("#SBATCH --exclusive\n", ""))
    return copy


def results_folder(cluster: Cluster, name: str) -> Path:
    folder = cluster.state / "templates" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def knobs(name: str, results: Path) -> dict[str, str]:
    """The environment of a small case that leaves its results there."""
    return {**SMALL, **KNOBS[name], **AS_ROOT, "JOULEMARK_RESULTS": str(results)}


def most_workers(lines: list[dict]) -> int:
    return max(line["ranks"] * line["threads"] for line in lines)


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_runs(sockets: Cluster, name: str) -> None:
    if name in OF_RANKS:
        need_pmix()
    results = results_folder(sockets, name)
    job = sockets.sbatch(*OPTIONS.get(name, []), template(name), env=knobs(name, results))
    done = ended_well(sockets, job, timeout_s=300)
    lines = cooked(results)
    assert lines, list(results.iterdir())
    assert most_workers(lines) == WORKERS.get(name, CORES)
    assert RANKS.get(name, lines[0]["ranks"]) == lines[0]["ranks"]
    release = sockets.run(["sinfo", "-V"]).split()[1]
    for line in lines:
        assert line["verified"] and line["job"] == str(job), line
        assert line["energy_j"] > 0 and line["estimated"] is False
        manifest = line["manifest"]
        assert manifest["version"] and manifest["libraries"] and line["start"], line
        assert manifest["slurm"] == release and line["node"] in ("n1", "n2"), line
        assert manifest["instruments"] == "replay/node", manifest  # the tests' trace of power
    assert done.sacct_j() > 0


SLOW = """\
summary: makes a file and sleeps
spack: coreutils
source: https://example.org
program: sleep
phases:
  - {name: slow, command: "sh -c 'echo here >>{folder}/file; sleep 900'", launch: LAUNCH}
"""


@pytest.mark.parametrize("launch", ["alone", "ranks"])
def test_a_cancelled_application_leaves_no_files(sockets: Cluster, launch: str) -> None:
    results = results_folder(sockets, f"cancelled-{launch}")
    definition = results / "slow.yaml"
    definition.write_text(SLOW.replace("LAUNCH", launch))
    job = sockets.sbatch(
        template("app"), env={**knobs("app", results), "JM_APP": str(definition), "JM_SET": ""}
    )
    tasks = CORES if launch == "ranks" else 1

    def lines() -> int:
        return sum(len(one.read_text().split()) for one in results.glob("joulemark-slow-*/file"))

    wait_for(lambda: lines() == tasks, what=lambda: f"all tasks: {lines()} of {tasks}")
    sockets.run(["scancel", str(job)])
    sockets.wait_job(job)
    wait_for(lambda: not list(results.glob("joulemark-slow-*")), what="it to be removed")


@pytest.mark.parametrize(
    "options, cores",
    [
        ("-n1 -c3", 2),  # CPUs: of two cores
        ("-n1 -c3 --hint=nomultithread", 3),  # cores
    ],
)
def test_threads_are_as_many_as_a_shared_jobs_cores(
    sockets: Cluster, options: str, cores: int
) -> None:
    results = results_folder(sockets, "shared")
    job = sockets.sbatch(*options.split(), shared("triad", results), env=knobs("triad", results))
    ended_well(sockets, job)
    assert most_workers(cooked(results)) == cores


def test_threads_are_as_many_as_the_jobs_cores(sockets: Cluster) -> None:
    results = results_folder(sockets, "cores")
    hint = "--hint=nomultithread"
    job = sockets.sbatch(hint, template("triad"), env=knobs("triad", results))
    ended_well(sockets, job)
    assert most_workers(cooked(results)) == CORES


def test_each_job_of_an_array_has_its_setting_and_repeats_it(sockets: Cluster) -> None:
    results = results_folder(sockets, "array")
    setting = {"JM_ARRAY": "JM_THREADS=1 JM_THREADS=3", "JM_REPEAT": "2"}
    env = {**knobs("triad", results), **setting, "JM_KERNELS": "aligned"}
    array = sockets.sbatch("--array=0-1", template("triad"), env=env)
    for task in (0, 1):
        assert sockets.wait_job(f"{array}_{task}")["State"] == "COMPLETED"
    assert sorted(line["threads"] for line in cooked(results)) == [1, 1, 3, 3]
    assert len(list(results.glob("*.raw.txt"))) == 4


def test_a_heterogeneous_job_runs_on_each_component_and_ranks_on_all(sockets: Cluster) -> None:
    need_pmix()
    results = results_folder(sockets, "heterogeneous")
    components = ["-w", "n1", "-n1", ":", "-w", "n2", "-n1", "--exclusive"]
    env = {**knobs("hydro", results), "JM_VARIANTS": "omp mpi"}
    job = sockets.sbatch(*components, template("hydro"), env=env)
    assert sockets.wait_job(job)["State"] == "COMPLETED", sockets.job_output(job)
    ran = [(line["node"], line["nodes"], line["threads"]) for line in cooked(results)]
    assert ran == [("n1", 1, CORES), ("n2", 1, CORES), ("n1", 2, 1)]


def test_threads_and_ranks_stay_on_cores_where_slurm_binds_tasks(steady: Cluster) -> None:
    need_pmix()
    affinity = {"TaskPlugin": "task/affinity"}
    with steady.changed(slurm_conf=affinity, topology={}, daemon={}) as cluster:
        for name, variants in (("stream", {}), ("hydro", {"JM_VARIANTS": "mpi"})):
            results = results_folder(cluster, f"bound-{name}")
            job = cluster.sbatch(template(name), env={**knobs(name, results), **variants})
            ended_well(cluster, job)
            lines = cooked(results)
            assert {line["manifest"]["pinning"] for line in lines} == {"core"}
            assert most_workers(lines) == cluster.options.cpus
            assert "float" not in cluster.job_output(job)


def test_a_copy_of_an_installed_template_runs(steady: Cluster) -> None:
    """By the command's module, without the checkout."""
    results = results_folder(steady, "installed")
    output = results / "output"
    copy = f"cp $JOULEMARK_TEMPLATES/dhrystone.sbatch {results}/mine.sbatch"
    load = "module use $JOULEMARK_MODULES && module load joulemark"
    submit = f"sbatch --parsable --output={output} {results}/mine.sbatch"
    env = {**knobs("dhrystone", results), "JOULEMARK_ENERGY": "summary"}
    said = steady.run(["bash", "-lc", f"{load} && {copy} && {submit}"], env=env)
    ended_well(steady, int(said.split()[-1]))
    assert len(cooked(results)) == 1
    assert output.read_text().splitlines()[-1].startswith("Energy: ")


def test_a_template_runs_where_slurm_has_no_plugin_of_ours(build: Build) -> None:
    plain = Cluster(state_folder() / "test-no-plugin", nodes=1)
    try:
        plain.remove()
        plain.up()
        results = results_folder(plain, "stream")
        modules = {"JOULEMARK_MODULES": str(build.modules), "JOULEMARK_ENERGY": "summary"}
        job = plain.sbatch(template("stream"), env={**knobs("stream", results), **modules})
        assert plain.wait_job(job)["State"] == "COMPLETED", plain.job_output(job)
        lines = cooked(results)
        assert lines and all(line["verified"] and not line["energy_j"] for line in lines)
    finally:
        plain.remove()
