// From start.S to main: what a loader leaves undone.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "port.h"

#include <stdlib.h>
#include <string.h>

// From the linker script.
extern char bk_bss_start[], bk_bss_end[], bk_shared_start[], bk_shared_end[];
extern char bk_far_start[], bk_far_end[], bk_fast_start[], bk_fast_end[];

// TI's convention for arguments: the loader writes their number, pointers and texts here.
enum { ARGUMENTS_BYTES = 4096 };
struct arguments {
    int count;
    char *texts[ARGUMENTS_BYTES / sizeof(char *) - 1];
};
struct arguments __c_args__ __attribute__((section(".args")));

int main(int argc, char **argv);

static void zero(char *start, const char *end) {
    memset(start, 0, (size_t)(end - start));
}

static int run_main(void) {
    static char name[] = "program";
    static char *unnamed[] = {name, NULL};
    if (__c_args__.count < 1)
        return main(1, unnamed);
    return main(__c_args__.count, __c_args__.texts);
}

_Noreturn void bk_start_core(unsigned core) {
    bk_caches_on();
    zero(bk_fast_start, bk_fast_end);
    if (core != 0)
        bk_serve(core);
    zero(bk_bss_start, bk_bss_end);
    zero(bk_shared_start, bk_shared_end);
    zero(bk_far_start, bk_far_end);
    bk_open_cores();
    exit(run_main());
}
