# benchkit on bare metal: what c66x/ has in place of what src/ asks an operating system for.
# SPDX-License-Identifier: Apache-2.0 OR MIT
enable_language(ASM)

set(BENCHKIT_C66X_CONSOLE cio CACHE STRING "Where output goes: cio (TI's debugger, the simulator) or uart")
set_property(CACHE BENCHKIT_C66X_CONSOLE PROPERTY STRINGS cio uart)
set(BENCHKIT_C66X_MHZ 1250 CACHE STRING "Clock of the cores, as the board's start-up code sets it")
if(NOT BENCHKIT_C66X_CONSOLE MATCHES "^(cio|uart)$")
  message(FATAL_ERROR "BENCHKIT_C66X_CONSOLE is '${BENCHKIT_C66X_CONSOLE}': give cio or uart")
endif()
if(NOT BENCHKIT_C66X_MHZ MATCHES "^[1-9][0-9]*$")
  message(FATAL_ERROR "BENCHKIT_C66X_MHZ is '${BENCHKIT_C66X_MHZ}': give whole MHz, e.g. 1250")
endif()

set(region_sources c66x/regions.c)
set(system_sources c66x/caches.c c66x/copies.c c66x/cores.c c66x/machine.c c66x/runtime.c c66x/start.S
                   c66x/syscalls.c c66x/${BENCHKIT_C66X_CONSOLE}.c)
# newlib has clocks where these say so.
add_compile_definitions(_POSIX_TIMERS=1 _POSIX_MONOTONIC_CLOCK=200112L
                        BK_C66X_MHZ=${BENCHKIT_C66X_MHZ}U)

function(benchkit_port library)
  target_compile_definitions(${library} PUBLIC
    "BK_FAST=__attribute__((section(\".far.c66x.fast\"), aligned(128)))"
    "BK_SHARED=__attribute__((section(\".far.c66x.shared\"), aligned(128)))")
endfunction()
