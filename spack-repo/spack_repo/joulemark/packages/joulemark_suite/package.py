# SPDX-License-Identifier: Apache-2.0 OR MIT
from spack_repo.builtin.build_systems.bundle import BundlePackage
from spack_repo.joulemark.build_systems.benchmark import (
    BACKENDS,
    CudaPackage,
    ROCmPackage,
    variants,
)
from spack_repo.joulemark.build_systems.benchmarks import backends_in_recipe, benchmarks
from spack_repo.joulemark.build_systems.intree import NO_SOURCES, device_variant

from spack.package import *


def all_benchmarks():
    """Depend on every benchmark, with the backends that it has of those asked for."""
    found = benchmarks()
    if not found:
        conflicts("@0.1.0:", msg=NO_SOURCES)
    for benchmark in found:
        parts = backends_in_recipe(benchmark)
        if parts is not None:
            take(benchmark, parts)


def take(benchmark, parts):
    if "c66x" in parts:
        for device in ("host", "c66x"):
            depends_on(f"{benchmark} device={device}", type="run", when=f"device={device}")
    else:
        depends_on(benchmark, type="run", when="device=host")
    for part in parts:
        if part in BACKENDS:
            for sign in "+~":
                depends_on(f"{benchmark}{sign}{part}", type="run", when=f"{sign}{part}")
    if "cuda" in parts:
        for arch in CudaPackage.cuda_arch_values:
            depends_on(f"{benchmark} cuda_arch={arch}", type="run", when=f"cuda_arch={arch}")
    if "rocm" in parts:
        for target in ROCmPackage.amdgpu_targets:
            depends_on(
                f"{benchmark} amdgpu_target={target}", type="run", when=f"amdgpu_target={target}"
            )


class JoulemarkSuite(BundlePackage):
    """All of Joulemark's benchmarks: every folder of packages/ that is one.

    Its variants are the benchmarks' backends: a benchmark that has one is built with it or
    without, as the suite is. device=c66x takes those that run on the DSP."""

    license("Apache-2.0 OR MIT")

    version("0.1.0")

    device_variant()
    variants("c66x", *BACKENDS)
    all_benchmarks()
