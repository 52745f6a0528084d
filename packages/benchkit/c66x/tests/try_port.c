// Tries all of the bare-metal port: prints what fails, and exits with 42 when nothing does.
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// usage: try-port FILE [ARGUMENT...]    FILE is written and read again; the arguments are printed
#include "benchkit.h"
#include "bk_expect.h"
#include "joulemark.h"

enum { CORES = 8, WORDS = 1024, EXIT_FINE = 42 };

// Zeroed by the start-up code alone: the simulator fills memory with a pattern.
static uint32_t zeroed[WORDS];
static uint32_t zeroed_shared[WORDS] BK_SHARED;
static uint32_t zeroed_fast[WORDS] BK_FAST;
static uint32_t zeroed_near[WORDS] __attribute__((section(".bss.try_port")));
static uint32_t initialised[] = {7, 8, 9};

static bool all_zero(const uint32_t *words) {
    for (size_t i = 0; i < WORDS; i++)
        if (words[i] != 0)
            return false;
    return true;
}

// Sizes of the caches L1P, L1D and L2, and the first and the last 16 MiB of DDR3 (SPRUGW0): what
// runtime.c is to have set on every core.
static const struct {
    uint32_t address, value;
} cache_registers[] = {
    {0x01840020, 4}, {0x01840040, 4}, {0x01840000, 4}, {0x01848200, 9}, {0x0184827c, 9}};

static bool caches_are_on(void) {
    for (size_t i = 0; i < sizeof cache_registers / sizeof *cache_registers; i++)
        if (*(const volatile uint32_t *)(uintptr_t)cache_registers[i].address !=
            cache_registers[i].value)
            return false;
    return true;
}

struct seen {
    uint32_t calls, fast_zeroed, cached, stack, runs;
    uint8_t rest[BK_LINE_BYTES - 20];
};
static struct seen seen[3 * CORES] BK_SHARED;
static uint32_t runs_here BK_FAST; // a core's own

// The later a share, the longer it takes: the first core is to wait for all.
static void look(void *context, unsigned core, unsigned cores) {
    uint32_t local = core;
    const uint32_t *expected_cores = context;
    for (volatile uint32_t wait = 0; wait < 1000 * core; wait++)
        continue;
    seen[core].calls += cores == *expected_cores;
    seen[core].fast_zeroed = all_zero(zeroed_fast);
    seen[core].cached = caches_are_on();
    seen[core].stack = (uint32_t)(uintptr_t)&local;
    seen[core].runs = ++runs_here;
}

static void try_memory(void) {
    expect(all_zero(zeroed) && all_zero(zeroed_near));
    expect(all_zero(zeroed_shared) && all_zero(zeroed_fast));
    expect_equal(initialised[0] + initialised[1] + initialised[2], 24);
    char *large = bk_allocate((size_t)400 << 20), *small = bk_allocate(100);
    expect(large != NULL && small != NULL && (uintptr_t)small % 128 == 0);
    expect(bk_allocate((size_t)400 << 20) == NULL);
    expect(!bk_memory_suffices("try-port", 1, 0x1p29) && bk_memory_suffices("try-port", 1, 0x1p26));
    bk_release(large);
    bk_release(small);
}

static void try_cores(unsigned there) {
    expect_equal(bk_core_count(), there);
    for (uint32_t shares = 1; shares <= 3 * CORES; shares += 1 + shares / 2) {
        memset(seen, 0, sizeof seen);
        bk_cores(look, &shares, shares);
        for (unsigned i = 0; i < 3 * CORES; i++) {
            expect_equal(seen[i].calls, i < shares);
            expect_equal(seen[i].fast_zeroed, i < shares);
            expect_equal(seen[i].cached, i < shares);
            expect(i < there || i >= shares || seen[i].runs > seen[i - there].runs);
        }
        if (shares >= 2 && there >= 2)
            expect(seen[0].stack - seen[1].stack > 60000 && seen[0].stack - seen[1].stack < 70000);
    }
}

static void try_file(const char *name) {
    char line[600], long_text[513];
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    FILE *file = fopen(name, "w");
    expect(file != NULL && fprintf(file, "%s\n%.17g\n", long_text, 0.1) > 0 && fclose(file) == 0);
    file = fopen(name, "a");
    expect(file != NULL && fputs("third\n", file) >= 0 && fclose(file) == 0);
    file = fopen(name, "r");
    expect(file != NULL && fgets(line, sizeof line, file) != NULL && strlen(line) == 513);
    expect(file != NULL && fgets(line, sizeof line, file) != NULL && strtod(line, NULL) == 0.1);
    expect(file != NULL && fgets(line, sizeof line, file) != NULL && strcmp(line, "third\n") == 0);
    expect(file != NULL && fseek(file, -6, SEEK_END) == 0 && fgetc(file) == 't');
    expect(file != NULL && fclose(file) == 0);
    expect(fopen("/nowhere/at/all", "r") == NULL);
}

static void try_printing(void) {
    char text[64];
    snprintf(text, sizeof text, "%" PRIu64 "|%s|%a|%lld", UINT64_C(1) << 40, "s", 1.5, -5LL);
    expect_text(text, "1099511627776|s|0x1.8p+0|-5");
}

static void try_clock(void) {
    uint64_t before_ns = bk_now_ns(), after_ns;
    volatile unsigned counter = 0;
    while (counter < 10000)
        counter++;
    after_ns = bk_now_ns();
    // Between one and a hundred cycles of 0.8 ns each.
    expect(after_ns - before_ns > 8000 && after_ns - before_ns < 800000);
    expect(joulemark_region_begin("try"));
    struct joulemark_energy energy = {.energy_uj = 1};
    expect(!joulemark_region_end_energy("try", &energy) && energy.energy_uj == 0);
}

int main(int argc, char **argv) {
    for (int i = 0; i < argc; i++)
        printf("argument %d is '%s'\n", i, argv[i]);
    unsigned there = argc > 2 ? (unsigned)atoi(argv[2]) : CORES;
    try_memory();
    try_cores(there);
    if (argc > 1)
        try_file(argv[1]);
    try_printing();
    try_clock();
    return expect_result() == EXIT_SUCCESS ? EXIT_FINE : EXIT_FAILURE;
}
