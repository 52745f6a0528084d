// SPDX-License-Identifier: GPL-2.0-or-later
// joulemarkctl around a command: its exit status is the command's own, or says that it was not run.
#include "bk_fixtures.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

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

int main(void) {
    return expect_all();
}
