# SPDX-License-Identifier: Apache-2.0 OR MIT
from spack_repo.builtin.build_systems.python import PythonPackage
from spack_repo.joulemark.build_systems.intree import InTree

from spack.package import *


class PyJoulemarkRegions(InTree, PythonPackage):
    """Energy regions for Python programs, `from joulemark.regions import region`, without the
    command `joulemark` and what that needs."""

    license("Apache-2.0 OR MIT")

    git_sparse_paths = ("packages/joulemark",)
    import_modules = ("joulemark.regions",)

    version("main")

    depends_on("python@3.9:", type=("build", "run"))

    run_before("install")(InTree.refuse_edited)
    run_after("install")(InTree.refuse_edited)

    def install(self, spec, prefix):
        # no __init__.py: where the command is loaded, too, this hides nothing of its own package
        folder = join_path(prefix, self.python_spec.package.purelib, "joulemark")
        mkdirp(folder)
        install(join_path(self.source, "src/joulemark/regions.py"), folder)
