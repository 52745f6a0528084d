# SPDX-License-Identifier: Apache-2.0 OR MIT
from spack_repo.joulemark.build_systems.intree import InTreeCMakePackage

from spack.package import *

#: instruments that are modules of their own, each a variant, and what it links with
MODULES = {
    "nvml": (),  # NVIDIA's library is opened where the daemon runs
    "scpi": (),
    "ipmi": ("freeipmi",),
    "modbus": ("libmodbus",),
    "mqtt": ("mosquitto", "jansson"),
    "prometheus": ("curl", "jansson"),
    "redfish": ("curl", "jansson"),
    "replay_hdf5": ("hdf5~mpi",),
    "snmp": ("net-snmp",),
}


class JoulemarkSlurm(InTreeCMakePackage):
    """Joulemark's energy ledger for Slurm: the node daemon, the SPANK and energy plugins, the
    epilogs.

    Slurm's plugins hold for one Slurm release only: depending on slurm (as a rule an external)
    makes a new Slurm version a new hash, so that they are built again."""

    license("GPL-2.0-or-later")

    git_sparse_paths = ("slurm-plugins", "packages")  # whose checks its tests use

    version("main")

    for instrument, libraries in MODULES.items():
        variant(instrument, default=not libraries, description=f"Instrument {instrument}")
        for library in libraries:
            depends_on(library, when=f"+{instrument}")

    depends_on("c", type="build")
    depends_on("cmake@3.21:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("slurm@22.05:26.05")
    depends_on("libyaml")
    depends_on("sqlite")

    def cmake_args(self):
        modules = [self.define_from_variant(f"JM_{name.upper()}", name) for name in MODULES]
        where = self.define("SLURM_ROOT", self.spec["slurm"].prefix)
        return [*modules, where, self.define("BUILD_TESTING", self.run_tests)]

    def test_configuration(self):
        """the daemon starts, and finds no error in the example of its configuration"""
        example = self.prefix.share.joulemark.join("joulemark.yaml")
        Executable(self.prefix.sbin.joulemarkd)("--check", "--config", example)
