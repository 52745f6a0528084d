"""Two sockets with SMT, each with its memory: pages lie on the node of the thread that uses them,
and results tell whether threads were pinned."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.targets.backends import build, build_benchkit, having, kept, must
from tests.vm import Machine

THREADS = 4  # one a core
PINNED = "OMP_WAIT_POLICY=passive OMP_PROC_BIND=close OMP_PLACES=cores"
SLOW_S = 300.0  # QEMU interprets each instruction
#: for any x86-64, by what the machine has
PLAIN = [f"-DBENCH_{name}=OFF" for name in ("NATIVE", "MPI", "BLAS", "FFTW", "OPENCL")]
#: of each benchmark with threads a case, and how many MiB its data take
CASES = {
    "hydro": ("omp --sizes 1000", 30),
    "jm-linpack": ("omp --sizes 2047", 31),
    "jm-stream": ("omp --sizes 2000000", 45),
    "mod2am": ("blocked-omp --sizes 1200", 32),
    "mod2as": ("csr-omp --sizes 8000", 36),
    "mod2f": ("omp --plan fixed --sizes 1048576", 31),
    "qcd": ("omp --sizes 12", 34),
    "triad": ("omp --sizes 1000000", 30),
}
NO_MEMORY = {"thermal"}  # some caches of it, each thread's own
ENDLESS = "--min-seconds 10000 --max-seconds-per-size 10000 --cooked /dev/null --raw /dev/null"
#: pages on each node, of all that is larger than a huge page
PAGES = r"""
{
    split("", of)
    for (i = 2; i <= NF; i++) { split($i, fact, "="); of[fact[1]] = fact[2] }
    if (of["anon"] > 512) { first += of["N0"]; second += of["N1"] }
}
END { print first + 0, second + 0 }
"""
#: starts a program, waits for its data, and tells where its threads may run and its data lie
LOOK = """
%(program)s >/tmp/log 2>&1 & pid=$!
while found=$(awk '%(pages)s' /proc/$pid/numa_maps) || { cat /tmp/log >&2; exit 1; }
      set -- $found; [ $(($1 + $2)) -lt %(least)d ]
do sleep 1; done
grep -h Cpus_allowed_list /proc/$pid/task/*/status; echo $1 $2
kill -KILL $pid
"""


@pytest.fixture(scope="module")
def programs() -> Path:
    """A folder of all benchmarks with threads, and of what looks at its own pages."""
    folder = kept("numa")
    build_benchkit(folder)
    for source in having("omp"):
        build(source, folder, *PLAIN)
    prefix = folder / "prefix"
    bk_main = next(prefix.glob("lib*/cmake/benchkit/bk_main.c"))
    libraries = (f"-L{bk_main.parents[2]}", "-lbenchkit", "-ljoulemark", "-lm", "-pthread")
    near = Path(__file__).with_name("near.c")
    flags = ("-O2", "-fopenmp", "-DBENCH_OPENMP", f"-I{prefix}/include")
    must("cc", *flags, near, bk_main, "-o", prefix / "bin" / "near", *libraries)
    return prefix / "bin"


@pytest.fixture(scope="module")
def node(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    folder = tmp_path_factory.mktemp("numa")
    with Machine(folder, topology="sockets=2,cores=2,threads=2", nodes=2) as machine:
        openmp = Path(must("cc", "-print-file-name=libgomp.so.1").strip()).resolve()
        machine.put(programs, openmp)
        machine.run("ldconfig; echo 0 >/proc/sys/kernel/numa_balancing")
        yield machine


def test_each_benchmark_with_threads_is_here() -> None:
    assert {source.name for source in having("omp")} == CASES.keys() | NO_MEMORY


def test_memory_that_is_spread_lies_near_its_threads(node: Machine, programs: Path) -> None:
    """What one thread touches is far from half of them."""
    said = node.ssh(f"{PINNED} {programs}/near --quick --threads {THREADS} --raw /dev/null").stdout
    near = {name: float(share) for name, share in map(str.split, said.splitlines())}
    assert near["all"] > 0.95  # but a huge page on the border of two parts
    assert near["one"] == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("name", CASES)
def test_a_benchmark_has_half_of_its_data_on_each_node(
    node: Machine, programs: Path, name: str
) -> None:
    """Threads are two a node. In one command: who measures leaves no time for another."""
    case, mib = CASES[name]
    program = f"{PINNED} {programs}/{name} --threads {THREADS} {ENDLESS} --variant {case}"
    look = LOOK % {"program": program, "pages": PAGES, "least": mib * 256}
    *threads, nodes = node.run(look, limit_s=SLOW_S).splitlines()
    assert sorted(line.split()[1] for line in threads) == ["0-1", "2-3", "4-5", "6-7"]
    first, second = map(int, nodes.split())
    assert first / (first + second) == pytest.approx(0.5, abs=0.2), nodes  # in huge pages


@pytest.mark.parametrize(
    ("start", "pinning"),
    [
        (PINNED, "core"),
        ("OMP_PROC_BIND=close OMP_PLACES=threads", "core"),
        ("OMP_PROC_BIND=close OMP_PLACES=sockets", "NUMA node"),
        ("taskset -c 2,3", "core"),
        ("taskset -c 0-3", "NUMA node"),
        ("taskset -c 3,4", "none"),
        ("", "none"),
    ],
)
def test_a_result_tells_how_its_threads_were_pinned(
    node: Machine, programs: Path, start: str, pinning: str
) -> None:
    words = f"--quick --kernels packed --variant omp --threads {THREADS}"
    done = node.ssh(f"{start} {programs}/triad {words} --cooked /dev/stdout --raw /dev/null")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert {line["manifest"]["pinning"] for line in lines} == {pinning}
    assert done.stderr.count("threads float") == (pinning == "none")
