"""Every benchmark's CUDA and HIP backends run on an emulation of a GPU that finds their errors."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.targets import backends
from tests.targets.cuda_on_cpu import launches

HERE = Path(__file__).resolve().parent / "cuda_on_cpu"
BENCHMARKS = {source.name: source for source in backends.having("cuda")}
HIP = [source.name for source in backends.having("hip")]
DEVICE = "no GPU: CUDA emulated on a CPU"
FOUND = 86  # exit status of an emulated program with an error

# Beside --quick: sizes of several blocks, the last of them not full; every kernel.
OPTIONS = {
    "hydro": ["--sizes", "16,140"],
    "mod2am": ["--sizes", "1,33,130,131"],
    "mod2as": ["--sizes", "1,100,300,1000,2000"],  # rows of 5 to 100 numbers
    "thermal": ["--sizes", "32,512"],
}
# The vendor's are plain loops here: they check our calls.
VARIANTS = {
    "jm-stream": {"cuda", "cuda-peer"},
    "mod2am": {"cuda", "cublas"},
    "mod2as": {"cuda", "cusparse"},
    "mod2f": {"cufft"},
    "thermal": {"cuda", "cuda-tensor"},
}
ELSEWHERE = ("OPENMP", "BLAS", "FFTW", "OPENCL")  # backends that other tests try
COMPILER = ["g++", "-std=c++17", "-g", "-Wall", "-Wextra", f"-I{HERE / 'include'}"]
WATCHED = ["-fsanitize=thread", "--param=tsan-distinguish-volatile=1"]
CHECKS = ["-fsanitize=bounds,alignment", "-fno-sanitize-recover=all"]


@pytest.fixture(scope="module")
def folder() -> Path:
    return backends.kept("cuda_on_cpu")


@pytest.fixture(scope="module")
def emulation(folder) -> Path:
    """The emulation as a library."""
    objects = []
    for source in sorted(HERE.glob("*.cpp")):
        objects.append(folder / f"{source.stem}.o")
        words = [*COMPILER, "-O2", "-Wconversion", "-Wshadow", "-Werror", "-DOMPI_SKIP_MPICXX"]
        if source.stem == "mpi":
            words[0] = "mpicxx"
        backends.must(*words, "-c", source, "-o", objects[-1])
    library = folder / "libcuda_on_cpu.a"
    library.unlink(missing_ok=True)
    backends.must("ar", "rcs", library, *objects)
    return library


@pytest.fixture(scope="module")
def built(folder, emulation):
    """Builds a benchmark with its CUDA backend, or HIP's; returns its program."""

    def build(name: str, backend: str = "cuda") -> Path:
        made = folder if backend == "cuda" else folder / backend
        if made not in ready:
            backends.build_benchkit(made)
            ready.add(made)
        options = [f"-DBENCH_{backend.upper()}=ON", f"-DCUDA_ON_CPU={emulation}"]
        options += [f"-DCMAKE_PROJECT_INCLUDE={HERE / 'benchmark.cmake'}"]
        options += [f"-DBENCH_{backend}=OFF" for backend in ELSEWHERE]
        options += [f"-DBENCH_MPI={'ON' if name == 'jm-stream' else 'OFF'}"]
        said = backends.build(BENCHMARKS[name], made, *options)
        assert not re.findall(r".*warning[ :#].*", said)
        return made / "prefix" / "bin" / name

    ready = set()
    return build


@pytest.mark.parametrize("name", BENCHMARKS)
def test_it_verifies_and_has_no_error(built, name, tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    options = ["--quick", "--variant", "all", *OPTIONS.get(name, [])]
    said, lines = backends.measured(built(name), tmp_path, *options)
    assert "times mean nothing" in said
    lines = backends.on_device(lines)
    assert {line["device"] for line in lines} == {DEVICE}
    assert all(line["verified"] for line in lines)
    assert {line["variant"] for line in lines} == VARIANTS.get(name, {"cuda"})


@pytest.mark.parametrize("name", HIP)
def test_it_verifies_with_wavefronts_of_64(built, name, tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    options = ["--quick", "--variant", "all", *OPTIONS.get(name, [])]
    _, lines = backends.measured(built(name, "hip"), tmp_path, *options)
    lines = backends.on_device(lines)
    assert all(line["verified"] for line in lines)
    own = {"hip", "hip-peer"} if name == "jm-stream" else {"hip"}
    assert {line["variant"] for line in lines} == own


@pytest.mark.parametrize("name", BENCHMARKS)
def test_ranks_of_a_node_take_its_gpus_in_turn(built, name, tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("CUDA_ON_CPU_FULL", "0")
    variant = min(VARIANTS.get(name, {"cuda"}), key=len)
    words = (built(name), tmp_path, "--quick", "--variant", variant)
    with pytest.raises(backends.Failed, match="memory"):
        backends.measured(*words)
    monkeypatch.setenv("SLURM_LOCALID", "3")  # of two GPUs
    _, lines = backends.measured(*words)
    assert lines and all(line["verified"] for line in lines)


def test_an_older_gpu_takes_plain_kernels(built, tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_ON_CPU_CAPABILITY", "7")  # no tensor cores for doubles
    for name, options in (("mod2am", ["--sizes", "1,130"]), ("thermal", ["--sizes", "32"])):
        _, lines = backends.measured(built(name), tmp_path, "--quick", *options)
        lines = backends.on_device(lines)
        assert all(line["verified"] for line in lines)
        assert {line["variant"] for line in lines} == VARIANTS[name] - {"cuda-tensor"}


def test_code_for_an_older_gpu_takes_plain_kernels(built, tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_ON_CPU_PTX", "7")  # the driver compiles it for this GPU
    words = ("--quick", "--sizes", "1,130", "--variant", "cuda")
    _, lines = backends.measured(built("mod2am"), tmp_path, *words)
    assert lines and all(line["verified"] for line in lines)
    words = ("--quick", "--sizes", "32", "--variant", "cuda-tensor")
    with pytest.raises(backends.Failed, match="CMAKE_CUDA_ARCHITECTURES=80"):
        backends.measured(built("thermal"), tmp_path, *words)


@pytest.fixture(scope="module")
def faults(folder, emulation) -> Path:
    """The program of errors."""
    program, source = folder / "faults", HERE / "faults.cu"
    words = [*COMPILER, "-O1", "-Wno-unknown-pragmas", *WATCHED, *CHECKS]
    compiler = [sys.executable, HERE / "launches.py", *words]
    backends.must(*compiler, "-o", f"{program}.o", "-c", source)
    backends.must("g++", *CHECKS, f"{program}.o", emulation, "-ldl", "-o", program)
    return program


@pytest.mark.parametrize(
    ("name", "found"),
    [
        (
            "no-barrier",
            r"reverse<NO_BARRIER> .*faults.cu:\d+\), block .*nothing was written before",
        ),
        ("race", r"which thread \d+ (wrote|read), with no barrier between\nfaults.cu:\d+"),
        ("blocks-race", r"which another block wrote, with no barrier between\nfaults.cu:\d+"),
        ("cooperative-race", r"which another block wrote, with no barrier between\nfaults.cu:\d+"),
        ("unequal-barriers", r"not all threads reach: 128 wait at __syncthreads"),
        ("early-end", r"not all threads reach: 127 wait at __syncthreads .*; 1 have ended"),
        ("shuffle-mask", r"not all threads reach: 31 wait at a shuffle .*; 1 have ended"),
        ("shared-index", r"index 128 out of bounds for type 'double \[128\]'"),
        ("shared-not-set", r"nothing was written before\nfaults.cu:\d+"),
        ("dynamic-index", r"writes \w+, which is in no allocation\nfaults.cu:\d+"),
        ("index", r"reads \w+, which is in no allocation\nfaults.cu:\d+"),
        ("negative-index", r"reads \w+, which is in no allocation\nfaults.cu:\d+"),
        ("freed", r"reads \w+, which is in no allocation\nfaults.cu:\d+"),
        ("not-set", r"reads \w+, to which nothing was written before\nfaults.cu:\d+"),
        ("host-memory", r"reads \w+, which is the host's\nfaults.cu:\d+"),
        ("pinned-index", r"writes \w+, which is the host's\nfaults.cu:\d+"),
        ("peer", r"reads \w+, which is device 0's: no peer access\nfaults.cu:\d+"),
        ("host-reads", r"the host's code touches \w+ of a device\nfaults.cu:\d+"),
        ("copy-not-waited", r"reads \w+, to which nothing was written before\nfaults.cu:\d+"),
        ("copy-not-committed", r"reads \w+, to which nothing was written before\nfaults.cu:\d+"),
        ("copy-misaligned", r"asynchronous copy of 16 bytes .* not aligned\nfaults.cu:\d+"),
        ("part-of-a-warp", r"faults.cu:\d+: takes the value of lane 31, which is not in the mask"),
        ("copy-size", r"1032 bytes at \w+, of an allocation of 1024 bytes"),
        ("copy-kind", r"cudaMemcpy from the device to the host, but its kind is 1"),
        ("freed-twice", r"cudaFree: \w+ is no allocation's beginning"),
    ],
)
def test_it_finds_an_error(faults, name, found):
    done = backends.run(faults, name)
    assert re.search(found, done.stdout), done.stdout
    assert done.returncode == (1 if name == "shared-index" else FOUND)
    assert "ended" not in done.stdout.splitlines()


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("block-size", "invalid configuration argument"),
        ("shared-size", "invalid configuration argument"),
        ("cooperative-size", "too many blocks in cooperative launch"),
    ],
)
def test_a_launch_that_a_gpu_would_refuse_is_an_error_of_cuda_s(faults, name, error):
    done = backends.run(faults, name)
    assert f"{error}\nended" in done.stdout


@pytest.mark.parametrize("seed", range(5))
def test_it_finds_nothing_where_all_is_well_in_any_order(faults, seed):
    done = backends.run(faults, "none", env={"CUDA_ON_CPU_SEED": str(seed)})
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("variant", ["cuda-remote", "cuda-direct"])
def test_ranks_send_from_gpu_to_gpu(built, tmp_path, monkeypatch, variant):
    if variant == "cuda-direct":
        monkeypatch.setenv("CUDA_ON_CPU_MPI", "1")
    program, cooked = built("jm-stream"), tmp_path / "cooked.jsonl"
    words = (program, "--quick", "--variant", variant, "--cooked", cooked)
    backends.must("mpirun", "-n", "2", *words, cwd=tmp_path)
    assert cooked.read_text().count('"verified":true') == 12  # sizes and kernels


def test_an_mpi_without_cuda_sends_none_directly(built, tmp_path):
    words = (built("jm-stream"), "--quick", "--variant", "cuda-direct")
    done = backends.run("mpirun", "-n", "2", *words, cwd=tmp_path)
    assert done.returncode != 0 and "cuda-direct" in done.stdout


@pytest.mark.parametrize(
    ("cuda", "made"),
    [
        ("f<<<1, n>>>(a);", '::cuda_on_cpu::Launch("f", {P}, 1, n).start(K{ f(a...); }, a);'),
        (
            "a::f<T, -1><<<dim3(b, c), g(d, 2), e * (1 + 2), s>>>(h(x, y), {1, 2});",
            '::cuda_on_cpu::Launch("a::f<T, -1>", {P}, dim3(b, c), g(d, 2), e * (1 + 2), s)'
            ".start(K{ a::f<T, -1>(a...); }, h(x, y), {1, 2});",
        ),
        ("f<<<1, 2>>>();", '::cuda_on_cpu::Launch("f", {P}, 1, 2).start(K{ f(a...); });'),
        ('say("<<<"); a << b;', 'say("<<<"); a << b;'),
        (
            "__shared__ T<U> x[N + 1][2];",
            "static char shared_x; "
            'auto &x = ::cuda_on_cpu::shared<T<U>[N + 1][2]>(&shared_x, "x");',
        ),
        (
            "extern __shared__ double all[];",
            "double *all = static_cast<double *>(::cuda_on_cpu::dynamic_shared_memory());",
        ),
        (
            'asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(f(x)));',
            "::cuda_on_cpu::ptx::rcp_approx_ftz_f64(y, f(x));",
        ),
        (
            'asm("mma.f64 {%0}, " "{%2}, {%1}, {%0};" : "+d"(c[0]) : "d"(b.x), "d"(a));',
            "::cuda_on_cpu::ptx::mma_f64(c[0], a, b.x, c[0]);",
        ),
    ],
)
def test_cuda_s_own_syntax_becomes_c_plus_plus(cuda, made):
    made = made.replace("{P}", "{__builtin_FILE(), __builtin_LINE()}").replace(
        "K{", "[=](auto... a) {"
    )
    assert launches.rewrite(cuda) == made


def test_a_launch_of_several_lines_leaves_the_others_where_they_were():
    text = launches.rewrite("f<<<1,\n   2>>>(\n   a,\n   b);\nlast")
    assert text.splitlines()[4] == "last"


@pytest.mark.parametrize(
    "cuda",
    [
        "(f)<<<1, 2>>>(a);",
        "f<<<1>>>(a);",
        "f<<<1, 2>>> a;",
        "f<<<1, 2>>>(a;",
        "f<<<1, 2, 3, 4, 5>>>(a);",
        "__shared__ double a, b;",
        'asm("bar.sync %0;" : : "r"(1));',
    ],
)
def test_what_cannot_be_read_is_an_error(cuda):
    with pytest.raises(launches.Unreadable):
        launches.rewrite(cuda)
