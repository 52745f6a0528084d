# SPDX-License-Identifier: Apache-2.0 OR MIT
from spack_repo.joulemark.build_systems.intree import InTreePackage

from spack.package import *


class JoulemarkTemplates(InTreePackage):
    """Joulemark's job templates: `sbatch $JOULEMARK_TEMPLATES/stream.sbatch`, on any Slurm."""

    license("Apache-2.0 OR MIT")
    git_sparse_paths = ("job-templates",)
    version("main")

    def install(self, spec, prefix):
        Executable(join_path(self.source, "install"))(prefix.share.joulemark.templates)

    def setup_run_environment(self, env):
        env.set("JOULEMARK_TEMPLATES", self.prefix.share.joulemark.templates)
