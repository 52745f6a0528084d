# SPDX-License-Identifier: Apache-2.0 OR MIT
from spack_repo.joulemark.build_systems.benchmark import Benchmark, backends

from spack.package import *


class JmStream(Benchmark):
    """Memory bandwidth: STREAM's four kernels over sizes from the first cache to memory."""

    version("0.1.0")

    backends("openmp", "mpi", "cuda", "rocm", "opencl", "c66x")
