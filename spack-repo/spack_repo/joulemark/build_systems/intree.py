# Packages whose sources lie in this repository: built from the checkout, with no network.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import base64
import hashlib
import os

from spack_repo.builtin.build_systems.cmake import CMakePackage

from spack.package import *

#: the checkout: this file is <checkout>/spack-repo/spack_repo/joulemark/build_systems/intree.py
CHECKOUT = os.path.abspath(os.path.join(os.path.realpath(__file__), *[os.pardir] * 5))


def is_built(name: str) -> bool:
    """True for what building or editing leaves in a source tree: never part of the sources."""
    return name.startswith((".", "build", "__pycache__")) or name.endswith(".egg-info")


def tree_digest(root: str) -> bytes:
    """Digest of a tree's relative paths and contents, the same wherever the tree lies."""
    digest = hashlib.sha256()
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not is_built(name))
        for name in sorted(name for name in files if not is_built(name)):
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                content = hashlib.sha256(file.read()).digest()
            digest.update(os.path.relpath(path, root).encode() + b"\0" + content)
    return digest.digest()


class InTree:
    """Mixin: names the sources, and lets an edit of them change the package's hash."""

    has_code = False  # nothing to fetch

    #: the source folder, below the checkout; by default packages/<the package's name>
    source_folder = ""

    @property
    def source(self) -> str:
        return os.path.join(CHECKOUT, self.source_folder or os.path.join("packages", self.name))

    def content_hash(self, content=None) -> str:
        """Spack's hash of the recipe, joined with this file's and the sources' (Spack's hook)."""
        with open(__file__, "rb") as file:
            parts = super().content_hash(content).encode() + file.read()
        digest = hashlib.sha256(parts + tree_digest(self.source)).digest()
        return base64.b32encode(digest).decode().lower()


class InTreeCMakePackage(InTree, CMakePackage):
    """A CMake project of this repository, built outside its source folder."""

    @property
    def root_cmakelists_dir(self) -> str:
        return self.source
