# Builds a benchmark's CUDA or HIP backend for the emulation: CMake reads this after the benchmark's project(),
# by CMAKE_PROJECT_INCLUDE. SPDX-License-Identifier: Apache-2.0 OR MIT
#
# .cu and .hip files are C++ here, by launches.py; the emulation, in CUDA_ON_CPU, is the toolkit and its libraries.
enable_language(CXX)
set(CMAKE_CXX_STANDARD 17)
file(GLOB_RECURSE sources src/*.cu src/*.hip)
set_source_files_properties(${sources} PROPERTIES LANGUAGE CXX
                            OBJECT_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/launches.py)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(CMAKE_CXX_COMPILER_LAUNCHER ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/launches.py)
set(CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES ${CMAKE_CURRENT_LIST_DIR}/include)
set(BENCH_HIP_INCLUDE_DIR ${CMAKE_CURRENT_LIST_DIR}/include)
set(CMAKE_HIP_ARCHITECTURES "")

# Sees each access of a kernel (see memory.cpp), and what C++ leaves undefined; all of that would take
# thrice the time to compile.
set(checks -fsanitize=bounds,alignment,shift,signed-integer-overflow -fno-sanitize-recover=all)
add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-O1;-g;-Wno-unknown-pragmas;-fsanitize=thread;--param=tsan-distinguish-volatile=1;${checks}>")
add_link_options(${checks})
link_libraries(${CUDA_ON_CPU} stdc++ dl)
foreach(library cublas cufft cusparse cudart)
  set(BENCH_${library}_LIBRARY ${CUDA_ON_CPU})
endforeach()

# There is no CUDA compiler to enable.
macro(enable_language language)
  if(NOT "${language}" STREQUAL "CUDA")
    _enable_language(${language} ${ARGN})
  endif()
endmacro()
