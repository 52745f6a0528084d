// Words that each node of an MPI job tells, as one line for all.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "words.h"

#include "team.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool has_word(const char *words, const char *word) {
    const size_t length = strlen(word);
    for (const char *at = words; (at = strstr(at, word)) != NULL; at += length)
        if ((at == words || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

// The first of the words that is not among `seen`; false: there is none.
static bool next_word(const char *words, const char *seen, char word[BK_WORDS_MAX]) {
    for (const char *at = words; *(at += strspn(at, " ")) != '\0'; at += strcspn(at, " ")) {
        snprintf(word, BK_WORDS_MAX, "%.*s", (int)strcspn(at, " "), at);
        if (!has_word(seen, word))
            return true;
    }
    return false;
}

static bool append(char words[BK_WORDS_MAX], const char *word, const char *behind) {
    const size_t used = strlen(words), room = BK_WORDS_MAX - used;
    const int length = snprintf(words + used, room, "%s%s%s", used == 0 ? "" : " ", word, behind);
    return (size_t)length < room;
}

// One rank's word for all ranks: that of the first one that has a word which nobody told yet.
static bool agree_on_word(const char *own, const char *seen, char word[BK_WORDS_MAX]) {
    const bool more = next_word(own, seen, word);
    const double first = -bk_team_maximum(more ? -(double)bk_rank() : -(double)INFINITY);
    if (isinf(first))
        return false;
    bk_team_broadcast(word, BK_WORDS_MAX, (unsigned)first);
    return true;
}

void bk_gather_words(const char *own, char all[BK_WORDS_MAX]) {
    snprintf(all, BK_WORDS_MAX, "%s", own);
    if (bk_ranks() == 1)
        return;
    const bool counts = bk_team()->first_on_node;
    bk_team_broadcast(all, BK_WORDS_MAX, 0);
    if (bk_team_maximum(counts && strcmp(own, all) != 0) == 0)
        return;
    own = counts ? own : "";
    const double nodes = bk_team_sum(counts);
    char seen[BK_WORDS_MAX] = "", word[BK_WORDS_MAX], behind[32];
    all[0] = '\0';
    while (agree_on_word(own, seen, word)) {
        const double told = bk_team_sum(has_word(own, word));
        snprintf(behind, sizeof behind, "(%.0f/%.0f)", told, nodes);
        if (!append(seen, word, "") || !append(all, word, told < nodes ? behind : "")) {
            all[0] = '\0';
            return;
        }
    }
}
