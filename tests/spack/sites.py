"""The example sites of environments/sites, and what Spack makes of an environment on each."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.checkout import SOURCES, copy_to
from tests.cluster import cache_folder
from tests.stranger import need_spack
from tests.targets import backends

ELSEWHERE = Path(__file__).with_name("elsewhere.py")
LIBRARIES = Path(__file__).with_name("libraries.py")
#: what runs on compute nodes, and on the login node
COMPUTE = ("benchkit", "mod2am", "hydro")
#: its plugins are loaded by sbatch and slurmctld, too
LOGIN = ("joulemark-slurm", "joulemark", "python")
WHERE = "import sys, spack.paths; print(sys.executable, spack.paths.prefix)"


class Login(NamedTuple):
    """The node on which Spack runs."""

    target: str
    distribution: str
    release: str
    glibc: str


class Site(NamedTuple):
    environment: str
    login: Login
    target: str
    #: what gives each virtual to mod2am: NAME@VERSION the site's own, NAME what Spack builds
    given: dict[str, str]
    #: of Spack's command line, what a site may write into its packages.yaml
    words: tuple[str, ...] = ()
    gpus: dict[str, object] | None = None  # variants of mod2am


#: on Debian all that a lock file would hold
LEFT_TO_LOCK = {"compiler-wrapper", "gcc-runtime"}
SITES = {
    "lumi": Site(
        "x86_64",
        Login("zen2", "sles", "15.4", "2.31"),
        "zen3",
        {
            "c": "gcc@12.2.0",
            "mpi": "cray-mpich@8.1.27",
            "blas": "cray-libsci@23.09.1.1",
            "scalapack": "cray-libsci@23.09.1.1",
        },
    ),
    "lumi with cce": Site(  # PrgEnv-cray's
        "x86_64",
        Login("zen2", "sles", "15.4", "2.31"),
        "zen3",
        {
            "c": "cce@16.0.1",
            "mpi": "cray-mpich@8.1.27",
            "blas": "cray-libsci@23.09.1.1",
            "scalapack": "cray-libsci@23.09.1.1",
        },
        tuple(
            word
            for language in ("c", "cxx", "fortran")
            for word in ("-c", f"packages:{language}:prefer::[cce]")
        ),
    ),
    "isambard-ai": Site(
        "aarch64",
        Login("neoverse_v2", "sles", "15.5", "2.31"),
        "neoverse_v2",
        {
            "c": "gcc@12.3.0",
            "cxx": "gcc@12.3.0",  # for CUDA's kernels
            "mpi": "nvhpc@23.9",
            "blas": "nvhpc@23.9",
            "scalapack": "netlib-scalapack",
        },
        gpus={"cuda_arch": ["90"]},
    ),
    "hercules": Site(
        "x86_64",
        Login("icelake", "rocky", "9.1", "2.34"),
        "icelake",
        {
            "c": "gcc@12.2.0",
            "mpi": "openmpi@4.1.4",
            "blas": "openblas",
            "scalapack": "netlib-scalapack",
        },
    ),
    "csd3": Site(
        "x86_64",
        Login("icelake", "rocky", "8.8", "2.28"),
        "sapphirerapids",
        {
            "c": "intel-oneapi-compilers@2022.1.0",
            "mpi": "intel-oneapi-mpi@2021.6.0",
            "blas": "intel-oneapi-mkl@2022.1.0",
            "scalapack": "netlib-scalapack",
        },
    ),
    "tuolumne": Site(
        "x86_64",
        Login("zen4", "rhel", "8.10", "2.28"),
        "zen4",
        {
            "c": "llvm-amdgpu@6.4.1",
            "mpi": "cray-mpich@8.1.32",
            "blas": "netlib-lapack@3.8.0",
            "scalapack": "netlib-scalapack",
        },
        gpus={"amdgpu_target": ["gfx942"]},
    ),
    "fugaku": Site(
        "aarch64",
        Login("a64fx", "rhel", "8.5", "2.28"),
        "a64fx",
        {
            "c": "fj@4.10.0",
            "mpi": "fujitsu-mpi@4.10.0",
            "blas": "fujitsu-ssl2@4.10.0",
            "scalapack": "fujitsu-ssl2@4.10.0",
        },
    ),
    "graviton": Site(
        "aarch64",
        Login("neoverse_n1", "ubuntu", "22.04", "2.35"),
        "neoverse_v1",
        {
            "c": "gcc@11.3.0",
            "mpi": "openmpi@4.1.6",
            "blas": "armpl-gcc@23.10_gcc-11.3",
            "scalapack": "netlib-scalapack",
        },
    ),
    "aws-ubuntu2404": Site(
        "x86_64",
        Login("icelake", "ubuntu", "24.04", "2.39"),
        "icelake",
        {
            "c": "gcc@13.3.0",
            "mpi": "openmpi",
            "blas": "openblas",
            "scalapack": "netlib-scalapack",
        },
    ),
    "jetson": Site(
        "aarch64",
        Login("armv8.2a", "ubuntu", "22.04", "2.35"),
        "armv8.2a",
        {
            "c": "gcc@11.4.0",
            "cxx": "gcc@11.4.0",  # for CUDA's kernels
            "mpi": "openmpi",
            "blas": "openblas",
            "scalapack": "netlib-scalapack",
        },
        gpus={"cuda_arch": ["87"]},
    ),
}


def spack_at(login: Login, site: str, environments: Path) -> Callable[..., str]:
    """Spack as it would run on this node, for environments in a folder of os-release's own."""
    python, root = backends.must(cache_folder() / "bin/spack", "python", "-c", WHERE).split()
    release = f"ID={login.distribution}\nVERSION_ID={login.release}\n"
    (environments / "os-release").write_text(release)
    env = {
        "SPACK_PYTHON": python,
        "SPACK_USER_CONFIG_PATH": str(cache_folder() / "spack-config"),
        "SPACK_USER_CACHE_PATH": str(cache_folder() / "spack-cache"),
        "UNIXCONFDIR": str(environments),
        "JOULEMARK_SITE": site,
    }

    def spack(environment: str, *words: str) -> str:
        here = ("-e", environments / environment)
        done = backends.run(
            python, ELSEWHERE, root, login.target, login.glibc, *here, *words, env=env
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    return spack


def locked(environment: Path) -> list[dict]:
    """The specs of its lock file."""
    return list(json.loads((environment / "spack.lock").read_text())["concrete_specs"].values())


def built_in(environment: Path) -> dict[str, dict]:
    """Those that are not the machine's, by their names."""
    return {spec["name"]: spec for spec in locked(environment) if "external" not in spec}


def left_to_lock(environment: Path) -> set[str]:
    """What it builds of builtin's recipes: neither the machine's nor this tree's."""
    built = built_in(environment)
    return {name for name, spec in built.items() if spec["namespace"] == "builtin"}


def concretized(site: Site, name: str, environments: Path, environment: str) -> dict[str, dict]:
    """The specs of the lock file by hash, of a clone's environment at an example site, whose
    libraries Spack can be asked for."""
    spack = spack_at(site.login, f"examples/{name.split()[0]}", environments)
    spack(environment, *site.words, "concretize", "-f")
    spack(environment, *site.words, "python", str(LIBRARIES))
    return json.loads((environments / environment / "spack.lock").read_text())["concrete_specs"]


@pytest.fixture
def environments(tmp_path: Path) -> Path:
    """A clone's environments; needs the state's own Spack."""
    need_spack()
    copy_to(tmp_path, *SOURCES)
    return tmp_path / "environments"


def must_be_as_told(specs: dict[str, dict], site: Site, *there: str) -> None:
    """Site's compiler, MPI and libraries; the compute nodes' target, or the login node's.
    there: what must be among the specs, besides the benchmarks."""
    by_name = {spec["name"]: spec for spec in specs.values()}
    assert by_name.keys() >= {"mod2am", "hydro", *there}
    given = dict(virtuals(specs, by_name["mod2am"]))
    assert given == {**site.given, "libc": f"glibc@{site.login.glibc}"}, given
    variants, gpus = by_name["mod2am"]["parameters"], site.gpus or {}
    assert {name: variants.get(name) for name in gpus} == gpus
    backends = ("cuda_arch" in gpus, "amdgpu_target" in gpus)
    assert (variants["cuda"], variants["rocm"]) == backends
    for names, expected in ((COMPUTE, site.target), (LOGIN, site.login.target)):
        found = [by_name[name] for name in names if name in by_name]
        targets = {spec["name"]: target(spec) for spec in found if "external" not in spec}
        assert set(targets.values()) <= {expected}, targets


def virtuals(specs: dict[str, dict], package: dict) -> Iterator[tuple[str, str]]:
    """What gives each virtual to this package: a site's with its version, else the name alone."""
    for edge in package["dependencies"]:
        spec = specs[edge["hash"]]
        version = f"@{spec['version']}" if "external" in spec else ""
        for virtual in edge["parameters"]["virtuals"]:
            yield virtual, spec["name"] + version


def target(spec: dict) -> str:
    said = spec["arch"]["target"]
    return said if isinstance(said, str) else said["name"]
