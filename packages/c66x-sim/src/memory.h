// The C6678's memory as one core sees it (SPRS691, memory map): its own L2, the MSMC's RAM, DDR3,
// and registers of peripherals, which keep what is written to them and do no more; a UART that
// writes. SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef C66X_MEMORY_H
#define C66X_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
    C66X_CORES = 8,
    C66X_REGISTER_BLOCKS = 9, // memory.c's list
};

#define C66X_L2_BASE   UINT32_C(0x00800000)
#define C66X_L2_SIZE   UINT32_C(0x00080000)
#define C66X_L1P_BASE  UINT32_C(0x00e00000) // L1 as RAM, where the caches are off
#define C66X_L1D_BASE  UINT32_C(0x00f00000)
#define C66X_L1_SIZE   UINT32_C(0x00008000)
#define C66X_MSMC_BASE UINT32_C(0x0c000000)
#define C66X_MSMC_SIZE UINT32_C(0x00400000)
#define C66X_DDR3_BASE UINT32_C(0x80000000)
#define C66X_DDR3_SIZE UINT32_C(0x20000000)

// A core's own memory is also at 0x1n000000 + its local address, for every core and the DMA.
#define C66X_ALIAS_BASE UINT32_C(0x10000000)

// What all cores share, and each core's own.
struct c66x_memory {
    uint8_t *msmc, *ddr3;
    uint8_t *l2[C66X_CORES], *l1p[C66X_CORES], *l1d[C66X_CORES];
    uint8_t *registers[C66X_CORES][C66X_REGISTER_BLOCKS]; // of shared blocks: the first core's
    unsigned cores;
    FILE *uart;
};

// Zeroed memory that costs nothing until it is touched; NULL: none is left.
void *c66x_map(size_t bytes);
void c66x_unmap(void *pages, size_t bytes); // NULL is nothing

bool c66x_memory_make(struct c66x_memory *memory, unsigned cores, FILE *uart); // false: no memory
void c66x_memory_free(struct c66x_memory *memory);

// Where `size` bytes at `address` are, for core `core`; NULL where there is no memory (registers
// have none). For the loader and the host's input and output.
uint8_t *c66x_memory_at(const struct c66x_memory *memory, unsigned core, uint32_t address,
                        uint32_t size);

// Registers: 1, 2, 4 or 8 bytes; false where nothing is at the address. `cycle` drives the timers.
bool c66x_register_read(struct c66x_memory *memory, unsigned core, uint32_t address, uint32_t size,
                        uint64_t cycle, uint64_t *value);
bool c66x_register_write(struct c66x_memory *memory, unsigned core, uint32_t address, uint32_t size,
                         uint64_t value);

#endif
