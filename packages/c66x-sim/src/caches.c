// Who wrote each word last, which copies each core has, and what each knows to be in memory.
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// A core knows of another's write-backs what it has been told by a sign: a word in a line that it
// drops alone before each look. Whoever writes one tells what it knows by then (vector clocks, as
// detectors of data races have them). So a mistake is found whatever the order in which the
// simulator's cores have their turns. A copy is kept until the program drops it: hardware that does
// so earlier, for want of room, only hides a mistake.
#include "caches.h"

#include "findings.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

// The MSMC's memory is cached by level 1 alone, DDR3 by level 2, too (SPRUGY8): the outer one
// counts.
enum area { MSMC, DDR3, AREAS, NOWHERE = AREAS };

static const struct {
    uint32_t base, size;
    unsigned line_bits;
} areas[AREAS] = {{C66X_MSMC_BASE, C66X_MSMC_SIZE, 6}, {C66X_DDR3_BASE, C66X_DDR3_SIZE, 7}};

// Operations of the CorePac (SPRUGW0): on whole caches, or on the words from the address on that
// was written to the register before.
static const struct operation {
    uint32_t address;
    enum area area;
    bool writes_back, invalidates, block;
} operations[] = {
    {0x01844004, DDR3, true, false, true},  // L2WWC
    {0x01844014, DDR3, true, true, true},   // L2WIWC
    {0x0184401c, DDR3, false, true, true},  // L2IWC
    {0x01844034, MSMC, true, true, true},   // L1DWIWC
    {0x01844044, MSMC, true, false, true},  // L1DWWC
    {0x0184404c, MSMC, false, true, true},  // L1DIWC
    {0x01845000, DDR3, true, false, false}, // L2WB
    {0x01845004, DDR3, true, true, false},  // L2WBINV
    {0x01845008, DDR3, false, true, false}, // L2INV
    {0x01845040, MSMC, true, false, false}, // L1DWB
    {0x01845044, MSMC, true, true, false},  // L1DWBINV
    {0x01845048, MSMC, false, true, false}, // L1DINV
};
static const uint32_t drop_prefetched = 0x08000300; // XPFCMD of the XMC

// What a core knows: of each core, how often its cache of each area has been written back.
struct clock {
    uint32_t known[AREAS][C66X_CORES];
};

enum { MOST_MOMENTS = 1 << 27 };

// The last store to a word, or to any word of a line.
struct stored {
    uint32_t writer : 4;  // its number plus one; 0: none has
    uint32_t alone : 1;   // written back with its line, by itself
    uint32_t moment : 27; // of the writer, below MOST_MOMENTS
};

struct copy {
    uint32_t since; // operations of the core before it, plus one; 0: there is none
    uint32_t moment : 31;
    uint32_t dropped_alone : 1; // before this copy was made
};

// What is known of an area's words and lines.
struct room {
    struct stored *words, *lines;
    struct copy *copies[C66X_CORES]; // of lines
    uint32_t *read_at[C66X_CORES];   // of words: the last moment, plus one; 0: never
};

struct knower {
    struct clock *moments; // what it knew, each time it knew more; the last one is now
    uint32_t moment_count;
    uint32_t operations;
    uint32_t dropped_at[AREAS], prefetched_dropped_at; // in operations
    uint32_t block_address;
};

struct c66x_caches {
    const struct c66x_elf *elf;
    unsigned cores;
    struct room rooms[AREAS];
    struct knower knowers[C66X_CORES];
    struct c66x_findings findings;
};

// -- making --------------------------------------------------------------------------------------

static size_t words_of(enum area area) {
    return areas[area].size / 4;
}

static size_t lines_of(enum area area) {
    return areas[area].size >> areas[area].line_bits;
}

static bool make_room(struct room *room, enum area area, unsigned cores) {
    room->words = c66x_map(words_of(area) * sizeof *room->words);
    room->lines = c66x_map(lines_of(area) * sizeof *room->lines);
    bool complete = room->words && room->lines;
    for (unsigned core = 0; core < cores; core++) {
        room->copies[core] = c66x_map(lines_of(area) * sizeof *room->copies[core]);
        room->read_at[core] = c66x_map(words_of(area) * sizeof *room->read_at[core]);
        complete &= room->copies[core] && room->read_at[core];
    }
    return complete;
}

// The core's clock from now on, a copy of the last one to be changed; NULL: out of memory.
static struct clock *next_moment(struct knower *knower) {
    const uint32_t count = knower->moment_count;
    if (count == MOST_MOMENTS)
        return NULL;
    if ((count & (count - 1)) == 0) { // a power of two, or none: full
        const size_t more = count ? 2 * (size_t)count : 1;
        struct clock *larger = realloc(knower->moments, more * sizeof *larger);
        if (!larger)
            return NULL;
        knower->moments = larger;
    }
    knower->moments[count] = count ? knower->moments[count - 1] : (struct clock){0};
    return &knower->moments[knower->moment_count++];
}

static const struct clock *clock_now(const struct knower *knower) {
    return &knower->moments[knower->moment_count - 1];
}

struct c66x_caches *c66x_caches_make(unsigned cores, const struct c66x_elf *elf, FILE *output) {
    struct c66x_caches *caches = calloc(1, sizeof *caches);
    if (!caches)
        return NULL;
    caches->findings.output = output;
    caches->elf = elf;
    caches->cores = cores;
    bool complete = true;
    for (enum area area = 0; area < AREAS; area++)
        complete &= make_room(&caches->rooms[area], area, cores);
    for (unsigned core = 0; core < cores; core++)
        complete &= next_moment(&caches->knowers[core]) != NULL;
    if (complete)
        return caches;
    c66x_caches_free(caches);
    return NULL;
}

void c66x_caches_free(struct c66x_caches *caches) {
    for (enum area area = 0; caches && area < AREAS; area++) {
        struct room *room = &caches->rooms[area];
        c66x_unmap(room->words, words_of(area) * sizeof *room->words);
        c66x_unmap(room->lines, lines_of(area) * sizeof *room->lines);
        for (unsigned core = 0; core < caches->cores; core++) {
            c66x_unmap(room->copies[core], lines_of(area) * sizeof *room->copies[core]);
            c66x_unmap(room->read_at[core], words_of(area) * sizeof *room->read_at[core]);
        }
    }
    for (unsigned core = 0; caches && core < caches->cores; core++)
        free(caches->knowers[core].moments);
    free(caches);
}

uint64_t c66x_caches_findings(const struct c66x_caches *caches) {
    return caches->findings.count;
}

// -- findings ------------------------------------------------------------------------------------

// `writer`: of what is missing.
static void report(const struct c66x_core *core, const struct c66x_step *step, uint32_t address,
                   const char *does, const char *what, unsigned writer) {
    struct c66x_caches *caches = core->caches;
    const uint32_t place = step->instruction->address;
    if (!c66x_found(&caches->findings, place))
        return;
    char name[96];
    c66x_elf_describe(caches->elf, place, name, sizeof name);
    fprintf(caches->findings.output,
            "c66x-sim: caches: core %u at 0x%08" PRIx32 " (%s) %s at 0x%08" PRIx32
            ": core %u's is %s\n",
            core->number, place, name, does, address, writer, what);
}

static void out_of_memory(struct c66x_core *core) {
    c66x_core_fault(core, "--check-caches: out of memory, or too long a run");
}

// -- loads and stores ----------------------------------------------------------------------------

static enum area area_of(uint32_t address) {
    for (enum area area = 0; area < AREAS; area++)
        if (address - areas[area].base < areas[area].size)
            return area;
    return NOWHERE;
}

static uint32_t earlier(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

// The core's copy of a line: made now, where it had none.
static const struct copy *copy_of(const struct c66x_core *core, enum area area, uint32_t line) {
    const struct knower *knower = &core->caches->knowers[core->number];
    struct copy *copy = &core->caches->rooms[area].copies[core->number][line];
    // A line that is only prefetched is a copy like any other.
    if (copy->since != 0 &&
        copy->since <= earlier(knower->dropped_at[area], knower->prefetched_dropped_at))
        *copy = (struct copy){0};
    if (copy->since == 0) {
        copy->since = knower->operations + 1;
        copy->moment = (knower->moment_count - 1) & 0x7fffffff;
    }
    return copy;
}

// Has that core written its cache back after that moment of its own, as far as a clock knows?
static bool knows(const struct c66x_caches *caches, const struct clock *clock, enum area area,
                  unsigned core, uint32_t moment) {
    const struct clock *then = &caches->knowers[core].moments[moment];
    return clock->known[area][core] > then->known[area][core];
}

// What the core, with that copy, has not of another's store. NULL: nothing.
static const char *missing(const struct c66x_core *core, enum area area,
                           const struct stored *stored, const struct copy *copy) {
    const struct c66x_caches *caches = core->caches;
    const struct knower *knower = &caches->knowers[core->number];
    const unsigned writer = stored->writer - 1u;
    if (stored->writer == 0 || writer == core->number ||
        knows(caches, &knower->moments[copy->moment], area, writer, stored->moment))
        return NULL;
    if (knows(caches, clock_now(knower), area, writer, stored->moment))
        return "newer than this core's copy";
    return knows(caches, clock_now(&caches->knowers[writer]), area, writer, stored->moment)
               ? "written back, but this core has not waited for that"
               : "not written back yet";
}

// What the writer of a sign knew, its reader knows.
static void learn(struct c66x_core *core, const struct stored *sign) {
    struct knower *knower = &core->caches->knowers[core->number];
    if (sign->writer == 0 || sign->writer == core->number + 1)
        return;
    const struct clock *told = &core->caches->knowers[sign->writer - 1u].moments[sign->moment];
    struct clock both = *clock_now(knower);
    for (enum area area = 0; area < AREAS; area++)
        for (unsigned i = 0; i < C66X_CORES; i++)
            if (both.known[area][i] < told->known[area][i])
                both.known[area][i] = told->known[area][i];
    if (memcmp(&both, clock_now(knower), sizeof both) == 0)
        return;
    struct clock *now = next_moment(knower);
    if (now)
        *now = both;
    else
        out_of_memory(core);
}

void c66x_caches_load(struct c66x_core *core, const struct c66x_step *step, uint32_t address,
                      uint32_t size) {
    const enum area area = area_of(address);
    if (area == NOWHERE)
        return;
    const uint32_t offset = address - areas[area].base;
    for (uint32_t word = offset / 4; word <= (offset + size - 1) / 4; word++) {
        const struct copy *copy = copy_of(core, area, word * 4 >> areas[area].line_bits);
        const struct room *room = &core->caches->rooms[area];
        const struct stored *stored = &room->words[word];
        if (copy->dropped_alone) {
            learn(core, stored);
            continue;
        }
        const char *what = missing(core, area, stored, copy);
        if (what)
            report(core, step, address, "reads", what, stored->writer - 1u);
        room->read_at[core->number][word] = core->caches->knowers[core->number].moment_count;
    }
}

// A core may still read the old value, or the new one, where nothing made this core wait for it.
static void check_readers(struct c66x_core *core, const struct c66x_step *step, enum area area,
                          uint32_t word) {
    struct c66x_caches *caches = core->caches;
    const struct clock *now = clock_now(&caches->knowers[core->number]);
    for (unsigned i = 0; i < caches->cores; i++) {
        const uint32_t read_at = caches->rooms[area].read_at[i][word];
        if (i != core->number && read_at && !knows(caches, now, area, i, read_at - 1))
            report(core, step, areas[area].base + 4 * word, "writes",
                   "a read that it has not waited for", i);
    }
}

void c66x_caches_store(struct c66x_core *core, const struct c66x_step *step, uint32_t address,
                       uint32_t size) {
    const enum area area = area_of(address);
    if (area == NOWHERE)
        return;
    struct room *room = &core->caches->rooms[area];
    const uint32_t moment = core->caches->knowers[core->number].moment_count - 1;
    const uint32_t offset = address - areas[area].base;
    for (uint32_t word = offset / 4; word <= (offset + size - 1) / 4; word++) {
        const uint32_t line = word * 4 >> areas[area].line_bits;
        const char *what = missing(core, area, &room->lines[line], copy_of(core, area, line));
        if (what)
            report(core, step, address, "writes to a line", what, room->lines[line].writer - 1u);
        check_readers(core, step, area, word);
        room->words[word] = room->lines[line] =
            (struct stored){.writer = (core->number + 1) & 15, .moment = moment & 0x7ffffff};
    }
}

// -- operations ----------------------------------------------------------------------------------

static void operate_on_line(struct c66x_core *core, const struct c66x_step *step,
                            const struct operation *operation, uint32_t line) {
    struct c66x_caches *caches = core->caches;
    struct room *room = &caches->rooms[operation->area];
    const struct knower *knower = &caches->knowers[core->number];
    const unsigned bits = areas[operation->area].line_bits, words = 1u << (bits - 2);
    bool lost = false;
    for (struct stored *stored = &room->words[line * words], *end = stored + words; stored != end;
         stored++)
        if (stored->writer == core->number + 1 && !stored->alone &&
            !knows(caches, clock_now(knower), operation->area, core->number, stored->moment)) {
            stored->alone = 1;
            lost |= !operation->writes_back;
        }
    if (lost)
        report(core, step, areas[operation->area].base + (line << bits), "drops a line",
               "not written back yet", core->number);
    struct copy *copy = &room->copies[core->number][line];
    if (operation->invalidates) {
        copy->dropped_alone = copy->since <= knower->prefetched_dropped_at;
        copy->since = copy->dropped_alone ? 0 : copy->since;
    }
}

static void operate_on_block(struct c66x_core *core, const struct c66x_step *step,
                             const struct operation *operation, uint32_t words) {
    const uint32_t address = core->caches->knowers[core->number].block_address;
    const unsigned bits = areas[operation->area].line_bits;
    const uint32_t offset = address - areas[operation->area].base;
    words &= 0xffff; // of the register
    if (area_of(address) != operation->area || words == 0)
        return;
    const uint32_t end = offset + 4 * words;
    for (uint32_t line = offset >> bits; line << bits < end && line < lines_of(operation->area);
         line++)
        operate_on_line(core, step, operation, line);
}

static void operate_on_all(struct c66x_core *core, const struct c66x_step *step,
                           const struct operation *operation) {
    struct knower *knower = &core->caches->knowers[core->number];
    struct clock *now = operation->writes_back ? next_moment(knower) : NULL;
    if (now)
        now->known[operation->area][core->number]++;
    else if (operation->writes_back)
        out_of_memory(core);
    else
        report(core, step, operation->address, "drops a cache", "not written back yet",
               core->number);
    if (operation->invalidates)
        knower->dropped_at[operation->area] = knower->operations;
}

void c66x_caches_operate(struct c66x_core *core, const struct c66x_step *step, uint32_t address,
                         uint32_t value) {
    struct knower *knower = &core->caches->knowers[core->number];
    if (address == drop_prefetched && (value & 1))
        knower->prefetched_dropped_at = ++knower->operations;
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        const struct operation *operation = &operations[i];
        if (operation->block && address == operation->address - 4)
            knower->block_address = value;
        if (address != operation->address)
            continue;
        knower->operations++;
        if (operation->block)
            operate_on_block(core, step, operation, value);
        else if (value & 1)
            operate_on_all(core, step, operation);
    }
}
