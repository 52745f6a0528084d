# Recipes of benchmarks: packages/<name> over benchkit, with a variant for each backend.
# SPDX-License-Identifier: Apache-2.0 OR MIT
from typing import NamedTuple

from spack_repo.joulemark.build_systems.benchmarks import versions_in_recipe
from spack_repo.joulemark.build_systems.intree import InTreeCMakePackage, device

from spack.package import *


class Backend(NamedTuple):
    text: str = ""  # none: CudaPackage and ROCmPackage have the variant
    needs: tuple = ()
    default: bool = True
    option: str = ""  # of CMake, where it is not the variant's name


#: the host's backends, by their variants
BACKENDS = {
    "openmp": Backend("Threads by OpenMP"),
    "mpi": Backend("Ranks by MPI", ("mpi",)),
    "blas": Backend("A BLAS library's routines", ("blas",)),
    "fftw": Backend("FFTW's transforms", ("fftw-api@3",)),
    "cuda": Backend(needs=("cuda@12:",)),
    "rocm": Backend(needs=("hip@5.2:",), option="HIP"),
    "opencl": Backend("OpenCL's devices", ("opencl@1.2:",), default=False),
}
#: a benchmark's backend, and those that it is only there with
BESIDE = {("mod2f", "mpi"): ("fftw",)}

#: libraries of the DAG, whoever provides them, and the variables of CMake that name them
LIBRARIES = {
    "blas": "CBLAS",
    "scalapack": "ScaLAPACK",
    "fftw-api:openmp": "FFTW",
    "fftw-api:openmp,mpi": "FFTW_MPI",
}
SYSTEM = ("/usr", "/usr/local")
#: providers of fftw-api whose parts are variants; others have all in one library
FFTWS = ("fftw", "amdfftw", "cray-fftw")

#: what a benchmark's results tell of it; the hash tells the rest
SPEC = "{name}{@version}{compiler_flags}{variants}{ target=architecture.target}"


def backends(*names):
    """In a recipe: the benchmark's backends, those that have a folder in its src/."""
    variants(*names)
    if "c66x" in names:
        device()
        depends_on("benchkit device=c66x", when="device=c66x")
        depends_on("benchkit device=host", when="device=host")
    else:
        depends_on("c", type="build")
        depends_on("benchkit device=host")
    for version in versions_in_recipe("benchkit"):
        depends_on(f"benchkit@{version}", when=f"@{version}")
    if "cuda" in names:
        depends_on("cxx", type="build", when="+cuda")
    for name in names:
        for package in BACKENDS.get(name, Backend()).needs:
            depends_on(package, when=f"+{name}")
    if "fftw" in names:
        for fftw in FFTWS:
            depends_on(f"{fftw}+openmp", when=f"+fftw ^[virtuals=fftw-api] {fftw}")


def variants(*names):
    """The variants of these backends; a DSP has none of the host's."""
    host = "device=host" if "c66x" in names else None
    for name in names:
        backend = BACKENDS.get(name, Backend())
        if backend.text:
            variant(name, default=backend.default, description=backend.text, when=host)
        elif host and name in BACKENDS:
            conflicts(f"+{name}", when="device=c66x", msg="a DSP has no GPU")
    if "rocm" in names:
        conflicts("+cuda", when="+rocm", msg="HIP compiles CUDA's kernels: one or the other")


def header_folders(library) -> list[str]:
    """Where its headers are; none: NVHPC has no folder for them."""
    try:
        return library.headers.directories
    except NoHeadersError:
        return []


def link_options(package) -> list[str]:
    """What CMake is told to link with: the libraries of what provides BLAS and so on here. The
    system's own it finds, whatever their names; Spack might take another architecture's."""
    options, headers = [], []
    for query, name in LIBRARIES.items():
        virtual = query.partition(":")[0]
        if virtual in package.spec and package.spec[virtual].prefix not in SYSTEM:
            libraries = package.spec[query].libs.libraries
            options.append(package.define(f"{name}_LIBRARIES", libraries))
            if virtual != "scalapack":  # it has none for C
                headers += header_folders(package.spec[virtual])
    return [*options, package.define("CMAKE_INCLUDE_PATH", list(dedupe(headers)))]


class Benchmark(InTreeCMakePackage):
    """A benchmark of packages/; its recipe says which backends(...) it has."""

    license("Apache-2.0 OR MIT")

    depends_on("cmake@3.21:", type="build")

    def cmake_args(self):
        args = super().cmake_args()
        # for the manifest in its results
        args.append(self.define("BENCH_SPACK_SPEC", self.spec.format(SPEC)))
        args.append(self.define("BENCH_SPACK_HASH", self.spec.dag_hash()))
        if self.spec.satisfies("device=c66x"):
            return args
        args.append(self.define("BENCH_NATIVE", False))  # Spack's wrapper knows the target
        for name, backend in BACKENDS.items():
            if name in self.spec.variants:
                option = backend.option or name.upper()
                args.append(self.define_from_variant(f"BENCH_{option}", name))
        if self.spec.satisfies("+mpi"):
            args.append(self.define("MPI_C_COMPILER", self.spec["mpi"].mpicc))
        args += link_options(self)
        if self.spec.satisfies("+cuda") and not self.spec.satisfies("cuda_arch=none"):
            archs = self.spec.variants["cuda_arch"].value
            args.append(self.define("CMAKE_CUDA_ARCHITECTURES", archs))
        if self.spec.satisfies("+rocm"):
            args.append(self.define("CMAKE_CXX_COMPILER", self.spec["hip"].hipcc))
            targets = self.spec.variants["amdgpu_target"].value
            args.append(self.define("CMAKE_HIP_ARCHITECTURES", targets))
        return args

    def test_quick(self):
        """run and verify the smallest sizes"""
        if self.spec.satisfies("device=c66x"):
            raise SkipTest("needs a DSP, or c66x-sim")
        program = self.prefix.bin.join(self.name)
        self.emulated(program)("--quick")

    def test_ranks(self):
        """run and verify the smallest sizes on two ranks"""
        if not self.spec.satisfies("+mpi"):
            raise SkipTest("needs +mpi")
        launcher = which(self.spec["mpi"].prefix.bin.mpiexec, "srun")
        if launcher is None:
            raise SkipTest("this MPI's ranks are started by srun, which is not here")
        # Open MPI refuses root, and more ranks than cores, unless told otherwise: 4, then 5
        for name in ("ALLOW_RUN_AS_ROOT", "ALLOW_RUN_AS_ROOT_CONFIRM"):
            launcher.add_default_env(f"OMPI_{name}", "1")
        launcher.add_default_env("OMPI_MCA_rmaps_base_oversubscribe", "1")
        launcher.add_default_env("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe")
        launcher("-n", "2", *self.emulator, self.prefix.bin.join(self.name), "--quick")
