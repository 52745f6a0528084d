// The GPU's steps, taken one thread after the other on the CPU, end known tests as they should.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "bk_expect.h"
#include "lucas.h"
#include "residual.h"
#include "steps.h"
#include "thermal.h"

static struct step_tables tables_of(const struct lucas *lucas) {
    return (struct step_tables){
        .root_re = lucas->root_re,
        .root_im = lucas->root_im,
        .weight = {lucas->even.weight, lucas->odd.weight},
        .inverse = {lucas->even.inverse, lucas->odd.inverse},
        .base = {lucas->even.base, lucas->odd.base},
        .inverse_base = {lucas->even.inverse_base, lucas->odd.inverse_base},
    };
}

static struct step_points points_of(struct fft_points points) {
    return (struct step_points){points.re, points.im};
}

// The last 64 bits after `steps` steps from 4.
static uint64_t end_of(uint32_t n, unsigned exponent, uint64_t steps, int *zero) {
    struct lucas lucas;
    expect(lucas_open(&lucas, n, exponent), "%u", n);
    struct step_tables tables = tables_of(&lucas);
    double rounding = 0;
    for (uint64_t i = 0; i < steps; i++)
        rounding =
            fmax(rounding, step_lucas((struct step_thread){0, 1}, points_of(lucas.digits),
                                      points_of(lucas.one), points_of(lucas.two), n / 2, &tables));
    uint64_t end = residual_of(lucas.digits.re, lucas.digits.im, n, exponent, zero);
    expect(rounding < THERMAL_ROUNDING_LIMIT, "rounding, %u", n);
    lucas_close(&lucas);
    return end;
}

int main(void) {
    int zero;
    // 4, 14, 194, 37634
    expect(end_of(32, 607, 3, &zero) == 37634 && !zero, "three steps");
    for (size_t i = 0; i < 2; i++) {
        unsigned n = (unsigned)lucas_sizes[i].n, exponent = lucas_sizes[i].exponent;
        expect(end_of(n, exponent, exponent - 2, &zero) == 0 && zero, "a whole test, %u", n);
    }
    // Longer ones against the CPU's own steps.
    for (size_t i = 2; i < lucas_size_count; i++) {
        unsigned n = (unsigned)lucas_sizes[i].n, exponent = lucas_sizes[i].exponent;
        struct lucas lucas;
        expect(lucas_open(&lucas, n, exponent), "%u", n);
        lucas_run(&lucas, 50);
        uint64_t end = residual_of(lucas.digits.re, lucas.digits.im, n, exponent, &zero);
        expect(end_of(n, exponent, 50, &zero) == end && !zero, "fifty steps, %u", n);
        lucas_close(&lucas);
    }
    return expect_result();
}
