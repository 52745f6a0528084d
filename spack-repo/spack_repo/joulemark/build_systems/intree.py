# Packages of this repository: releases, which Spack fetches, and @main, the tree beside.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import base64
import hashlib
import os
import platform

from spack_repo.builtin.build_systems.cmake import CMakePackage
from spack_repo.builtin.build_systems.generic import Package
from spack_repo.joulemark.build_systems.benchmarks import CHECKOUT, HERE
from spack_repo.joulemark.build_systems.digest import tree_digest
from spack_repo.joulemark.build_systems.project import GIT, HOMEPAGE, MAINTAINERS, TARBALLS

from spack.package import *

#: the families of what runs on the machine that builds; Spack takes a word that it does not know,
#: such as armv7l, for a family of its own
RUN_HERE = {platform.machine(), {"armv7l": "arm"}.get(platform.machine())}

NO_SOURCES = "@main is what lies beside the recipes: take the whole repository, or a release"


def device_variant():
    text = "Where it runs: this target, or bare-metal on TI's C66x DSP"
    variant("device", default="host", values=("host", "c66x"), multi=False, description=text)


def device():
    """In a recipe: it can be built bare-metal for TI's C66x DSP, too."""
    device_variant()
    text = "Compiler of the DSP's kernels: GCC, or TI's own where a site has it"
    values = ("gnu", "ti")
    variant("kernels", default="gnu", values=values, description=text, when="device=c66x")
    depends_on("c", type="build", when="device=host")
    depends_on("tic6x-elf-gcc", type="build", when="device=c66x")
    depends_on("ti-cgt-c6000", type="build", when="device=c66x kernels=ti")


class InTree(PackageBase):
    """A package of this repository. A release is Spack's own affair; @main is the tree that the
    recipes lie in: it is named as the sources, and an edit of it changes the package's hash."""

    homepage = HOMEPAGE
    git = GIT
    url = f"{TARBALLS}/joulemark-0.1.0.tar.gz"

    maintainers(*MAINTAINERS)

    #: the folders of the project that it is built from, first that with its CMakeLists.txt
    git_sparse_paths: tuple = ()
    #: those of the others of which something is installed; what else there is tests read
    installed_beside: tuple = ()

    @property
    def has_code(self) -> bool:
        """Whether there is something to fetch."""
        return not self.spec.satisfies("@main")

    @property
    def source(self) -> str:
        """The folder that is built: a release's, or @main's, where `spack develop` was told, else
        in the checkout that the recipe is of."""
        if self.has_code:
            return os.path.join(self.stage.source_path, self.git_sparse_paths[0])
        if "dev_path" in self.spec.variants:
            return str(self.spec.variants["dev_path"].value)
        return os.path.join(CHECKOUT, self.git_sparse_paths[0])

    def beside(self, folder: str) -> str:
        """Another folder of the project than the first that it is built from: that beside it, or
        the checkout's, where `spack develop` has the first one alone."""
        way = os.path.relpath(folder, self.git_sparse_paths[0])
        beside = os.path.normpath(os.path.join(self.source, way))
        if self.has_code or os.path.isdir(beside):
            return beside
        return os.path.join(CHECKOUT, folder)

    def content_hash(self, content=None) -> str:
        """Spack's hook; for @main the recipe's hash, joined with those of this folder and the
        sources."""
        if self.has_code:
            return super().content_hash(content)
        if not os.path.isdir(self.source):
            raise InstallError(f"{self.name}: {self.source}: no such folder: {NO_SOURCES}")
        parts = super().content_hash(content).encode() + tree_digest(HERE)
        if "dev_path" not in self.spec.variants:  # whose edits Spack builds under the same hash
            for folder in (self.source, *map(self.beside, self.installed_beside)):
                parts += tree_digest(folder)
        digest = hashlib.sha256(parts).digest()
        return base64.b32encode(digest).decode().lower()

    def refuse_edited(self) -> None:
        """Before and after a build: what is built must be what the hash and caches say."""
        if not self.has_code and self.content_hash() != self.spec._package_hash:
            fix = "`spack concretize -f` takes it as it is now, `spack develop` for many edits"
            raise InstallError(f"{self.name}: {self.source} was edited since its hash: {fix}")


class InTreePackage(InTree, Package):
    """Sources of this repository, installed by the recipe's own words."""

    run_before("install")(InTree.refuse_edited)
    run_after("install")(InTree.refuse_edited)


class InTreeCMakePackage(InTree, CMakePackage):
    """A CMake project of this repository, built outside its source folder, for any target."""

    run_before("cmake")(InTree.refuse_edited)
    run_after("install")(InTree.refuse_edited)

    @property
    def root_cmakelists_dir(self) -> str:
        return self.git_sparse_paths[0] if self.has_code else self.source

    @property
    def c66x_files(self) -> str:
        """benchkit's files for the DSP: its toolchain's among them."""
        return self.spec["benchkit"].prefix.share.benchkit

    @property
    def emulator(self) -> list[str]:
        """What runs a program of another family on the machine that builds; empty for its own."""
        family = str(self.spec.target.family)
        if family in RUN_HERE:
            return []
        return [f"qemu-{family}", "-L", str(self.spec["libc"].prefix)]

    def emulated(self, program: str) -> Executable:
        command = [*self.emulator, str(program)]
        executable = Executable(command[0])
        for word in command[1:]:
            executable.add_default_arg(word)
        return executable

    def cmake_args(self) -> list[str]:
        """Spack does not tell CMake that it is crossing."""
        if self.spec.satisfies("device=c66x"):
            return [
                self.define("CMAKE_TOOLCHAIN_FILE", join_path(self.c66x_files, "c66x.cmake")),
                self.define("C66X_TOOLCHAIN", self.spec["tic6x-elf-gcc"].prefix),
            ]
        if not self.emulator:
            return []
        return [
            self.define("CMAKE_SYSTEM_NAME", "Linux"),
            self.define("CMAKE_SYSTEM_PROCESSOR", str(self.spec.target.family)),
            self.define("CMAKE_CROSSCOMPILING_EMULATOR", self.emulator),
        ]
