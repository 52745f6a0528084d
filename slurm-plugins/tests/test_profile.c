// SPDX-License-Identifier: GPL-2.0-or-later
// A profile's size: what it has when it nears the greatest one, and that it says so.
#include "profile.h"

#include "books.h"

#include <inttypes.h>
#include <sys/stat.h>

static const int64_t DAYS_NS = 7 * 86400 * INT64_C(1000000000), TENTH_NS = 100000000;
enum { LINE_MOST = 64 };
static jm_config config;
static jm_profiles *profiles;
static jm_account *job;

static void begin(void) {
    test_begin_folder();
    begin_node(2, 0);
    config = (jm_config){.period_s = 1, .profile_max_hz = 10, .profile_max_mib = 0.0625};
    jm_format(config.state_dir, sizeof config.state_dir, "%s", test_folder);
    job = open_step(7, "extern", 100, 2)->job;
    job->mode = JM_MODE_PROFILE;
    job->profile_hz = 10;
    job->uid = 1000;
    profiles = jm_profiles_new(&config, "n1");
}

static void end(void) {
    jm_profiles_free(profiles);
    end_books();
}

static const char *path(void) {
    return test_text("%s/profile.7.%" PRId64 ".jsonl", test_folder, job->opened_ns);
}

static int64_t size_of(const char *file) {
    struct stat status;
    expect_equal(stat(file, &status), 0, "%s", file);
    return status.st_size;
}

static void sample(int64_t from_ns, int64_t to_ns) {
    for (int64_t now_ns = from_ns; now_ns < to_ns; now_ns += TENTH_NS)
        jm_profiles_sample(profiles, &ledger, now_ns, now_ns);
}

TEST(seven_days_at_ten_hertz_stay_within_it) {
    const int64_t most = (int64_t)(config.profile_max_mib * 1024 * 1024);
    char line[256];
    int64_t before_ns = 0, at_ns, shortest_ns = INT64_MAX, longest_ns = 0;
    expect_equal(jm_profiles_period_ns(profiles, &ledger), TENTH_NS);
    sample(TENTH_NS, DAYS_NS);
    expect(jm_profile_is_coarse(profiles, job));
    expect_equal(jm_profiles_period_ns(profiles, &ledger), 0);
    int64_t size = size_of(path());
    expect(size < most + LINE_MOST && size >= most, "%" PRId64 " bytes", size);
    FILE *file = fopen(path(), "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "{\"t\":%" SCNd64, &at_ns) == 1) {
            int64_t apart_ns = at_ns - before_ns;
            shortest_ns = apart_ns < shortest_ns ? apart_ns : shortest_ns;
            longest_ns = apart_ns > longest_ns ? apart_ns : longest_ns;
            before_ns = at_ns;
        }
    fclose(file);
    expect_equal(shortest_ns, TENTH_NS);
    expect(longest_ns >= 54 * INT64_C(1000000000) && longest_ns <= 61 * INT64_C(1000000000));
}

TEST(marks_end_where_samples_are_coarse_and_are_counted) {
    const jm_mark mark = {.kind = JM_MARK_BEGIN, .path = "a region"};
    char told[64];
    sample(TENTH_NS, DAYS_NS / 700);
    expect(jm_profile_is_coarse(profiles, job));
    int64_t before = size_of(path());
    for (int i = 0; i < 3; i++)
        jm_profiles_mark(profiles, &ledger, job, &mark, 1, 1);
    sample(DAYS_NS / 70, DAYS_NS / 70 + 1);
    expect(size_of(path()) - before < 100);
    jm_message why;
    config.cluster[0] = 'c';
    job->closed_ns = DAYS_NS;
    expect_equal(jm_profiles_finish(profiles, &ledger, job, test_folder, &why), 0, "%s", why.text);
    char text[JM_PATH_MAX];
    jm_format(text, sizeof text, "tail -c 20 %s/profiles/c.7.n1.profile.jsonl", test_folder);
    FILE *tail = popen(text, "r");
    expect(tail && fgets(told, sizeof told, tail) != NULL);
    expect_text(told, "\"marks_left_out\":3}\n");
    pclose(tail);
}

TEST(a_later_daemon_knows_its_size) {
    sample(TENTH_NS, DAYS_NS / 700);
    jm_profiles_free(profiles);
    profiles = jm_profiles_new(&config, "n1");
    sample(DAYS_NS / 700, DAYS_NS / 700 + 1);
    expect(jm_profile_is_coarse(profiles, job));
}

int main(void) {
    return expect_each(begin, end);
}
