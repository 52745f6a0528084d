// Floating point: conversions, special values, and kernels as the benchmarks have them.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "programs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ORDER = 24, POINTS = 64 };

static uint64_t bits_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return isnan(value) ? 0 : bits; // which one depends on the machine
}

static double unit_random(void) {
    return (double)(int64_t)(random_bits() >> 11) * 0x1p-53;
}

static void show(const char *name, double value) {
    show_bits(name, bits_of(value));
    printf("%.17g\n", value);
}

static void conversions(void) {
    uint64_t sum = 0;
    for (int i = 0; i < 1000; i++) {
        double value = (unit_random() - 0.5) * 0x1p30;
        float single = (float)value;
        sum = sum * 31 + bits_of((double)single) + (uint64_t)(int64_t)(int32_t)value;
        sum = sum * 31 + (uint64_t)(uint32_t)fabs(value) + bits_of((double)(uint32_t)i * 3.7);
        sum = sum * 31 + bits_of((double)(single * 1.5F + (float)i)) +
              (uint64_t)(int64_t)(value * 1e3);
        sum = sum * 31 + (uint64_t)((value < 0) * 2 + (single > 5.0F));
    }
    show_bits("conversions", sum);
    putchar('\n');
}

static void specials(void) {
    volatile double zero = 0, large = 1e300, one = 1, tiny = 0x1p-1022;
    show("infinite", one / zero);
    show("negative", -one / zero);
    show("overflow", large * large);
    show("underflow", tiny / 4);
    show("minus zero", -zero * one);
    printf("nan %d %d %d\n", zero / zero == zero / zero, zero / zero<one, zero / zero> one);
    show("root", sqrt(2.0) + sqrt(one / 3));
}

// LU decomposition with partial pivoting, and the solution's residual.
static double solve(void) {
    static double a[ORDER][ORDER], b[ORDER], x[ORDER];
    for (int i = 0; i < ORDER; i++) {
        for (int j = 0; j < ORDER; j++)
            a[i][j] = unit_random() - 0.5;
        x[i] = b[i] = unit_random();
    }
    for (int k = 0; k < ORDER; k++) {
        int pivot = k;
        for (int i = k + 1; i < ORDER; i++)
            if (fabs(a[i][k]) > fabs(a[pivot][k]))
                pivot = i;
        for (int j = 0; j < ORDER; j++) {
            double kept = a[k][j];
            a[k][j] = a[pivot][j];
            a[pivot][j] = kept;
        }
        double kept = x[k];
        x[k] = x[pivot];
        x[pivot] = kept;
        for (int i = k + 1; i < ORDER; i++) {
            double factor = a[i][k] / a[k][k];
            for (int j = k; j < ORDER; j++)
                a[i][j] -= factor * a[k][j];
            x[i] -= factor * x[k];
        }
    }
    for (int i = ORDER - 1; i >= 0; i--) {
        for (int j = i + 1; j < ORDER; j++)
            x[i] -= a[i][j] * x[j];
        x[i] /= a[i][i];
    }
    double sum = 0;
    for (int i = 0; i < ORDER; i++)
        sum += x[i] * b[i];
    return sum;
}

// Radix-2 transform with factors from half angles: needs no library but sqrt.
static double transform(void) {
    static double re[POINTS], im[POINTS];
    for (int i = 0; i < POINTS; i++) {
        re[i] = unit_random();
        im[i] = unit_random();
    }
    double cosine = -1, sine = 0;
    for (int half = POINTS / 2; half >= 1; half /= 2) {
        double c = 1, s = 0;
        for (int j = 0; j < half; j++) {
            for (int i = j; i < POINTS; i += 2 * half) {
                double dr = re[i] - re[i + half], di = im[i] - im[i + half];
                re[i] += re[i + half];
                im[i] += im[i + half];
                re[i + half] = dr * c - di * s;
                im[i + half] = dr * s + di * c;
            }
            double kept = c * cosine - s * sine;
            s = c * sine + s * cosine;
            c = kept;
        }
        sine = sqrt((1 - cosine) / 2);
        cosine = sqrt((1 + cosine) / 2);
    }
    double sum = 0;
    for (int i = 0; i < POINTS; i++)
        sum += re[i] * i - im[i];
    return sum;
}

static float single_product(void) {
    static float a[ORDER][ORDER], b[ORDER][ORDER];
    float sum = 0;
    for (int i = 0; i < ORDER; i++)
        for (int j = 0; j < ORDER; j++) {
            a[i][j] = (float)unit_random();
            b[i][j] = (float)unit_random();
        }
    for (int i = 0; i < ORDER; i++)
        for (int j = 0; j < ORDER; j++)
            for (int k = 0; k < ORDER; k++)
                sum += a[i][k] * b[k][j];
    return sum;
}

void numbers(void) {
    conversions();
    specials();
    show("solve", solve());
    show("transform", transform());
    show("single", (double)single_product());
}
