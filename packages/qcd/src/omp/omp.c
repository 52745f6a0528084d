// Threads by OpenMP: each has a share of the sites. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "lanes.h"

#include <omp.h>

void qcd_threads(const struct qcd_run *run, qcd_work *work, void *context) {
#pragma omp parallel num_threads((int)run->threads)
    work(context, (unsigned)omp_get_thread_num(), (unsigned)omp_get_num_threads());
}

static const char *open_omp(struct qcd_run *run) {
    return qcd_engine_open(run, qcd_threads);
}

const struct qcd_model qcd_omp = {
    .is = {.name = "omp", .threaded = true},
    .link_values = QCD_LINK,
    .open = open_omp,
    .close = qcd_engine_close,
    .new_field = qcd_engine_new_field,
    .free_field = qcd_engine_free_field,
    .fill = qcd_engine_fill,
    .compare = qcd_engine_compare,
    .check_links = qcd_engine_check_links,
    .dslash = qcd_engine_dslash,
    .clear = qcd_engine_clear,
    .add = qcd_engine_add,
    .scale_add = qcd_engine_scale_add,
    .copy = qcd_engine_copy,
    .sum = qcd_engine_sum,
};
