"""find_package(CBLAS) without Spack: where a machine's BLAS has its C interface."""

# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.cluster import CHECKOUT

MODULES = CHECKOUT / "packages/benchkit/cmake/modules"
PROJECT = f"""
cmake_minimum_required(VERSION 3.21)
project(calls C)
list(APPEND CMAKE_MODULE_PATH {MODULES})
find_package(CBLAS REQUIRED)
add_executable(calls calls.c)
target_link_libraries(calls PRIVATE CBLAS::CBLAS)
"""
HEADER = "void cblas_dgemm(void);\n"
CALLS = "#include <cblas.h>\nint main(void) { cblas_dgemm(); return 0; }\n"
INTERFACE = "extern void sgemm_(void); void cblas_dgemm(void) { sgemm_(); }"
FORTRAN = "void sgemm_(void) {}"


def library(name: str, source: str, folder: Path) -> None:
    command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", folder / f"lib{name}.so"]
    subprocess.run(command, input=source, check=True, text=True)


@pytest.mark.parametrize("beside", [False, True], ids=["in it", "beside it"])
def test_a_blas_has_its_c_interface(tmp_path, beside):
    library("blas", FORTRAN if beside else FORTRAN + INTERFACE, tmp_path)
    if beside:
        library("cblas", INTERFACE, tmp_path)
    for name, text in (("CMakeLists.txt", PROJECT), ("calls.c", CALLS), ("cblas.h", HEADER)):
        (tmp_path / name).write_text(text)
    build = tmp_path / "build"
    places = (f"-DCMAKE_LIBRARY_PATH={tmp_path}", f"-DCMAKE_INCLUDE_PATH={tmp_path}")
    vendor = "-DBLA_VENDOR=Generic"  # else one of this machine's own comes first
    subprocess.run(["cmake", "-S", tmp_path, "-B", build, vendor, *places], check=True)
    subprocess.run(["cmake", "--build", build], check=True)
    subprocess.run([build / "calls"], check=True)
