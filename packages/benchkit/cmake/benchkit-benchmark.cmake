# benchkit_benchmark(): builds a benchmark from its folder; find_package(benchkit) brings it.
# SPDX-License-Identifier: Apache-2.0 OR MIT
#
#   cmake_minimum_required(VERSION 3.21)
#   project(NAME VERSION 0.1.0 LANGUAGES C DESCRIPTION "...")
#   find_package(benchkit 0.1 CONFIG REQUIRED)
#   benchkit_benchmark([BACKENDS NAME...] [SOURCES FILE...] [NEEDS BACKEND=PACKAGE...])
#
# Makes the object library NAME-kernels, also called `kernels`, of src/*.c but main.c, of SOURCES and of
# the backends; the program NAME; their installation; and tests/, where BUILD_TESTING is on.
#
# A folder src/BACKEND is a backend (see bench_backends below), BACKENDS only demands that those are there.
# Each has an option: AUTO, the default, builds it where what it needs is found; ON demands that; OFF
# leaves it out. Afterwards the variable of that name is TRUE or FALSE, and TRUE ones are compile
# definitions: BENCH_OPENMP and so on. NEEDS adds to what a backend needs: mpi=ScaLAPACK,
# mpi=FFTW_MPI, or a library of CUDA's: cuda=cublas.
#
# src/hip names what HIP compiles of src/cuda: one or the other is built, and BENCH_GPU is its name, also
# as a compile definition.
#
# Only a backend's own files see its headers and get its flags: serial code stays serial. A
# benchmark's own flags go into the property COMPILE_OPTIONS of its files.

set(BENCHKIT_FILES ${CMAKE_CURRENT_LIST_DIR})

# folder=option=packages; bare-metal targets have the first two only
set(bench_backends serial= c66x=C66X omp=OPENMP=OpenMP mpi=MPI=MPI blas=BLAS=CBLAS
                   fftw=FFTW=FFTW cuda=CUDA hip=HIP opencl=OPENCL=OpenCL)

macro(benchkit_benchmark)
  include(GNUInstallDirs)
  include(CTest)
  cmake_parse_arguments(bench "" "" "BACKENDS;SOURCES;NEEDS" ${ARGN})
  set(CMAKE_C_STANDARD 17)
  set(CMAKE_C_STANDARD_REQUIRED ON)
  set(CMAKE_C_EXTENSIONS OFF)
  bench_compile_options()
  if(BENCH_CUDA)
    # 80: A100, 90: H100 and H200
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES 80 90)
    endif()
    set(CMAKE_CUDA_STANDARD 17)
    set(CMAKE_CUDA_STANDARD_REQUIRED ON)
    enable_language(CUDA)
  endif()
  if(BENCH_HIP AND IS_DIRECTORY ${PROJECT_SOURCE_DIR}/src/hip)
    bench_enable_hip()
  endif()

  file(GLOB bench_sources CONFIGURE_DEPENDS src/*.c)
  list(REMOVE_ITEM bench_sources ${PROJECT_SOURCE_DIR}/src/main.c)
  add_library(${PROJECT_NAME}-kernels OBJECT ${bench_sources} ${bench_SOURCES})
  add_library(kernels ALIAS ${PROJECT_NAME}-kernels)
  target_include_directories(${PROJECT_NAME}-kernels PUBLIC src)
  target_link_libraries(${PROJECT_NAME}-kernels PUBLIC benchkit::benchkit m)
  bench_add_backends("${bench_BACKENDS}" "${bench_NEEDS}")

  bench_tell_build(build)
  add_executable(${PROJECT_NAME} src/main.c ${BENCHKIT_FILES}/bk_main.c ${build})
  if(BENCH_OPENMP)
    set_source_files_properties(${BENCHKIT_FILES}/bk_main.c PROPERTIES COMPILE_FLAGS "${OpenMP_C_FLAGS}")
  endif()
  target_link_libraries(${PROJECT_NAME} PRIVATE kernels)
  install(TARGETS ${PROJECT_NAME})
  if(BUILD_TESTING AND EXISTS ${PROJECT_SOURCE_DIR}/tests/CMakeLists.txt)
    set(CMAKE_NO_SYSTEM_FROM_IMPORTED ON) # the notes of bk_expect.h's macros are checked as formats
    add_subdirectory(tests)
  endif()
endmacro()

# benchkit_says(TEST STATUS REGEX PROGRAM [ARGUMENT...]): a test that the program, a target or a path,
# ends with this exit status and that its output matches. (PASS_REGULAR_EXPRESSION ignores the status.)
function(benchkit_says test status regex program)
  if(TARGET ${program})
    set(program $<TARGET_FILE:${program}>)
  endif()
  add_test(NAME ${test} COMMAND ${CMAKE_COMMAND} -DSTATUS=${status} "-DSAYS=${regex}"
                                -P ${BENCHKIT_FILES}/benchkit-says.cmake -- ${program} ${ARGN})
endfunction()

# benchkit_mpi_test(TEST RANKS PROGRAM [ARGUMENT...] [SAYS REGEX]): a test, of the label mpi, and beyond 8 of
# many_ranks, on so many ranks.
function(benchkit_mpi_test test ranks program)
  cmake_parse_arguments(PARSE_ARGV 3 mpi "" SAYS "")
  set(command ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${ranks} ${MPIEXEC_PREFLAGS}
              $<TARGET_FILE:${program}> ${mpi_UNPARSED_ARGUMENTS})
  if(mpi_SAYS)
    benchkit_says(${test} 0 "${mpi_SAYS}" ${command})
  else()
    add_test(NAME ${test} COMMAND ${command})
  endif()
  # Open MPI: more ranks than cores (4's name for it, then 5's), root in a container; what it leaks at its
  # end is its own affair; with 6's memory hooks ranks under ASan end by SIGILL.
  set(environment OMPI_MCA_rmaps_base_oversubscribe=1
                  PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
                  OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_memory=^patcher
                  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
                  ASAN_OPTIONS=detect_leaks=0)
  set(labels mpi)
  if(ranks GREATER 8)
    list(APPEND labels many_ranks)
  endif()
  set_tests_properties(${test} PROPERTIES LABELS "${labels}" PROCESSORS ${ranks} TIMEOUT 120
                       ENVIRONMENT "${environment}")
endfunction()

# -- inside --------------------------------------------------------------------------------------

# Warnings, the processor of this machine, and its whole vectors; for all of the benchmark's C files.
function(bench_compile_options)
  include(CheckCCompilerFlag)
  set(options -Wall -Wextra -Wconversion -Wshadow)
  # Spack's compiler wrapper sets the target's flags itself.
  set(native ON)
  if(DEFINED ENV{SPACK_CC} OR DEFINED ENV{SPACK_TARGET_ARGS} OR CMAKE_CROSSCOMPILING)
    set(native OFF)
  endif()
  option(BENCH_NATIVE "Optimise for the processor of this machine (-march=native)" ${native})
  if(BENCH_NATIVE)
    check_c_compiler_flag(-march=native HAVE_MARCH_NATIVE)
    if(HAVE_MARCH_NATIVE)
      list(APPEND options -march=native)
    endif()
  endif()
  # Of AVX-512 compilers take half the width by themselves; what the whole gains is in benchkit's README.
  if(NOT CMAKE_C_FLAGS MATCHES "-mprefer-vector-width=")
    check_c_compiler_flag(-mprefer-vector-width=512 HAVE_WHOLE_WIDTH)
    if(HAVE_WHOLE_WIDTH)
      list(APPEND options -mprefer-vector-width=512)
      set(BENCH_WIDTH -mprefer-vector-width=512 PARENT_SCOPE) # for bench_tell_build
    endif()
  endif()
  add_compile_options("$<$<COMPILE_LANGUAGE:C>:${options}>"
                      "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>")
endfunction()

# HIP is C++ to hipcc, which must be found before the language is.
macro(bench_enable_hip)
  if(BENCH_CUDA)
    message(FATAL_ERROR "BENCH_CUDA and BENCH_HIP compile the same kernels: give one of them")
  endif()
  find_program(CMAKE_CXX_COMPILER hipcc HINTS ENV ROCM_PATH /opt/rocm PATH_SUFFIXES bin REQUIRED)
  if(NOT DEFINED CMAKE_HIP_ARCHITECTURES)
    set(CMAKE_HIP_ARCHITECTURES gfx90a) # MI210 to MI250X
  endif()
  foreach(architecture ${CMAKE_HIP_ARCHITECTURES})
    string(APPEND CMAKE_CXX_FLAGS " --offload-arch=${architecture}")
  endforeach()
  set(CMAKE_CXX_STANDARD 17)
  set(CMAKE_CXX_STANDARD_REQUIRED ON)
  enable_language(CXX)
  set(CMAKE_CXX_COMPILE_OPTIONS_EXPLICIT_LANGUAGE -x hip)
  # HIP wants each result looked at, CUDA does not.
  add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wall;-Wextra;-Wno-unused-result>")
  get_filename_component(bench_rocm ${CMAKE_CXX_COMPILER} REALPATH)
  get_filename_component(bench_rocm ${bench_rocm}/../.. ABSOLUTE)
  find_path(BENCH_HIP_INCLUDE_DIR hip/hip_runtime_api.h HINTS ${bench_rocm}/include REQUIRED)
endmacro()

# Adds every backend that has a folder, an option that allows it, and what it needs.
function(bench_add_backends demanded needs)
  foreach(name ${demanded})
    if(NOT IS_DIRECTORY ${PROJECT_SOURCE_DIR}/src/${name})
      message(FATAL_ERROR "benchkit_benchmark(BACKENDS ${name}): there is no folder src/${name}")
    endif()
  endforeach()
  foreach(backend ${bench_backends})
    string(REPLACE "=" ";" parts ${backend})
    list(POP_FRONT parts name option)
    if(NOT IS_DIRECTORY ${PROJECT_SOURCE_DIR}/src/${name})
      continue()
    endif()
    set(packages ${parts} ${needs})
    list(FILTER packages INCLUDE REGEX "^[^=]+$|^${name}=")
    list(TRANSFORM packages REPLACE "^${name}=" "")
    bench_decide("${name}" "${option}" "${packages}")
    if(option)
      set(BENCH_${option} ${BENCH_${option}} PARENT_SCOPE)
    endif()
    if(name MATCHES "^(cuda|hip)$" AND BENCH_${option})
      set(BENCH_GPU ${name} PARENT_SCOPE)
      target_compile_definitions(${PROJECT_NAME}-kernels PUBLIC BENCH_GPU="${name}")
    endif()
  endforeach()
endfunction()

# Finds a backend's packages and, all being there, adds it; sets BENCH_<option>.
function(bench_decide name option packages)
  if(NOT option)
    bench_add_files(${name} "")
    return()
  endif()
  set(default AUTO)
  if(name MATCHES "^(cuda|hip)$" OR (name STREQUAL "c66x" AND NOT CMAKE_SYSTEM_NAME STREQUAL "Generic"))
    set(default OFF)
  endif()
  set(BENCH_${option} ${default} CACHE STRING "Backend ${name}: AUTO, ON or OFF")
  set(asked ${BENCH_${option}})
  set(BENCH_${option} FALSE PARENT_SCOPE)
  if(CMAKE_SYSTEM_NAME STREQUAL "Generic" AND NOT name STREQUAL "c66x")
    return()
  elseif(NOT asked)
    return()
  endif()
  set(libraries)
  foreach(package ${packages})
    bench_find(${package} ${asked} library)
    if(NOT library)
      message(STATUS "${PROJECT_NAME}: no backend ${name}: ${package} was not found")
      return()
    endif()
    list(APPEND libraries ${library})
  endforeach()
  bench_add_files(${name} "${libraries}")
  target_compile_definitions(${PROJECT_NAME}-kernels PUBLIC BENCH_${option})
  set(BENCH_${option} TRUE PARENT_SCOPE)
endfunction()

# One package's imported target, into the variable `result`; empty when it is not there.
function(bench_find package asked result)
  list(APPEND CMAKE_MODULE_PATH ${BENCHKIT_FILES}/modules)
  set(required)
  if(NOT asked STREQUAL "AUTO")
    set(required REQUIRED)
  endif()
  if(package MATCHES "^cu")
    bench_find_cuda(${package})
    set(target bench::${package})
    set(${package}_FOUND TRUE)
  elseif(package MATCHES "^(OpenMP|MPI)$")
    find_package(${package} QUIET ${required} COMPONENTS C)
    set(target ${package}::${package}_C)
  else()
    find_package(${package} QUIET ${required})
    set(target ${package}::${package})
  endif()
  set(${result} "" PARENT_SCOPE)
  # FindMPI makes its target even where it finds no MPI.
  if(${package}_FOUND AND TARGET ${target})
    set(${result} ${target} PARENT_SCOPE)
  endif()
endfunction()

# A library of the CUDA toolkit, as bench::NAME; PyPI's toolkits have it under its full name only.
function(bench_find_cuda name)
  set(hints ${CMAKE_CUDA_HOST_IMPLICIT_LINK_DIRECTORIES} ${CMAKE_CUDA_COMPILER_TOOLKIT_ROOT}/lib)
  find_library(BENCH_${name}_LIBRARY NAMES ${name} lib${name}.so.13 lib${name}.so.12 lib${name}.so.11
               HINTS ${hints} REQUIRED)
  mark_as_advanced(BENCH_${name}_LIBRARY)
  if(NOT TARGET bench::${name})
    add_library(bench::${name} INTERFACE IMPORTED)
    target_link_libraries(bench::${name} INTERFACE ${BENCH_${name}_LIBRARY})
    # CMake leaves out the compiler's own folders, where programs do not look.
    get_filename_component(folder ${BENCH_${name}_LIBRARY} DIRECTORY)
    target_link_options(bench::${name} INTERFACE LINKER:-rpath,${folder})
  endif()
endfunction()

# A library's headers, to `flags`.
macro(bench_add_include folder)
  if(NOT "${folder}" IN_LIST CMAKE_C_IMPLICIT_INCLUDE_DIRECTORIES)
    list(APPEND flags "-isystem ${folder}")
  endif()
endmacro()

# A backend's sources and libraries; its own files alone see the libraries' headers and flags.
function(bench_add_files name libraries)
  file(GLOB sources CONFIGURE_DEPENDS src/${name}/*.c src/${name}/*.cu src/${name}/*.hip)
  if(name STREQUAL "mpi")
    list(APPEND sources ${BENCHKIT_FILES}/bk_mpi.c)
  elseif(name STREQUAL "opencl")
    file(GLOB kernels CONFIGURE_DEPENDS src/opencl/*.cl)
    foreach(kernel ${kernels})
      bench_embed(${kernel} source)
      list(APPEND sources ${source})
    endforeach()
  endif()
  target_sources(${PROJECT_NAME}-kernels PRIVATE ${sources})
  set(flags)
  if(name STREQUAL "omp")
    list(APPEND flags ${OpenMP_C_FLAGS})
  elseif(name STREQUAL "c66x")
    # The same results on the DSP and on a host; GCC 12's vectoriser fuses a complex product all the same.
    list(APPEND flags -ffp-contract=off -fno-tree-vectorize)
  elseif(name STREQUAL "cuda")
    list(TRANSFORM CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES PREPEND "-isystem " OUTPUT_VARIABLE flags)
  elseif(name STREQUAL "hip")
    list(APPEND flags -D__HIP_PLATFORM_AMD__)
    bench_add_include(${BENCH_HIP_INCLUDE_DIR})
  endif()
  foreach(library ${libraries})
    get_target_property(folders ${library} INTERFACE_INCLUDE_DIRECTORIES)
    foreach(folder ${folders})
      bench_add_include(${folder})
    endforeach()
    target_link_libraries(${PROJECT_NAME}-kernels INTERFACE $<LINK_ONLY:${library}>)
  endforeach()
  list(JOIN flags " " flags)
  # Not COMPILE_OPTIONS, which is the benchmark's own to set.
  set_source_files_properties(${sources} PROPERTIES COMPILE_FLAGS "${flags}")
  list(FILTER sources INCLUDE REGEX "[.]hip$")
  set_source_files_properties(${sources} PROPERTIES LANGUAGE CXX)
endfunction()

# A source file that tells how the program is built, for its results. Spack's recipes give the spec and
# its hash; flags are those of all files, without warnings, which change nothing.
function(bench_tell_build result)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
  set(compiler "${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION}")
  set(flags "${CMAKE_C_FLAGS} ${CMAKE_C_FLAGS_${type}} $ENV{SPACK_TARGET_ARGS_CC}")
  if(BENCH_NATIVE AND HAVE_MARCH_NATIVE)
    string(APPEND flags " -march=native")
  endif()
  string(APPEND flags " ${BENCH_WIDTH}")
  if(BENCH_CUDA)
    string(APPEND compiler ", CUDA ${CMAKE_CUDA_COMPILER_VERSION}")
    string(APPEND flags " ${CMAKE_CUDA_FLAGS} ${CMAKE_CUDA_FLAGS_${type}}")
    string(APPEND flags " -arch=${CMAKE_CUDA_ARCHITECTURES}")
  elseif(BENCH_GPU STREQUAL "hip")
    string(APPEND compiler ", HIP by ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
    string(APPEND flags " ${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${type}}")
  endif()
  bench_c_text("${PROJECT_VERSION}" version)
  bench_c_text("${compiler}" compiler)
  bench_c_text("${flags}" flags)
  bench_c_text("${BENCH_SPACK_SPEC}" spec)
  bench_c_text("${BENCH_SPACK_HASH}" hash)
  set(source ${PROJECT_BINARY_DIR}/bk_build.c)
  file(GENERATE OUTPUT ${source} CONTENT
       "// How ${PROJECT_NAME} is built.\n#include \"benchkit.h\"\nconst struct bk_build bk_build = {\n\
    .version = ${version},\n    .compiler = ${compiler},\n    .flags = ${flags},\n\
    .spack_spec = ${spec},\n    .spack_hash = ${hash},\n};\n")
  set(${result} ${source} PARENT_SCOPE)
endfunction()

# A text as a string of C; NULL where it is empty.
function(bench_c_text text result)
  string(REGEX REPLACE "[ \t\n]+" " " text "${text}")
  string(STRIP "${text}" text)
  string(REPLACE "\\" "\\\\" text "${text}")
  string(REPLACE "\"" "\\\"" text "${text}")
  set(${result} NULL PARENT_SCOPE)
  if(NOT text STREQUAL "")
    set(${result} "\"${text}\"" PARENT_SCOPE)
  endif()
endfunction()

# Makes `const char FILE_cl[]`, a C string, of src/opencl/FILE.cl.
function(bench_embed kernel result)
  get_filename_component(name ${kernel} NAME_WE)
  string(MAKE_C_IDENTIFIER ${name}_cl symbol)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${kernel})
  file(READ ${kernel} bytes HEX)
  string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${bytes}")
  set(source ${PROJECT_BINARY_DIR}/${symbol}.c)
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT
       "// ${name}.cl, embedded.\nextern const char ${symbol}[];\nconst char ${symbol}[] = {${bytes}'\\0'};\n")
  set(${result} ${source} PARENT_SCOPE)
endfunction()
