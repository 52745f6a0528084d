# SPDX-License-Identifier: Apache-2.0 OR MIT
from spack_repo.joulemark.build_systems.benchmark import Benchmark, backends

from spack.package import *


class Hydro(Benchmark):
    """2D compressible Euler equations by a second-order Godunov scheme, as RAMSES and Hydro solve
    them: cell updates per second and per joule."""

    version("0.1.0")

    backends("openmp", "mpi", "cuda", "rocm", "opencl", "c66x")
