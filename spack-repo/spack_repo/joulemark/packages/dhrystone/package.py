# SPDX-License-Identifier: Apache-2.0 OR MIT
from spack_repo.joulemark.build_systems.benchmark import Benchmark, backends

from spack.package import *


class Dhrystone(Benchmark):
    """Dhrystone 2.1: integers, texts and calls on one core, in DMIPS."""

    git_sparse_paths = ("packages/dhrystone",)

    version("main")

    backends("c66x")
