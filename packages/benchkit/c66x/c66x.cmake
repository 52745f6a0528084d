# CMake toolchain file: bare-metal programs for TI's C6678 (eight C66x cores) by tic6x-elf-gcc.
# SPDX-License-Identifier: Apache-2.0 OR MIT
#
# The compiler is looked for in C66X_TOOLCHAIN (-D or environment), then on the PATH.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR c66x)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY) # a program links only with benchkit's start-up code
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES C66X_TOOLCHAIN)
set(C66X_CL6X "$ENV{C66X_CL6X}" CACHE FILEPATH "TI's compiler cl6x, for the kernels in src/c66x; empty: GCC")
if(C66X_CL6X)
  set(CMAKE_C_COMPILER_LAUNCHER "${CMAKE_CURRENT_LIST_DIR}/cl6x-launcher" "${C66X_CL6X}")
endif()

if(NOT C66X_TOOLCHAIN)
  set(C66X_TOOLCHAIN "$ENV{C66X_TOOLCHAIN}")
endif()
set(C66X_TOOLCHAIN "${C66X_TOOLCHAIN}" CACHE PATH "Prefix of tic6x-elf-gcc")
find_program(C66X_GCC tic6x-elf-gcc HINTS "${C66X_TOOLCHAIN}/bin" NO_CMAKE_FIND_ROOT_PATH)
if(NOT C66X_GCC)
  message(FATAL_ERROR "no tic6x-elf-gcc in '${C66X_TOOLCHAIN}' or on the PATH: set C66X_TOOLCHAIN to "
                      "the toolchain's prefix (spack-repo's tic6x_elf_gcc/build-toolchain makes one)")
endif()
get_filename_component(c66x_bin "${C66X_GCC}" DIRECTORY)
set(CMAKE_C_COMPILER "${C66X_GCC}")
set(CMAKE_ASM_COMPILER "${C66X_GCC}")
foreach(tool AR RANLIB NM OBJDUMP OBJCOPY READELF STRIP)
  string(TOLOWER ${tool} name)
  set(CMAKE_${tool} "${c66x_bin}/tic6x-elf-${name}")
endforeach()

# IEEE arithmetic, the same to the last bit as on a host: the compiler's own choice for this target is
# division by an approximate reciprocal. Loops stay loops, and SPLOOP buffers are not used: they are
# never what makes double precision fast, and debuggers can't stop in them. No data are near, as BK_FAST
# ones can't be, wherever they are declared.
string(JOIN " " CMAKE_C_FLAGS_INIT
       -march=c674x -ffp-contract=off -fno-reciprocal-math -fno-tree-loop-distribute-patterns
       -fno-modulo-sched -funroll-loops -msdata=none -ffunction-sections -fdata-sections)
set(CMAKE_C_FLAGS_RELEASE_INIT "-O3 -DNDEBUG")
set(CMAKE_ASM_FLAGS_INIT "-march=c674x")
string(JOIN " " CMAKE_EXE_LINKER_FLAGS_INIT
       -nostartfiles "-T${CMAKE_CURRENT_LIST_DIR}/c6678.ld" -Wl,--gc-sections -Wl,--no-warn-rwx-segments)
set(CMAKE_EXECUTABLE_SUFFIX_C .out)

set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(BUILD_TESTING OFF CACHE BOOL "A project's tests are for a host")
