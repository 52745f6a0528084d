// SPDX-License-Identifier: GPL-2.0-or-later
// Fuzz target: of all that may come as a receipt, only the file's name and its checksum take a file
// out of the outbox.
#include "../daemon/forward_mqtt.c" // its receipts are no one else's

#include "bk_fixtures.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char receipt[] = "c.12.n1.json 352441c2"; /* the checksum of "abc" */
static char folder[256];

static void remove_folder(void) {
    test_remove(folder);
}

/* Those two words, whatever stands behind a zero byte. */
static bool is_receipt(const uint8_t *data, size_t size) {
    size_t length = strlen(receipt);
    return size >= length && memcmp(data, receipt, length) == 0 &&
           (size == length || data[length] == '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static mail self;
    if (!folder[0]) {
        test_make_folder(folder, sizeof folder);
        atexit(remove_folder);
    }
    sent_file *file = &self.sent[0];
    self.n_sent = 1;
    *file = (sent_file){.parcel = {.outbox = folder, .name = "c.12.n1.json"},
                        .sum = checksum("abc", 3)};
    on_receipt(&self, "joulemark/c/receipt/n1", data, size, true);
    if (self.n_sent != 1)
        abort();
    on_receipt(&self, "joulemark/c/receipt/n1", data, size, false);
    if ((self.n_sent == 0) != is_receipt(data, size))
        abort();
    return 0;
}
