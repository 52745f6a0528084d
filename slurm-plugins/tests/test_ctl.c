// SPDX-License-Identifier: GPL-2.0-or-later
// joulemarkctl around a command: its exit status is the command's own, or says that it was not run;
// and which node it asks.
#include "bk_fixtures.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

static void nothing(void) {
}

static void ignore_children(void) {
    signal(SIGCHLD, SIG_IGN);
}

/* Root has no limit. */
static void forbid_processes(void) {
    const struct rlimit none = {0};
    if (geteuid() == 0 && setuid(65534) != 0)
        _exit(99);
    setrlimit(RLIMIT_NPROC, &none);
}

/* joulemarkctl region x -- COMMAND, without a daemon, after the child's preparation. */
static int region(const char *command, void (*prepare)(void)) {
    int program = open(JM_CTL, O_RDONLY | O_CLOEXEC); /* another user may not reach its folder */
    pid_t pid = fork();
    if (pid == 0) {
        char *arguments[] = {"joulemarkctl", "region", "x", "--", (char *)command, NULL};
        /* The leak detector starts a process, too. */
        char *environment[] = {"PATH=/usr/bin:/bin", "JOULEMARK_SOCKET=/nowhere",
                               "ASAN_OPTIONS=detect_leaks=0", NULL};
        prepare();
        fexecve(program, arguments, environment);
        _exit(98);
    }
    int status = 0;
    expect(program >= 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    close(program);
    return WEXITSTATUS(status);
}

TEST(its_status_is_the_commands) {
    expect_equal(region("true", nothing), 0);
    expect_equal(region("false", nothing), 1);
    expect_equal(region("no-such-command", nothing), 127);
}

TEST(a_caller_that_ignores_children_learns_it_too) {
    expect_equal(region("true", ignore_children), 0);
    expect_equal(region("false", ignore_children), 1);
}

TEST(a_command_that_cannot_be_started_has_not_succeeded) {
    expect_equal(region("true", forbid_processes), 1);
}

/* What it prints and says, of a host that is a node of another name, where no daemon answers. */
static const char *said_of(const char *words) {
    static char text[1024];
    test_write("joulemark.yaml", "cluster: c\nsocket: /nowhere/%n.sock\n");
    const char *command =
        test_text("env -u JOULEMARK_SOCKET -u SLURMD_NODENAME JOULEMARK_CONFIG=%s %s 2>&1",
                  test_path("joulemark.yaml"), words);
    FILE *output = popen(command, "r");
    if (!output)
        test_die(command);
    text[fread(text, 1, sizeof text - 1, output)] = '\0';
    pclose(output);
    return text;
}

TEST(the_node_may_be_named_in_full) {
    expect_text(said_of(JM_CTL " --node n7 config socket"), "/nowhere/n7.sock\n");
    expect_text(said_of(JM_CTL " --node=n7 config socket"), "/nowhere/n7.sock\n");
    expect_text(said_of(JM_CTL " -N n7 config socket"), "/nowhere/n7.sock\n");
}

TEST(who_was_not_told_a_node_says_which_it_took) {
    static const char fix[] =
        "', this host's name, was taken for the node's: if the node is another, "
        "name it with --node NODE\n";
    expect(strstr(said_of(JM_CTL " status"), fix));
    expect(strstr(said_of(JM_CTL " books"), fix));
    const char *named = said_of(JM_CTL " --node n7 status");
    expect(strstr(named, "/nowhere/n7.sock") && !strstr(named, fix));
    expect(!strstr(said_of("SLURMD_NODENAME=n7 " JM_CTL " status"), fix));
    expect(!strstr(said_of("JOULEMARK_SOCKET=/nowhere/s " JM_CTL " status"), fix));
}

/* Where a test's daemon is asked. */
static int listen_at(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    expect_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    expect_equal(listen(listener, 1), 0);
    return listener;
}

TEST(a_busy_daemon_is_waited_for) {
    const char *path = test_path("s");
    int listener = listen_at(path);
    pid_t daemon = fork();
    if (daemon == 0) {
        char request[256];
        int fd = accept(listener, NULL, NULL);
        ssize_t length = recv(fd, request, sizeof request, 0);
        test_pause_ms(300);
        _exit(length > 0 && send(fd, "ok node=n7", 10, 0) == 10 ? 0 : 1);
    }
    close(listener);
    expect_text(said_of(test_text("JOULEMARK_SOCKET=%s " JM_CTL " status", path)), "node: n7\n");
    waitpid(daemon, NULL, 0);
}

/* Says the same to whoever asks, as often as he asks. */
static pid_t say_always(const char *answer, size_t length) {
    int listener = listen_at(test_path("s"));
    pid_t daemon = fork();
    if (daemon != 0)
        return close(listener), daemon;
    for (int fd; (fd = accept(listener, NULL, NULL)) >= 0; close(fd))
        for (char request[256]; recv(fd, request, sizeof request, 0) > 0;)
            if (send(fd, answer, length, MSG_NOSIGNAL) < 0)
                break;
    _exit(1);
}

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int count(const char *text, const char *line) {
    int n = 0;
    while ((text = strstr(text, line))) {
        text += strlen(line);
        n++;
    }
    return n;
}

TEST(a_stream_lasts_as_long_as_its_input_and_is_no_finer_than_a_profile) {
    static const char ANSWER[] = "ok node=n7 job=3 max_hz=20", LINE[] = "node=n7 job=3 max_hz=20\n";
    pid_t daemon = say_always(ANSWER, sizeof ANSWER - 1);
    char ask[512];
    snprintf(ask, sizeof ask, "JOULEMARK_SOCKET=%s " JM_CTL, test_path("s"));
    expect_text(said_of(test_text("%s job", ask)), LINE);
    expect_text(said_of(test_text("%s job --every 1 < /dev/null", ask)), LINE);
    double began_s = now_s();
    int lines = count(said_of(test_text("sleep 1 | %s job --every 0.001 --look-on", ask)), LINE);
    double took_s = now_s() - began_s;
    expect(lines >= 2 && lines <= 20 * took_s + 3, "%d in %.2f s", lines, took_s);
    expect_part(said_of(test_text("%s node --every 0", ask)), "usage: ");
    expect_part(said_of(test_text("%s job 7", ask)), "usage: ");
    kill(daemon, SIGKILL);
    waitpid(daemon, NULL, 0);
}

TEST(a_stream_that_was_stopped_makes_up_for_nothing) {
    static const char ANSWER[] = "ok node=n7", LINE[] = "node=n7\n";
    pid_t daemon = say_always(ANSWER, sizeof ANSWER - 1);
    double began_s = now_s();
    int lines = count(said_of(test_text("sleep 3 | { JOULEMARK_SOCKET=%s " JM_CTL
                                        " job --every 0.02 <&3 & sleep 0.2; kill -STOP $!; "
                                        "sleep 2; kill -CONT $!; wait $!; } 3<&0",
                                        test_path("s"))),
                      LINE);
    double ran_s = now_s() - began_s - 2; /* a second; 100 lines more when it was stopped */
    expect(lines >= 2 && lines <= 50 * ran_s + 30, "%d in %.2f s", lines, ran_s);
    kill(daemon, SIGKILL);
    waitpid(daemon, NULL, 0);
}

TEST(who_is_refused_asks_once) {
    static const char ANSWER[] =
        "error text=this%20process%20belongs%20to%20no%20job%20step%20here";
    pid_t daemon = say_always(ANSWER, sizeof ANSWER - 1);
    expect_text(said_of(test_text("JOULEMARK_SOCKET=%s " JM_CTL " job --every 1 || echo 1",
                                  test_path("s"))),
                "1\n");
    kill(daemon, SIGKILL);
    waitpid(daemon, NULL, 0);
}

int main(void) {
    return test_all_in_folders();
}
