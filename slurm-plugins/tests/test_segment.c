// SPDX-License-Identifier: GPL-2.0-or-later
// Tests of epilog/segment.c: our part of a comment that others write too.
#include "segment.h"

#include "bk_fixtures.h"

#include <stdlib.h>

/* The law: once more changes nothing. */
static void expect_put(const char *comment, const char *text, const char *expected) {
    char *put = jm_segment_put(comment, text), *again = jm_segment_put(put, text);
    expect_text(put, expected);
    expect_text(again, expected);
    free(put);
    free(again);
}

TEST(a_first_one_comes_last) {
    expect_put(NULL, "Energy: 5 J", "<joulemark 1: Energy: 5 J>");
    expect_put("", "Energy: 5 J", "<joulemark 1: Energy: 5 J>");
    expect_put("paid by A", "Energy: 5 J", "paid by A <joulemark 1: Energy: 5 J>");
}

TEST(what_others_wrote_stays) {
    expect_put("a <joulemark 1: old> <b>", "new", "a <joulemark 1: new> <b>");
    expect_put("<joulemark 12: of a later version>,b", "new", "<joulemark 1: new>,b");
}

TEST(what_only_looks_like_ours_stays) {
    expect_put("<joulemark 1: cut off", "new", "<joulemark 1: cut off <joulemark 1: new>");
    expect_put("<joulemark is good>", "new", "<joulemark is good> <joulemark 1: new>");
}

TEST(a_comment_of_before_there_were_segments_was_ours) {
    expect_put("Energy: not measured; missing: n1", "new", "<joulemark 1: new>");
    expect_put("Energy (estimated by model): 5 J", "new", "<joulemark 1: new>");
    expect_put("Energy drink", "new", "Energy drink <joulemark 1: new>");
}

TEST(its_ends_are_nowhere_in_it) {
    expect_put("b", "x > y < z", "b <joulemark 1: x ) y ( z>");
}

int main(void) {
    return test_all_in_folders();
}
