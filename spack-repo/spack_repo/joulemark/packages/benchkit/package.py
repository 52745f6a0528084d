# SPDX-License-Identifier: Apache-2.0 OR MIT
from spack_repo.joulemark.build_systems.intree import InTreeCMakePackage, device

from spack.package import *


class Benchkit(InTreeCMakePackage):
    """What all of Joulemark's benchmarks share: timing, repetition, verification, output and
    energy regions; and its port to bare-metal C66x DSPs."""

    license("Apache-2.0 OR MIT")

    git_sparse_paths = ("packages/benchkit",)

    version("main")

    device()

    depends_on("cmake@3.21:", type="build")

    @property
    def c66x_files(self):
        return join_path(self.source, "c66x")
