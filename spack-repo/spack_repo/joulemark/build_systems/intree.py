# Packages whose sources lie in this repository: built from the checkout, with no network.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import base64
import hashlib
import os

from spack_repo.builtin.build_systems.cmake import CMakePackage
from spack_repo.joulemark.build_systems.digest import tree_digest

from spack.package import *

HERE = os.path.dirname(os.path.realpath(__file__))

#: the checkout: HERE is <checkout>/spack-repo/spack_repo/joulemark/build_systems
CHECKOUT = os.path.abspath(os.path.join(HERE, *[os.pardir] * 4))


class InTree:
    """Mixin: names the sources, and lets an edit of them change the package's hash."""

    has_code = False  # nothing to fetch

    #: the source folder, below the checkout; by default packages/<the package's name>
    source_folder = ""

    @property
    def source(self) -> str:
        return os.path.join(CHECKOUT, self.source_folder or os.path.join("packages", self.name))

    def content_hash(self, content=None) -> str:
        """Spack's hook: the recipe's hash, joined with those of this folder and the sources."""
        parts = super().content_hash(content).encode() + tree_digest(HERE)
        digest = hashlib.sha256(parts + tree_digest(self.source)).digest()
        return base64.b32encode(digest).decode().lower()


class InTreeCMakePackage(InTree, CMakePackage):
    """A CMake project of this repository, built outside its source folder."""

    @property
    def root_cmakelists_dir(self) -> str:
        return self.source
