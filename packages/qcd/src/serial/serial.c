// The model of one thread. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "lanes.h"

static const char *open_serial(struct qcd_run *run) {
    return qcd_engine_open(run, qcd_alone);
}

const struct qcd_model qcd_serial = {
    .is = {.name = "serial"},
    .link_values = QCD_LINK,
    .open = open_serial,
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
