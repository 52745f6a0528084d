// SPDX-License-Identifier: GPL-2.0-or-later
// The one interface every instrument stands behind: open, describe, read, close.
#ifndef JOULEMARK_INSTRUMENT_H
#define JOULEMARK_INSTRUMENT_H

#include "settings.h"
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

enum { JM_DEVICE_MAX = 2 * JM_NAME_MAX };

/* What an instrument offers: one entry a channel. */
typedef struct {
    char name[JM_NAME_MAX]; /* unique within the instrument: "package-0" */
    jm_domain domain;
    jm_method method; /* COUNTER: readings are energy; otherwise power */
    uint64_t wrap_uj; /* counter runs 0..wrap_uj, then 0 again; 0: never wraps */
    int parent;       /* index of the channel of this instrument that contains it; -1: outermost */
    uint64_t idle_uw; /* idle power, for the split; 0: not known */
    jm_error_budget error;
    uint64_t max_uw;            /* a power beyond it is garbage; 0: the hardware does not say */
    char device[JM_DEVICE_MAX]; /* what it was found as, where it was looked for, the same after a
                                   reboot: a GPU's UUID; "" */
    /* set by jm_instrument_describe */
    const char *type;  /* the instrument's; of `auto`, of what it chose */
    bool prompt;       /* read at every tick, and if it counts at every account's begin and end */
    bool common;       /* read with other nodes', at their phase */
    uint64_t part_ppb; /* of a reading, what is this node's, in billionths; 0: all of it */
} jm_channel_info;

enum { JM_WHOLE_PPB = 1000000000 };

/* No channel of a node draws more, where neither its hardware nor `max_w` says how much it may. */
#define JM_PLAUSIBLE_POWER_W 50000.0

/* One channel's answer. A failed reading has neither ok nor none and says why. */
typedef struct {
    bool ok;
    bool none;       /* nothing new since the last call: no fault, until it has lasted too long */
    uint64_t value;  /* COUNTER: microjoules, raw; otherwise microwatts */
    int64_t time_ns; /* CLOCK_REALTIME of the value, where its source tells; 0: the call's time */
    bool chosen;     /* set by the poller: a job's mark chose its moment, no period */
    const char *why; /* lives until the next call */
} jm_reading;

/* How nodes share a gateway's channel: equally, as each used energy meanwhile, or, where these
 * nodes are storage servers, jobs as they worked there. Its words are jm_sharing_names. */
typedef enum { JM_SHARED_EQUALLY, JM_SHARED_BY_ENERGY, JM_SHARED_BY_IO, JM_SHARINGS } jm_sharing;
extern const char *const jm_sharing_names[JM_SHARINGS];

/* One entry of `channels:` of an instrument, validated. */
typedef struct {
    char name[JM_NAME_MAX];
    jm_domain domain;
    bool has_domain;
    double idle_w;          /* NAN: not given */
    double part;            /* of its readings, what is this node's; NAN: as the instrument's */
    double max_w;           /* NAN: as the instrument's */
    jm_error_budget error;  /* NAN where the file says nothing */
    jm_settings settings;   /* the instrument's own channel_keys */
    char node[JM_NAME_MAX]; /* gateway: the node that it measures; "" none */
    bool sum;               /* gateway: one of several that together measure the node */
    char *shared_by;        /* gateway: the host list of the nodes that share it; NULL: one's own */
    jm_sharing split;       /* how they do */
    int line;
} jm_channel_config;

/* One entry of `instruments:` in the configuration file, validated. Absent numbers are NAN. */
typedef struct {
    char name[JM_NAME_MAX];
    char type[JM_NAME_MAX];
    char parent[JM_NAME_MAX]; /* instrument whose channel contains this one's; "" none */
    double period_s;          /* between readings; the configuration's period_s where not given */
    double timeout_s;         /* a reading that takes longer is late; period_s where not given */
    double stuck_s;           /* a value that does not move for so long is stuck; 0: not judged */
    jm_domain domain;         /* of its only channel, where the instrument takes `domain` */
    double idle_w;
    double part;           /* of its readings, what is this node's; NAN: all */
    double max_w;          /* of its part, no power beyond it is believed; NAN: the hardware's */
    jm_error_budget error; /* NAN where the file says nothing: the instrument's own default holds */
    jm_settings settings;  /* the instrument's own keys */
    jm_channel_config *channels; /* `channels:`; only where the instrument has channel_keys */
    int n_channels;
    const char *file; /* configuration file, for messages */
    int line;         /* where the entry starts, for messages */
} jm_instrument_config;

/* Of all that modules and the daemon share. It grows with each change of it, and a module that was
 * built for another is refused. */
enum { JM_INSTRUMENT_VERSION = 1 };

/*
 * Each instrument has a thread of its own, which alone calls read and close; open and describe are
 * called before it starts. A reading may block: it makes its own channels late and nobody else's.
 */
typedef struct {
    int version; /* a module's: JM_INSTRUMENT_VERSION */
    const char *type;
    const jm_key *keys;         /* its own, beside those every instrument takes; a NULL name ends */
    const jm_key *channel_keys; /* of each entry of `channels:`; NULL: it takes none */
    bool takes_domain;          /* `domain` may be given for the instrument */
    bool takes_idle;            /* idle_w may be given for the instrument */
    bool prompt;                /* local and answered at once: read at every tick */
    bool at_marks; /* local, but slow: read at a region's marks too, which wait for it */
    bool common;   /* others set its phase: many nodes' readings may be of one moment */
    /* 0 and *self, or -1 and why (with the key and the fix). Touches no network: a peer that is
     * down today must not cost the instrument tomorrow. */
    int (*open)(const jm_instrument_config *config, void **self, jm_message *why);
    /* Fills at most capacity entries; returns how many channels there are. Parents come before
     * their children. */
    int (*describe)(void *self, jm_channel_info *channels, int capacity);
    /* One reading a channel, in describe's order. now_ns: CLOCK_REALTIME of the tick. True: more
     * values wait (of a log, a queue, a range query), call again at once. */
    bool (*read)(void *self, int64_t now_ns, jm_reading *readings);
    void (*close)(void *self);
} jm_instrument;

extern const jm_instrument jm_powercap, jm_hwmon, jm_pm_counters, jm_amdgpu, jm_exec, jm_replay,
    jm_model, jm_auto;

/* The type that an open `auto` has chosen. */
const char *jm_auto_type(const void *self);
/* What it takes, and why not the others: told of each type in turn. */
typedef void (*jm_tell)(const char *type, const char *what);
void jm_tell_nobody(const char *type, const char *what);
void jm_auto_explain(const jm_instrument_config *config, jm_tell tell);

/* The instruments that need nothing but libc, and the types of our modules; NULL ends. */
extern const jm_instrument *const jm_instruments[];
extern const char *const jm_instrument_modules[];

/* What a module exports. */
extern const jm_instrument jm_module;

/*
 * The instrument of this type: one of jm_instruments, or the module TYPE.so, ours or a site's own,
 * from $JOULEMARK_INSTRUMENTS or lib/joulemark beside the program. NULL and why: no such type, or
 * its module or a library of it is missing, or it is of another version.
 */
const jm_instrument *jm_instrument_by_type(const char *type, jm_message *why);

/*
 * The instrument's channels as the ledger has them: `part` of the configuration makes what is
 * stated in watts or joules of the reading (offset, resolutions, the hardware's limit) that of the
 * node; a relative error, and idle_w and max_w, which are of the node's part, stay. `max_w`, or
 * that many nodes share it, makes its limit. Else as describe.
 */
int jm_instrument_describe(const jm_instrument *instrument, void *self,
                           const jm_instrument_config *config, jm_channel_info *channels,
                           int capacity);

/* Where a file of the modules' folder lies: $JOULEMARK_INSTRUMENTS, else lib/joulemark beside the
 * program's folder. False: too long. */
bool jm_instrument_file(const char *name, char *path, size_t size);

/* What the module TYPE.so exports under this name; NULL and why. */
const void *jm_module_symbol(const char *type, const char *symbol, jm_message *why);

#endif
