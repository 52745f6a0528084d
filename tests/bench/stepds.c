// Plays a node's slurmd and slurmstepds before a joulemarkd; tests/bench/churn runs it.
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// usage: stepds SOCKET jobs OPEN PER_MINUTE SECONDS   jobs of one step, so many open at once
//        stepds SOCKET steps JOB STEPS                one job of many steps, one after the other
//        stepds SOCKET short FIRST JOBS               jobs that end at once, one after the other
// Each account is opened, read and closed by a process of its own, as a slurmstepd does. Prints a
// line a verb (`fill` is what the first OPEN jobs opened, all at once): name, questions, how many
// got no `ok`, and milliseconds of the answers: median, 99th percentile, longest.
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SAMPLES_MAX = 1 << 20, PATIENCE_S = 30, RETRIES_MAX = 3000, RETRY_US = 10000 };
enum { FILL, OPEN, READ, CLOSE, END, VERBS };
static const char *const VERB_NAMES[VERBS] = {"fill", "open", "read", "close", "end"};

// Shared by all processes.
static struct verb {
    atomic_long asked, failed;
    float took_ms[SAMPLES_MAX];
} * verbs;
static struct sockaddr_un address = {.sun_family = AF_UNIX};

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void sleep_until(double until_s) {
    double left_s = until_s - now_s();
    if (left_s > 0)
        usleep((useconds_t)(left_s * 1e6));
}

static int dial(void) {
    struct timeval patience = {.tv_sec = PATIENCE_S};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static char opened[256]; // this process's account, if it has one
static bool filling;     // it is of those that open all at once, before others come one by one

static char heard[32] = "0"; // told_ns of the answer that it has

// A daemon that was killed comes back: who was not answered says who it is, and asks again.
static void ask(int *fd, int verb, const char *request) {
    char answer[4096];
    for (int tries = 0; tries < RETRIES_MAX; tries++) {
        if (*fd < 0 && (*fd = dial()) >= 0 && opened[0]) {
            send(*fd, opened, strlen(opened), MSG_NOSIGNAL);
            recv(*fd, answer, sizeof answer, 0);
        }
        double began_s = now_s();
        if (*fd >= 0 && send(*fd, request, strlen(request), MSG_NOSIGNAL) > 0) {
            ssize_t n = recv(*fd, answer, sizeof answer - 1, 0);
            if (n > 0) {
                struct verb *of = &verbs[verb];
                long i = atomic_fetch_add(&of->asked, 1);
                of->took_ms[i % SAMPLES_MAX] = (float)((now_s() - began_s) * 1e3);
                answer[n] = '\0';
                const char *told = strstr(answer, "told_ns=");
                if (told)
                    sscanf(told, "told_ns=%31[0-9]", heard);
                if (strncmp(answer, "ok", 2) != 0) {
                    atomic_fetch_add(&of->failed, 1);
                    fprintf(stderr, "stepds: %s: %s\n", request, answer);
                }
                return;
            }
        }
        if (*fd >= 0)
            close(*fd);
        *fd = -1;
        usleep(RETRY_US);
    }
    atomic_fetch_add(&verbs[verb].failed, 1);
    fprintf(stderr, "stepds: %s: no answer\n", request);
}

static void open_account(int *fd, long job, const char *step) {
    char request[sizeof opened];
    snprintf(request, sizeof request, "open job=%ld step=%s uid=1000 job_cpus=1 step_cpus=1", job,
             step);
    opened[0] = '\0'; // a child has its parent's
    ask(fd, filling ? FILL : OPEN, request);
    memcpy(opened, request, sizeof opened);
}

static pid_t start(void) {
    pid_t pid = fork();
    if (pid == 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    else if (pid < 0)
        perror("stepds: fork"), exit(2);
    return pid;
}

static void close_account(int *fd) {
    char request[64];
    snprintf(request, sizeof request, "close heard_ns=%s", heard);
    ask(fd, CLOSE, request);
    exit(0);
}

// One step's slurmstepd, until a time.
static void step(long job, const char *name, double until_s) {
    int fd = -1;
    open_account(&fd, job, name);
    sleep_until(until_s);
    ask(&fd, READ, "read heard_ns=0");
    close_account(&fd);
}

static void run_step(long job, const char *name, double until_s) {
    pid_t pid = start();
    if (pid == 0)
        step(job, name, until_s);
    waitpid(pid, NULL, 0);
}

// A job's slurmstepd of .extern, which is there as long as the job.
static void job_of_steps(long job, long steps, double until_s) {
    char name[24];
    int fd = -1;
    open_account(&fd, job, "extern");
    for (long i = 0; i < steps; i++) {
        snprintf(name, sizeof name, "%ld", i);
        run_step(job, name, until_s);
    }
    close_account(&fd);
}

static pid_t start_job(long job, long steps, double until_s) {
    pid_t pid = start();
    if (pid == 0)
        job_of_steps(job, steps, until_s);
    return pid;
}

static void epilog(int *fd, long job) {
    char request[64];
    snprintf(request, sizeof request, "end job=%ld", job);
    ask(fd, END, request);
}

static void run_jobs(long open, double per_minute, double seconds) {
    double gap_s = 60 / per_minute, life_s = (double)open * gap_s, began_s = now_s();
    long jobs = open + (long)(seconds / gap_s), started = 0, over = 0;
    pid_t *pids = calloc((size_t)jobs, sizeof *pids);
    int fd = -1;
    filling = true;
    for (; pids && started < open; started++) // those that are there already end one by one
        pids[started] = start_job(started + 1, 1, began_s + gap_s * (double)(started + 1));
    filling = false;
    while (pids && over < jobs) {
        int status;
        pid_t pid = waitpid(-1, &status, started < jobs ? WNOHANG : 0);
        for (long i = 0; pid > 0 && i < started; i++)
            if (pids[i] == pid) {
                epilog(&fd, i + 1);
                over++;
                break;
            }
        double due_s = began_s + gap_s * (double)(started - open + 1);
        if (started < jobs && now_s() >= due_s) {
            pids[started] = start_job(started + 1, 1, due_s + life_s);
            started++;
        } else if (pid == 0)
            usleep(1000);
    }
    free(pids);
}

static void run_short_jobs(long first, long jobs) {
    int fd = -1;
    for (long job = first; job < first + jobs; job++) {
        waitpid(start_job(job, 1, 0), NULL, 0);
        epilog(&fd, job);
    }
}

static int by_size(const void *left, const void *right) {
    float a = *(const float *)left, b = *(const float *)right;
    return (a > b) - (a < b);
}

static void print_verbs(void) {
    for (int i = 0; i < VERBS; i++) {
        long n = verbs[i].asked < SAMPLES_MAX ? verbs[i].asked : SAMPLES_MAX;
        float *ms = verbs[i].took_ms;
        qsort(ms, (size_t)n, sizeof *ms, by_size);
        printf("%s %ld %ld %.4f %.4f %.4f\n", VERB_NAMES[i], verbs[i].asked, verbs[i].failed,
               n ? (double)ms[n / 2] : 0, n ? (double)ms[n * 99 / 100] : 0,
               n ? (double)ms[n - 1] : 0);
    }
}

int main(int argc, char **argv) {
    bool jobs = argc == 6 && strcmp(argv[2], "jobs") == 0;
    bool steps = argc == 5 && strcmp(argv[2], "steps") == 0;
    bool brief = argc == 5 && strcmp(argv[2], "short") == 0;
    if (!jobs && !steps && !brief) {
        fprintf(stderr, "usage: stepds SOCKET jobs OPEN PER_MINUTE SECONDS | steps JOB STEPS |"
                        " short FIRST JOBS\n");
        return 2;
    }
    snprintf(address.sun_path, sizeof address.sun_path, "%s", argv[1]);
    verbs = mmap(NULL, VERBS * sizeof *verbs, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                 -1, 0);
    if (verbs == MAP_FAILED) {
        perror("stepds: mmap");
        return 2;
    }
    if (jobs)
        run_jobs(atol(argv[3]), atof(argv[4]), atof(argv[5]));
    else if (brief)
        run_short_jobs(atol(argv[3]), atol(argv[4]));
    else {
        int fd = -1;
        waitpid(start_job(atol(argv[3]), atol(argv[4]), 0), NULL, 0);
        epilog(&fd, atol(argv[3]));
    }
    print_verbs();
    return 0;
}
