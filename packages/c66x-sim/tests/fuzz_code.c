// Fuzz target: any words as code are executed, or end the core with a reason, and have a text. The
// first 64 bytes are registers.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "caches.h"
#include "core.h"
#include "latency.h"

#include "bk_fuzz.h"

enum { REGISTER_BYTES = 64, CODE_BYTES = 4096, CYCLES = 300 };

static struct c66x_memory memory;

static void texts(const uint8_t *code, size_t size) {
    for (size_t at = 0; at + 4 <= size; at += 4) {
        struct c66x_instruction it;
        char text[128] = "";
        uint32_t word;
        memcpy(&word, code + at, sizeof word);
        if (!c66x_decode(word, (uint32_t)at, &it))
            continue;
        c66x_text(&it, 5, text, sizeof text);
        abort_if(strncmp(text, "[", 1) != 0 &&
                 strncmp(text, it.row->mnemonic, strlen(it.row->mnemonic)) != 0);
    }
}

static void run(const uint8_t *registers) {
    static const uint32_t no_traps[1];
    static const struct c66x_elf no_names;
    static FILE *nowhere;
    static struct c66x_caches *caches;
    if (!nowhere) {
        nowhere = fopen("/dev/null", "w");
        caches = c66x_caches_make(1, &no_names, nowhere);
    }
    struct c66x_latency latency = {.findings.output = nowhere};
    struct c66x_core *core = c66x_core_make(&memory, 0, C66X_MSMC_BASE, no_traps);
    for (unsigned i = 0; i < C66X_REGISTERS; i++) // spread over the registers; some are addresses
        memcpy(&core->regs[i], registers + 4 * (i % (REGISTER_BYTES / 4)), 4);
    core->latency = &latency;
    core->caches = caches;
    c66x_core_run(core, CYCLES);
    abort_if(core->stop == C66X_FAULT && !core->why.text[0]);
    c66x_core_free(core);
}

FUZZ(data, size) {
    if (size < REGISTER_BYTES)
        return;
    abort_if(!memory.msmc && !c66x_memory_make(&memory, 1, NULL));
    size_t length = size - REGISTER_BYTES < CODE_BYTES ? size - REGISTER_BYTES : CODE_BYTES;
    memset(memory.msmc, 0, CODE_BYTES);
    memcpy(memory.msmc, data + REGISTER_BYTES, length);
    texts(memory.msmc, length);
    run(data);
}
