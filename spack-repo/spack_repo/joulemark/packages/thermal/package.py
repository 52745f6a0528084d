# SPDX-License-Identifier: Apache-2.0 OR MIT
from spack_repo.joulemark.build_systems.benchmark import Benchmark, backends

from spack.package import *


class Thermal(Benchmark):
    """Sustained heat: FFTs in the caches whose results are known, with a proof of each core."""

    version("0.1.0")

    backends("openmp", "cuda", "rocm")
