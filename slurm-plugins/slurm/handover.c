// SPDX-License-Identifier: GPL-2.0-or-later
// A task hands its standard output to its slurmstepd, so that the summary ends the job's own
// output.
#include "handover.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { WRITE_TIMEOUT_MS = 200, SSTAT_TIMEOUT_MS = 2000 };

void jm_handover_prepare(jm_handover *handover) {
    if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, handover->pair) != 0)
        handover->pair[0] = handover->pair[1] = -1;
}

void jm_handover_give(const jm_handover *handover, int fd) {
    if (handover->pair[1] < 0)
        return;
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    char byte = 0;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    sendmsg(handover->pair[1], &message, MSG_NOSIGNAL);
}

bool jm_handover_take(jm_handover *handover) {
    if (handover->pair[0] < 0)
        return false;
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    char byte;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    if (recvmsg(handover->pair[0], &message, MSG_CMSG_CLOEXEC) <= 0)
        return false;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (!header || header->cmsg_type != SCM_RIGHTS)
        return false;
    memcpy(&handover->output, CMSG_DATA(header), sizeof handover->output);
    return true;
}

void jm_handover_write(const jm_handover *handover, const char *text) {
    int flags = fcntl(handover->output, F_GETFL);
    if (flags < 0 || fcntl(handover->output, F_SETFL, flags | O_NONBLOCK) != 0)
        return;
    size_t left = strlen(text);
    while (left > 0) {
        struct pollfd ready = {.fd = handover->output, .events = POLLOUT};
        if (poll(&ready, 1, WRITE_TIMEOUT_MS) <= 0)
            return;
        ssize_t n = write(handover->output, text, left);
        if (n <= 0)
            return;
        text += n;
        left -= (size_t)n;
    }
}

static void close_one(int *fd) {
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void jm_handover_close(jm_handover *handover) {
    close_one(&handover->pair[0]);
    close_one(&handover->pair[1]);
    close_one(&handover->output);
}

/* Run sstat with its output in a pipe; its pid, or -1. */
static pid_t start_sstat(const char *step, int output) {
    char *arguments[] = {"sstat", "-nPa", "-j", (char *)step, "-o", "ConsumedEnergyRaw", NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid = -1;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    if (posix_spawnp(&pid, "sstat", &actions, NULL, arguments, environ) != 0)
        pid = -1;
    posix_spawn_file_actions_destroy(&actions);
    return pid;
}

double jm_handover_job_joules(uint32_t job, const char *step_name, uint32_t step) {
    char id[64], text[64];
    int ends[2];
    if (step_name)
        jm_format(id, sizeof id, "%u.%s", job, step_name);
    else
        jm_format(id, sizeof id, "%u.%u", job, step);
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    pid_t pid = start_sstat(id, ends[1]);
    close(ends[1]);
    ssize_t length = 0;
    struct pollfd ready = {.fd = ends[0], .events = POLLIN};
    if (pid > 0 && poll(&ready, 1, SSTAT_TIMEOUT_MS) > 0)
        length = read(ends[0], text, sizeof text - 1);
    close(ends[0]);
    if (pid > 0) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    double joules = -1;
    if (length > 0) {
        text[length] = '\0';
        text[strcspn(text, "\n")] = '\0';
        jm_parse_double(text, &joules);
    }
    return joules;
}
