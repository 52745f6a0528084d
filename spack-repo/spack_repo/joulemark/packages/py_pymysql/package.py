# SPDX-License-Identifier: Apache-2.0 OR MIT
from spack_repo.builtin.packages.py_pymysql.package import PyPymysql as BuiltinPyPymysql

from spack.package import *


class PyPymysql(BuiltinPyPymysql):
    """builtin's recipe with a version that `joulemark` can use."""

    version("1.1.1", sha256="e127611aaf2b417403c60bf4dc570124aeb4a57f5f37b8e95ae399a42f904cd0")

    depends_on("py-setuptools@61:", when="@1.1:", type="build")

    def url_for_version(self, version):
        name = "pymysql" if version >= Version("1.1.1") else "PyMySQL"
        return f"https://files.pythonhosted.org/packages/source/p/pymysql/{name}-{version}.tar.gz"
