# SPDX-License-Identifier: Apache-2.0 OR MIT
import os

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

    def test_templates(self):
        """each is whole, and so is the script that it sources"""
        folder = self.prefix.share.joulemark.templates
        job = os.path.realpath(join_path(folder, "joulemark-job.sh"))
        templates = find(folder, "*.sbatch")
        for template in templates:
            with open(template) as file:
                if f"source {job}\n" not in file.read():
                    raise InstallError(f"{template} does not source {job}")
        if not templates:
            raise InstallError(f"{folder} has no templates")
        for script in (job, *templates):
            which("bash", required=True)("-n", script)
