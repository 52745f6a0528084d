# SPDX-License-Identifier: Apache-2.0 OR MIT
from spack_repo.builtin.build_systems.cuda import CudaPackage
from spack_repo.builtin.build_systems.rocm import ROCmPackage
from spack_repo.joulemark.build_systems.benchmark import Benchmark, backends

from spack.package import *


class JmStream(Benchmark, CudaPackage, ROCmPackage):
    """Memory bandwidth: STREAM's four kernels over sizes from the first cache to memory."""

    git_sparse_paths = ("packages/jm-stream",)

    version("main")

    backends("openmp", "mpi", "cuda", "rocm", "opencl", "c66x")
