// Caches of a C66x core (SPRUGW0, C66x CorePac): their sizes, and coherence, which is software's.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "port.h"

#define REGISTER(address) (*(volatile uint32_t *)(uintptr_t)(address))

#define L2CFG     REGISTER(0x01840000)
#define L1PCFG    REGISTER(0x01840020)
#define L1DCFG    REGISTER(0x01840040)
#define L1DWBAR   REGISTER(0x01844040) // lines: address, then words; the words are 0 when it is done
#define L1DWWC    REGISTER(0x01844044)
#define L1DIBAR   REGISTER(0x01844048)
#define L1DIWC    REGISTER(0x0184404c)
#define L2WBINV   REGISTER(0x01845004) // whole caches: 1 starts, 0 when it is done
#define L1DWBINV  REGISTER(0x01845044)
#define MAR(area) REGISTER(0x01848000 + 4 * (area)) // of 16 MiB each
#define XPFCMD    REGISTER(0x08000300)              // the prefetch buffers between L2 and memory

enum { SIZE_L1_32K = 4, SIZE_L2_256K = 4 };
enum { MAR_CACHED = 1 << 0, MAR_PREFETCHED = 1 << 3 };
enum { DDR3_FIRST_AREA = 0x80, DDR3_AREAS = 512 / 16 };

// Reading a size back waits until it has changed.
static void set_size(volatile uint32_t *configuration, uint32_t size) {
    *configuration = size;
    (void)*configuration;
}

static void wait_for(const volatile uint32_t *counter) {
    while (*counter != 0)
        continue;
}

void bk_caches_on(void) {
    set_size(&L1PCFG, SIZE_L1_32K);
    set_size(&L1DCFG, SIZE_L1_32K);
    set_size(&L2CFG, SIZE_L2_256K); // takes the upper half of L2: c6678.ld gives out the lower
    for (uint32_t area = DDR3_FIRST_AREA; area < DDR3_FIRST_AREA + DDR3_AREAS; area++)
        MAR(area) = MAR_CACHED | MAR_PREFETCHED;
}

void bk_caches_write_back_invalidate(void) {
    L1DWBINV = 1;
    wait_for(&L1DWBINV);
    L2WBINV = 1;
    wait_for(&L2WBINV);
    XPFCMD = 1;
}

void bk_line_write_back(const volatile void *address) {
    L1DWBAR = (uint32_t)(uintptr_t)address;
    L1DWWC = CACHE_LINE_1 / 4;
    wait_for(&L1DWWC);
}

void bk_line_invalidate(const volatile void *address) {
    XPFCMD = 1;
    L1DIBAR = (uint32_t)(uintptr_t)address;
    L1DIWC = CACHE_LINE_1 / 4;
    wait_for(&L1DIWC);
}
