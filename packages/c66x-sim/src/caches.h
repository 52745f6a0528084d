// --check-caches: finds what is right only because the simulator's cores see each other's stores at
// once. The C6678's do not: their caches know nothing of one another (SPRUGW0, SPRUGY8).
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef C66X_CACHES_H
#define C66X_CACHES_H

#include "core.h"

// What every core has of the memory that all share, as if no cache ever ran out of room.
struct c66x_caches;

// NULL: out of memory. Findings are written to `output`; `elf` names their places and stays the
// caller's.
struct c66x_caches *c66x_caches_make(unsigned cores, const struct c66x_elf *elf, FILE *output);
void c66x_caches_free(struct c66x_caches *caches);

// Before a load or a store. Found are: a word that another core has written and not written back,
// or this core has not waited for that, or its copy is older; the same of any word of a line that
// it writes to, for a line is written back as a whole; and a word that another core may still read.
void c66x_caches_load(struct c66x_core *core, const struct c66x_step *step, uint32_t address,
                      uint32_t size);
void c66x_caches_store(struct c66x_core *core, const struct c66x_step *step, uint32_t address,
                       uint32_t size);

// After a store to a register: does what a cache operation asks for. Found is one that drops what
// the core has written.
void c66x_caches_operate(struct c66x_core *core, const struct c66x_step *step, uint32_t address,
                         uint32_t value);

uint64_t c66x_caches_findings(const struct c66x_caches *caches);

#endif
