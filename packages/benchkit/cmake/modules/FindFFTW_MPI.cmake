# find_package(FFTW_MPI): FFTW 3 over MPI in double precision, as FFTW_MPI::FFTW_MPI.
# SPDX-License-Identifier: Apache-2.0 OR MIT
include(FindPackageHandleStandardArgs)
find_package(FFTW QUIET)
find_path(FFTW_MPI_INCLUDE_DIR fftw3-mpi.h)
find_library(FFTW_MPI_LIBRARY fftw3_mpi)
mark_as_advanced(FFTW_MPI_INCLUDE_DIR FFTW_MPI_LIBRARY)
find_package_handle_standard_args(FFTW_MPI REQUIRED_VARS FFTW_MPI_LIBRARY FFTW_MPI_INCLUDE_DIR
                                                         FFTW_FOUND)
if(FFTW_MPI_FOUND AND NOT TARGET FFTW_MPI::FFTW_MPI)
  add_library(FFTW_MPI::FFTW_MPI INTERFACE IMPORTED)
  target_include_directories(FFTW_MPI::FFTW_MPI INTERFACE ${FFTW_MPI_INCLUDE_DIR})
  target_link_libraries(FFTW_MPI::FFTW_MPI INTERFACE ${FFTW_MPI_LIBRARY} FFTW::FFTW)
endif()
