# find_package(ScaLAPACK): ScaLAPACK for the MPI that is used, as ScaLAPACK::ScaLAPACK.
# SPDX-License-Identifier: Apache-2.0 OR MIT
# It has no headers for C. Debian names the library after the MPI that it was built with.
include(FindPackageHandleStandardArgs)
find_package(BLAS QUIET)
find_library(ScaLAPACK_LIBRARY NAMES scalapack scalapack-openmpi scalapack-mpich)
mark_as_advanced(ScaLAPACK_LIBRARY)
find_package_handle_standard_args(ScaLAPACK REQUIRED_VARS ScaLAPACK_LIBRARY BLAS_FOUND)
if(ScaLAPACK_FOUND AND NOT TARGET ScaLAPACK::ScaLAPACK)
  add_library(ScaLAPACK::ScaLAPACK INTERFACE IMPORTED)
  target_link_libraries(ScaLAPACK::ScaLAPACK INTERFACE ${ScaLAPACK_LIBRARY} BLAS::BLAS)
endif()
