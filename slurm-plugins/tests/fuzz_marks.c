// SPDX-License-Identifier: GPL-2.0-or-later
// Fuzzer of a ring that any user's process can write: slots, places and names are the input's.
#include "marks.h"

#include "bk_fuzz.h"

/* Copies the next bytes of the input into the ring at this offset. */
static size_t fill(jm_ring *ring, size_t offset, size_t length, const uint8_t *data, size_t size) {
    size_t n = size < length ? size : length;
    memcpy((uint8_t *)ring + offset, data, n);
    return n;
}

FUZZ(data, size) {
    jm_ledger ledger;
    jm_ledger_init(&ledger, 1, 1000000000);
    jm_channel channel = {.parent = -1, .outermost = true, .name = "node"};
    jm_ledger_add_channel(&ledger, &channel);
    jm_open_request request = {.job_id = 1, .step = "0", .pid = 2, .pid_start = 3};
    jm_account *step = jm_ledger_open(&ledger, &request, 1);
    jm_marks *marks = jm_marks_new(NULL, NULL);
    jm_message why;
    int fds[2];
    jm_source *source = jm_marks_attach(marks, &ledger, step, 0, 1, fds, &why);
    jm_ring *ring = source ? mmap(NULL, sizeof *ring, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0)
                           : MAP_FAILED;
    abort_if(ring == MAP_FAILED);
    for (int64_t now_ns = 2; size > 0 && now_ns < 20; now_ns++) {
        size_t used = fill(ring, offsetof(jm_ring, head), 8, data, size);
        used += fill(ring, offsetof(jm_ring, slots), 128, data + used, size - used);
        used += fill(ring, offsetof(jm_ring, names), 64, data + used, size - used);
        data += used;
        size -= used;
        jm_gain gain = {.energy_uj = 1000};
        jm_ledger_tick(&ledger, &gain, 1);
        jm_marks_drain(marks, &ledger, 0, now_ns);
    }
    jm_marks_detach(source);
    jm_marks_drain(marks, &ledger, 0, 30);
    munmap(ring, sizeof *ring);
    close(fds[0]);
    jm_marks_free(marks);
    jm_ledger_free(&ledger);
}
