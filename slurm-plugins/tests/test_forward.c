// SPDX-License-Identifier: GPL-2.0-or-later
// The forwarder holds the broker's secrets, as the daemon does: nobody reads its memory, it and its
// children gain no rights. What it brings to a folder takes the place of nothing that tells more.
#include "bk_fixtures.h"
#include "forward.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { OTHER_USER = 65534 };

/* It stays only with the parent that started it; root may read everybody's memory. */
static pid_t start(void) {
    char config[300], daemon[16];
    int program = open(JM_DAEMON, O_RDONLY | O_CLOEXEC); /* another user may not reach its folder */
    snprintf(config, sizeof config, "%s/joulemark.yaml", test_folder);
    snprintf(daemon, sizeof daemon, "%d", (int)getpid());
    pid_t pid = fork();
    if (pid == 0) {
        char *arguments[] = {"joulemarkd", "--forward", daemon, "-N", "n1", "-c", config, NULL};
        char *environment[] = {"ASAN_OPTIONS=detect_leaks=0", NULL};
        if (geteuid() == 0 && (setgid(OTHER_USER) != 0 || setuid(OTHER_USER) != 0))
            _exit(99);
        fexecve(program, arguments, environment);
        _exit(98);
    }
    close(program);
    return pid;
}

static bool runs(pid_t pid) {
    char name[32];
    test_read(test_text("/proc/%d/comm", pid), name, sizeof name);
    return strcmp(name, "joulemark-fwd\n") == 0;
}

static void configure(void) {
    test_write("joulemark.yaml",
               test_text("cluster: test\nsocket: %s/s\nstate_dir: %s\nrecord_dir: %s/records\n"
                         "log_file: %s/log\n"
                         "instruments:\n- {type: model, idle_w: 40, full_w: 120}\n",
                         test_folder, test_folder, test_folder, test_folder));
}

TEST(its_memory_is_closed_and_it_gains_no_rights) {
    char status[4096];
    struct stat memory;
    configure();
    if (geteuid() == 0)
        expect_equal(chown(test_folder, OTHER_USER, OTHER_USER), 0);
    pid_t pid = start();
    for (int i = 0; i < 3000 && !runs(pid); i++)
        test_pause_ms(10);
    expect(runs(pid));
    /* The kernel gives what is not dumpable to root. */
    expect_equal(stat(test_text("/proc/%d/mem", pid), &memory), 0);
    expect_equal(memory.st_uid, 0);
    test_read(test_text("/proc/%d/status", pid), status, sizeof status);
    expect_part(status, "NoNewPrivs:\t1");
    kill(pid, SIGTERM);
    int ended = 0;
    expect(waitpid(pid, &ended, 0) == pid && WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
}

static void report(void *context, const char *message) {
    (void)context;
    fprintf(stderr, "%s\n", message);
}

static int coming[2]; /* signals, each as a wait begins; 0: none */

/* The forwarder's, here without an end of its own: what it does not hear it waits for. */
int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask) {
    int *next = coming[0] ? &coming[0] : &coming[1], number = *next;
    (void)timeout;
    *next = 0;
    raise(number);
    return (int)syscall(SYS_ppoll, fds, count, NULL, mask, _NSIG / 8);
}

TEST(a_signal_that_comes_just_before_it_waits_is_heard) {
    static jm_config config;
    struct stat log;
    int ended = 0;
    configure();
    expect_equal(jm_config_load(test_path("joulemark.yaml"), "n1", &config, report, NULL), 0);
    const pid_t daemon = getpid(), pid = fork();
    if (pid == 0) {
        coming[0] = SIGHUP, coming[1] = SIGTERM;
        _exit(jm_forward_run(&config, "n1", daemon));
    }
    pid_t done = 0;
    for (int i = 0; i < 6000 && done == 0; i++, test_pause_ms(10))
        done = waitpid(pid, &ended, WNOHANG);
    if (!expect(done == pid && WIFEXITED(ended) && WEXITSTATUS(ended) == 0) && done == 0)
        kill(pid, SIGKILL);
    expect_equal(stat(test_path("log"), &log), 0); /* as SIGHUP asks for */
    jm_config_free(&config);
}

enum { TEXT_MAX = 20000, SAMPLES = 1000 };

/* What a daemon tells of a job's run: its record, and its profile, which is longer than the parts
 * of it that say which run that is. */
static const char *record_of(int run, int end_ns) {
    return test_text("{\"missing\": null,\n \"accounts\": [{\"step\": \"job\", \"start_ns\": %d, "
                     "\"end_ns\": %d}]}\n",
                     run, end_ns);
}

static const char *profile_of(int run, int end_ns) {
    static char texts[2][TEXT_MAX];
    static int calls;
    char *text = texts[calls++ % 2];
    int length = snprintf(text, TEXT_MAX, "{\"schema\":1,\"start_ns\":%d}\n", run);
    for (int i = 0; i < SAMPLES; i++)
        length += snprintf(text + length, TEXT_MAX - (size_t)length, "{\"t\":%d}\n", i);
    snprintf(text + length, TEXT_MAX - (size_t)length, "{\"end\":%d,\"e\":[1]}\n", end_ns);
    return text;
}

static jm_forward make_forward(void) {
    static jm_config config;
    jm_forward forward = {.config = &config, .node = "n1"};
    jm_message why;
    jm_format(config.state_dir, sizeof config.state_dir, "%s", test_folder);
    jm_format(config.socket, sizeof config.socket, "%s/s", test_folder);
    jm_format(config.record_dir, sizeof config.record_dir, "%s/records", test_folder);
    jm_outbox_find(&config, &forward.outboxes);
    expect_equal(jm_outbox_make(&forward.outboxes, &why), 0);
    return forward;
}

static void arrive(int run, int end_ns) {
    jm_forward forward = make_forward();
    bool rest;
    test_write("outbox/c.7.n1.json", record_of(run, end_ns));
    test_write("outbox/profiles/c.7.n1.profile.jsonl", profile_of(run, end_ns));
    expect_equal(jm_forward_to_folder(&forward, &rest), 0);
    expect(!rest);
}

static void expect_file(const char *name, const char *wanted) {
    static char text[TEXT_MAX];
    test_read(test_path(name), text, sizeof text);
    expect(strcmp(text, wanted) == 0, "%s", name);
}

/* A ledger that a power failure threw back tells of the job's beginning alone. */
TEST(of_one_run_the_record_that_ends_later_stays_and_its_profile) {
    char said[4096];
    struct test_capture capture = test_capture(STDERR_FILENO);
    for (int end_ns = 5; end_ns >= 4; end_ns--)
        arrive(1, end_ns);
    test_captured(&capture, said, sizeof said);
    expect_file("records/c.7.n1.json", record_of(1, 5));
    expect_file("records/profiles/c.7.n1.profile.jsonl", profile_of(1, 5));
    FOR_TEXTS (name, "records/c.7.n1.json", "records/profiles/c.7.n1.profile.jsonl")
        expect_part(said, test_text("%s is later", test_path(name)));
    arrive(1, 6);
    expect_file("records/c.7.n1.json", record_of(1, 6));
    expect_file("records/profiles/c.7.n1.profile.jsonl", profile_of(1, 6));
    arrive(2, 3); /* another run; a job has one profile */
    expect_file("records/c.7.n1.json", record_of(1, 6));
    expect_file("records/c.7.n1.json.2", record_of(2, 3));
    expect_file("records/profiles/c.7.n1.profile.jsonl", profile_of(2, 3));
    arrive(1, 7); /* the earlier run's once more, late */
    expect_file("records/c.7.n1.json", record_of(1, 7));
    expect_file("records/c.7.n1.json.2", record_of(2, 3));
    expect_file("records/profiles/c.7.n1.profile.jsonl", profile_of(2, 3));
}

/* How many files are left; said: what the log was told. */
static int pass(jm_forward *forward, bool *rest, char said[4096]) {
    struct test_capture capture = test_capture(STDERR_FILENO);
    int left = jm_forward_to_folder(forward, rest);
    test_captured(&capture, said, 4096);
    return left;
}

static int lines_in(const char *text) {
    int lines = 0;
    for (; (text = strchr(text, '\n')); text++)
        lines++;
    return lines;
}

TEST(a_record_dir_that_is_away_is_said_once) {
    enum { FILES = 50 };
    char said[4096];
    bool rest;
    jm_forward forward = make_forward();
    test_write("records", "no folder");
    for (int job = 1; job <= FILES; job++)
        test_write(test_text("outbox/c.%d.n1.json", job), record_of(1, 5));
    expect_equal(pass(&forward, &rest, said), FILES);
    expect(rest);
    expect_equal(lines_in(said), 1, "%s", said);
    expect_part(said, "50 wait in the outbox");
    expect_equal(pass(&forward, &rest, said), FILES);
    expect_text(said, "");
    expect_equal(unlink(test_path("records")), 0);
    expect_equal(pass(&forward, &rest, said), 0);
    expect(!rest);
    expect_equal(lines_in(said), 1, "%s", said);
    expect_part(said, "takes all records again");
    expect_equal(pass(&forward, &rest, said), 0);
    expect_text(said, "");
}

TEST(profiles_that_cannot_be_placed_hold_up_no_record) {
    char said[4096];
    bool rest;
    jm_forward forward = make_forward();
    test_write("records/profiles", "no folder");
    test_write("outbox/profiles/c.1.n1.profile.jsonl", profile_of(1, 5));
    test_write("s.outbox/c.2.n1.json", record_of(1, 5));
    expect_equal(pass(&forward, &rest, said), 1);
    expect(!rest);
    expect_part(said, "profiles/c.1.n1.profile.jsonl: cannot be written");
    expect_file("records/c.2.n1.json", record_of(1, 5));
}

TEST(one_file_that_cannot_be_placed_holds_up_none) {
    char said[4096];
    bool rest;
    jm_forward forward = make_forward();
    test_write("records/c.1.n1.json/in", "the way");
    for (int job = 1; job <= 3; job++)
        test_write(test_text("outbox/c.%d.n1.json", job), record_of(1, 5));
    expect_equal(pass(&forward, &rest, said), 1);
    expect(!rest);
    expect_part(said, "c.1.n1.json: cannot be written");
    expect_part(said, "1 wait in the outbox");
    expect_file("records/c.2.n1.json", record_of(1, 5));
    expect_file("records/c.3.n1.json", record_of(1, 5));
    expect_equal(pass(&forward, &rest, said), 1);
    expect_text(said, "");
    test_write("records/c.4.n1.json/in", "the way");
    test_write("outbox/c.4.n1.json", record_of(1, 5));
    expect_equal(pass(&forward, &rest, said), 2);
    expect_part(said, "c.4.n1.json: cannot be written");
}

int main(void) {
    return test_all_in_folders();
}
