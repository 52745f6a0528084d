// SPDX-License-Identifier: GPL-2.0-or-later
// Our part of a job's AdminComment, which other tools write too: `<joulemark 1: TEXT>`. 1 is the
// version of TEXT, `Energy: 5210.4 J +- 61.2 J (k=2), ...`; neither `<` nor `>` is in it.
// joulemark/accounting/comment.py writes and reads TEXT.
#ifndef JOULEMARK_SEGMENT_H
#define JOULEMARK_SEGMENT_H

/*
 * comment with TEXT in our segment, of whatever version it was, or in a new one at its end; all
 * else is kept. comment: NULL is as "". The caller frees it; NULL: out of memory.
 */
char *jm_segment_put(const char *comment, const char *text);

#endif
