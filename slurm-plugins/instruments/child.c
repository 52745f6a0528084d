// SPDX-License-Identifier: GPL-2.0-or-later
// A site's command as a child: in a process group of its own, read line by line, ended as a whole.
#include "child.h"

#include "clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Between fork and exec of a program with threads: only calls that are safe in a signal handler. */
static _Noreturn void become(const char *command, int output) {
    sigset_t none;
    setpgid(0, 0);
    /* If we are killed, so is it; its own children end when nobody reads them any more. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    int input = open("/dev/null", O_RDONLY);
    if (input < 0 || dup2(input, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0)
        _exit(126);
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
}

bool jm_child_start(jm_child *child, const char *command, jm_message *why) {
    int ends[2];
    *child = (jm_child){.fd = -1};
    if (pipe2(ends, O_CLOEXEC) != 0) {
        jm_message_set(why, "command '%.100s' cannot be started: %s", command, strerror(errno));
        return false;
    }
    pid_t pid = fork();
    if (pid == 0)
        become(command, ends[1]);
    close(ends[1]);
    if (pid < 0) {
        jm_message_set(why, "command '%.100s' cannot be started: %s", command, strerror(errno));
        close(ends[0]);
        return false;
    }
    setpgid(pid, pid); /* whichever of us comes first */
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    child->pid = pid;
    child->fd = ends[0];
    return true;
}

bool jm_child_has_line(const jm_child *child) {
    return memchr(child->buffer, '\n', child->length) != NULL;
}

/* Takes the first length bytes and the line's end behind them out of the buffer. */
static void take(jm_child *child, char *line, size_t length) {
    memcpy(line, child->buffer, length);
    line[length] = '\0';
    size_t taken = length < child->length ? length + 1 : length;
    child->length -= taken;
    memmove(child->buffer, child->buffer + taken, child->length);
}

/* A line of the buffer, if one is whole; the end of one that was too long is passed over. */
static bool take_line(jm_child *child, char *line) {
    const char *end;
    while ((end = memchr(child->buffer, '\n', child->length))) {
        bool passed_over = child->skipping;
        take(child, line, (size_t)(end - child->buffer));
        child->skipping = false;
        if (!passed_over)
            return true;
    }
    return false;
}

/* The buffer is full and holds no line. True: that is news. */
static bool skip_rest(jm_child *child) {
    bool is_new = !child->skipping;
    child->skipping = true;
    child->length = 0;
    return is_new;
}

/* More bytes. 1: some came; 0: its end; -1: none until the deadline. */
static int fill(jm_child *child, int64_t deadline_ns) {
    for (;;) {
        ssize_t length = read(child->fd, child->buffer + child->length,
                              sizeof child->buffer - 1 - child->length);
        if (length > 0) {
            child->length += (size_t)length;
            return 1;
        }
        if (length == 0)
            return 0;
        if (errno != EAGAIN && errno != EINTR)
            return 0;
        int64_t left_ns = deadline_ns - jm_clock_ns(CLOCK_MONOTONIC);
        if (left_ns <= 0)
            return -1;
        struct pollfd wait = {.fd = child->fd, .events = POLLIN};
        poll(&wait, 1, (int)(left_ns / 1000000 + 1));
    }
}

jm_child_result jm_child_read(jm_child *child, char line[JM_CHILD_LINE_MAX], int64_t deadline_ns) {
    while (!take_line(child, line)) {
        if (child->length == sizeof child->buffer - 1 && skip_rest(child))
            return JM_CHILD_TOO_LONG;
        if (child->skipping && jm_clock_ns(CLOCK_MONOTONIC) >= deadline_ns)
            return JM_CHILD_NOTHING;
        int filled = fill(child, deadline_ns);
        if (filled < 0)
            return JM_CHILD_NOTHING;
        if (filled > 0)
            continue;
        if (child->length == 0 || child->skipping)
            return JM_CHILD_ENDED;
        take(child, line, child->length); /* the last line lacks its end */
        break;
    }
    return JM_CHILD_LINE;
}

/* Has it ended by deadline_ns? It is left a zombie, so that its group's number stays its own. It is
 * waited for by asking: pidfd_open is newer than some kernels in use. */
static bool has_ended(pid_t pid, int64_t deadline_ns) {
    for (;;) {
        siginfo_t info = {0};
        if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ? errno != EINTR
                                                                              : info.si_pid == pid)
            return true;
        if (jm_clock_ns(CLOCK_MONOTONIC) >= deadline_ns)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

bool jm_child_stop(jm_child *child, int64_t deadline_ns, int *status) {
    *status = 0;
    if (child->pid == 0)
        return true;
    bool alone = has_ended(child->pid, deadline_ns);
    kill(-child->pid, SIGKILL); /* its own children too, also when it has ended itself */
    while (waitpid(child->pid, status, 0) < 0 && errno == EINTR)
        ;
    close(child->fd);
    *child = (jm_child){.fd = -1};
    return alone;
}

void jm_child_describe(int status, jm_message *text) {
    if (WIFSIGNALED(status))
        jm_message_set(text, "signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        jm_message_set(text, "exit status %d", WEXITSTATUS(status));
}
