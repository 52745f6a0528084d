// Contents tell where they belong: another task's, place's or generation's are seen, and each bit.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "bk_expect.h"
#include "io.h"

#include <string.h>

enum { BYTES = 47008 }; // IO500's transfer: neither a sector's multiple nor a page's

static struct io_content made(uint64_t generation, unsigned task, uint64_t at) {
    struct io_content content;
    expect(io_content_make(&content, BYTES));
    io_content_stamp(&content, generation, task, at);
    memcpy(content.came, content.sent, BYTES);
    return content;
}

TEST(what_was_sent_is_right) {
    struct io_content content = made(3, 7, BYTES);
    expect(io_content_seems_right(&content, 3, 7, BYTES));
    expect_equal(io_content_right(&content, 3, 7, BYTES), BYTES);
    io_content_free(&content);
}

TEST(what_belongs_elsewhere_is_not) {
    struct io_content content = made(3, 7, BYTES);
    expect(!io_content_seems_right(&content, 4, 7, BYTES));
    expect(!io_content_seems_right(&content, 3, 6, BYTES));
    expect(!io_content_seems_right(&content, 3, 7, 0));
    const size_t sectors = (BYTES + 511) / 512;
    // A byte of a stamp is another's by chance.
    expect(io_content_right(&content, 4, 7, BYTES) <= BYTES - 6 * sectors);
    expect(io_content_right(&content, 3, 6, BYTES) <= BYTES - 6 * sectors);
    expect(io_content_right(&content, 3, 7, 0) <= BYTES - sectors);
    io_content_free(&content);
}

TEST(each_sector_is_at_its_own_place) {
    struct io_content content = made(1, 0, 0);
    memcpy((char *)content.came + 512, content.sent, 512);
    expect(io_content_right(&content, 1, 0, 0) < BYTES);
    io_content_free(&content);
}

TEST(each_bit_counts) {
    struct io_content content = made(1, 2, 0);
    for (size_t i = 0; i < BYTES; i += 997) {
        char *byte = (char *)content.came + i;
        *byte = (char)(*byte ^ 1 << i % 8);
        expect_equal(io_content_right(&content, 1, 2, 0), BYTES - 1, "byte %zu", i);
        *byte = (char)(*byte ^ 1 << i % 8);
    }
    io_content_free(&content);
}

// Word 1 has no stamp.
TEST(noise_recurs_late) {
    struct io_content content;
    expect(io_content_make(&content, BYTES));
    uint64_t seen[IO_NOISE / BYTES];
    for (unsigned i = 0; i < IO_NOISE / BYTES; i++) {
        io_content_stamp(&content, 5, 1, (uint64_t)i * BYTES);
        seen[i] = content.sent[1];
        for (unsigned other = 0; other < i; other++)
            expect(seen[other] != seen[i]);
    }
    io_content_free(&content);
}

TEST(a_transfer_can_be_one_word) {
    struct io_content content;
    expect(io_content_make(&content, IO_WORD));
    io_content_stamp(&content, 1, 0, 8);
    content.came[0] = content.sent[0];
    expect(io_content_seems_right(&content, 1, 0, 8) && !io_content_seems_right(&content, 1, 0, 0));
    io_content_free(&content);
}

TEST(blocks_are_the_whole_array_each_place_once) {
    enum { EDGE = 2, MOST = 24 };
    for (unsigned tasks = 1; tasks <= MOST; tasks++) {
        char owners[MOST * EDGE * EDGE * EDGE] = {0};
        for (unsigned task = 0; task < tasks; task++) {
            const struct io_block b = io_block_of(task, tasks, EDGE);
            expect_equal(b.whole[0] * b.whole[1] * b.whole[2], 8 * tasks, "%u tasks", tasks);
            for (uint64_t i = 0; i < 8; i++) {
                const uint64_t row = (b.first[0] + i / 4) * b.whole[1] + b.first[1] + i / 2 % 2;
                owners[row * b.whole[2] + b.first[2] + i % 2]++;
            }
        }
        for (unsigned i = 0; i < 8 * tasks; i++)
            expect_equal(owners[i], 1, "%u tasks, place %u", tasks, i);
    }
    const struct io_block cube = io_block_of(0, 8, 5);
    expect(cube.whole[0] == 10 && cube.whole[1] == 10 && cube.whole[2] == 10);
}

int main(void) {
    return expect_all();
}
