# find_package(ScaLAPACK): ScaLAPACK for the MPI that is used, as ScaLAPACK::ScaLAPACK.
# SPDX-License-Identifier: Apache-2.0 OR MIT
# It has no headers for C. ScaLAPACK_LIBRARIES names it; where it is empty it is looked for: Debian names
# the library after the MPI that it was built with.
include(FindPackageHandleStandardArgs)
include(${CMAKE_CURRENT_LIST_DIR}/blas-link.cmake)
set(ScaLAPACK_LIBRARIES "" CACHE STRING "Libraries of ScaLAPACK; empty: the one that is found")
find_library(ScaLAPACK_LIBRARY NAMES scalapack scalapack-openmpi scalapack-mpich)
mark_as_advanced(ScaLAPACK_LIBRARIES ScaLAPACK_LIBRARY)
set(scalapack_link ${ScaLAPACK_LIBRARIES})
if(NOT scalapack_link AND ScaLAPACK_LIBRARY)
  set(scalapack_link ${ScaLAPACK_LIBRARY})
endif()
find_package_handle_standard_args(ScaLAPACK REQUIRED_VARS scalapack_link blas_link)
if(ScaLAPACK_FOUND AND NOT TARGET ScaLAPACK::ScaLAPACK)
  add_library(ScaLAPACK::ScaLAPACK INTERFACE IMPORTED)
  target_link_libraries(ScaLAPACK::ScaLAPACK INTERFACE ${scalapack_link} ${blas_link})
endif()
