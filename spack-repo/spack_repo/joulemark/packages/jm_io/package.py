# SPDX-License-Identifier: Apache-2.0 OR MIT
from spack_repo.joulemark.build_systems.benchmark import Benchmark, backends

from spack.package import *


class JmIo(Benchmark):
    """What programs do to files: bandwidth and metadata by patterns, verified byte for byte."""

    git_sparse_paths = ("packages/jm-io",)

    version("main")

    backends("mpi")
