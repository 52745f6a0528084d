"""Every benchmark's CUDA backend compiles; where there is a GPU it also runs and verifies."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench import nvml
from tests.cluster import CHECKOUT, cache_folder
from tests.targets import backends, cuda

ARCHITECTURE = "90"  # H100, H200
BENCHMARKS = {source.name: source for source in backends.having("cuda")}


@pytest.fixture(scope="module")
def folder() -> Path:
    return backends.kept("cuda")


@pytest.fixture(scope="module")
def nvcc() -> Path:
    cache = cache_folder() / "cuda"
    try:
        return cuda.find(cache) or cuda.install(cache)
    except cuda.Unavailable as why:
        pytest.skip(f"CUDA was not compiled: {why}")


@pytest.fixture(scope="module")
def built(folder, nvcc):
    """Builds a benchmark once; returns its program and what the compilers said."""
    backends.build_benchkit(folder)
    made = {}

    def build(name: str) -> tuple[Path, str]:
        if name not in made:
            options = cuda.options(nvcc, ARCHITECTURE)
            said = backends.build(BENCHMARKS[name], folder, *options)
            made[name] = folder / "prefix" / "bin" / name, said
        return made[name]

    return build


def test_there_are_backends():
    assert BENCHMARKS, "no packages/*/src/cuda beside a src/main.c"


@pytest.mark.parametrize("name", BENCHMARKS)
def test_it_compiles_without_a_warning(built, name):
    program, said = built(name)
    assert not re.findall(r".*warning[ :#].*", said)
    said = backends.must("readelf", "--section-headers", "--dynamic", "--wide", program)
    assert ".nv_fatbin" in said or "libcufft" in said, "no code for a GPU in it, nor cuFFT's"


@pytest.mark.parametrize("name", BENCHMARKS)
def test_it_verifies_on_a_gpu_and_does_without_one(built, name, tmp_path):
    """Without a GPU, the variants of the CPU run, and those of the GPU say so and fail."""
    program, _ = built(name)
    _, lines = backends.measured(program, tmp_path, "--quick")
    assert lines and all(line["verified"] for line in lines)
    gpu = cuda.gpu()
    devices = {line["device"] for line in backends.on_device(lines) if "NVIDIA" in line["device"]}
    assert devices == ({gpu} if gpu else set())


def test_the_gpu_s_benchmark_says_that_there_is_none():
    if cuda.gpu():
        pytest.skip("there is a GPU: tests/bench/gpu would run")
    words = [sys.executable, CHECKOUT / "tests" / "bench" / "gpu"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 77 and "no GPU" in done.stderr


@pytest.fixture(scope="module")
def bench():
    """tests/bench/gpu as a module."""
    path = str(CHECKOUT / "tests" / "bench" / "gpu")
    loader = importlib.machinery.SourceFileLoader("gpu_bench", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("gpu_bench", loader))
    loader.exec_module(module)
    return module


def test_the_gpu_s_benchmark_can_compile_its_peers(bench, nvcc, folder):
    bench.compile_peers(nvcc, ARCHITECTURE, folder / "gpu_peers")
    assert (folder / "gpu_peers").exists()


def line(**changes) -> dict:
    """A cooked line of a GPU's measurement."""
    made = {"benchmark": "mod2am", "kernel": "mod2am", "variant": "cublas", "size": 8192}
    made |= {"operations": 2.0 * 8192**3, "performance": 60e12, "unit": "F/s", "verified": True}
    return {**made, "device": "A GPU", **changes}


QCD = {"benchmark": "qcd", "variant": "cuda"}
TRIAD = {"benchmark": "jm-stream", "kernel": "triad", "variant": "cuda", "unit": "B/s"}


@pytest.mark.parametrize(
    ("changes", "met"),
    [
        ({}, True),
        ({"performance": 58e12}, False),
        ({"variant": "cuda", "performance": 43e12}, True),
        ({"variant": "cuda", "performance": 42e12}, False),
        ({"benchmark": "jm-linpack", "variant": "cuda", "size": 8063, "performance": 5e12}, False),
        ({"benchmark": "jm-linpack", "variant": "cuda", "size": 8063, "performance": 6e12}, True),
        ({"benchmark": "mod2as", "variant": "cuda", "performance": 500e9}, True),
        ({"benchmark": "mod2as", "variant": "cuda", "performance": 300e9}, False),
        ({**TRIAD, "performance": 3.7e12}, True),
        ({**TRIAD, "performance": 3.5e12}, False),
        ({**TRIAD, "variant": "cuda-peer", "performance": 0.4e12}, None),
        (
            {
                "benchmark": "mod2f",
                "variant": "cufft",
                "size": 1 << 24,
                "performance": 1e12,
                "operations": 2e9,
            },
            True,
        ),
        ({**QCD, "kernel": "dslash-double", "performance": 3.3e12}, True),
        ({**QCD, "kernel": "dslash-single", "performance": 3.3e12}, False),
        ({**QCD, "kernel": "solve", "performance": 1e9}, False),
        ({"benchmark": "hydro", "variant": "cuda", "unit": "U/s", "performance": 14e9}, False),
        ({"benchmark": "hydro", "variant": "cuda", "unit": "U/s", "performance": 16e9}, True),
    ],
)
def test_the_gpu_s_benchmark_judges_by_its_peers(bench, tmp_path, changes, met):
    run = bench.Bench(tmp_path)
    run.peers = {"copy": 4e12, "dgemm 8192": 60.5e12, f"fft {1 << 24}": 500.0, "getrf 8063": 9e12}
    cusparse = line(benchmark="mod2as", variant="cusparse", performance=400e9)
    run.cooked = [cusparse | {"kernel": changes.get("kernel", "mod2am")}, line(**changes)]
    *_, figure = run.figures()
    assert figure.met is met
    bench.write(tmp_path / "results.json", {"device": "A GPU"}, run, [figure])
    found = json.loads((tmp_path / "results.json").read_text())
    assert found["device"] == "A GPU" and found["cooked"] == run.cooked
    assert found["figures"][0]["met"] is met


@pytest.mark.parametrize(
    ("changes", "value", "peer", "met"),
    [
        ({"benchmark": "jm-linpack", "energy_j": 2e10}, 2.0 * 8192**3 / 2e10 / 1e9, 0.75, None),
        ({"benchmark": "thermal", "energy_j": 1.0, "power_w": 690.0}, 690.0, 700.0, True),
        ({"benchmark": "thermal", "energy_j": 1.0, "power_w": 500.0}, 500.0, 700.0, False),
    ],
)
def test_the_gpu_s_benchmark_tells_joules(bench, tmp_path, changes, value, peer, met):
    run = bench.Bench(tmp_path)
    run.limit_w, run.cooked = 700.0, [line(**changes)]
    *_, figure = run.figures()
    assert (figure.value, figure.peer, figure.met) == (pytest.approx(value), peer, met)


def test_the_gpu_s_benchmark_tells_no_joules_that_it_does_not_know(bench, tmp_path):
    run = bench.Bench(tmp_path)
    run.cooked = [line(energy_j=2e10, energy_uncertainty_j=1.9e10), line(energy_j=1, size=1)]
    assert [figure.name for figure in run.figures() if "joule" in figure.name] == [
        "mod2am cublas 8192 per joule",
        "mod2am cublas 1 per joule",
    ]
    run.cooked = [line(energy_j=2e10, energy_uncertainty_j=2.1e10), line(energy_j=None)]
    assert not [figure for figure in run.figures() if "joule" in figure.name]


def test_the_gpu_s_counter_is_held_against_its_power(bench, tmp_path):
    run = bench.Bench(tmp_path)
    for counter, met in ((0.993, True), (1.06, False)):
        run.counter = counter
        *_, figure = run.figures("counter")
        assert figure.met is met
    # a second at 100 W, and one in which it rises to 300
    assert nvml.integral_j([(0, 0, 100), (1, 0, 100), (2, 0, 300)]) == 300
