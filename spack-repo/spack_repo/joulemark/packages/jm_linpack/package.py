# SPDX-License-Identifier: Apache-2.0 OR MIT
from spack_repo.joulemark.build_systems.benchmark import Benchmark, backends

from spack.package import *


class JmLinpack(Benchmark):
    """Linpack where HPL does not run: LU with partial pivoting, HPL's residual test."""

    version("0.1.0")

    backends("openmp", "mpi", "blas", "cuda", "c66x")

    depends_on("scalapack", when="+mpi")
