# SPDX-License-Identifier: Apache-2.0 OR MIT
from spack_repo.joulemark.build_systems.benchmark import Benchmark, backends

from spack.package import *


class Qcd(Benchmark):
    """Lattice QCD: the Wilson operator on a 4D lattice, and its solution by mixed-precision
    conjugate gradients."""

    version("0.1.0")

    backends("openmp", "mpi", "cuda", "rocm")
