# What the machine brings: each external's version and place, asked of the machine itself.
# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import re
import shutil
from pathlib import Path

from building.steps import ask

PYTHON = "/usr/bin/python3"  # the system's, of which the joulemark command uses the modules
DEBIAN = ("dpkg-query", "--show", "--showformat=${source:Upstream-Version}")
PKG_CONFIG = ("pkg-config", "--modversion")


def module(name: str) -> tuple[str, ...]:
    return (PYTHON, "-c", f"import importlib.metadata as m; print(m.version('{name}'))")


#: Spack's words for an external, {} being the version, and what tells that
EXTERNALS = {
    # what builds
    "cmake@{}": ("cmake", "--version"),
    "gmake@{}": ("make", "--version"),
    "pkgconf@{}": ("pkgconf", "--version"),
    # the cluster's own; dpkg knows the Slurm that libslurm-dev's headers are of
    "slurm@{dashed}-1{pmix}": (*DEBIAN, "libslurm-dev"),
    "openmpi@{} schedulers=slurm": ("mpicc", "--showme:version"),
    "lmod@{}": (*DEBIAN, "lmod"),
    "lustre@{}": ("lfs", "--version"),
    # numerical libraries, and GPUs'
    "openblas@{}+fortran+shared threads=openmp": (*PKG_CONFIG, "openblas"),
    "netlib-scalapack@{}": (*DEBIAN, "libscalapack-openmpi-dev"),  # 2.2.2 calls itself 2.2.1
    "fftw@{}+mpi+openmp": (*PKG_CONFIG, "fftw3"),
    "ocl-icd@{}+headers": (*DEBIAN, "ocl-icd-opencl-dev"),  # its .pc has OpenCL's own version
    "cuda@{}": ("nvcc", "--version"),
    # what the ledger's daemon, its instruments and their tests need
    "libyaml@{}": (*PKG_CONFIG, "yaml-0.1"),
    "sqlite@{}": (*PKG_CONFIG, "sqlite3"),
    "freeipmi@{}": (*PKG_CONFIG, "libfreeipmi"),
    "libmodbus@{}": (*PKG_CONFIG, "libmodbus"),
    "mosquitto@{}": (*PKG_CONFIG, "libmosquitto"),
    "net-snmp@{}": (*DEBIAN, "libsnmp-dev"),  # 5.9.4 calls itself 5.9.4.pre2
    "curl@{}": (*PKG_CONFIG, "libcurl"),
    "jansson@{}": (*PKG_CONFIG, "jansson"),
    "hdf5@{}~mpi": (*PKG_CONFIG, "hdf5"),
    # the system's Python and its modules
    "python@{}": (PYTHON, "--version"),
    "py-pip@{}": module("pip"),
    "py-setuptools@{}": module("setuptools"),
    "py-wheel@{}": module("wheel"),
    "py-pyyaml@{}": module("PyYAML"),
    "py-rich@{}": module("rich"),
    "py-matplotlib@{}": module("matplotlib"),
    "py-pymysql@{}": module("PyMySQL"),
    "py-psycopg2@{}": module("psycopg2"),
    "py-h5py@{}": (PYTHON, "-c", "import h5py; print(h5py.__version__)"),
    "py-paho-mqtt@{}": module("paho-mqtt"),
    # what the DSP's cross toolchain is built with
    "flex@{}": ("flex", "--version"),
    "bison@{}": ("bison", "--version"),
    "m4@{}": ("m4", "--version"),
    "gmp@{}": (*PKG_CONFIG, "gmp"),
    "mpfr@{}": (*PKG_CONFIG, "mpfr"),
    "mpc@{}": (*DEBIAN, "libmpc-dev"),
    "zlib@{}": (*PKG_CONFIG, "zlib"),
}
#: a compiler's languages, and the programs for them
LANGUAGES = {"c": "gcc", "cxx": "g++", "fortran": "gfortran"}


def packages_yaml() -> str:
    """Spack's packages.yaml of all that is here; what is missing is left out."""
    entries = [entry(words, asked) for words, asked in EXTERNALS.items()]
    return "packages:\n" + compiler() + "".join(entries)


def entry(words: str, asked: tuple[str, ...]) -> str:
    name, version = words.partition("@")[0], version_by(*asked)
    if not version:
        return ""
    spec = words.format(version, dashed=version.replace(".", "-"), pmix=pmix())
    text = external(name, spec, prefix_of(*asked))
    if name.startswith("py-"):
        text += f"      dependencies: [{{spec: python@{version_by(PYTHON, '--version')}}}]\n"
    return text


def pmix() -> str:
    """Whether the system's Slurm starts ranks by it: Debian's has none since 26.05.5-1."""
    return "+pmix" if any(Path("/usr/lib").glob("*/slurm-wlm/mpi_pmix*.so")) else "~pmix"


def external(name: str, spec: str, prefix: Path | str) -> str:
    return f"  {name}:\n    externals:\n    - spec: {spec}\n      prefix: {prefix}\n"


def compiler() -> str:
    """GCC, with those of its languages that are installed."""
    version = version_by("gcc", "-dumpfullversion")
    if not version:
        return ""
    found = {word: shutil.which(name) for word, name in LANGUAGES.items()}
    there = {word: path for word, path in found.items() if path}
    languages = ",".join(there).replace("cxx", "c++")
    text = external("gcc", f"gcc@{version} languages:='{languages}'", prefix_of("gcc"))
    text += "      extra_attributes:\n        compilers:\n"
    return text + "".join(f"          {word}: {path}\n" for word, path in there.items())


def version_by(*asked: str | Path) -> str | None:
    """The first version in a command's answer; None where there is no such thing."""
    found = re.search(r"\d+(\.\w+)+", ask(*asked) or "")
    return found and found[0]


def prefix_of(program: str, *words: str) -> Path | str:
    if program == "pkg-config":
        return ask(program, "--variable=prefix", words[-1]) or "/usr"
    return Path(shutil.which(program)).resolve().parents[1]
