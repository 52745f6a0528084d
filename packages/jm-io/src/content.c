// The bytes of files: noise that no disk compresses, with words that tell where they belong.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "bk_random.h"
#include "io.h"

#include <string.h>

// A transfer has one word of its own in so many: a disk's sector, so that none can be another's.
enum { APART = 512 / IO_WORD };

static uint64_t key(uint64_t generation, unsigned task) {
    return bk_random_bits(bk_random_bits(0, generation), task);
}

static uint64_t stamp(uint64_t of, uint64_t at, size_t word) {
    return of ^ (at + word * IO_WORD);
}

static size_t last_stamp(const struct io_content *content) {
    return (content->bytes / IO_WORD - 1) / APART * APART;
}

bool io_content_make(struct io_content *content, size_t bytes) {
    *content =
        (struct io_content){.bytes = bytes, .sent = bk_allocate(bytes), .came = bk_allocate(bytes)};
    if (content->sent == NULL || content->came == NULL) {
        io_content_free(content);
        return false;
    }
    for (size_t i = 0; i < bytes / IO_WORD; i++)
        content->sent[i] = bk_random_bits(0, i);
    memset(content->came, 0, bytes);
    return true;
}

void io_content_free(struct io_content *content) {
    bk_release(content->sent);
    bk_release(content->came);
    *content = (struct io_content){0};
}

void io_content_stamp(struct io_content *content, uint64_t generation, unsigned task, uint64_t at) {
    const uint64_t of = key(generation, task);
    for (size_t word = 0; word < content->bytes / IO_WORD; word += APART)
        content->sent[word] = stamp(of, at, word);
}

bool io_content_seems_right(const struct io_content *content, uint64_t generation, unsigned task,
                            uint64_t at) {
    const uint64_t of = key(generation, task);
    const size_t last = last_stamp(content);
    return content->came[0] == stamp(of, at, 0) && content->came[last] == stamp(of, at, last);
}

size_t io_content_right(struct io_content *content, uint64_t generation, unsigned task,
                        uint64_t at) {
    io_content_stamp(content, generation, task, at);
    if (memcmp(content->sent, content->came, content->bytes) == 0)
        return content->bytes;
    size_t right = 0;
    const char *sent = (const char *)content->sent, *came = (const char *)content->came;
    for (size_t i = 0; i < content->bytes; i++)
        right += sent[i] == came[i];
    return right;
}
