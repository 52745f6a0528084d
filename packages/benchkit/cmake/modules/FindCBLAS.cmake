# find_package(CBLAS): a BLAS with the C interface, as CBLAS::CBLAS.
# SPDX-License-Identifier: Apache-2.0 OR MIT
# As FindBLAS does, it heeds BLA_VENDOR.
include(FindPackageHandleStandardArgs)
find_package(BLAS QUIET)
find_path(CBLAS_INCLUDE_DIR cblas.h PATH_SUFFIXES openblas cblas)
mark_as_advanced(CBLAS_INCLUDE_DIR)
find_package_handle_standard_args(CBLAS REQUIRED_VARS CBLAS_INCLUDE_DIR BLAS_FOUND)
if(CBLAS_FOUND AND NOT TARGET CBLAS::CBLAS)
  add_library(CBLAS::CBLAS INTERFACE IMPORTED)
  target_include_directories(CBLAS::CBLAS INTERFACE ${CBLAS_INCLUDE_DIR})
  target_link_libraries(CBLAS::CBLAS INTERFACE BLAS::BLAS)
endif()
