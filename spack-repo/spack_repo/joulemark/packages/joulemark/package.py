# SPDX-License-Identifier: Apache-2.0 OR MIT
import shutil

from spack_repo.builtin.build_systems.generic import Package
from spack_repo.joulemark.build_systems.digest import GENERATED
from spack_repo.joulemark.build_systems.intree import InTree

from spack.package import *


class Joulemark(InTree, Package):
    """Joulemark's command: job accounting with energy, tables and plots.

    It is installed, without a network, into a virtual environment of its own that sees the
    modules of the Python it is built with: by default those that the system's packages bring.
    Only the command itself is in bin, so that loading the module hides no other Python."""

    license("Apache-2.0 OR MIT")

    version("0.1.0")

    depends_on("python@3.9:", type=("build", "run"))
    depends_on("py-pip", type="build")
    depends_on("py-setuptools", type="build")
    depends_on("py-wheel", type="build")
    depends_on("py-pyyaml", type=("build", "run"))
    depends_on("py-rich", type=("build", "run"))
    depends_on("py-matplotlib", type=("build", "run"))

    def install(self, spec, prefix):
        # pip writes beside the sources, so it gets a copy of them
        sources = join_path(self.stage.path, "joulemark")
        shutil.copytree(self.source, sources, ignore=shutil.ignore_patterns(*GENERATED))
        venv = prefix.libexec.joulemark
        spec["python"].command("-m", "venv", "--without-pip", "--system-site-packages", venv)
        pip = Executable(venv.bin.python)
        pip("-m", "pip", "install", "--no-index", "--no-deps", "--no-build-isolation", sources)
        mkdirp(prefix.bin)
        symlink(venv.bin.joulemark, prefix.bin.joulemark)

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check(self):
        self.test_help()

    def test_help(self):
        """the command starts: all modules that it needs are there"""
        Executable(self.prefix.bin.joulemark)("--help")
