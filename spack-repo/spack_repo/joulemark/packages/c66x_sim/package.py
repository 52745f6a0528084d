# SPDX-License-Identifier: Apache-2.0 OR MIT
from spack_repo.joulemark.build_systems.intree import InTreeCMakePackage

from spack.package import *


class C66xSim(InTreeCMakePackage):
    """Functional simulator of TI's C6678 DSP: runs bare-metal programs, but tells no time."""

    license("Apache-2.0 OR MIT")

    git_sparse_paths = ("packages/c66x-sim", "packages/benchkit")  # whose checks its tests use

    version("main")

    depends_on("c", type="build")
    depends_on("cmake@3.21:", type="build")

    def test_help(self):
        """the command starts"""
        Executable(self.prefix.bin.join("c66x-sim"))("--help")
