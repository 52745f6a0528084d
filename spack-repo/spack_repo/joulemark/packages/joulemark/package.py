# SPDX-License-Identifier: Apache-2.0 OR MIT
import shutil
from pathlib import Path

from spack_repo.joulemark.build_systems.digest import GENERATED
from spack_repo.joulemark.build_systems.intree import InTreePackage

from spack.package import *


class Joulemark(InTreePackage):
    """Joulemark's command: job accounting with energy, tables and plots.

    It is installed, without a network, into a virtual environment of its own that sees its
    Python's modules and those that Spack has built; users see its command and modules alone."""

    license("Apache-2.0 OR MIT")
    git_sparse_paths = ("packages/joulemark",)
    version("main")

    for tool in ("pip", "setuptools", "wheel"):
        depends_on(f"py-{tool}", type="build")
    for needed in ("python@3.9:", "py-pyyaml", "py-rich"):
        depends_on(needed, type=("build", "run"))
    for extra, what, needed in (
        ("plots", "Figures as PNG, SVG or PDF", "py-matplotlib@3.5:"),
        ("mariadb", "The store in MariaDB", "py-pymysql@1:"),
        ("postgresql", "The store in PostgreSQL", "py-psycopg2@2.8:"),
        ("mqtt", "MQTT: joulemark receive, joulemark top --nodes", "py-paho-mqtt@1.6:"),
        ("profile", "Power over time in HDF5", "py-h5py@3.7:"),
        ("parquet", "Exports in Parquet", "py-pyarrow@10:"),
    ):
        variant(extra, default=extra == "plots", description=what)
        depends_on(needed, when=f"+{extra}", type=("build", "run"))

    def install(self, spec, prefix):
        # pip writes beside the sources, so it gets a copy of them
        sources = join_path(self.stage.path, "joulemark")
        shutil.copytree(self.source, sources, ignore=shutil.ignore_patterns(*GENERATED))
        venv = prefix.libexec.joulemark
        spec["python"].command("-m", "venv", "--without-pip", "--system-site-packages", venv)
        options = ("--no-index", "--no-deps", "--no-build-isolation")
        Executable(venv.bin.python)("-m", "pip", "install", *options, sources)
        # the modules that Spack has built, loaded or not
        folder = f"lib/python{spec['python'].version.up_to(2)}/site-packages"
        folders = (folder, folder.replace("lib", "lib64", 1))  # Red Hat's compiled ones
        built = (m.prefix.join(f) for m in spec.traverse(deptype="run") for f in folders)
        Path(venv, folder, "spack.pth").write_text("\n".join(built))
        # completions and man pages, by the standard library alone
        Executable(venv.bin.python)("-m", "joulemark.shell", prefix)
        mkdirp(prefix.bin)
        symlink(venv.bin.joulemark, prefix.bin.joulemark)
        symlink(venv.join(folder), prefix.libexec.modules)

    def setup_run_environment(self, env):
        env.prepend_path("PYTHONPATH", self.prefix.libexec.modules)

    def test_help(self):
        """the command starts: all modules that it needs are there"""
        Executable(self.prefix.bin.joulemark)("--help")
