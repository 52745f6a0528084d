# SPDX-License-Identifier: Apache-2.0 OR MIT
from spack_repo.builtin.build_systems.bundle import BundlePackage
from spack_repo.builtin.build_systems.cuda import CudaPackage
from spack_repo.builtin.build_systems.rocm import ROCmPackage
from spack_repo.joulemark.build_systems.benchmark import BACKENDS, BESIDE, variants
from spack_repo.joulemark.build_systems.benchmarks import (
    backends_in_recipe,
    benchmarks_with_recipe,
    versions_in_recipe,
)
from spack_repo.joulemark.build_systems.intree import device_variant
from spack_repo.joulemark.build_systems.project import HOMEPAGE, MAINTAINERS

from spack.package import *


def take(benchmark):
    """Depend on a benchmark in each version that has it, with its backends of those asked for."""
    parts = backends_in_recipe(benchmark)
    devices = ("host", "c66x") if "c66x" in parts else ("host",)
    for version in versions_in_recipe(benchmark):
        for device in devices:
            one = f"{benchmark}@{version}" + (f" device={device}" if len(devices) > 1 else "")
            depends_on(one, type="run", when=f"@{version} device={device}")
        with when(f"@{version} device=host"):
            take_backends(benchmark, parts)


def take_backends(benchmark, parts):
    for part in filter(BACKENDS.__contains__, parts):
        needed = (part, *BESIDE.get((benchmark, part), ()))
        depends_on(f"{benchmark}+{part}", type="run", when="".join(f"+{one}" for one in needed))
        for one in needed:
            depends_on(f"{benchmark}~{part}", type="run", when=f"~{one}")
    for gpu, name, values in (
        ("cuda", "cuda_arch", CudaPackage.cuda_arch_values),
        ("rocm", "amdgpu_target", ROCmPackage.amdgpu_targets),
    ):
        for value in values if gpu in parts else ():
            depends_on(f"{benchmark} {name}={value}", type="run", when=f"{name}={value}")


class JoulemarkSuite(BundlePackage, CudaPackage, ROCmPackage):
    """All of Joulemark's benchmarks.

    Its variants are the benchmarks' backends: a benchmark that has one is built with it or
    without, as the suite is. device=c66x takes those that run on the DSP."""

    homepage = HOMEPAGE

    maintainers(*MAINTAINERS)
    license("Apache-2.0 OR MIT")

    version("main")

    device_variant()
    variants("c66x", *BACKENDS)
    for benchmark in benchmarks_with_recipe():
        take(benchmark)
