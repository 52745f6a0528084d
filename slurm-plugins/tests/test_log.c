// SPDX-License-Identifier: GPL-2.0-or-later
// The log is several threads' (a gateway's journal and its main loop): lines stay whole, and none
// is lost where the file is opened anew.
#include "bk_fixtures.h"
#include "log.h"

#include <pthread.h>

enum { THREADS = 3, LINES = 20000, OPENED = 400 };

static void *tell(void *first) {
    for (int i = 0; i < LINES; i++)
        jm_info("line %d", *(const int *)first + i);
    return NULL;
}

/* As logrotate does it, while others write. */
static void rotate(int number) {
    expect_equal(rename(test_path("log"), test_text("%s/log.%d", test_folder, number)), 0);
    expect_equal(jm_log_open(test_path("log")), 0);
}

static void count_lines(const char *path, char seen[THREADS * LINES]) {
    char line[256], when[64];
    int number, end;
    FILE *log = fopen(path, "r");
    while (log && fgets(line, sizeof line, log)) {
        bool whole = sscanf(line, "%63s info: line %d%n", when, &number, &end) == 2 &&
                     strcmp(line + end, "\n") == 0 && number >= 0 && number < THREADS * LINES;
        if (expect(whole, "%s: %s", path, line))
            seen[number]++;
    }
    if (log)
        fclose(log);
}

TEST(no_line_is_lost_or_torn_where_the_file_is_opened_anew) {
    static char seen[THREADS * LINES];
    pthread_t threads[THREADS];
    int first[THREADS];
    expect_equal(jm_log_open(test_path("log")), 0);
    for (int i = 0; i < THREADS; i++) {
        first[i] = i * LINES;
        expect_equal(pthread_create(&threads[i], NULL, tell, &first[i]), 0);
    }
    for (int i = 0; i < OPENED; i++)
        rotate(i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < OPENED; i++)
        count_lines(test_text("%s/log.%d", test_folder, i), seen);
    count_lines(test_path("log"), seen);
    int missing = 0;
    for (int i = 0; i < THREADS * LINES; i++)
        missing += seen[i] != 1;
    expect_equal(missing, 0);
}

int main(void) {
    return test_all_in_folders();
}
