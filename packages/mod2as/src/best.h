// Our best format, or the plain loop where that is faster: what the models serial and omp keep as
// their plan. SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef BEST_H
#define BEST_H

#include "packed.h"

// Rows in parts of about as many numbers; each is multiplied alone.
struct best {
    bool plain;
    size_t parts;
    struct packed packed[];
};

// Makes work->plan, to be packed part by part; NULL when memory is out. forget_best frees it.
struct best *new_best(struct mod2as_work *work, size_t parts);
bool pack_part(struct mod2as_work *work, size_t part);
void forget_best(struct mod2as_work *work);

// Tries both with `multiply`, by turns, and keeps the faster one.
void choose_best(struct mod2as_work *work, bk_kernel *multiply);

void multiply_part(const struct mod2as_work *work, size_t part);

#endif
