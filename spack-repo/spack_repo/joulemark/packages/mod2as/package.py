# SPDX-License-Identifier: Apache-2.0 OR MIT
from spack_repo.joulemark.build_systems.benchmark import Benchmark, backends

from spack.package import *


class Mod2as(Benchmark):
    """Sparse matrix-vector product in double precision: a plain loop over compressed rows, our own
    best format, libraries."""

    version("0.1.0")

    backends("openmp", "cuda", "rocm", "c66x")
