# SPDX-License-Identifier: Apache-2.0 OR MIT
from spack_repo.joulemark.build_systems.benchmark import Benchmark, backends

from spack.package import *


class Mod2am(Benchmark):
    """Dense matrix multiplication, C = A*B in double precision: plain loops, a blocked kernel of
    our own, libraries."""

    version("0.1.0")

    backends("openmp", "mpi", "blas", "cuda", "rocm", "opencl", "c66x")

    depends_on("scalapack", when="+mpi")
