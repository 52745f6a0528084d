# SPDX-License-Identifier: Apache-2.0 OR MIT
from spack_repo.builtin.build_systems.cuda import CudaPackage
from spack_repo.builtin.build_systems.rocm import ROCmPackage
from spack_repo.joulemark.build_systems.benchmark import Benchmark, backends

from spack.package import *


class Hydro(Benchmark, CudaPackage, ROCmPackage):
    """2D compressible Euler equations by a second-order Godunov scheme, as RAMSES and Hydro solve
    them: cell updates per second and per joule."""

    git_sparse_paths = ("packages/hydro",)

    version("main")

    backends("openmp", "mpi", "cuda", "rocm", "opencl", "c66x")
