# SPDX-License-Identifier: Apache-2.0 OR MIT
from spack_repo.joulemark.build_systems.intree import InTreeCMakePackage

from spack.package import *


class FsScan(InTreeCMakePackage):
    """Parallel scan of a file system into an SQLite database; `joulemark fs` runs and reads it."""

    license("Apache-2.0 OR MIT")

    git_sparse_paths = ("packages/fs-scan",)

    version("main")

    depends_on("c", type="build")
    depends_on("cmake@3.21:", type="build")
    depends_on("sqlite")

    def cmake_args(self):
        return [*super().cmake_args(), self.define("BUILD_TESTING", self.run_tests)]

    def test_scan(self):
        """it scans its own folder"""
        scan = Executable(self.prefix.bin.join("fs-scan"))
        scan(self.prefix.bin, join_path(self.test_suite.stage, "scan.db"))
