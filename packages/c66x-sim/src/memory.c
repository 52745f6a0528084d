// Memory by mmap, so that what is never touched costs nothing; registers by a short list of blocks.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "memory.h"

#include <string.h>
#include <sys/mman.h>

// Blocks of registers: what is written is kept. Addresses: SPRS691E, table 2-2.
static const struct block {
    uint32_t base, size;
    bool own; // each core has its own
} blocks[C66X_REGISTER_BLOCKS] = {
    {0x01800000, 0x100000, true},  // CorePac: interrupts, caches, MAR, memory protection
    {0x02200000, 0x100000, false}, // timers 0 to 15, 64 KiB each
    {0x02310000, 0x1000, false},   // PLL
    {0x02350000, 0x1000, false},   // power and sleep controller
    {0x02540000, 0x1000, false},   // UART
    {0x02620000, 0x1000, false},   // boot configuration, inter-processor interrupts
    {0x02640000, 0x1000, false},   // semaphores
    {0x08000000, 0x10000, true},   // XMC: address extension, prefetch
    {0x0bc00000, 0x1000, false},   // MSMC
};

enum block_index { COREPAC, TIMERS, UART = 4, SEMAPHORES = 6 };

enum {
    UART_DATA = 0x00,
    UART_STATUS = 0x14,
    UART_POWER = 0x30,
    UART_SENDS = 1 << 14, // its bit: the transmitter is out of reset
    UART_READY = 0x60,    // both transmitter registers are empty
    CACHE_OPERATIONS =
        0x44000, // of the CorePac: global and block operations, which are done at once
    CACHE_OPERATIONS_END = 0x48000,
    TIMER_LOW = 0x10,
    TIMER_HIGH = 0x14,
    CYCLES_PER_TIMER_TICK = 6, // SPRUGV5: the timers run at a sixth of the CPU's clock
    SEMAPHORE_DIRECT = 0x100,
    SEMAPHORE_COUNT = 32,
};

void *c66x_map(size_t bytes) {
    void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return pages == MAP_FAILED ? NULL : pages;
}

void c66x_unmap(void *pages, size_t bytes) {
    if (pages)
        munmap(pages, bytes);
}

static uint8_t *map(uint32_t size, bool *complete) {
    uint8_t *pages = c66x_map(size);
    *complete &= pages != NULL;
    return pages;
}

bool c66x_memory_make(struct c66x_memory *memory, unsigned cores, FILE *uart) {
    bool complete = true;
    *memory = (struct c66x_memory){.cores = cores, .uart = uart};
    memory->msmc = map(C66X_MSMC_SIZE, &complete);
    memory->ddr3 = map(C66X_DDR3_SIZE, &complete);
    for (unsigned core = 0; core < cores; core++) {
        memory->l2[core] = map(C66X_L2_SIZE, &complete);
        memory->l1p[core] = map(C66X_L1_SIZE, &complete);
        memory->l1d[core] = map(C66X_L1_SIZE, &complete);
        for (unsigned i = 0; i < C66X_REGISTER_BLOCKS; i++)
            memory->registers[core][i] = core == 0 || blocks[i].own ? map(blocks[i].size, &complete)
                                                                    : memory->registers[0][i];
    }
    return complete;
}

void c66x_memory_free(struct c66x_memory *memory) {
    c66x_unmap(memory->msmc, C66X_MSMC_SIZE);
    c66x_unmap(memory->ddr3, C66X_DDR3_SIZE);
    for (unsigned core = 0; core < memory->cores; core++) {
        c66x_unmap(memory->l2[core], C66X_L2_SIZE);
        c66x_unmap(memory->l1p[core], C66X_L1_SIZE);
        c66x_unmap(memory->l1d[core], C66X_L1_SIZE);
        for (unsigned i = 0; i < C66X_REGISTER_BLOCKS; i++)
            if (core == 0 || blocks[i].own)
                c66x_unmap(memory->registers[core][i], blocks[i].size);
    }
    *memory = (struct c66x_memory){0};
}

// A core's own memory, by local addresses.
static uint8_t *local_at(const struct c66x_memory *memory, unsigned core, uint32_t address,
                         uint32_t size) {
    const struct {
        uint32_t base, size;
        uint8_t *bytes;
    } parts[] = {{C66X_L2_BASE, C66X_L2_SIZE, memory->l2[core]},
                 {C66X_L1D_BASE, C66X_L1_SIZE, memory->l1d[core]},
                 {C66X_L1P_BASE, C66X_L1_SIZE, memory->l1p[core]}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        uint32_t offset = address - parts[i].base;
        if (size <= parts[i].size && offset <= parts[i].size - size)
            return parts[i].bytes + offset;
    }
    return NULL;
}

uint8_t *c66x_memory_at(const struct c66x_memory *memory, unsigned core, uint32_t address,
                        uint32_t size) {
    uint32_t offset = address - C66X_DDR3_BASE;
    if (size <= C66X_DDR3_SIZE && offset <= C66X_DDR3_SIZE - size)
        return memory->ddr3 + offset;
    offset = address - C66X_MSMC_BASE;
    if (size <= C66X_MSMC_SIZE && offset <= C66X_MSMC_SIZE - size)
        return memory->msmc + offset;
    if (address >> 28 == 1) { // 0x1n......: core n's
        core = address >> 24 & 15;
        address &= 0xffffff;
    }
    return core < memory->cores ? local_at(memory, core, address, size) : NULL;
}

// The block that `size` bytes lie in; false where there is none.
static bool find_block(uint32_t address, uint32_t size, unsigned *index, uint32_t *offset) {
    for (unsigned i = 0; i < C66X_REGISTER_BLOCKS; i++) {
        *offset = address - blocks[i].base;
        if (*offset <= blocks[i].size - size) {
            *index = i;
            return true;
        }
    }
    return false;
}

static bool is_semaphore(unsigned index, uint32_t offset) {
    return index == SEMAPHORES && offset - SEMAPHORE_DIRECT < 4 * SEMAPHORE_COUNT;
}

// Reading a free semaphore takes it and gives 1; a taken one gives its owner (SPRUGS3).
static uint64_t take_semaphore(uint8_t *at, unsigned core) {
    uint32_t owner; // plus 1; 0: free
    memcpy(&owner, at, sizeof owner);
    if (owner)
        return (owner - 1) << 8;
    owner = core + 1;
    memcpy(at, &owner, sizeof owner);
    return 1;
}

bool c66x_register_read(struct c66x_memory *memory, unsigned core, uint32_t address, uint32_t size,
                        uint64_t cycle, uint64_t *value) {
    unsigned index;
    uint32_t offset;
    if (!find_block(address, size, &index, &offset))
        return false;
    uint8_t *at = memory->registers[core][index] + offset;
    *value = 0;
    if (index == COREPAC && offset >= CACHE_OPERATIONS && offset < CACHE_OPERATIONS_END)
        return true;
    if (index == UART && offset == UART_STATUS)
        *value = UART_READY;
    else if (index == TIMERS && (offset & 0xffff) == TIMER_LOW)
        *value = (uint32_t)(cycle / CYCLES_PER_TIMER_TICK);
    else if (index == TIMERS && (offset & 0xffff) == TIMER_HIGH)
        *value = cycle / CYCLES_PER_TIMER_TICK >> 32;
    else if (is_semaphore(index, offset))
        *value = take_semaphore(at, core);
    else
        memcpy(value, at, size);
    return true;
}

// The byte is lost where the program has not switched the transmitter on (SPRUGP1).
static void send(const struct c66x_memory *memory, uint64_t byte) {
    uint32_t power;
    memcpy(&power, memory->registers[0][UART] + UART_POWER, sizeof power);
    if (memory->uart && power & UART_SENDS)
        fputc((int)(byte & 0xff), memory->uart);
}

bool c66x_register_write(struct c66x_memory *memory, unsigned core, uint32_t address, uint32_t size,
                         uint64_t value) {
    unsigned index;
    uint32_t offset;
    if (!find_block(address, size, &index, &offset))
        return false;
    if (index == UART && offset == UART_DATA)
        send(memory, value);
    if (is_semaphore(index, offset))
        value = 0; // freed
    memcpy(memory->registers[core][index] + offset, &value, size);
    return true;
}
