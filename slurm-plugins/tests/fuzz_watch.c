// SPDX-License-Identifier: GPL-2.0-or-later
// Fuzz target: whatever is sent as a request to watch this node, it is told no oftener than
// profile_max_hz and for no longer than a minute.
#include "clock.h"
#include "watch.h"

#include "bk_fuzz.h"

FUZZ(data, size) {
    enum { MOST_HZ = 10 };
    static const int64_t ASKED_NS = 1000 * JM_NS_PER_S, STEP_NS = JM_NS_PER_S / MOST_HZ;
    jm_watch watch;
    jm_watch_begin(&watch, "n1", MOST_HZ);
    bool good = jm_watch_ask(&watch, data, size, ASKED_NS);
    abort_if((jm_watch_rest_ns(&watch, ASKED_NS) == 0) != good);
    jm_watch_told(&watch, ASKED_NS);
    abort_if(jm_watch_rest_ns(&watch, ASKED_NS + STEP_NS - 1) == 0);
    abort_if(jm_watch_rest_ns(&watch, ASKED_NS + JM_WATCH_LONGEST_S * JM_NS_PER_S) != INT64_MAX);
}
