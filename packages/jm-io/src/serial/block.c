// A block of an array by POSIX's calls: a row is a call, as nothing else knows where rows are.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "io.h"

bool io_block_by_rows(const struct io_block *block, const char *path, enum io_access access,
                      struct io_trouble *trouble) {
    const struct io_interface *files = &io_posix_files;
    const size_t bytes = (size_t)block->count[2] * IO_WORD;
    struct io_file file = {.path = path};
    if (!files->open(&file, access, true, false, trouble))
        return false;
    bool ok = true;
    for (uint64_t row = 0; row < block->count[0] * block->count[1] && ok; row++) {
        uint64_t *words = block->words + row * block->count[2];
        const uint64_t at = io_block_row(block, row) * IO_WORD;
        ok = io_move(files, &file, access, words, bytes, at, trouble);
    }
    if (access == IO_WRITE)
        ok &= files->sync(&file, trouble);
    return files->close(&file, trouble) && ok;
}

const struct io_block_variant io_block_posix = {.base = {.name = "posix"},
                                                .move = io_block_by_rows};
