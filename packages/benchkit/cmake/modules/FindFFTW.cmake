# find_package(FFTW): FFTW 3 in double precision with threads, as FFTW::FFTW.
# SPDX-License-Identifier: Apache-2.0 OR MIT
# FFTW_LIBRARIES names it, or another library with its interface; where it is empty FFTW's own is looked for.
include(FindPackageHandleStandardArgs)
set(FFTW_LIBRARIES "" CACHE STRING "Libraries of FFTW with threads; empty: those that are found")
find_path(FFTW_INCLUDE_DIR fftw3.h PATH_SUFFIXES fftw)
find_library(FFTW_LIBRARY fftw3)
find_library(FFTW_THREADS_LIBRARY NAMES fftw3_omp fftw3_threads)
mark_as_advanced(FFTW_LIBRARIES FFTW_INCLUDE_DIR FFTW_LIBRARY FFTW_THREADS_LIBRARY)
set(fftw_link ${FFTW_LIBRARIES})
if(NOT fftw_link AND FFTW_LIBRARY AND FFTW_THREADS_LIBRARY)
  set(fftw_link ${FFTW_THREADS_LIBRARY} ${FFTW_LIBRARY})
endif()
find_package_handle_standard_args(FFTW REQUIRED_VARS fftw_link FFTW_INCLUDE_DIR)
if(FFTW_FOUND AND NOT TARGET FFTW::FFTW)
  add_library(FFTW::FFTW INTERFACE IMPORTED)
  target_include_directories(FFTW::FFTW INTERFACE ${FFTW_INCLUDE_DIR})
  target_link_libraries(FFTW::FFTW INTERFACE ${fftw_link} m)
endif()
