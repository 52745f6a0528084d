"""BLAS, ScaLAPACK and FFTW of any provider: CMake is told what Spack's DAG has. MKL's, ArmPL's,
AOCL's and Cray's are externals of a site, here Debian's libraries under the names of those."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster import CHECKOUT
from tests.stranger import stranger_in

MACHINE = f"{os.uname().machine}-linux-gnu"
LIBRARIES = Path("/usr/lib", MACHINE)
HEADERS = {  # others: /usr/include
    "cblas.h": f"/usr/include/{MACHINE}/cblas.h",
    "mpi.h": f"{LIBRARIES}/openmpi/include/mpi.h",
}
BLAS, SCALAPACK = "libopenblas.so", "libscalapack-openmpi.so"
FFTW, FFTW_THREADS, FFTW_MPI = "libfftw3.so", "libfftw3_omp.so", "libfftw3_mpi.so"
MKL = "mkl/mkl/2025.3"
ARMPL = "armpl/armpl_24.10_gcc"  # as its installer lays it out
LIBSCI = "libsci/23.09.1.1/GNU/10.3/x86_64"  # its recipe reads the compiler off the path
#: a site's externals: each library a link to Debian's, each header includes Debian's
FILES = {
    f"{MKL}/lib/libmkl_scalapack_lp64.so": SCALAPACK,
    f"{MKL}/lib/libmkl_intel_lp64.so": BLAS,
    f"{MKL}/lib/libmkl_sequential.so": FFTW_THREADS,
    f"{MKL}/lib/libmkl_core.so": FFTW,
    f"{MKL}/lib/libmkl_cdft_core.so": FFTW,
    f"{MKL}/lib/libmkl_blacs_openmpi_lp64.so": SCALAPACK,
    f"{MKL}/include/mkl_cblas.h": "cblas.h",
    f"{MKL}/include/fftw/fftw3.h": "fftw3.h",
    f"{ARMPL}/lib/libarmpl_lp64.so": BLAS,
    f"{ARMPL}/lib/libamath.so": FFTW,
    f"{ARMPL}/lib/libastring.so": FFTW_THREADS,
    f"{ARMPL}/include/armpl.h": "cblas.h",
    f"{ARMPL}/include/fftw3.h": "fftw3.h",
    "cray-fftw/lib/libfftw3.so": FFTW,
    "cray-fftw/lib/libfftw3_omp.so": FFTW_THREADS,
    "cray-fftw/lib/libfftw3_mpi.so": FFTW_MPI,
    "cray-fftw/include/fftw3.h": "fftw3.h",
    "cray-fftw/include/fftw3-mpi.h": "fftw3-mpi.h",
    f"{LIBSCI}/lib/libsci_gnu_mpi.so": SCALAPACK,
    f"{LIBSCI}/lib/libsci_gnu.so": BLAS,
    f"{LIBSCI}/include/cblas.h": "cblas.h",
    "amdblis/lib/libblis-mt.so": BLAS,
    "amdblis/include/blis/cblas.h": "cblas.h",
    "amdscalapack/lib/libscalapack.so": SCALAPACK,
    "amdfftw/lib/libfftw3.so": FFTW,
    "amdfftw/lib/libfftw3_omp.so": FFTW_THREADS,
    "amdfftw/include/fftw3.h": "fftw3.h",
    "nvhpc/Linux_x86_64/23.9/compilers/lib/libblas.so": BLAS,
    "cray-mpich/bin/mpicc": "/usr/bin/mpicc",
    "cray-mpich/include/mpi.h": "mpi.h",
    "cray-mpich/lib/libmpich.so": "libmpi.so",
}
SITE = """\
# SPDX-License-Identifier: Apache-2.0 OR MIT
spack:
  view: false
  concretizer: {unify: false, reuse: false}
  specs:
  - mod2am@main ^[virtuals=blas,scalapack] intel-oneapi-mkl ^[virtuals=mpi] openmpi
  - mod2f@main ^[virtuals=fftw-api] cray-fftw ^[virtuals=mpi] cray-mpich
  - jm-linpack@main ~mpi ^[virtuals=blas] nvhpc
  - mod2am@main ~mpi ^[virtuals=blas] armpl-gcc
  - mod2f@main ~mpi ^[virtuals=fftw-api] armpl-gcc
  - mod2am@main ^[virtuals=blas,scalapack] cray-libsci ^[virtuals=mpi] openmpi
  - mod2am@main ^[virtuals=blas] amdblis ^[virtuals=scalapack] amdscalapack ^[virtuals=mpi] openmpi
  - mod2f@main ~mpi ^[virtuals=fftw-api] amdfftw
  - mod2f@main ~mpi ^[virtuals=fftw-api] intel-oneapi-mkl
  packages:
"""
EXTERNALS = {
    "intel-oneapi-mkl@2025.3.0 +cluster mpi_family=openmpi threads=none": "mkl",
    "cray-fftw@3.3.8.12 +mpi +openmp": "cray-fftw",
    "cray-mpich@8.1.28 +wrappers": "cray-mpich",
    "nvhpc@23.9 +blas ~lapack ~mpi": "nvhpc",
    "armpl-gcc@24.10 ~examples threads=none": "armpl",
    "cray-libsci@23.09.1.1 +mpi": LIBSCI,
    "amdblis@5.1 threads=openmp": "amdblis",
    "amdscalapack@5.1": "amdscalapack",
    "amdfftw@5.1 ~mpi +openmp": "amdfftw",
}
#: each root's options of CMake, its dependencies set up as for a build
OPTIONS = (
    "import spack.environment as e, spack.build_environment as b; "
    "[(b.setup_package(s.package, dirty=True), print(s.name, *s.package.cmake_args())) "
    "for s in e.active_environment().concrete_roots()]"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Callable[..., str]:
    """`site("install", ...)` in the site's environment."""
    folder = tmp_path_factory.mktemp("site")
    for name, target in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if target.endswith(".h"):
            debians = HEADERS.get(target, f"/usr/include/{target}")
            (folder / name).write_text(f'#include "{debians}"\n')
        else:
            (folder / name).symlink_to(LIBRARIES / target)
    (folder / MKL / "env").mkdir()
    (folder / MKL / "env/vars.sh").write_text("# oneAPI's; sets nothing\n")
    text = SITE
    for spec, prefix in EXTERNALS.items():
        name = re.match(r"[\w-]+", spec)[0]
        external = f"{{spec: {spec}, prefix: {folder / prefix}}}"
        text += f"    {name}: {{buildable: false, externals: [{external}]}}\n"
    (folder / "environment").mkdir()
    (folder / "environment/spack.yaml").write_text(text)
    spack = stranger_in(folder / "spack")
    spack("repo", "add", CHECKOUT / "spack-repo/spack_repo/joulemark")
    here = ("-e", folder / "environment")
    spack(*here, "concretize")
    return lambda *words: spack(*here, *words)


@pytest.fixture(scope="module")
def options(site) -> list[tuple[str, dict[str, str]]]:
    """Of each root, in the environment's order: its name, and what CMake is told."""
    said = site("python", "-c", OPTIONS).splitlines()
    lines = [line.split(" -D") for line in said if " -D" in line]
    return [(name, dict(re.findall(r"(\w+):\w+=(.*)", "\n".join(told)))) for name, *told in lines]


@pytest.mark.parametrize(
    ("root", "name", "variable", "first", "others"),
    [
        (0, "mod2am", "CBLAS", "libmkl_scalapack_lp64.so", "libmkl_intel_lp64.so libmkl_core.so"),
        (0, "mod2am", "ScaLAPACK", "libmkl_scalapack_lp64.so", "libmkl_blacs_openmpi_lp64.so"),
        (1, "mod2f", "FFTW", "libfftw3_omp.so", "libfftw3.so"),
        (1, "mod2f", "FFTW_MPI", "libfftw3_mpi.so", "libfftw3_omp.so libfftw3.so"),
        (2, "jm-linpack", "CBLAS", "libblas.so", ""),  # it has no folder of headers
        (3, "mod2am", "CBLAS", "libarmpl_lp64.so", "libamath.so libastring.so"),
        (4, "mod2f", "FFTW", "libarmpl_lp64.so", "libamath.so libastring.so"),
        (5, "mod2am", "CBLAS", "libsci_gnu_mpi.so", "libsci_gnu.so"),
        (5, "mod2am", "ScaLAPACK", "libsci_gnu_mpi.so", "libsci_gnu.so"),
        (6, "mod2am", "CBLAS", "libblis-mt.so", ""),
        (6, "mod2am", "ScaLAPACK", "libscalapack.so", ""),
        (7, "mod2f", "FFTW", "libfftw3_omp.so", "libfftw3.so"),
        (8, "mod2f", "FFTW", "libmkl_scalapack_lp64.so", "libmkl_sequential.so libmkl_core.so"),
    ],
)
def test_cmake_is_told_what_the_dag_has(options, root, name, variable, first, others):
    whose, told = options[root]
    libraries = [Path(path) for path in told[f"{variable}_LIBRARIES"].split(";")]
    names = [path.name for path in libraries]
    assert (whose, names[0]) == (name, first) and set(others.split()) <= set(names)
    assert not str(libraries[0]).startswith("/usr")


def test_headers_and_mpi_are_the_externals_own(options):
    told = [told for _, told in options]
    mkl, cray, _, *armpl = told[:5]
    libsci, amdblis, amdfftw, mkl_fftw = told[5:]
    assert f"{MKL}/include/fftw" in mkl_fftw["CMAKE_INCLUDE_PATH"]
    assert MKL in mkl["CMAKE_INCLUDE_PATH"] and "cray-fftw" in cray["CMAKE_INCLUDE_PATH"]
    assert all(f"{ARMPL}/include" in one["CMAKE_INCLUDE_PATH"] for one in armpl)
    for one, place in ((libsci, LIBSCI), (amdblis, "amdblis"), (amdfftw, "amdfftw")):
        assert f"{place}/include" in one["CMAKE_INCLUDE_PATH"]
    assert cray["MPI_C_COMPILER"].endswith("cray-mpich/bin/mpicc")


def test_what_is_linked_so_verifies(site, tmp_path):
    """Their files are Debian's: the names on the linker's line are right, and the headers'."""
    site("install", "mod2am", "mod2f")
    found = site("find", "--format", "{name} {prefix}", "mod2am", "mod2f").splitlines()
    for name, prefix in (line.split() for line in found):
        cooked = tmp_path / "cooked.jsonl"
        command = [f"{prefix}/bin/{name}", "--quick", "--cooked", cooked]
        subprocess.run(command, check=True, timeout=120)
        lines = [json.loads(line) for line in cooked.read_text().splitlines()]
        cooked.unlink()
        assert all(line["verified"] for line in lines), lines
        assert {"mod2am": "blas", "mod2f": "fftw"}[name] in {line["variant"] for line in lines}
    assert len(found) == 8
