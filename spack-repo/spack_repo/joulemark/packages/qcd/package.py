# SPDX-License-Identifier: Apache-2.0 OR MIT
from spack_repo.builtin.build_systems.cuda import CudaPackage
from spack_repo.builtin.build_systems.rocm import ROCmPackage
from spack_repo.joulemark.build_systems.benchmark import Benchmark, backends

from spack.package import *


class Qcd(Benchmark, CudaPackage, ROCmPackage):
    """Lattice QCD: the Wilson operator on a 4D lattice, and its solution by mixed-precision
    conjugate gradients."""

    git_sparse_paths = ("packages/qcd",)

    version("main")

    backends("openmp", "mpi", "cuda", "rocm")
