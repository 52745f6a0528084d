# SPDX-License-Identifier: Apache-2.0 OR MIT
from spack_repo.builtin.build_systems.cuda import CudaPackage
from spack_repo.joulemark.build_systems.benchmark import Benchmark, backends

from spack.package import *


class JmLinpack(Benchmark, CudaPackage):
    """Linpack where HPL does not run: LU with partial pivoting, HPL's residual test."""

    git_sparse_paths = ("packages/jm-linpack",)

    version("main")

    backends("openmp", "mpi", "blas", "cuda", "c66x")

    depends_on("scalapack", when="+mpi")
