# SPDX-License-Identifier: Apache-2.0 OR MIT
from spack_repo.builtin.build_systems.cuda import CudaPackage
from spack_repo.builtin.build_systems.rocm import ROCmPackage
from spack_repo.joulemark.build_systems.benchmark import Benchmark, backends

from spack.package import *


class Mod2as(Benchmark, CudaPackage, ROCmPackage):
    """Sparse matrix-vector product in double precision: a plain loop over compressed rows, our own
    best format, libraries."""

    git_sparse_paths = ("packages/mod2as",)

    version("main")

    backends("openmp", "cuda", "rocm", "c66x")
