// SPDX-License-Identifier: GPL-2.0-or-later
// Fuzz target: of all that may come as a receipt, only the file's name and its checksum take a file
// out of the outbox.
#include "../delivery/forward_mqtt.c" // its receipts are no one else's

#include "bk_fixtures.h"
#include "bk_fuzz.h"

static const char receipt[] = "c.12.n1.json 352441c2"; /* the checksum of "abc" */

/* Those two words, whatever stands behind a zero byte. */
static bool is_receipt(const uint8_t *data, size_t size) {
    size_t length = strlen(receipt);
    return size >= length && memcmp(data, receipt, length) == 0 &&
           (size == length || data[length] == '\0');
}

FUZZ(data, size) {
    static mail self;
    if (!test_folder[0]) {
        test_begin_folder();
        atexit(test_end_folder);
    }
    sent_file *file = &self.sent[0];
    self.n_sent = 1;
    *file = (sent_file){.parcel = {.outbox = test_folder, .name = "c.12.n1.json"},
                        .sum = checksum("abc", 3)};
    on_message(&self, "joulemark/c/receipt/n1", data, size, true);
    abort_if(self.n_sent != 1);
    on_message(&self, "joulemark/c/receipt/n1", data, size, false);
    abort_if((self.n_sent == 0) != is_receipt(data, size));
}
