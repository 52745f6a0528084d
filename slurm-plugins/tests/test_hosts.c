// SPDX-License-Identifier: GPL-2.0-or-later
// Tests of config/hosts.c: Slurm's host lists, and what is none.
#include "hosts.h"

#include "bk_expect.h"

static void lists(const char *list, const char *names) {
    char all[512] = "", name[64];
    int count = jm_hosts_count(list);
    for (int i = 0; i < count; i++) {
        expect(jm_hosts_get(list, i, name, sizeof name));
        size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "%s%s", used ? " " : "", name);
    }
    expect_text(all, names, "of %s", list);
    expect(!jm_hosts_get(list, count, name, sizeof name));
    expect(!jm_hosts_get(list, -1, name, sizeof name));
}

TEST(test_lists_name_what_slurm_says) {
    lists("n1", "n1");
    lists("n1,gpu4", "n1 gpu4");
    lists("n[1-3]", "n1 n2 n3");
    lists("n[001-003,07],x", "n001 n002 n003 n07 x");
    lists("n[9-11]", "n9 n10 n11");
    lists("n[09-11]", "n09 n10 n11");
    lists("r[1-2]n[1-2]", "r1n1 r1n2 r2n1 r2n2");
    lists("[1-3]", "1 2 3");
    lists("1.3.6.[5,7].0", "1.3.6.5.0 1.3.6.7.0");
}

TEST(test_what_is_no_list) {
    FOR_TEXTS (wrong, "", ",", "n1,", ",n1", "n1,,n2", "n[", "n]", "n[]", "n[1", "n[1-]", "n[-1]",
               "n[2-1]", "n[a-b]", "n[1,]", "n[1-2]]", "n[[1]]", "n[1]]x[2]", "n[1 - 2]",
               "n[1-100001]", "n[0-9999999999]", "[1-1000][1-1000]")
        expect_equal(jm_hosts_count(wrong), -1, "'%s'", wrong);
}

TEST(test_a_long_list_is_quick) {
    char name[64];
    expect_equal(jm_hosts_count("n[00001-99999]"), 99999);
    expect(jm_hosts_get("n[00001-99999]", 99998, name, sizeof name));
    expect_text(name, "n99999");
}

TEST(test_a_name_that_does_not_fit_is_refused) {
    char name[4];
    expect(!jm_hosts_get("node[1-9]", 3, name, sizeof name));
}

int main(void) {
    return expect_all();
}
