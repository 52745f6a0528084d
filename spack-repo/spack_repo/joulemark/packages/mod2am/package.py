# SPDX-License-Identifier: Apache-2.0 OR MIT
from spack_repo.joulemark.build_systems.intree import InTreeCMakePackage

from spack.package import *


class Mod2am(InTreeCMakePackage):
    """Dense matrix multiplication, C = A*B in double precision: plain loops against a BLAS."""

    license("Apache-2.0 OR MIT")

    version("0.1.0")

    variant("openmp", default=True, description="Threads by OpenMP")
    variant("blas", default=True, description="The variant that calls a BLAS library")

    depends_on("c", type="build")
    depends_on("cmake@3.21:", type="build")
    depends_on("benchkit")
    depends_on("blas", when="+blas")

    def cmake_args(self):
        return [
            self.define("BENCH_NATIVE", False),  # Spack's compiler wrapper knows the target
            self.define_from_variant("BENCH_OPENMP", "openmp"),
            self.define_from_variant("BENCH_BLAS", "blas"),
        ]

    def test_quick(self):
        """run and verify the smallest sizes"""
        Executable(self.prefix.bin.mod2am)("--quick")
