# What links with BLAS, blas_link: CBLAS_LIBRARIES; where it is empty FindBLAS looks, and heeds BLA_VENDOR.
# SPDX-License-Identifier: Apache-2.0 OR MIT
set(CBLAS_LIBRARIES "" CACHE STRING "Libraries of BLAS; empty: those that FindBLAS finds")
mark_as_advanced(CBLAS_LIBRARIES)
set(blas_link ${CBLAS_LIBRARIES})
if(NOT blas_link)
  find_package(BLAS QUIET)
  if(BLAS_FOUND)
    set(blas_link BLAS::BLAS)
  endif()
endif()
