// Writes marks as fast as it can, and at a steady rate; tests/bench/regions runs it in a job step.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include <joulemark.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BURSTS = 40, PAIRS = 2000, THREADS = 4 };

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double burst_ns(int pairs) {
    double start_s = now_s();
    for (int i = 0; i < pairs; i++) {
        joulemark_region_begin("burst");
        joulemark_region_end("burst");
    }
    return (now_s() - start_s) / (2 * pairs) * 1e9;
}

// Waits until the daemon has taken all marks in.
static void settle(void) {
    struct joulemark_energy energy;
    joulemark_region_begin("settle");
    if (!joulemark_region_end_energy("settle", &energy)) {
        fprintf(stderr, "the daemon does not answer\n");
        exit(1);
    }
}

static int by_size(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static void bursts(void) {
    double ns[BURSTS];
    for (int i = 0; i < BURSTS; i++) {
        settle();
        ns[i] = burst_ns(PAIRS);
    }
    qsort(ns, BURSTS, sizeof ns[0], by_size);
    printf("mark_ns %g\nmark_worst_burst_ns %g\n", ns[BURSTS / 2], ns[BURSTS - 1]);
}

static void *burst_in_a_thread(void *result) {
    *(double *)result = burst_ns(PAIRS / 2);
    return NULL;
}

static void threads(void) {
    double ns[THREADS], sum = 0;
    pthread_t ids[THREADS];
    settle();
    for (int i = 0; i < THREADS; i++)
        pthread_create(&ids[i], NULL, burst_in_a_thread, &ns[i]);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(ids[i], NULL);
        sum += ns[i];
    }
    printf("mark_%d_threads_ns %g\n", THREADS, sum / THREADS);
}

// Marks at a steady rate, in groups once a millisecond at most.
static void steady(double marks_per_s, double seconds) {
    double start_s = now_s();
    long pairs = 0, wanted = (long)(marks_per_s * seconds / 2);
    while (pairs < wanted) {
        for (long due = (long)((now_s() - start_s) * marks_per_s / 2); pairs < due; pairs++) {
            joulemark_region_begin("steady");
            joulemark_region_end("steady");
        }
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    printf("pairs %ld\nseconds %g\n", pairs, now_s() - start_s);
}

int main(int argc, char **argv) {
    if (argc == 3) {
        steady(strtod(argv[1], NULL), strtod(argv[2], NULL));
        return 0;
    }
    bursts();
    threads();
    settle();
    printf("pairs %d\n", (BURSTS + THREADS / 2) * PAIRS);
    return 0;
}
