# SPDX-License-Identifier: Apache-2.0 OR MIT
from spack_repo.joulemark.build_systems.intree import InTreeCMakePackage

from spack.package import *


class JmStream(InTreeCMakePackage):
    """Memory bandwidth: STREAM's four kernels over sizes from the first cache to memory."""

    license("Apache-2.0 OR MIT")

    version("0.1.0")

    variant("openmp", default=True, description="Threads by OpenMP")

    depends_on("c", type="build")
    depends_on("cmake@3.21:", type="build")
    depends_on("benchkit")

    def cmake_args(self):
        return [
            self.define("BENCH_NATIVE", False),  # Spack's compiler wrapper knows the target
            self.define_from_variant("BENCH_OPENMP", "openmp"),
        ]

    def test_quick(self):
        """run and verify the smallest sizes"""
        Executable(self.prefix.bin.join("jm-stream"))("--quick")
