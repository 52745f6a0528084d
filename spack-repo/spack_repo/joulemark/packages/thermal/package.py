# SPDX-License-Identifier: Apache-2.0 OR MIT
from spack_repo.builtin.build_systems.cuda import CudaPackage
from spack_repo.builtin.build_systems.rocm import ROCmPackage
from spack_repo.joulemark.build_systems.benchmark import Benchmark, backends

from spack.package import *


class Thermal(Benchmark, CudaPackage, ROCmPackage):
    """Sustained heat: FFTs in the caches whose results are known, with a proof of each core."""

    git_sparse_paths = ("packages/thermal",)

    version("main")

    backends("openmp", "cuda", "rocm")
