// SPDX-License-Identifier: GPL-2.0-or-later
// The daemon's log: one line an event, with the time; a fault that repeats is said once a minute.
#include "log.h"

#include "text.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { REMEMBERED = 16, QUIET_S = 60 };

/* Of what follows: threads write while another one opens the file anew. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *out;

int jm_log_open(const char *path) {
    if (path[0] == '\0')
        return 0;
    /* A link that another user put in our place would make us write where he cannot. */
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
    FILE *file = fd >= 0 ? fdopen(fd, "a") : NULL;
    if (!file) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    setvbuf(file, NULL, _IOLBF, 0);
    pthread_mutex_lock(&lock);
    if (out)
        fclose(out);
    out = file;
    pthread_mutex_unlock(&lock);
    return 0;
}

/* True when the very same text was said less than QUIET_S ago. */
static bool said_lately(const char *text) {
    static struct {
        char text[JM_MESSAGE_MAX];
        time_t when;
    } said[REMEMBERED];
    static int next;
    struct timespec moment; /* of a clock that nobody sets back */
    clock_gettime(CLOCK_MONOTONIC, &moment);
    time_t now = moment.tv_sec;
    for (int i = 0; i < REMEMBERED; i++)
        if (strcmp(said[i].text, text) == 0) {
            if (now - said[i].when < QUIET_S)
                return true;
            said[i].when = now;
            return false;
        }
    snprintf(said[next].text, sizeof said[next].text, "%s", text);
    said[next].when = now;
    next = (next + 1) % REMEMBERED;
    return false;
}

void jm_log(const char *level, const char *format, ...) {
    char text[JM_MESSAGE_MAX], when[32];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);

    struct timespec now;
    struct tm parts;
    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &parts);
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &parts);
    pthread_mutex_lock(&lock);
    if (strcmp(level, "info") == 0 || !said_lately(text))
        fprintf(out ? out : stderr, "%s.%03ld %s: %s\n", when, now.tv_nsec / 1000000, level, text);
    pthread_mutex_unlock(&lock);
}
