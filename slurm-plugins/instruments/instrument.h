// SPDX-License-Identifier: GPL-2.0-or-later
// The one interface every instrument stands behind: open, describe, read, close.
#ifndef JOULEMARK_INSTRUMENT_H
#define JOULEMARK_INSTRUMENT_H

#include "text.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum {
    JM_DOMAIN_NODE,
    JM_DOMAIN_CPU,
    JM_DOMAIN_DRAM,
    JM_DOMAIN_GPU,
    JM_DOMAIN_REST
} jm_domain;
enum { JM_DOMAIN_COUNT = JM_DOMAIN_REST + 1 };

const char *jm_domain_name(jm_domain domain);
bool jm_domain_from_name(const char *name, jm_domain *domain);

/* How a channel's energy comes about. The order is that of growing doubt. */
typedef enum { JM_METHOD_COUNTER, JM_METHOD_INTEGRATED, JM_METHOD_MODEL } jm_method;

const char *jm_method_name(jm_method method);

/* Limits of the errors (rectangular distributions, GUM type B), not standard deviations. */
typedef struct {
    double relative;      /* of the reading, 0.01 is 1 % */
    double offset_w;      /* constant, watts */
    double resolution_w;  /* step of a power reading, watts */
    double resolution_uj; /* step of a counter, microjoules */
    double jitter_s;      /* uncertainty of a reading's time, seconds */
} jm_error_budget;

/* What an instrument offers: one entry a channel. */
typedef struct {
    char name[JM_NAME_MAX]; /* unique within the instrument: "package-0" */
    jm_domain domain;
    jm_method method; /* COUNTER: readings are energy; otherwise power */
    uint64_t wrap_uj; /* counter runs 0..wrap_uj, then 0 again; 0: never wraps */
    int parent;       /* index of the channel of this instrument that contains it; -1: outermost */
    uint64_t idle_uw; /* idle power, for the split; 0: not known */
    jm_error_budget error;
} jm_channel_info;

/* One channel's answer. A failed reading has ok false and says why. */
typedef struct {
    bool ok;
    uint64_t value; /* COUNTER: microjoules, raw; otherwise microwatts */
    const char *why;
} jm_reading;

/* One entry of `instruments:` in the configuration file, validated. Absent numbers are NAN. */
typedef struct {
    char name[JM_NAME_MAX];
    char type[JM_NAME_MAX];
    char parent[JM_NAME_MAX]; /* instrument whose channel contains this one's; "" none */
    char root[JM_PATH_MAX];   /* powercap, hwmon */
    char file[JM_PATH_MAX];   /* replay */
    bool as_power;            /* replay: sampled power, not the exact integral */
    bool repeat;              /* replay */
    bool has_epoch;
    double epoch_s;   /* replay: Unix time of the trace's time 0 */
    uint64_t wrap_uj; /* replay; 0 never */
    jm_domain domain; /* replay, model */
    double idle_w, full_w;
    jm_error_budget error; /* NAN where the file says nothing: the instrument's own default holds */
    int line;              /* where the entry starts, for messages */
} jm_instrument_config;

typedef struct {
    const char *type;
    const char *const
        *keys; /* configuration keys it takes beside name, type, parent, idle_w, error; NULL ends */
    /* 0 and *self, or -1 and why. Must not block: local files only, or its own thread. */
    int (*open)(const jm_instrument_config *config, void **self, jm_message *why);
    /* Fills at most capacity entries; returns how many channels there are. Parents come before
     * their children. */
    int (*describe)(void *self, jm_channel_info *channels, int capacity);
    /* One reading a channel, in describe's order. now_ns: CLOCK_REALTIME of the tick. */
    void (*read)(void *self, int64_t now_ns, jm_reading *readings);
    void (*close)(void *self);
} jm_instrument;

extern const jm_instrument jm_powercap, jm_hwmon, jm_replay, jm_model;

/* The instruments this build has; NULL ends. */
extern const jm_instrument *const jm_instruments[];
const jm_instrument *jm_instrument_by_type(const char *type);

#endif
