// SPDX-License-Identifier: GPL-2.0-or-later
// A job whose record went out while the ledger could not be saved: no later daemon charges it or
// records it again. A model draws the power, another process's lock stands for the full disk.
#include "node.h"
#include "unsaved.h"

#include <sqlite3.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/syscall.h>

enum { RECORD_MAX = 65536, OTHER_USER = 65534 };
static char record_file[320], socket_file[300], list_file[320];
static sqlite3 *other; /* holds the ledger's lock */

static void begin(void) {
    begin_daemon();
    snprintf(record_file, sizeof record_file, "%s/outbox/test.7.n1.json", test_folder);
    snprintf(socket_file, sizeof socket_file, "%s/s", test_folder);
    snprintf(list_file, sizeof list_file, "%s.unsaved", socket_file);
}

static void lock(void) {
    expect_equal(sqlite3_open(test_path("ledger.sqlite"), &other), SQLITE_OK);
    expect_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
}

static void unlock(void) {
    expect_equal(sqlite3_close(other), SQLITE_OK);
}

/* A job of a child of ours: the child, and its account. */
static pid_t open_as(uint32_t job_id, jm_account **job) {
    pid_t pid = live(NULL);
    jm_message why;
    jm_open_request request = {
        .job_id = job_id, .step = "extern", .pid = pid, .pid_start = start_of(pid), .job_cpus = 4};
    jm_account *step = jm_daemon_open_account(&node, &request, jm_boot_ns(), &why);
    if (!step)
        test_die(why.text);
    *job = step->job;
    return pid;
}

static pid_t open_job(jm_account **job) {
    return open_as(7, job);
}

static void end_job(void) {
    jm_message why;
    expect_equal(jm_daemon_end_job(&node, 7, jm_boot_ns(), &why), 0);
    jm_daemon_write_due_records(&node);
    expect(jm_ledger_find_job(&node.ledger, 7) == NULL);
}

/* As the forwarder does once it has arrived. */
static void deliver(char text[RECORD_MAX]) {
    test_read(record_file, text, RECORD_MAX);
    expect_part(text, "\"JobIDRaw\": 7");
    expect_equal(unlink(record_file), 0);
}

/* A second of it is saved, then nothing any more: its record says all of it, the ledger a part. */
static void end_a_job_while_nothing_is_saved(void) {
    jm_account *job;
    pid_t pid = open_job(&job);
    pass_and_tick(SECOND);
    lock();
    for (int i = 0; i < 9; i++)
        pass_and_tick(SECOND);
    expect(job->balance[0].energy_uj >= 10 * 40 * UINT64_C(1000000));
    end_job();
    die(pid);
}

/* What it saves at its end fails too while the ledger is locked: it ends as if it were killed. */
static void start_again(void) {
    stop_daemon();
    unlock();
    start_daemon();
}

/* In no later daemon. */
static void expect_gone(void) {
    static char text[RECORD_MAX];
    for (int again = 0; again < 2; again++) {
        expect_equal(node.ledger.n_accounts, 0);
        jm_daemon_write_due_records(&node);
        test_read(record_file, text, sizeof text);
        expect_text(text, "");
        check_books();
        pass_and_tick(SECOND);
        stop_daemon();
        start_daemon();
    }
}

TEST(a_job_whose_record_was_delivered_comes_back_in_no_later_daemon) {
    static char text[RECORD_MAX];
    end_a_job_while_nothing_is_saved();
    deliver(text);
    start_again();
    expect_gone();
}

static void (*at_record)(void); /* called as a record is put on disk */

int fsync(int fd) {
    static char link[64], path[512];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length > 0 ? length : 0] = '\0';
    if (at_record && strstr(path, ".test.7.n1.") && strstr(path, ".tmp"))
        at_record();
    return (int)syscall(SYS_fsync, fd);
}

/* After it was saved how the job ended, and before that it is recorded. */
TEST(nor_does_one_whose_disk_filled_as_it_was_recorded) {
    static char text[RECORD_MAX];
    jm_account *job;
    pid_t pid = open_job(&job);
    pass_and_tick(SECOND);
    at_record = lock;
    end_job();
    at_record = NULL;
    die(pid);
    expect(node.store_fault.text[0] != '\0');
    deliver(text);
    start_again();
    expect_gone();
}

/* Nor is a record that waits replaced by what an older ledger knew of the job; not even where the
 * list of such jobs did not survive. */
static void expect_to_stand(bool listed) {
    static char before[RECORD_MAX], after[RECORD_MAX];
    end_a_job_while_nothing_is_saved();
    test_read(record_file, before, sizeof before);
    expect_part(before, "\"JobIDRaw\": 7");
    stop_daemon();
    if (!listed)
        expect_equal(unlink(list_file), 0);
    unlock();
    start_daemon();
    jm_daemon_write_due_records(&node);
    test_read(record_file, after, sizeof after);
    expect_text(after, before);
    expect_equal(node.ledger.n_accounts, 0);
    check_books();
}

TEST(a_record_that_waits_is_not_replaced_by_an_older_one) {
    expect_to_stand(true);
}

TEST(nor_is_it_where_the_list_did_not_survive) {
    expect_to_stand(false);
}

/* Its next run is another job. */
TEST(a_requeued_job_is_not_taken_for_its_earlier_run) {
    jm_account *job;
    pid_t first = open_job(&job);
    pass_and_tick(SECOND);
    end_job();
    die(first);
    test_pause_ms(20); /* a process's start is known to 10 ms, and the job had its end before it */
    pid_t second = open_job(&job);
    int64_t opened_ns = job->opened_ns;
    pass_and_tick(SECOND);
    stop_daemon();
    start_daemon();
    job = jm_ledger_find_job(&node.ledger, 7);
    expect(job && job->opened_ns == opened_ns && job->closed_ns == 0);
    die(second);
}

/* A next daemon finds the job's run in the list, and up to when it holds. */
static bool is_listed(uint32_t job_id, int64_t opened_ns) {
    jm_unsaved left = jm_unsaved_read(socket_file);
    bool found = jm_unsaved_has(&left, job_id, opened_ns);
    jm_unsaved_free(&left);
    return found;
}

static int64_t listed_until_ns(void) {
    jm_unsaved left = jm_unsaved_read(socket_file);
    int64_t until_ns = left.until_ns;
    jm_unsaved_free(&left);
    return until_ns;
}

/* Nothing is left of it beside the socket. */
TEST(what_is_saved_again_needs_no_list) {
    struct stat file;
    end_a_job_while_nothing_is_saved();
    expect_equal(stat(list_file, &file), 0);
    unlock();
    pass_and_tick(SECOND);
    expect(stat(list_file, &file) != 0);
    expect_equal(listed_until_ns(), 0);
    check_books();
}

/* However many jobs the saved ledger has. */
TEST(a_start_opens_the_list_once) {
    _Alignas(struct inotify_event) char events[4096];
    jm_account *job;
    pid_t one = open_as(7, &job), another = open_as(8, &job);
    stop_daemon();
    test_write("s.unsaved", test_text("%020d\n", 42));
    expect_equal(chmod(list_file, 0640), 0); /* whatever the umask */
    int watch = inotify_init1(IN_NONBLOCK), opened = 0;
    expect(inotify_add_watch(watch, list_file, IN_OPEN | IN_CLOSE) >= 0);
    start_daemon();
    expect_equal(node.ledger.n_accounts, 4);
    ssize_t length = read(watch, events, sizeof events);
    for (ssize_t i = 0; i < length; i += (ssize_t)sizeof(struct inotify_event))
        opened += ((const struct inotify_event *)(events + i))->mask == IN_OPEN;
    expect_equal(opened, 1);
    close(watch);
    die(one);
    die(another);
}

/* Files may grow to so many bytes, as on a disk that is nearly full. */
static int record_within(rlim_t bytes, uint32_t job_id, jm_message *why) {
    struct rlimit before, limit;
    expect_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = (struct rlimit){bytes, before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    int status = jm_unsaved_recorded(socket_file, job_id, 1234567, why);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, SIG_DFL);
    return status;
}

TEST(half_a_line_joins_no_next_one) {
    jm_message why;
    struct stat file;
    expect_equal(jm_unsaved_mark(socket_file, 42, &why), 0);
    expect_equal(jm_unsaved_recorded(socket_file, 7, 1234567, &why), 0);
    expect_equal(stat(list_file, &file), 0);
    errno = EPERM;
    expect_equal(record_within((rlim_t)file.st_size + 5, 8, &why), -1);
    expect_part(why.text, "No space left on device");
    expect_equal(jm_unsaved_recorded(socket_file, 9, 1234567, &why), 0);
    expect_equal(listed_until_ns(), 42);
    expect(is_listed(7, 1234567) && is_listed(9, 1234567));
    expect(!is_listed(8, 1234567));
}

/* Whoever can write beside the socket holds up no start, and settles no job of others. */
TEST(what_another_user_planted_is_not_read) {
    static char list[256], said[4096];
    jm_message why;
    jm_account *job;
    pid_t pid = open_job(&job);
    pass_and_tick(SECOND);
    snprintf(list, sizeof list, "%020d\n7 %" PRId64 "\n", 42, job->opened_ns);
    test_write("s.unsaved", list);
    expect_equal(chmod(list_file, 0640), 0); /* whatever the umask */
    expect(is_listed(7, job->opened_ns));
    expect_equal(chmod(list_file, 0666), 0);
    struct test_capture capture = test_capture(STDERR_FILENO);
    expect(!is_listed(7, job->opened_ns));
    test_captured(&capture, said, sizeof said);
    expect_part(said, list_file);
    expect_part(said, "give it to that user, mode 640, or remove it");
    expect(listed_until_ns() == 0 && jm_unsaved_mark(socket_file, 43, &why) != 0);
    expect_equal(rename(list_file, test_path("list")), 0);
    expect_equal(chmod(test_path("list"), 0600), 0);
    expect_equal(symlink("list", list_file), 0);
    expect(!is_listed(7, job->opened_ns));
    expect_equal(unlink(list_file), 0);
    expect_equal(mkfifo(list_file, 0600), 0);
    expect(jm_unsaved_mark(socket_file, 43, &why) != 0);
    expect_equal(mkfifo(test_path("s.outbox/test.7.n1.json"), 0600), 0);
    stop_daemon();
    start_daemon();
    expect(jm_ledger_find_job(&node.ledger, 7) != NULL);
    die(pid);
}

/* A daemon that is root now and was SlurmUser goes on with what it left, where SlurmUser alone
 * could put it. */
TEST(root_reads_what_the_folders_owner_left) {
    jm_message why;
    if (geteuid() != 0)
        return;
    test_write("s.unsaved", test_text("%020d\n7 1234567\n", 42));
    test_write("outbox/record", "");
    FOR_TEXTS (name, "s.unsaved", "outbox", "outbox/record")
        expect_equal(chown(test_path(name), OTHER_USER, OTHER_USER), 0);
    expect_equal(chmod(list_file, 0640), 0);
    for (int own = 0; own <= 1; own++)
        for (int open = 0; open <= 1; open++) {
            bool trusted = own && !open;
            expect_equal(chown(test_folder, own ? OTHER_USER : 0, 0), 0);
            expect_equal(chmod(test_folder, open ? 0777 : 0755), 0);
            expect_equal(is_listed(7, 1234567), trusted);
            expect_equal(jm_unsaved_mark(socket_file, 42, &why) == 0, trusted);
            int fd = jm_outbox_open(test_path("outbox"), "record");
            expect_equal(fd >= 0, trusted);
            close(fd);
        }
}

int main(int argc, char **argv) {
    (void)argv;
    return all_with_daemon(argc, begin, end_daemon);
}
