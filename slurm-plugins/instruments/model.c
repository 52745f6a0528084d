// SPDX-License-Identifier: GPL-2.0-or-later
// Instrument `model`: an estimate from CPU utilisation for machines without sensors; never a
// measurement.
#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * A straight line between idle and full power is off by up to 30 % of the reading on mixed loads:
 * Fan, Weber and Barroso, "Power provisioning for a warehouse-sized computer" (ISCA 2007), show the
 * shape; the watts are a site's guess.
 */
static const jm_error_budget budget = {.relative = 0.3};

typedef struct {
    uint64_t busy, idle; /* jiffies since boot, all CPUs together */
} cpu_time;

typedef struct {
    jm_channel_info info;
    int fd;
    char path[JM_PATH_MAX];
    jm_message why;
    double idle_w, full_w;
    cpu_time last;
    double utilisation;
} model;

static bool read_cpu_time(model *self, cpu_time *time) {
    char text[512]; /* the first line is all we need */
    ssize_t length = pread(self->fd, text, sizeof text - 1, 0);
    if (length < 0) {
        jm_message_set(&self->why, "%s: cannot be read: %s", self->path, strerror(errno));
        return false;
    }
    text[length] = '\0';
    uint64_t user, nice, system, idle, iowait, irq = 0, softirq = 0, steal = 0;
    int fields = sscanf(text,
                        "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
                        " %" SCNu64 " %" SCNu64,
                        &user, &nice, &system, &idle, &iowait, &irq, &softirq, &steal);
    if (fields < 5) {
        text[strcspn(text, "\n")] = '\0';
        jm_message_set(&self->why,
                       "%s:1: must be 'cpu USER NICE SYSTEM IDLE IOWAIT ...', is '%.80s'",
                       self->path, text);
        return false;
    }
    time->busy = user + nice + system + irq + softirq;
    time->idle = idle + iowait + steal; /* stolen time is another machine's work */
    return true;
}

/* Counters may go back (iowait does): then nothing was gained. Within one jiffy the last
 * utilisation holds. */
static void update_utilisation(model *self, cpu_time now) {
    uint64_t busy = now.busy > self->last.busy ? now.busy - self->last.busy : 0;
    uint64_t idle = now.idle > self->last.idle ? now.idle - self->last.idle : 0;
    self->last = now;
    if (busy > 0 || idle > 0)
        self->utilisation = (double)busy / ((double)busy + (double)idle);
}

static void model_close(void *opaque) {
    model *self = opaque;
    if (self->fd >= 0)
        close(self->fd);
    free(self);
}

static int model_open(const jm_instrument_config *config, void **opaque, jm_message *why) {
    model *self = calloc(1, sizeof *self);
    if (!self) {
        jm_message_set(why, "model: out of memory");
        return -1;
    }
    self->idle_w = config->idle_w;
    self->full_w = jm_number(&config->settings, "full_w", NAN);
    self->info = jm_channel_configured(config, NULL, JM_METHOD_MODEL, budget);
    jm_format(self->info.name, sizeof self->info.name, "model");
    const char *root = jm_text(&config->settings, "root", "/proc");
    jm_format(self->path, sizeof self->path, "%s/stat", root);
    self->fd = open(self->path, O_RDONLY | O_CLOEXEC);
    if (self->fd < 0)
        jm_message_set(why, "model: %s: cannot be opened: %s; set 'root' to where /proc is",
                       self->path, strerror(errno));
    else if (!read_cpu_time(self, &self->last))
        *why = self->why;
    else {
        *opaque = self;
        return 0;
    }
    model_close(self);
    return -1;
}

static int model_describe(void *opaque, jm_channel_info *channels, int capacity) {
    const model *self = opaque;
    if (capacity > 0)
        channels[0] = self->info;
    return 1;
}

static bool model_read(void *opaque, int64_t now_ns, jm_reading *readings) {
    (void)now_ns;
    model *self = opaque;
    cpu_time now;
    if (!read_cpu_time(self, &now)) {
        readings[0] = (jm_reading){.why = self->why.text};
        return false;
    }
    update_utilisation(self, now);
    double power_w = self->idle_w + (self->full_w - self->idle_w) * self->utilisation;
    readings[0] = (jm_reading){.ok = true, .value = jm_to_micro(power_w)};
    return false;
}

static const jm_key keys[] = {
    {"root", JM_KEY_PATH, .required = false},
    {"full_w", JM_KEY_NUMBER, .required = true, .example = "120", .min = 0, .max = 1e9},
    {0}};

const jm_instrument jm_model = {.type = "model",
                                .keys = keys,
                                .takes_domain = true,
                                .takes_idle = true,
                                .prompt = true,
                                .open = model_open,
                                .describe = model_describe,
                                .read = model_read,
                                .close = model_close};
