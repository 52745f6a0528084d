/* bk_test: how benchmarks' tests try their variants. Header only.
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#ifndef BK_TEST_H
#define BK_TEST_H

#include "benchkit.h"

#include <stdio.h>
#include <string.h>

enum { BK_TEST_SKIPPED = 77 }; /* CTest's SKIP_RETURN_CODE */

/* Tries the variant of that name; without a name (NULL) all that one rank runs on the CPU, for not
 * every machine has devices. Returns 0, or BK_TEST_SKIPPED where this build or machine has none. */
static inline int bk_try_variants(const struct bk_variant *const *variants, const char *name,
                                  void (*test)(const struct bk_variant *variant)) {
    bool tried = false;
    for (; *variants != NULL; variants++) {
        const struct bk_variant *variant = *variants;
        const bool chosen = name == NULL ? variant->device == NULL && !variant->mpi
                                         : strcmp(name, variant->name) == 0;
        if (!chosen || (variant->device != NULL && variant->device() == NULL))
            continue;
        test(variant);
        tried = true;
    }
    if (!tried)
        printf("this build or machine has no variant %s\n", name == NULL ? "for the CPU" : name);
    return tried ? 0 : BK_TEST_SKIPPED;
}

#endif
