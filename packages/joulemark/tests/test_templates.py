# Job templates, with a `srun` that only says what it was asked for, and a `scontrol` of any site.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import joulemark
import pytest

from tests.cluster import wait_for

PACKAGES = Path(joulemark.__file__).parents[1]
TEMPLATES = Path(__file__).parents[3] / "job-templates"
pytestmark = pytest.mark.skipif(not TEMPLATES.exists(), reason="no templates beside this package")

SRUN = '#!/bin/bash\nprintf "%s " "$@" >>"$SRUN_LOG"; echo >>"$SRUN_LOG"\n'
SCONTROL = """\
#!/bin/bash
case $* in
    *"show job 7") cat "${0%/*}/job" ;;
    "show config") printf '%s\\n' "TaskPlugin = $TASK_PLUGIN" "MpiDefault = $MPI_DEFAULT" ;;
    "show hostnames "*) echo n1 ;;
    "show node n1") echo "NodeName=n1 CoresPerSocket=$CORES_PER_SOCKET"
        echo "   CPUAlloc=0 CPUTot=$CPUS CPULoad=1"
        echo "   ThreadsPerCore=$THREADS_PER_CORE TmpDisk=0 Sockets=2" ;;
    *) echo "scontrol $*: who asks?" >&2; exit 1 ;;
esac
"""
#: names in $AVAILABLE are there, those in $LOADED are loaded
MODULE = """\
module() {
    case $1 in
        is-avail) [[ " $AVAILABLE " == *" $2 "* ]] ;;
        is-loaded) [[ " $LOADED " == *" $2 "* ]] ;;
        *) echo "$*" >>"$MODULE_LOG" ;;
    esac
}"""
COMPONENT = """\
JobId={job} {offset}JobName=x
   NodeList={nodes}
   Nodes={nodes} CPU_IDs={cpus} Mem={mib} GRES=
   Command={command}

"""
HPL = """\
T/V                N    NB     P     Q               Time                 Gflops
WR11C2C4        2000   192     2     3               0.19              2.776e+01
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=        0.0038456 ...... PASSED
"""
ENERGY = "hpl: 480.5 J +- 4.5 J (k=2) in 4.0 s"
CAT = f"cat <<'END'\n{HPL}END\n"
#: two sockets of two cores, a thread each
NODE = {"CPUS": "4", "CORES_PER_SOCKET": "2", "THREADS_PER_CORE": "1"}
SITE = {"TASK_PLUGIN": "task/none", "MPI_DEFAULT": "none", **NODE}
SMT = {"CPUS": "8", "THREADS_PER_CORE": "2"}


@pytest.fixture
def template(tmp_path):
    """Runs a template as a job of 6 such nodes; returns the calls of srun as options."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in (("srun", SRUN), ("scontrol", SCONTROL)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    log = tmp_path / "srun.log"
    job = {"SLURM_JOB_NUM_NODES": "6", "SLURM_JOB_ID": "7", "SLURM_SUBMIT_DIR": str(tmp_path)}
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    env = {**SITE, **job, "SLURMD_NODENAME": "n1", "PATH": path, "SRUN_LOG": str(log)}
    env["MODULE_LOG"] = str(tmp_path / "module.log")
    copy = tmp_path / "slurm_script"
    script = f"{MODULE}\nexport -f module\nexec bash {copy}"

    def run(
        name="scaling",
        components=("0-3",),
        mib=0,
        status=0,
        meanwhile=lambda process: None,
        **knobs,
    ):
        command = TEMPLATES / f"{name}.sbatch"
        copy.write_text(command.read_text())
        records = []
        for offset, cpus in enumerate(components):
            of_het = f"HetJobId=7 HetJobOffset={offset} " if len(components) > 1 else ""
            known = {"job": 7 + offset, "offset": of_het, "cpus": cpus, "mib": mib}
            records.append(COMPONENT.format(nodes="n[1-6]", command=command, **known))
        (folder / "job").write_text("".join(records))
        if len(components) > 1:
            knobs["SLURM_HET_SIZE"] = str(len(components))
        words = ["bash", "-c", script]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen(words, env={**env, **knobs}, **pipes)
        meanwhile(process)
        said = process.communicate(timeout=30)
        done = subprocess.CompletedProcess(words, process.returncode, *said)
        assert done.returncode == status, done.stderr
        return [call.split() for call in log.read_text().splitlines()] if status == 0 else done

    return run


def values(calls, name):
    """What each call gives as `NAME VALUE` or `NAME=VALUE`."""
    return [re.search(rf" {name}[ =](\S+)", " " + " ".join(call))[1] for call in calls]


def test_scaling_runs_a_strong_and_a_weak_series(template):
    calls = template(JM_BENCHMARK="hydro", JM_SIZE="1000")
    assert values(calls, "--nodes") == ["1", "2", "4", "6"] * 2
    assert values(calls, "--ntasks") == ["4", "8", "16", "24"] * 2
    assert values(calls, "--sizes") == ["1000"] * 4 + ["1000", "1414", "2000", "2449"]
    assert {Path(name).name for name in values(calls, "--cooked")} == {
        "hydro.strong.7.cooked.jsonl",
        "hydro.weak.7.cooked.jsonl",
    }
    assert set(values(calls, "--variant")) == {"mpi"}
    assert set(values(calls, "--mpi")) == {"pmix"}


def test_knobs_of_scaling(template):
    knobs = {"JM_KINDS": "weak", "JM_NODES": "1 4", "JM_RANKS_PER_NODE": "1", "JM_THREADS": "4"}
    calls = template(JM_BENCHMARK="mod2f", JM_MPI="pmi2", JM_SRUN="--exact", **knobs)
    assert values(calls, "--sizes") == ["16777216", "67108864"]
    assert values(calls, "--ntasks") == ["1", "4"]
    assert values(calls, "--cpus-per-task") == ["4", "4"]
    assert all("--mpi=pmi2" in call and "--exact" in call for call in calls)


def test_weak_sizes_are_those_that_a_benchmark_has(template):
    """Before, qcd had 8000 on one node and any number on more; mod2f failed on 6 nodes."""
    calls = template(JM_BENCHMARK="qcd")
    assert values(calls, "--sizes") == ["32"] * 4 + ["32", "40", "48", "48"]
    calls = template(JM_BENCHMARK="mod2f", JM_KINDS="weak")[len(calls) :]
    assert values(calls, "--sizes") == [str(2**24), str(2**25), str(2**26)]


@pytest.fixture
def joulemark_command(tmp_path, template):
    """The command, as a job that has loaded its module finds it."""
    command = tmp_path / "bin" / "joulemark"
    command.write_text(
        f'#!/bin/bash\nPYTHONPATH={PACKAGES} exec {sys.executable} -m joulemark "$@"'
    )
    command.chmod(0o755)


def have_hpl(tmp_path, nodes_with_energy):
    """`srun` leaves what the program does."""
    told = f"for ((n = 0; n < {nodes_with_energy}; n++)); do echo '{ENERGY}' >node$n.energy; done"
    (tmp_path / "bin/srun").write_text(f"#!/bin/bash\n{told}; {CAT}")
    (tmp_path / "srun.log").touch()


@pytest.mark.parametrize("told", [0, 1, 6])
@pytest.mark.usefixtures("joulemark_command")
def test_hpl_is_one_problem_and_stays_where_a_node_tells_no_energy(template, tmp_path, told):
    """Before, N went by each block size, and a node without a plugin cost the whole result."""
    have_hpl(tmp_path, told)
    template("hpl", JM_HPL="true", JM_MEMORY="64MiB")
    inputs = [path.read_text().splitlines() for path in tmp_path.glob("hpl.7.nb*/HPL.dat")]
    assert {lines[5].split()[0] for lines in inputs} == {"6912"}
    assert {lines[7].split()[0] for lines in inputs} == {"128", "192", "256"}
    grids = [int(lines[10].split()[0]) * int(lines[11].split()[0]) for lines in inputs]
    assert grids == [24] * 3  # a rank for each core of six nodes
    results = (tmp_path / "hpl.7.cooked.jsonl").read_text().splitlines()
    energy_j = 6 * 480.5 if told == 6 else None
    assert [json.loads(line)["energy_j"] for line in results] == [energy_j] * 3


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.usefixtures("joulemark_command")
def test_hpl_is_loaded_where_its_program_is_not_there(template, tmp_path, there):
    have_hpl(tmp_path, 6)
    if there:
        (tmp_path / "bin/xhpl").symlink_to("/bin/true")
    template("hpl", JM_NB="192", JM_MEMORY="64MiB", AVAILABLE="joulemark")
    said = (tmp_path / "module.log").read_text().splitlines()
    ours = ["load joulemark", "try-load joulemark-slurm"]
    assert said == (ours if there else [*ours, "load openmpi", "load hpl"])
    assert (tmp_path / "hpl.7.cooked.jsonl").exists()


SLOW = """\
summary: makes a file and sleeps
spack: coreutils
source: https://example.org
program: sleep
launch: alone
phases:
  - {name: slow, command: "sh -c 'echo here >{folder}/file; sleep 900'"}
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.usefixtures("joulemark_command")
def test_a_signal_to_the_script_alone_leaves_no_files(template, tmp_path, number):
    """As proctrack/cgroup has Slurm send it: what the script runs hears nothing of it."""
    (tmp_path / "slow.yaml").write_text(SLOW)

    def end(process):
        wait_for(lambda: list(tmp_path.glob("joulemark-slow-*/file")), what="the file")
        process.send_signal(number)

    app = str(tmp_path / "slow.yaml")
    done = template("app", status=143, meanwhile=end, JM_APP=app, JM_REPEAT="2")
    assert "slow: ended by SIGTERM: no results" in done.stderr
    assert not list(tmp_path.glob("joulemark-slow-*"))


@pytest.mark.parametrize(
    "cpus, site, threads",
    [
        ("0-3", {}, "4"),
        ("0-7", SMT, "4"),  # eight threads
        ("0-1,4-5", SMT, "2"),  # a part of the node: a core of each socket
        ("2", SMT, "1"),  # a thread of one core
        ("0-127", {"CPUS": "256", "CORES_PER_SOCKET": "64", "THREADS_PER_CORE": "2"}, "64"),
        # a node whose CPUs are its cores, by CPUs=; scontrol tells threads all the same
        ("0-7", {"CPUS": "4", "THREADS_PER_CORE": "2"}, "4"),
    ],
)
def test_threads_are_as_many_as_cores(template, cpus, site, threads):
    (call,) = template("triad", components=[cpus], **site)
    assert values([call], "--cpus-per-task") == values([call], "--threads") == [threads]
    has_smt = site.get("THREADS_PER_CORE") == "2"
    assert ("--threads-per-core=1" in call) == has_smt


def test_tasks_are_bound_where_slurm_binds(template):
    (call,) = template("triad")
    assert not any(word.startswith("--cpu-bind") for word in call)
    *_, call = template("triad", TASK_PLUGIN="task/affinity,task/cgroup")
    assert "--cpu-bind=cores" in call
    *_, call = template("triad", components=["0-7"], TASK_PLUGIN="task/affinity", **SMT)
    assert "--cpu-bind=cores" in call and "--threads-per-core=1" in call


def test_ranks_are_started_as_the_site_does(template):
    *_, call = template("hydro", JM_VARIANTS="serial mpi", MPI_DEFAULT="cray_shasta")
    assert "--mpi=cray_shasta" in call and values([call], "--nodes") == ["6"]


@pytest.mark.parametrize("default", ["none", "(null)"])  # as 22.05 and 24.11 say it
def test_ranks_are_started_by_pmix_where_the_site_does_not_say(template, default):
    *_, call = template("hydro", JM_VARIANTS="serial mpi", MPI_DEFAULT=default)
    assert "--mpi=pmix" in call


@pytest.mark.parametrize(
    "given, ranks, threads",
    [
        ({}, "24", "1"),
        ({"JM_THREADS": "2"}, "12", "2"),
        ({"SLURM_NTASKS": "12"}, "12", "2"),  # sbatch --ntasks-per-node=2
        ({"SLURM_NTASKS": "9"}, "9", "2"),
        ({"JM_RANKS_PER_NODE": "1", "SLURM_NTASKS": "12"}, "6", "4"),
    ],
)
def test_ranks_fill_the_cores(template, given, ranks, threads):
    (call,) = template("qcd", components=["0-7"], JM_VARIANTS="mpi", **SMT, **given)
    assert values([call], "--ntasks") == [ranks]
    assert values([call], "--cpus-per-task") == values([call], "--threads") == [threads]


def test_ranks_on_gpus_are_as_many(template):
    gpus = {"SLURM_GPUS_ON_NODE": "2", "JM_GPU_BIND": "closest"}
    calls = template("stream", JM_VARIANT="cuda cuda-direct", JM_GPUS_PER_TASK="1", **gpus)
    alone, ranks = calls
    assert values(calls, "--ntasks") == ["1", "12"]
    assert "--gpus-per-task=1" in ranks and "--gpu-bind=closest" in ranks
    assert "--gpus-per-task=1" not in alone


def test_a_heterogeneous_job_runs_on_each_component_and_ranks_on_all(template):
    knobs = {"JM_VARIANTS": "omp mpi", "JM_SIZES": "60"}
    first, second, both = template("hydro", components=["0-3", "0-1"], **knobs)
    assert values([first, second, both], "--het-group") == ["0", "1", "0-1"]
    assert values([first, second], "--threads") == ["4", "2"]
    assert not any(word.startswith(("--nodes", "--ntasks")) for word in both)
    # the batch node has no second threads, the other component may
    assert all("--threads-per-core=1" in call for call in (first, second, both))


@pytest.mark.parametrize("name", ["app", "hpl", "scaling", "thermal"])
def test_a_template_for_nodes_of_one_kind_refuses_a_heterogeneous_job(template, name):
    knobs = {"SLURM_JOB_NAME": name, "JM_BENCHMARK": "hydro", "JM_APP": "ior"}
    done = template(name, components=["0-3", "0-1"], status=2, **knobs)
    assert f"{name}: a heterogeneous job: submit it for nodes of one kind" in done.stderr


def test_all_steps_are_repeated(template):
    calls = template("mod2am", JM_REPEAT="2")
    assert values(calls, "--variant") == ["plain", "blas"] * 2
    assert len(set(values(calls, "--cooked"))) == 1 and len(set(values(calls, "--raw"))) == 4


def test_each_job_of_an_array_has_a_setting_of_its_own(template):
    settings = "JM_SIZES=100,200 JM_SIZES=400"
    (call,) = template("mod2f", JM_VARIANTS="omp", JM_ARRAY=settings, SLURM_ARRAY_TASK_ID="1")
    assert values([call], "--sizes") == ["400"]
    done = template("mod2f", status=2, JM_ARRAY=settings, SLURM_ARRAY_TASK_ID="2")
    assert f"JM_ARRAY='{settings}'" in done.stderr and "--array=0-1" in done.stderr
    assert "(no array)" in template("mod2f", status=2, JM_ARRAY=settings).stderr


def test_vectors_outgrow_the_caches(template):
    """By what Linux tells here of the last caches of the processors that the test may use."""
    calls = [*template("stream"), *template("triad")[1:]]
    caches = {}
    for cpu in os.sched_getaffinity(0):
        *_, last = sorted(Path(f"/sys/devices/system/cpu/cpu{cpu}/cache").glob("index*"))
        size_b = 1024 * int((last / "size").read_text().strip().removesuffix("K"))
        caches[(last / "shared_cpu_list").read_text()] = size_b
    free_b = free_memory_b()
    for call, vectors, first in zip(calls, (3, 4), (1024, 256)):
        sizes = [int(word) for word in values([call], "--sizes")[0].split(",")]
        longest = min(sum(caches.values()) / 2, free_b / 2 / vectors / 8)
        assert sizes[0] == first and sizes[-1] == pytest.approx(longest, rel=0.1)
        assert sorted(set(sizes)) == sizes
    *_, call = template("stream", mib=48)
    assert values([call], "--sizes")[0].endswith(f",262144,{2**20}")


@pytest.mark.parametrize(
    "allowed, caches, mib",
    [
        ("0-7", {"0-1": "32768K", "2-3": "32768K", "4-5": "32768K", "6-7": "32768K"}, 128),
        ("0-3", {"0-1": "32768K", "2-3": "32768K", "4-5": "32768K", "6-7": "32768K"}, 64),
        ("1,4-5", {"0-3": "24576K", "4-7": "24576K"}, 48),  # a part of each of two sockets
        ("0-7", {}, 0),  # a virtual machine whose caches Linux does not know
    ],
)
def test_caches_are_those_of_the_jobs_sockets(tmp_path, allowed, caches, mib):
    """Each last cache once, however many of its processors the job has."""
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/status").write_text(f"Name:\tbash\nCpus_allowed_list:\t{allowed}\n")
    for shared, size in caches.items():
        first, last = map(int, shared.split("-"))
        for cpu in range(first, last + 1):
            for index, its in ((0, "32K"), (3, size)):
                folder = tmp_path / f"sys/devices/system/cpu/cpu{cpu}/cache/index{index}"
                folder.mkdir(parents=True)
                (folder / "size").write_text(f"{its}\n")
                (folder / "shared_cpu_list").write_text(f"{shared if index else cpu}\n")
    text = (TEMPLATES / "joulemark-job.sh").read_text()
    function = re.search(r"^jm_cache_bytes\(\) \{.*?^\}", text, re.MULTILINE | re.DOTALL)[0]
    function = re.sub(r"/(sys|proc)/", rf"{tmp_path}/\1/", function)
    script = f"set -eo pipefail\n{function}\njm_cache_bytes"
    said = subprocess.run(["bash", "-c", script], check=True, capture_output=True, text=True)
    assert int(said.stdout) == mib * 1024**2


def test_ranks_outgrow_the_caches_of_all_their_nodes(template):
    longest = []
    for knobs in ({}, {"JM_VARIANT": "mpi mpi-nt"}, {"JM_VARIANT": "omp mpi"}):
        *_, call = template("stream", mib=48, **knobs)
        longest.append(int(values([call], "--sizes")[0].split(",")[-1]))
    assert longest == [2**20, 6 * 2**20, 2**20]  # half of the jobs' memory on six nodes, on one
    calls = template("scaling", mib=1 << 20, JM_BENCHMARK="jm-stream")[-8:]
    sizes = [int(size) for size in values(calls, "--sizes")]
    strong, (one, *_, six) = sizes[:4], sizes[4:]
    assert strong == [pytest.approx(min(6 * one, free_memory_b() / 48), rel=0.1)] * 4
    assert six == pytest.approx(6 * one, rel=0.01)


def free_memory_b():
    return 1024 * int(re.search(r"MemAvailable: +(\d+)", Path("/proc/meminfo").read_text())[1])


def test_a_step_that_fails_fails_the_job(template, tmp_path):
    (tmp_path / "bin/srun").write_text("#!/bin/sh\ncase $* in *plain*) exit 3; esac\n")
    template("mod2am", status=3)


@pytest.mark.parametrize("knob", ["JM_REPEAT", "JM_THREADS", "JM_RANKS_PER_NODE"])
@pytest.mark.parametrize("value", ["0", "x", "-1", "1.5", "2 3"])
def test_a_knob_that_is_no_number_ends_the_job(template, knob, value):
    """Before, JM_REPEAT=x completed, and measured nothing."""
    done = template("stream", status=2, **{knob: value})
    assert f"{knob}='{value}': must be a whole number from 1 on" in done.stderr


def test_more_threads_than_cores_are_named(template, tmp_path):
    (tmp_path / "bin/srun").write_text("#!/bin/sh\nexit 1\n")
    done = template("triad", status=1, JM_THREADS="99")
    assert "JM_THREADS='99': the job has 4 cores on a node" in done.stderr


def test_installed_templates_can_be_copied(tmp_path):
    folder = tmp_path / r"it's |here\n&"
    subprocess.run([TEMPLATES / "install", folder.name], check=True, cwd=tmp_path)
    installed = sorted(folder.glob("*.sbatch"))
    assert [p.name for p in installed] == sorted(p.name for p in TEMPLATES.glob("*.sbatch"))
    for path in installed:
        [source] = re.findall(r"^source .*", path.read_text(), re.MULTILINE)
        assert shlex.split(source) == ["source", f"{folder}/joulemark-job.sh"]
    assert (folder / "joulemark-job.sh").exists()


@pytest.mark.parametrize(
    "knobs, loads",
    [
        ({"AVAILABLE": "jm-triad"}, ["jm-triad"]),
        ({}, ["openmpi", "jm-triad"]),
        ({"AVAILABLE": "jm-triad", "JM_MODULES": "llvm mpich"}, ["llvm mpich", "jm-triad"]),
        ({"AVAILABLE": "jm-triad", "LOADED": "jm-triad"}, []),
    ],
)
def test_a_benchmarks_module_is_loaded_after_what_shows_it(template, tmp_path, knobs, loads):
    template("triad", **knobs)
    log = tmp_path / "module.log"
    said = log.read_text().splitlines() if log.exists() else []
    assert said == [f"load {names}" for names in loads]
