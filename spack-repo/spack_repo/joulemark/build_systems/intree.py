# Packages whose sources lie in this repository: built from the checkout, with no network.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import base64
import hashlib
import os
import platform

from spack_repo.builtin.build_systems.cmake import CMakePackage
from spack_repo.builtin.build_systems.generic import Package
from spack_repo.joulemark.build_systems.benchmarks import CHECKOUT, HERE
from spack_repo.joulemark.build_systems.digest import tree_digest

from spack.package import *

#: the families of what runs on the machine that builds; Spack takes a word that it does not know,
#: such as armv7l, for a family of its own
RUN_HERE = {platform.machine(), {"armv7l": "arm"}.get(platform.machine())}

NO_SOURCES = "the recipes build what lies beside them: take the whole repository"


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


class InTree:
    """Mixin: names the sources, and lets an edit of them change the package's hash."""

    has_code = False  # nothing to fetch

    #: the source folder, below the checkout; by default packages/<the package's name>
    source_folder = ""

    @property
    def source(self) -> str:
        """Where `spack develop` was told, else in the checkout that the recipe is of."""
        if "dev_path" in self.spec.variants:
            return str(self.spec.variants["dev_path"].value)
        return os.path.join(CHECKOUT, self.source_folder or os.path.join("packages", self.name))

    def content_hash(self, content=None) -> str:
        """Spack's hook: the recipe's hash, joined with those of this folder and the sources."""
        if not os.path.isdir(self.source):
            raise InstallError(f"{self.name}: {self.source}: no such folder: {NO_SOURCES}")
        parts = super().content_hash(content).encode() + tree_digest(HERE)
        if "dev_path" not in self.spec.variants:  # whose edits Spack builds under the same hash
            parts += tree_digest(self.source)
        digest = hashlib.sha256(parts).digest()
        return base64.b32encode(digest).decode().lower()

    def refuse_edited(self) -> None:
        """Before a build: what is built must be what the hash, and binary caches, say."""
        if self.content_hash() != self.spec._package_hash:
            fix = "`spack concretize -f` takes it as it is now, `spack develop` for many edits"
            raise InstallError(f"{self.name}: {self.source} was edited since its hash: {fix}")


class InTreePackage(InTree, Package):
    """Sources of this repository, installed by the recipe's own words."""

    run_before("install")(InTree.refuse_edited)


class InTreeCMakePackage(InTree, CMakePackage):
    """A CMake project of this repository, built outside its source folder, for any target."""

    run_before("cmake")(InTree.refuse_edited)

    @property
    def root_cmakelists_dir(self) -> str:
        return self.source

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
            toolchain = os.path.join(CHECKOUT, "packages/benchkit/c66x/c66x.cmake")
            return [
                self.define("CMAKE_TOOLCHAIN_FILE", toolchain),
                self.define("C66X_TOOLCHAIN", self.spec["tic6x-elf-gcc"].prefix),
            ]
        if not self.emulator:
            return []
        return [
            self.define("CMAKE_SYSTEM_NAME", "Linux"),
            self.define("CMAKE_SYSTEM_PROCESSOR", str(self.spec.target.family)),
            self.define("CMAKE_CROSSCOMPILING_EMULATOR", self.emulator),
        ]
