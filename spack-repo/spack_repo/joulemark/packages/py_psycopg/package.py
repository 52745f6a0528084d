# SPDX-License-Identifier: Apache-2.0 OR MIT
from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *


class PyPsycopg(PythonPackage):
    """PostgreSQL from Python, version 3; pure Python, over libpq. (builtin has version 2 only,
    as py-psycopg2.)"""

    homepage = "https://www.psycopg.org/psycopg3/"
    pypi = "psycopg/psycopg-3.2.9.tar.gz"

    license("LGPL-3.0-only")

    version("3.2.9", sha256="2fbb46fcd17bc81f993f28c47f1ebea38d66ae97cc2dbc3cad73b37cefbff700")

    depends_on("python@3.8:", type=("build", "run"))
    depends_on("py-setuptools@49.2:", type="build")
    depends_on("py-wheel@0.37:", type="build")
    depends_on("py-typing-extensions@4.6:", when="^python@:3.12", type=("build", "run"))
    depends_on("postgresql", type="run")

    # what imports it needs libpq, which it looks for as the loader does
    skip_modules = ("psycopg",)

    def setup_run_environment(self, env):
        if not self.spec.external:  # the system's finds its own
            env.prepend_path("LD_LIBRARY_PATH", self.spec["postgresql"].prefix.lib)
