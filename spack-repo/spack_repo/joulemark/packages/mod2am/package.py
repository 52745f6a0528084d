# SPDX-License-Identifier: Apache-2.0 OR MIT
from spack_repo.builtin.build_systems.cuda import CudaPackage
from spack_repo.builtin.build_systems.rocm import ROCmPackage
from spack_repo.joulemark.build_systems.benchmark import Benchmark, backends

from spack.package import *


class Mod2am(Benchmark, CudaPackage, ROCmPackage):
    """Dense matrix multiplication, C = A*B in double precision: plain loops, a blocked kernel of
    our own, libraries."""

    git_sparse_paths = ("packages/mod2am",)

    version("main")

    backends("openmp", "mpi", "blas", "cuda", "rocm", "opencl", "c66x")

    depends_on("scalapack", when="+mpi")
