# SPDX-License-Identifier: Apache-2.0 OR MIT
from spack_repo.builtin.build_systems.generic import Package

from spack.package import *


class Tic6xElfGcc(Package):
    """Cross toolchain for TI's C66x DSPs on bare metal: GNU binutils, GCC and newlib."""

    url = "https://ftpmirror.gnu.org/gnu/gcc/gcc-12.2.0/gcc-12.2.0.tar.xz"

    license("GPL-3.0-or-later WITH GCC-exception-3.1")

    version(
        "12.2.0",
        sha256="e549cf9cf3594a00e27b6589d4322d70e0720cdd213f39beb4181e06926230ff",
        expand=False,
    )

    variant(
        "sources",
        default="upstream",
        values=("upstream", "debian"),
        description="debian: the tarballs in /usr/src of its packages *-source, with no network",
    )
    with when("sources=upstream"):
        resource(
            name="binutils",
            url="https://ftpmirror.gnu.org/gnu/binutils/binutils-2.40.tar.bz2",
            sha256="f8298eb153a4b37d112e945aa5cb2850040bcf26a3ea65b5a715c83afe05e48a",
            expand=False,
        )
        resource(
            name="newlib",
            url="https://sourceware.org/pub/newlib/newlib-3.3.0.tar.gz",
            sha256="58dd9e3eaedf519360d92d84205c3deef0b3fc286685d1c562e245914ef72c66",
            expand=False,
        )

    for tool in ("c", "cxx", "gmake", "flex", "bison", "m4", "curl"):
        depends_on(tool, type="build")
    for library in ("gmp", "mpfr", "mpc", "zlib"):
        depends_on(library)

    executables = [r"^tic6x-elf-gcc$"]  # noqa: RUF012 - as `spack external find` wants it

    @classmethod
    def determine_version(cls, exe):
        return Executable(exe)("-dumpfullversion", output=str, error=str).strip()

    @property
    def has_code(self):
        return self.spec.satisfies("sources=upstream")

    def install(self, spec, prefix):
        sources = ["--sources", self.stage.source_path] if self.has_code else []
        build = Executable(join_path(self.package_dir, "build-toolchain"))
        with set_env(JOBS=str(make_jobs), TMPDIR=self.stage.path):
            build("--prefix", prefix, *sources)
