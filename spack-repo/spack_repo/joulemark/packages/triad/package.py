# SPDX-License-Identifier: Apache-2.0 OR MIT
from spack_repo.joulemark.build_systems.benchmark import Benchmark, backends

from spack.package import *


class Triad(Benchmark):
    """Schoenauer's vector triad: what the placement of its vectors costs at each length."""

    git_sparse_paths = ("packages/triad",)

    version("main")

    backends("openmp")
