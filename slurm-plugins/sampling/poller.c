// SPDX-License-Identifier: GPL-2.0-or-later
// A poller: one instrument's thread. Whatever the instrument does, nobody waits for it.
#include "poller.h"

#include "clock.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* An answer within this belongs to the moment that was asked for. */
static const int64_t AT_ONCE_NS = 1000000;
/* A counter's first value tells no power; it needs one for ticks that it cannot answer at once. The
 * coarsest step ten times a second. */
static const int64_t SECOND_VALUE_NS = 100000000;
static const int64_t STOP_PATIENCE_NS = 1000000000;
/* Clocks of two machines differ by less, if they are kept at all. */
static const int64_t AHEAD_NS = 1000000000;
/* Values that nobody takes are not kept without end. */
enum { BATCHES_MAX = 10000 };

struct jm_poller {
    const jm_instrument *instrument;
    void *self;
    int n_channels;
    int64_t period_ns;
    jm_reading *readings;

    pthread_t thread;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t wake;  /* the thread has something to do */
    pthread_cond_t done;  /* an asked reading is there, or the thread has ended */
    bool stopping, ended, asked;
    bool left_behind; /* nobody waits for the end: the thread frees all */
    int64_t asked_real_ns, asked_boot_ns;
    jm_asked asked_by;
    int64_t busy_since_ns;
    jm_batch *first, **last;
    int n_batches;
};

static struct timespec timespec_of(int64_t ns) {
    return (struct timespec){ns / JM_NS_PER_S, ns % JM_NS_PER_S};
}

/* One moment on the clocks: waits go by MONOTONIC, readings by BOOTTIME and REALTIME. */
typedef struct {
    int64_t monotonic_ns, boot_ns, real_ns;
} instant;

static instant now(void) {
    return (instant){jm_clock_ns(CLOCK_MONOTONIC), jm_boot_ns(), jm_real_ns()};
}

static void append(jm_poller *poller, jm_batch *batch) {
    batch->asked = poller->asked ? poller->asked_by : JM_ASKED_BY_PERIOD;
    for (int i = 0; i < poller->n_channels; i++)
        batch->values[i].reading.chosen = batch->asked == JM_ASKED_BY_MARK;
    *poller->last = batch;
    poller->last = &batch->next;
    if (++poller->n_batches <= BATCHES_MAX)
        return;
    jm_batch *oldest = poller->first;
    poller->first = oldest->next;
    poller->n_batches--;
    free(oldest);
}

static jm_batch *pack(const jm_poller *poller, int64_t boot_ns, int64_t took_ns) {
    size_t n = (size_t)poller->n_channels;
    jm_batch *batch = calloc(1, sizeof *batch + n * sizeof batch->values[0]);
    if (!batch)
        return NULL;
    batch->boot_ns = boot_ns;
    batch->took_ns = took_ns;
    for (size_t i = 0; i < n; i++) {
        batch->values[i].reading = poller->readings[i];
        if (!poller->readings[i].why)
            continue;
        jm_format(batch->values[i].why, JM_WHY_MAX, "%s", poller->readings[i].why);
        batch->values[i].reading.why = batch->values[i].why;
    }
    return batch;
}

/* Read until nothing more waits; the lock is held, but not during the calls. */
static void read_all(jm_poller *poller, instant asked) {
    bool more = true;
    while (more && !poller->stopping) {
        poller->busy_since_ns = asked.boot_ns;
        pthread_mutex_unlock(&poller->lock);
        memset(poller->readings, 0, (size_t)poller->n_channels * sizeof *poller->readings);
        int64_t begun_ns = jm_boot_ns();
        more = poller->instrument->read(poller->self, asked.real_ns, poller->readings);
        int64_t ended_ns = jm_boot_ns();
        /* A value that took its time, or whose thread woke late, is of some time within the call.
         */
        int64_t boot_ns = ended_ns - asked.boot_ns <= AT_ONCE_NS
                              ? asked.boot_ns
                              : begun_ns + (ended_ns - begun_ns) / 2;
        jm_batch *batch = pack(poller, boot_ns, ended_ns - asked.boot_ns);
        pthread_mutex_lock(&poller->lock);
        poller->busy_since_ns = 0;
        if (batch)
            append(poller, batch);
        asked = now();
    }
}

static void free_poller(jm_poller *poller) {
    while (poller->first) {
        jm_batch *next = poller->first->next;
        free(poller->first);
        poller->first = next;
    }
    pthread_cond_destroy(&poller->wake);
    pthread_cond_destroy(&poller->done);
    pthread_mutex_destroy(&poller->lock);
    free(poller->readings);
    free(poller);
}

static void *run(void *opaque) {
    jm_poller *poller = opaque;
    bool prompt = poller->instrument->prompt, first = true;
    int64_t pause_ns =
        prompt ? (int64_t)((double)poller->period_ns * JM_UNASKED_PERIODS) : poller->period_ns;
    int64_t due_ns = jm_clock_ns(CLOCK_MONOTONIC) + (prompt ? pause_ns : 0);
    pthread_mutex_lock(&poller->lock);
    while (!poller->stopping) {
        instant moment = now();
        const bool asked = poller->asked;
        if (asked) {
            moment.real_ns = poller->asked_real_ns;
            moment.boot_ns = poller->asked_boot_ns;
        } else if (moment.monotonic_ns < due_ns) {
            struct timespec until = timespec_of(due_ns);
            pthread_cond_timedwait(&poller->wake, &poller->lock, &until);
            continue;
        }
        read_all(poller, moment);
        if (poller->asked) {
            poller->asked = false;
            pthread_cond_broadcast(&poller->done);
        }
        int64_t after_ns = jm_clock_ns(CLOCK_MONOTONIC);
        if (prompt)
            due_ns = after_ns + (first ? SECOND_VALUE_NS : pause_ns);
        else if (!asked) /* one that was asked for is beside the period */
            due_ns += first ? jm_random_phase_ns(pause_ns) : pause_ns;
        first = first && asked && !prompt;
        if (due_ns < after_ns) /* missed turns are not made up for */
            due_ns = after_ns + pause_ns - (after_ns - due_ns) % pause_ns;
    }
    pthread_mutex_unlock(&poller->lock);
    poller->instrument->close(poller->self);
    pthread_mutex_lock(&poller->lock);
    poller->ended = true;
    bool left_behind = poller->left_behind;
    pthread_cond_broadcast(&poller->done);
    pthread_mutex_unlock(&poller->lock);
    if (left_behind)
        free_poller(poller);
    return NULL;
}

/* Signals are the event loop's. */
static int start_thread(jm_poller *poller) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&poller->thread, NULL, run, poller);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

jm_poller *jm_poller_start(const jm_instrument *instrument, void *self,
                           const jm_instrument_config *config, int n_channels, jm_message *why) {
    jm_poller *poller = calloc(1, sizeof *poller);
    jm_reading *readings = calloc((size_t)n_channels + 1, sizeof *readings);
    if (!poller || !readings) {
        jm_message_set(why, "out of memory");
        instrument->close(self);
        free(poller);
        free(readings);
        return NULL;
    }
    *poller = (jm_poller){.instrument = instrument,
                          .self = self,
                          .n_channels = n_channels,
                          .period_ns = (int64_t)(config->period_s * (double)JM_NS_PER_S),
                          .readings = readings};
    poller->last = &poller->first;
    pthread_mutex_init(&poller->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&poller->wake, &monotonic);
    pthread_cond_init(&poller->done, &monotonic);
    pthread_condattr_destroy(&monotonic);
    int error = start_thread(poller);
    if (error == 0)
        return poller;
    jm_message_set(why, "no thread can be started: %s", strerror(error));
    instrument->close(self);
    free_poller(poller);
    return NULL;
}

bool jm_poller_ask(jm_poller *poller, int64_t real_ns, int64_t boot_ns, jm_asked asked) {
    pthread_mutex_lock(&poller->lock);
    bool idle = !poller->asked && poller->busy_since_ns == 0;
    if (idle) {
        poller->asked = true;
        poller->asked_real_ns = real_ns;
        poller->asked_boot_ns = boot_ns;
        poller->asked_by = asked;
        pthread_cond_signal(&poller->wake);
    } else if (poller->asked_by == JM_ASKED_BY_JOB && asked != JM_ASKED_BY_JOB)
        poller->asked_by = JM_ASKED_BY_MARK; /* a slow one's powers must come at some moment */
    pthread_mutex_unlock(&poller->lock);
    return idle;
}

bool jm_poller_is_asked(jm_poller *poller) {
    pthread_mutex_lock(&poller->lock);
    bool asked = poller->asked && !poller->ended;
    pthread_mutex_unlock(&poller->lock);
    return asked;
}

bool jm_poller_wait(jm_poller *poller, int64_t deadline_ns) {
    int64_t left_ns = deadline_ns - jm_boot_ns();
    struct timespec until = timespec_of(jm_clock_ns(CLOCK_MONOTONIC) + (left_ns > 0 ? left_ns : 0));
    pthread_mutex_lock(&poller->lock);
    int status = 0;
    while (poller->asked && status != ETIMEDOUT)
        status = pthread_cond_timedwait(&poller->done, &poller->lock, &until);
    bool answered = !poller->asked;
    pthread_mutex_unlock(&poller->lock);
    return answered;
}

jm_batch *jm_poller_take(jm_poller *poller) {
    pthread_mutex_lock(&poller->lock);
    jm_batch *first = poller->first;
    poller->first = NULL;
    poller->last = &poller->first;
    poller->n_batches = 0;
    pthread_mutex_unlock(&poller->lock);
    return first;
}

int64_t jm_batch_value_ns(const jm_batch *batch, const jm_reading *reading, int64_t real_ns,
                          int64_t boot_ns) {
    int64_t ahead_ns = reading->time_ns - real_ns;
    return reading->time_ns == 0 || ahead_ns > AHEAD_NS ? batch->boot_ns : boot_ns + ahead_ns;
}

int64_t jm_poller_busy_since_ns(jm_poller *poller) {
    pthread_mutex_lock(&poller->lock);
    int64_t since_ns = poller->busy_since_ns;
    pthread_mutex_unlock(&poller->lock);
    return since_ns;
}

bool jm_poller_stop(jm_poller *poller) {
    struct timespec until = timespec_of(jm_clock_ns(CLOCK_MONOTONIC) + STOP_PATIENCE_NS);
    pthread_mutex_lock(&poller->lock);
    poller->stopping = true;
    pthread_cond_signal(&poller->wake);
    int status = 0;
    while (!poller->ended && status != ETIMEDOUT)
        status = pthread_cond_timedwait(&poller->done, &poller->lock, &until);
    bool ended = poller->ended;
    poller->left_behind = !ended;
    if (!ended)
        pthread_detach(poller->thread);
    pthread_mutex_unlock(&poller->lock);
    if (!ended)
        return false;
    pthread_join(poller->thread, NULL);
    free_poller(poller);
    return true;
}
