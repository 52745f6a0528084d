# SPDX-License-Identifier: Apache-2.0 OR MIT
from spack_repo.joulemark.build_systems.intree import InTreeCMakePackage

from spack.package import *


class Benchkit(InTreeCMakePackage):
    """What all of Joulemark's benchmarks share: timing, repetition, verification, output and
    energy regions."""

    license("Apache-2.0 OR MIT")

    version("0.1.0")

    depends_on("c", type="build")
    depends_on("cmake@3.21:", type="build")
