// SPDX-License-Identifier: GPL-2.0-or-later
// The daemon's socket, asked by hand.
#include "node.h"
#include "protocol.h"
#include "server.h"

#include <pthread.h>
#include <sys/time.h>

static jm_listeners listeners;
static pthread_t thread;
static bool serving;

static void *serve(void *unused) {
    (void)unused;
    expect_equal(jm_server_run(&node, &listeners), 0);
    return NULL;
}

static void begin(void) {
    jm_message why;
    sigset_t ending;
    test_begin_folder();
    test_write_all("hwmon/hwmon0", "name board", "power1_input 1000000000");
    start_first_daemon(3600, test_text("- {type: hwmon, root: %s/hwmon}\n", test_folder));
    expect_equal(jm_server_listen(&node, &listeners, &why), 0);
    sigemptyset(&ending); /* the server hears of it by a descriptor */
    sigaddset(&ending, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ending, NULL);
    serving = expect_equal(pthread_create(&thread, NULL, serve, NULL), 0);
}

/* Before the node is looked into: it is the server's as long as that runs. */
static void stop_serving(void) {
    if (!serving)
        return;
    kill(getpid(), SIGTERM);
    pthread_join(thread, NULL);
    serving = false;
}

static void end(void) {
    stop_serving();
    end_daemon();
}

static int dial(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval patience = {.tv_sec = 60};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    expect(jm_format(address.sun_path, sizeof address.sun_path, "%s", node.config.socket));
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    expect_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

/* "": no answer came. */
static void ask(int fd, const char *request, char answer[JM_PACKET_MAX]) {
    expect_equal(send(fd, request, strlen(request), 0), (ssize_t)strlen(request), "%s", request);
    ssize_t length = recv(fd, answer, JM_PACKET_MAX - 1, 0);
    answer[length > 0 ? length : 0] = '\0';
}

/* Who sends one is told so, whatever is in it. */
TEST(what_is_no_packet_is_answered_whatever_it_says) {
    char answer[JM_PACKET_MAX];
    int fd = dial();
    ask(fd, "status", answer);
    expect_part(answer, "ok version=");
    FOR_TEXTS (request, "x quiet=1 rest", "x quiet=1 a=%zz", "%zz quiet=1") {
        ask(fd, request, answer);
        expect_part(answer, "error text=not%20a%20packet");
    }
    close(fd);
}

/* Privileged, as this process is: what it asks comes from Slurm. */
TEST(plugins_of_another_release_are_understood_and_told_of) {
    char answer[JM_PACKET_MAX];
    int fd = dial();
    ask(fd, "status speaks=" JOULEMARK_VERSION ":1-2", answer);
    expect_part(answer, " protocol=1-2 mixed= speaks=" JOULEMARK_VERSION ":1-2");
    ask(fd, "marks", answer); /* of a program that was linked before */
    ask(fd, "node speaks=" JOULEMARK_VERSION ":1-2", answer);
    ask(fd, "status", answer);
    expect_part(answer, " mixed=");
    expect(!strstr(answer, "mixed=joulemark") && !strstr(answer, "speaks="));
    ask(fd, "node", answer);
    expect_part(answer, "ok energy_uj=");
    ask(fd, "status", answer);
    expect_part(answer,
                " mixed=joulemark%20of%20an%20earlier%20release,%20protocol%201,%20asked%20");
    ask(fd, "node speaks=9.9.9:2-8", answer);
    expect_part(answer, "ok energy_uj=");
    ask(fd, "status", answer);
    expect_part(answer, " mixed=joulemark%209.9.9,%20protocol%202-8,%20asked%20");
    close(fd);
}

TEST(plugins_with_no_word_in_common_are_refused_and_named) {
    char answer[JM_PACKET_MAX];
    int fd = dial();
    ask(fd, "open job=7 step=0 speaks=9.9.9:7-8", answer);
    expect_part(answer, "error text=joulemark%209.9.9,%20protocol%207-8:%20this%20is%20joulemark");
    ask(fd, "books channel=0 speaks=9.9.9:2-8", answer);
    expect_part(answer, "ok name=");
    ask(fd, "status", answer);
    expect_part(answer, " accounts=0 ");
    ask(fd, "spell speaks=9.9.9:2-8", answer);
    expect_part(answer, "error text=unknown%20request:%20joulemarkd%20" JOULEMARK_VERSION);
    close(fd);
}

/* How many descriptors came with the answer to a request. */
static int descriptors_of(int fd, const char *request) {
    char text[JM_PACKET_MAX], control[CMSG_SPACE(8 * sizeof(int))];
    struct iovec data = {text, sizeof text};
    struct msghdr answer = {.msg_iov = &data,
                            .msg_iovlen = 1,
                            .msg_control = control,
                            .msg_controllen = sizeof control};
    expect_equal(send(fd, request, strlen(request), 0), (ssize_t)strlen(request), "%s", request);
    expect(recvmsg(fd, &answer, MSG_CMSG_CLOEXEC) > 0);
    const struct cmsghdr *rights = CMSG_FIRSTHDR(&answer);
    return rights ? (int)((rights->cmsg_len - CMSG_LEN(0)) / sizeof(int)) : 0;
}

/* Of who asked for it, and wants no answer, too. */
TEST(a_ring_goes_to_nobody_else) {
    char answer[JM_PACKET_MAX], request[JM_PACKET_MAX];
    int fd = dial(), quiet = dial(), other = dial();
    snprintf(request, sizeof request, "open job=7 step=0 uid=%u job_cpus=4 step_cpus=4", getuid());
    ask(fd, request, answer);
    expect_text(answer, "ok");
    expect_equal(send(quiet, "marks quiet=1", 13, 0), 13);
    expect_equal(descriptors_of(quiet, "status"), 0);
    expect_equal(descriptors_of(other, "status"), 0);
    expect_equal(descriptors_of(fd, "marks"), 2);
    expect_equal(descriptors_of(other, "status"), 0);
    close(fd);
    close(quiet);
    close(other);
}

static uint64_t number_in(const char *answer, const char *key) {
    jm_packet packet;
    char text[JM_PACKET_MAX];
    snprintf(text, sizeof text, "%s", answer);
    expect(jm_packet_parse(text, strlen(text), &packet), "%s", answer);
    return jm_packet_u64(&packet, key, 0);
}

/* Slurm keeps the first answer: the later ones came too late for it, and it says so. */
TEST(a_step_falls_back_on_the_answer_that_was_heard) {
    char answer[JM_PACKET_MAX], request[JM_PACKET_MAX];
    int fd = dial();
    ask(fd, "open job=7 step=0 job_cpus=4 step_cpus=4", answer);
    expect_text(answer, "ok");
    ask(fd, "read heard_ns=0", answer);
    uint64_t heard_uj = number_in(answer, "energy_uj"), heard_ns = number_in(answer, "told_ns");
    for (int late = 0; late < 2; late++) {
        usleep(20000);
        snprintf(request, sizeof request, "read heard_ns=%" PRIu64, heard_ns);
        ask(fd, request, answer);
        ask(fd, "read scope=step", answer); /* for a summary: it is none of Slurm's */
    }
    expect(number_in(answer, "energy_uj") > heard_uj);
    ask(fd, "close", answer); /* SPANK's, which knows of no answer */
    expect_text(answer, "ok");
    ask(fd, "read scope=step", answer);
    expect(number_in(answer, "energy_uj") > heard_uj);
    snprintf(request, sizeof request, "close missed=1 heard_ns=%" PRIu64, heard_ns);
    ask(fd, request, answer);
    expect_text(answer, "ok");
    ask(fd, "read", answer);
    expect_equal(number_in(answer, "energy_uj"), heard_uj);
    const char *gap = strstr(answer, "gap_s=");
    expect(gap && atof(gap + strlen("gap_s=")) >= 0.04, "%s", answer);
    close(fd);
}

/* As fast as one can, while ticks come as fast as they can. */
TEST(a_user_is_shown_no_ticks_closer_than_a_profiles) {
    const int64_t rest_ns = 100000000; /* profile_max_hz is 10 */
    char answer[JM_PACKET_MAX], request[JM_PACKET_MAX], first[JM_PACKET_MAX];
    int fd = dial(), shown = 0;
    snprintf(request, sizeof request, "open job=7 step=0 uid=%u job_cpus=4 step_cpus=4", getuid());
    ask(fd, request, answer);
    expect_text(answer, "ok");
    ask(fd, "job_energy", first);
    expect_part(first, "ok node=n1 job=7 time_ns=");
    expect_part(first, " max_hz=10.000000 ");
    usleep(300000);
    ask(fd, "job_energy", answer); /* it makes no tick itself */
    expect_text(answer, first);
    int64_t last_ns = (int64_t)number_in(first, "time_ns");
    while (shown < 5) {
        ask(fd, "read scope=job", answer);
        uint64_t most_uj = number_in(answer, "energy_uj");
        ask(fd, "job_energy", answer);
        int64_t time_ns = (int64_t)number_in(answer, "time_ns");
        expect(number_in(answer, "energy_uj") <= most_uj);
        expect(time_ns == last_ns || time_ns >= last_ns + rest_ns, "%s", answer);
        shown += time_ns != last_ns;
        last_ns = time_ns;
    }
    expect(number_in(answer, "energy_uj") > number_in(first, "energy_uj"));
    close(fd);
}

TEST(a_node_has_what_jobs_are_charged_and_the_rest) {
    char answer[JM_PACKET_MAX];
    int fd = dial();
    ask(fd, "open job=7 step=0 job_cpus=2 step_cpus=2", answer);
    usleep(300000);
    ask(fd, "read scope=job", answer);
    uint64_t job_uj = number_in(answer, "energy_uj");
    ask(fd, "node_energy", answer);
    expect_part(answer, "ok node=n1 time_ns=");
    expect_equal(number_in(answer, "jobs"), 1);
    expect_equal(number_in(answer, "charged_uj"), job_uj);
    expect_equal(number_in(answer, "energy_uj"), job_uj + number_in(answer, "unallocated_uj"));
    expect(job_uj > 0 && number_in(answer, "unallocated_uj") > 0, "%s", answer);
    ask(fd, "job_energy", answer); /* its user was not told, so it is nobody's to ask for */
    expect_part(answer, "error text=this%20process%20belongs%20to%20no%20job");
    close(fd);
}

/* A sensor of power tells of what lies between its periods by being read at the marks. */
TEST(a_region_costs_what_sensors_show_at_its_marks) {
    char answer[JM_PACKET_MAX], request[JM_PACKET_MAX];
    int fd = dial();
    snprintf(request, sizeof request, "open job=7 step=0 uid=%u job_cpus=4 step_cpus=4", getuid());
    ask(fd, request, answer);
    expect_text(answer, "ok");
    usleep(500000); /* nobody asks, and its second value is there */
    test_write("hwmon/hwmon0/power1_input", "3000000000\n");
    ask(fd, "region_begin name=solve", answer);
    expect_text(answer, "ok");
    usleep(100000);
    ask(fd, "region_end name=solve", answer);
    expect(number_in(answer, "energy_uj") >= 250000000, "%s", answer);
    close(fd);
}

/* Its steps may have come while the daemon could not be asked, and who asks now may be killed. */
TEST(the_end_of_a_job_without_an_account_is_its_record) {
    char answer[JM_PACKET_MAX], record[JM_PACKET_MAX] = "";
    int fd = dial();
    ask(fd, "end job=9 uid=1000", answer);
    expect_text(answer, "ok");
    const char *path = test_text("%s/test.9.n1.json", node.outboxes.path[0]);
    while (access(path, F_OK) != 0) /* after the answer, for the epilog holds up the node */
        usleep(1000);
    test_read(path, record, sizeof record);
    expect_part(record, "\"uid\": 1000,");
    expect_part(record, "\"missing\": \"no account of job 9 is open here\"");
    close(fd);
}

TEST(slurmd_tells_the_nodes_cores) {
    char answer[JM_PACKET_MAX];
    int fd = dial();
    ask(fd, "node cores=2", answer);
    expect_part(answer, "ok energy_uj=");
    ask(fd, "node", answer); /* who does not know takes nothing back */
    close(fd);
    stop_serving();
    expect_equal(node.ledger.cpus, 2);
}

/* Neither root nor anybody else until somebody says who. */
TEST(who_is_not_named_is_not_known) {
    char answer[JM_PACKET_MAX];
    int fd = dial();
    ask(fd, "open job=7 step=0", answer);
    expect_text(answer, "ok");
    close(fd);
    stop_serving();
    const jm_account *job = jm_ledger_find_job(&node.ledger, 7);
    expect(job && job->uid == JM_UID_UNKNOWN);
}

int main(int argc, char **argv) {
    (void)argv;
    return all_with_daemon(argc, begin, end);
}
