# SPDX-License-Identifier: Apache-2.0 OR MIT
from spack_repo.joulemark.build_systems.intree import InTreePackage

from spack.package import *


class JoulemarkTemplates(InTreePackage):
    """Joulemark's job templates, `sbatch $JOULEMARK_TEMPLATES/stream.sbatch`, on any Slurm, and
    the applications that one of them runs, `joulemark app list`."""

    license("Apache-2.0 OR MIT")
    installed_beside = ("packages/apps",)
    git_sparse_paths = ("job-templates", *installed_beside)
    version("main")

    def install(self, spec, prefix):
        Executable(join_path(self.source, "install"))(prefix.share.joulemark.templates)
        install_tree(self.beside("packages/apps"), prefix.share.joulemark.apps)

    def setup_run_environment(self, env):
        env.set("JOULEMARK_TEMPLATES", self.prefix.share.joulemark.templates)
        env.prepend_path("JOULEMARK_APPS", self.prefix.share.joulemark.apps)
