# find_package(FFTW): FFTW 3 in double precision with threads, as FFTW::FFTW.
# SPDX-License-Identifier: Apache-2.0 OR MIT
include(FindPackageHandleStandardArgs)
find_path(FFTW_INCLUDE_DIR fftw3.h)
find_library(FFTW_LIBRARY fftw3)
find_library(FFTW_THREADS_LIBRARY NAMES fftw3_omp fftw3_threads)
mark_as_advanced(FFTW_INCLUDE_DIR FFTW_LIBRARY FFTW_THREADS_LIBRARY)
find_package_handle_standard_args(FFTW REQUIRED_VARS FFTW_LIBRARY FFTW_THREADS_LIBRARY
                                                     FFTW_INCLUDE_DIR)
if(FFTW_FOUND AND NOT TARGET FFTW::FFTW)
  add_library(FFTW::FFTW INTERFACE IMPORTED)
  target_include_directories(FFTW::FFTW INTERFACE ${FFTW_INCLUDE_DIR})
  target_link_libraries(FFTW::FFTW INTERFACE ${FFTW_THREADS_LIBRARY} ${FFTW_LIBRARY} m)
endif()
