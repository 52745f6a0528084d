# SPDX-License-Identifier: Apache-2.0 OR MIT
import re

from spack_repo.builtin.build_systems.bundle import BundlePackage

from spack.package import *


class TiCgtC6000(BundlePackage):
    """TI's code generation tools for C6000 DSPs, where a site has them: external only."""

    homepage = "https://www.ti.com/tool/C6000-CGT"

    version("8.3.12")

    executables = [r"^cl6x$"]  # noqa: RUF012 - as `spack external find` wants it

    @classmethod
    def determine_version(cls, exe):
        said = Executable(exe)("--compiler_revision", output=str, error=str)
        found = re.search(r"\d+\.\d+\.\d+", said)
        return found[0] if found else None

    def setup_dependent_build_environment(self, env, dependent_spec):
        env.set("C66X_CL6X", self.prefix.bin.cl6x)
