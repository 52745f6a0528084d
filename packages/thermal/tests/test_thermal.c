// Steps equal those of whole-number arithmetic, tests end as number theory says on every model, and
// a single wrong digit is found. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "bk_expect.h"
#include "lucas.h"
#include "residual.h"
#include "thermal.h"

#ifdef BENCH_CUDA
#include "cuda/tensor.h"

#include <cuda_runtime_api.h>
#include <math.h>
#endif

// ---- Whole numbers of 32-bit words, least first, modulo 2^p - 1 --------------------------------

enum { WORDS = 80, BITS = 32 };

// Folds the bits from p on, of 2 * WORDS words, onto those below; the result is below 2^p.
static void fold(uint32_t *number, unsigned p) {
    for (int round = 0; round < 3; round++) {
        uint32_t high[2 * WORDS] = {0};
        for (unsigned bit = p; bit < 2 * WORDS * BITS; bit++)
            if ((number[bit / BITS] >> (bit % BITS) & 1) != 0) {
                high[(bit - p) / BITS] |= UINT32_C(1) << ((bit - p) % BITS);
                number[bit / BITS] &= ~(UINT32_C(1) << (bit % BITS));
            }
        uint64_t carry = 0;
        for (unsigned i = 0; i < 2 * WORDS; i++) {
            carry += (uint64_t)number[i] + high[i];
            number[i] = (uint32_t)carry;
            carry >>= BITS;
        }
    }
}

// number^2 - 2 modulo 2^p - 1
static void square_less_two(uint32_t *number, unsigned p) {
    uint32_t product[2 * WORDS] = {0};
    for (unsigned i = 0; i < WORDS; i++) {
        uint64_t carry = 0;
        for (unsigned j = 0; j < WORDS; j++) {
            carry += (uint64_t)number[i] * number[j] + product[i + j];
            product[i + j] = (uint32_t)carry;
            carry >>= BITS;
        }
        product[i + WORDS] = (uint32_t)carry;
    }
    fold(product, p);
    // - 2 is + 2^p - 3: all ones but bit 1.
    uint64_t carry = 0;
    for (unsigned i = 0; i <= WORDS; i++) {
        unsigned first = i * BITS;
        uint64_t ones = first >= p          ? 0
                        : p - first >= BITS ? UINT32_MAX
                                            : (UINT64_C(1) << (p - first)) - 1;
        carry += product[i] + (i == 0 ? ones - 2 : ones);
        product[i] = (uint32_t)carry;
        carry >>= BITS;
    }
    fold(product, p);
    memcpy(number, product, WORDS * sizeof *number);
}

static uint64_t exact_after(unsigned p, unsigned steps) {
    uint32_t number[WORDS] = {4};
    for (unsigned i = 0; i < steps; i++)
        square_less_two(number, p);
    return number[0] | (uint64_t)number[1] << BITS;
}

// ---- Tests ------------------------------------------------------------------------------------

static uint64_t ours_after(size_t n, unsigned p, unsigned steps) {
    struct lucas lucas;
    int zero;
    expect(lucas_open(&lucas, n, p), "%zu", n);
    lucas_run(&lucas, steps);
    uint64_t residual = residual_of(lucas.digits.re, lucas.digits.im, (uint32_t)n, p, &zero);
    lucas_close(&lucas);
    return residual;
}

static void steps_are_exact(void) {
    static const unsigned steps[] = {1, 2, 3, 4, 5, 10, 100, 500};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        expect_equal(ours_after(32, 607, steps[i]), exact_after(607, steps[i]), "p = 607, %u",
                     steps[i]);
        expect_equal(ours_after(128, 2203, steps[i]), exact_after(2203, steps[i]), "p = 2203, %u",
                     steps[i]);
    }
}

// 2^601 - 1 and 2^2207 - 1 are composite, and their tests end as whole-number arithmetic says.
static void a_composite_number_fails(void) {
    static const struct {
        size_t n;
        unsigned p;
    } cases[] = {{32, 601}, {128, 2207}};
    for (size_t i = 0; i < 2; i++) {
        unsigned p = cases[i].p;
        struct lucas lucas;
        expect(lucas_open(&lucas, cases[i].n, p), "%u", p);
        lucas_run(&lucas, p - 2);
        expect(lucas.failed && lucas.tests == 0, "a composite number fails, %u", p);
        expect_equal(lucas.residual, exact_after(p, p - 2), "its residual, %u", p);
        lucas_close(&lucas);
    }
}

static void models_end_right(const struct thermal_model *model) {
    for (size_t i = 0; i < 3; i++) {
        struct thermal_work work = {.n = lucas_sizes[i].n, .exponent = lucas_sizes[i].exponent};
        work.cores = model->cores(3, work.n);
        work.results = calloc(work.cores, sizeof *work.results);
        expect(work.results != NULL && model->open(&work), "%zu", work.n);
        model->is.kernel(&work, 7);
        model->is.kernel(&work, 1000);
        model->finish(&work);
        struct bk_check check = thermal_verify(&work);
        expect(check.ok && check.compared == 4 * (uint64_t)work.cores, "%s, %zu", model->is.name,
               work.n);
        expect(model->flops(work.n) > 10 * (double)work.n, "flops, %zu", work.n);
        model->close(&work);
        free(work.results);
    }
}

static void one_wrong_digit_is_found(void) {
    struct lucas lucas;
    struct thermal_result result;
    struct thermal_work work = {.cores = 1, .results = &result, .state = &lucas};
    for (size_t digit = 0; digit < 64; digit += 21) {
        expect(lucas_open(&lucas, 128, 2203), "%zu", digit);
        lucas_run(&lucas, 1000);
        lucas.digits.im[digit] += 1;
        lucas_run(&lucas, 5000);
        result = (struct thermal_result){lucas.tests, lucas.residual, lucas.failed,
                                         lucas_rounding(&lucas)};
        expect(lucas.failed && lucas.tests == 0 && lucas.residual != 0, "one wrong digit, %zu",
               digit);
        expect(!thermal_verify(&work).ok, "the check of a wrong digit, %zu", digit);
        lucas_close(&lucas);
    }
}

static void wrong_results_are_found(void) {
    static const struct thermal_result right = {.tests = 1}, wrong[] = {
                                                                 {.tests = 0},
                                                                 {.tests = 1, .residual = 1},
                                                                 {.tests = 1, .failed = true},
                                                                 {.tests = 1, .rounding = 0.4},
                                                             };
    struct thermal_result results[2] = {right, right};
    struct thermal_work work = {.cores = 2, .results = results};
    expect(thermal_verify(&work).ok, "right results");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        results[1] = wrong[i];
        struct bk_check check = thermal_verify(&work);
        expect(!check.ok && check.worst_index / 4 == 1, "the second core's result, %zu", i);
    }
}

#ifdef BENCH_CUDA
// The first product's last element has another last bit: who multiplies that tile again sees it.
static void one_wrong_bit_is_found(void) {
    struct thermal_work work = {.n = 512};
    work.cores = thermal_tensor.cores(1, work.n);
    work.results = calloc(work.cores, sizeof *work.results);
    expect(work.results != NULL && thermal_tensor.open(&work), "open");
    const struct tensor_state *state = work.state;
    double *last = state->c + work.n * work.n - 1, value;
    expect(cudaMemcpy(&value, last, sizeof value, cudaMemcpyDeviceToHost) == cudaSuccess, "read");
    value = nextafter(value, 0);
    expect(cudaMemcpy(last, &value, sizeof value, cudaMemcpyHostToDevice) == cudaSuccess, "write");
    thermal_tensor.is.kernel(&work, 16);
    thermal_tensor.finish(&work);
    expect(!thermal_verify(&work).ok, "the check of a wrong bit");
    unsigned failed = 0;
    for (unsigned i = 0; i < work.cores; i++) {
        failed += work.results[i].failed;
        expect(work.results[i].failed == (work.results[i].residual != 0), "%u", i);
    }
    expect(failed > 0, "a core has failed");
    thermal_tensor.close(&work);
    free(work.results);
}
#endif

static int test_gpu(void) {
#ifdef BENCH_GPU
    if (thermal_cuda.cores(1, 512) == 0)
        return 77;
    models_end_right(&thermal_cuda);
#endif
#ifdef BENCH_CUDA
    if (thermal_tensor.cores(1, 512) > 0) {
        models_end_right(&thermal_tensor);
        one_wrong_bit_is_found();
    }
#endif
    return expect_result();
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "gpu") == 0)
        return test_gpu();
    steps_are_exact();
    a_composite_number_fails();
    models_end_right(&thermal_serial);
#ifdef BENCH_OPENMP
    models_end_right(&thermal_omp);
#endif
    one_wrong_digit_is_found();
    wrong_results_are_found();
    return expect_result();
}
