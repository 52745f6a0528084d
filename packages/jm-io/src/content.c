// The bytes of files: noise that no disk compresses, with words that tell where they belong.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "bk_random.h"
#include "io.h"

#include <string.h>

// A transfer has one word of its own in so many: a disk's sector, so that none can be another's.
enum { SECTOR = 512, APART = SECTOR / IO_WORD };
enum { PAGE = 4096 };

// Of this process's runs: no disk still has what is to be written.
static uint64_t seed(void) {
    uint64_t hash = 0;
    for (const char *at = io_place()->path; *at != '\0'; at++)
        hash = bk_random_bits(hash, (unsigned char)*at);
    return hash;
}

uint64_t io_next_generation(void) {
    static uint64_t generations;
    return bk_random_bits(seed(), ++generations);
}

static uint64_t key(uint64_t generation, unsigned task) {
    return bk_random_bits(generation, task);
}

static uint64_t stamp(uint64_t of, uint64_t at, size_t word) {
    return bk_random_bits(of, at / IO_WORD + word);
}

static size_t last_stamp(const struct io_content *content) {
    return (content->bytes / IO_WORD - 1) / APART * APART;
}

bool io_content_make(struct io_content *content, size_t bytes) {
    *content = (struct io_content){
        .bytes = bytes, .noise = bk_allocate(bytes + IO_NOISE), .came = bk_allocate(bytes)};
    if (content->noise == NULL || content->came == NULL) {
        io_content_free(content);
        return false;
    }
    for (size_t i = 0; i < (bytes + IO_NOISE) / IO_WORD; i++)
        content->noise[i] = bk_random_bits(0, i);
    memset(content->came, 0, bytes);
    return true;
}

void io_content_free(struct io_content *content) {
    bk_release(content->noise);
    bk_release(content->came);
    *content = (struct io_content){0};
}

void io_content_stamp(struct io_content *content, uint64_t generation, unsigned task, uint64_t at) {
    const uint64_t of = key(generation, task);
    // Noise recurs after IO_NOISE bytes at the earliest: a disk that compresses finds little twice,
    // and a cache keeps it. Whole pages apart, stamps are at the same places for all.
    const uint64_t page = (of + (at + PAGE - 1) / PAGE) % (IO_NOISE / PAGE);
    content->sent = content->noise + page * (PAGE / IO_WORD);
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
