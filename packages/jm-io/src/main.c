// jm-io: what programs do to files, by patterns, each verified byte for byte.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "io.h"

int main(int argc, char **argv) {
    static const struct bk_benchmark *const patterns[] = {
        &io_bandwidth,   &io_checkpoint, &io_collective, &io_metadata,
        &io_out_of_core, &io_tracing,    NULL,
    };
    io_place_guard();
    return bk_main_each(patterns, argc, argv);
}
