// The bare-metal port's insides: what its files and start.S share.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef BENCHKIT_C66X_PORT_H
#define BENCHKIT_C66X_PORT_H

#include <stddef.h>
#include <stdint.h>

// From the linker script: addresses, not values.
extern char bk_heap_start[], bk_heap_end[];

// start.S
uint64_t bk_cycles(void);
void bk_pause(void);
void bk_cio_call(void);
_Noreturn void bk_halt(int status);

// runtime.c: what start.S calls first on every core.
_Noreturn void bk_start_core(unsigned core);

// caches.c, each for the calling core. A line of the level 1 cache; level 2's is BK_LINE_BYTES.
enum { CACHE_LINE_1 = 64 };
void bk_caches_on(void);
void bk_caches_write_back_invalidate(void);
void bk_line_write_back(const volatile void *address);
void bk_line_invalidate(const volatile void *address);

// cores.c: serves bk_cores on a core that is not the first.
_Noreturn void bk_serve(unsigned core);
void bk_open_cores(void); // the first core has set up the memory: the others may look at it

// syscalls.c: bytes that were never given out.
size_t bk_heap_left(void);

#endif
