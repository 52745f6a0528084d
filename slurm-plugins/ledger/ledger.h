// SPDX-License-Identifier: GPL-2.0-or-later
// The ledger of one node: every channel's gain is split among the jobs, to the microjoule. Pure
// accounting, no I/O.
#ifndef JOULEMARK_LEDGER_H
#define JOULEMARK_LEDGER_H

#include "channel.h"
#include "gpus.h"
#include "region.h"

#define JM_SPLIT_POLICY "idle-by-share,rest-by-cpu-time,gpus-by-binding"

/*
 * JOB: the job on this node; books balance over these and `unallocated`.
 * PROCESS: one slurmstepd. .extern stands for its job; .batch encloses whatever the job does
 * meanwhile; a numbered step divides the job's energy with the other numbered steps of the moment.
 */
typedef enum {
    JM_ACCOUNT_JOB,
    JM_ACCOUNT_EXTERN,
    JM_ACCOUNT_BATCH,
    JM_ACCOUNT_STEP
} jm_account_kind;

/* Where an account's CPU time comes from. */
typedef enum { JM_CPU_PROC, JM_CPU_CGROUP1, JM_CPU_CGROUP2 } jm_cpu_source;
const char *jm_cpu_source_name(jm_cpu_source source);

/* NONE: no process of the step's own is there. STOPPED: all of them are, as in a suspended job. */
typedef enum { JM_ACTIVITY_NONE, JM_ACTIVITY_RUNNING, JM_ACTIVITY_STOPPED } jm_activity;

/* Of a job whose user nobody has told. */
static const uint32_t JM_UID_UNKNOWN = UINT32_MAX;

/* What a job asked for with --energy. */
typedef enum { JM_MODE_OFF, JM_MODE_SUMMARY, JM_MODE_PROFILE } jm_mode;

/* Energy of one channel in one tick, or a part of it; idle_uj lies inside energy_uj. */
typedef struct {
    uint64_t energy_uj, idle_uj;
} jm_part;

/* On a channel that is held between its values (claim.h). */
typedef struct {
    int64_t energy_uj, idle_uj; /* drawn, as far as it has shown, less what was charged */
    bool present;               /* of a job or step that runs; it has had a tick */
    struct {
        uint64_t idle_uj;   /* idle power by cores */
        uint64_t before_uj; /* drawn up to the value that came, since that before */
        uint64_t held_uj;   /* and what that was taken for until it came */
    } tick;                 /* the last */
    /* since its last value: */
    jm_part left;             /* drawn before somebody came: it stands */
    uint64_t cpu_before_ns;   /* CPU time until then */
    uint64_t cpu_ns, core_ns; /* and since; cores' that it had, unless suspended */
    jm_part own;              /* of GPUs inside, but for what stands */
    uint64_t allotted_uj;     /* idle power by cores, the same */
    jm_part drawn;            /* of all, as last found */
    jm_part unmet;            /* and of `own`, and idle, what the level did not hold */
} jm_claim;

/* Of such a channel. */
typedef struct {
    uint64_t over_uj;  /* given out beyond its level, as last told */
    double cpus;       /* used on average while what is held now was drawn */
    unsigned gone;     /* who has left: 1 since the last value, 2 before */
    int64_t silent_ns; /* at the last tick, as its gain has it */
    int64_t missed_ns; /* how much of it was before somebody came to an empty node */
    /* since its last value: */
    bool had_job;      /* there was a job */
    uint64_t level_uj; /* by which its level rose */
    double held_w;     /* at the last tick */
    uint64_t gone_uj;  /* drawn by who has left */
    uint64_t kept_ns;  /* CPU time that those would have used */
    uint64_t work_ns;  /* CPU time of all, and in how long */
    int64_t span_ns;
    int64_t gone_ns; /* since the last has left */
} jm_held;

typedef struct {
    uint64_t energy_uj;
    uint64_t idle_uj;        /* the part of energy_uj that is the node's idle power */
    double systematic_uj;    /* limit of the systematic error */
    double variance_uj2;     /* random error inside, of its own */
    double common_uj2;       /* and what nodes that act together have alike */
    uint64_t passed_uj;      /* the whole channel's energy beyond idle while the account was open */
    uint64_t passed_idle_uj; /* and within */
    uint64_t values;         /* values of the channel that came while it was open */
    double share;            /* of what is beyond idle, in the last tick */
    double settled_share;    /* and up to the last value */
    double over_uj;          /* of what marks have seen: beyond what the channel showed by then */
    bool begun;              /* it has had a tick */
    jm_claim claim, rest;    /* and of a job what is no running step's */
} jm_balance;

/* What an account holds, over the outermost channels. */
typedef struct {
    uint64_t energy_uj, idle_uj;
    bool domain_known[JM_DOMAIN_COUNT];  /* some channel tells it apart; JM_DOMAIN_REST always */
    uint64_t domain_uj[JM_DOMAIN_COUNT]; /* cpu, dram, gpu, rest; sums to energy_uj; JM_DOMAIN_NODE
                                            stays 0 */
    double systematic_uj;                /* k=1; adds linearly over all */
    double common_uj;                    /* k=1; linearly over a job's nodes, not over jobs */
    double random_uj;                    /* k=1; in quadrature */
    double ends_uj;                      /* k=1; what of the last two is of where it ends: what was
                                            charged between two moments has that of both */
    double uncertainty_uj;               /* k=2, all together */
    double mean_w;
    jm_method method;
    bool mixed; /* more than one method; `method` is then the most doubtful */
    bool known; /* false: nothing was read that tells what it used, and 0 means nothing */
} jm_estimate;

/* What Slurm was told of an account. */
typedef struct {
    jm_balance *balance; /* one a channel; NULL: nothing */
    int64_t ns;          /* CLOCK_REALTIME of it, which names it */
    int64_t active_ns, gap_ns;
} jm_told;

/* What a job's user was last shown while it runs. */
typedef struct {
    int64_t boot_ns; /* CLOCK_BOOTTIME of the tick; 0: nothing */
    int64_t active_ns;
    jm_estimate estimate;
} jm_shown;

/* How an account uses CPU time, for ticks at which it is not read. */
typedef struct {
    int64_t read_ns;       /* CLOCK_BOOTTIME of when it last was */
    int64_t since_ns;      /* the pace is measured from here; 0: it was never read */
    uint64_t since_cpu_ns; /* its cpu_ns then */
    double cpus;           /* used on average */
    bool known;
    int64_t ahead_ns; /* what ticks took it to have used beyond cpu_ns; < 0: not yet */
} jm_pace;

typedef struct jm_account {
    int64_t id; /* row in the store */
    jm_account_kind kind;
    struct jm_account *job; /* the JOB account it lies in; NULL for a JOB */
    uint32_t job_id;
    char step[JM_STEP_MAX]; /* "job", "extern", "batch", "interactive", "0", ... */
    uint32_t uid;
    int32_t pid;        /* slurmstepd; 0 for a JOB */
    bool watched;       /* its end will be told of; else each tick must look */
    bool looks_on;      /* a step that does no work of its job's, and has no part of its energy */
    uint64_t pid_start; /* /proc/PID/stat field 22: with the pid, the process's name for ever */
    uint64_t cpus;      /* cores, as Slurm numbers them; 0: nobody said */
    jm_mode mode;
    double profile_hz; /* JOB: samples a second that it asked for; 0: the ledger's own */

    int64_t opened_ns, closed_ns; /* CLOCK_REALTIME; closed_ns 0: open */
    int64_t active_ns;            /* time covered by ticks */
    int64_t gap_ns;               /* time of the account that nobody observed */
    uint64_t samples;
    char note[JM_MESSAGE_MAX]; /* what went wrong, for the record; "" nothing */

    uint64_t cpu_ns;      /* CPU time when it was last read, as cpu_source counts it */
    uint64_t cpu_tick_ns; /* used since the tick before */
    jm_pace pace;
    jm_cpu_source cpu_source;
    unsigned cpu_sources;    /* JOB: of its steps that have ended, a bit each */
    struct jm_cgroup *group; /* of the step, once it is found; NULL: not yet */
    int group_looks;         /* how often it was looked for in vain */
    unsigned group_reads;    /* how often it was read meanwhile */
    jm_activity activity;
    int64_t suspended_ns; /* time in which all its processes were stopped */
    jm_gpus gpus;         /* bound to it; of a JOB, to any of its steps */

    uint64_t window_uj; /* of the current power window */
    int64_t window_ns;
    double current_w, peak_w;

    jm_balance *balance; /* one a channel */
    jm_told told, heard; /* last; and before that, which Slurm is known to have heard */
    jm_shown shown;      /* JOB: last, to its user while it runs */

    /* A JOB none of whose processes is open rests: it is charged nothing. Its CPUs' part of what is
     * nobody's is noted, and given to it if it turns out to have been there. */
    int64_t rested_ns; /* CLOCK_REALTIME of when that began; 0: it does not rest */
    int64_t rest_ns;   /* time covered by ticks since */
    int64_t looked_ns; /* rest_ns when something of it was last found on the node */
    jm_balance *held;  /* one a channel; NULL: nothing yet */
    jm_balance *ended; /* one a channel, with the error of its ends; NULL: it does not rest */

    jm_region_book regions;
    jm_balance *seen; /* one a channel, at the last tick whose marks are in; NULL: nobody marks */
    bool missed;      /* its last question got no answer in time: Slurm has an earlier one */
    bool contained;   /* JOB: an .extern account was opened for it */
    bool due;         /* JOB: closed, and no epilog will come: its record is to be written */
    int64_t failed_boot_ns; /* JOB: its record could not be written then; 0: it was not tried */
    bool dirty;             /* the store does not have it as it is */
} jm_account;

typedef struct {
    jm_channel channels[JM_CHANNELS_MAX];
    jm_gpus gpus_of[JM_CHANNELS_MAX]; /* the GPUs a channel measures; 0: none */
    int n_channels;
    jm_balance unallocated[JM_CHANNELS_MAX];
    uint64_t
        settled_uj[JM_CHANNELS_MAX]; /* of jobs whose records are written and that left memory */
    uint64_t idle_due_uj[JM_CHANNELS_MAX]; /* idle energy that earlier ticks came short of */
    jm_held held[JM_CHANNELS_MAX];
    /* What jobs' are a part of, in their unit; told: by Slurm, else it is configured. */
    uint64_t cpus;
    bool cpus_told;
    int64_t window_ns; /* power is averaged over this: the tick's period */
    /* Jobs without a record yet; of their steps those that are open, or that only memory has. */
    jm_account **accounts;
    int n_accounts, capacity;
    double node_w; /* mean of the last window */
    uint64_t node_window_uj;
    int64_t node_window_ns;
} jm_ledger;

void jm_ledger_init(jm_ledger *ledger, uint64_t cpus, int64_t window_ns);
void jm_ledger_free(jm_ledger *ledger);

/* Add a channel; its index, or -1 when JM_CHANNELS_MAX are there. Before the first account only. */
int jm_ledger_add_channel(jm_ledger *ledger, const jm_channel *channel);

/*
 * Open (or find, if it is already open) the account of a step's process, and its job's account with
 * it. step: "extern", "batch", "interactive" or a number. NULL when memory is out.
 */
typedef struct {
    uint32_t job_id, uid;
    const char *step;
    int32_t pid;
    uint64_t pid_start;
    uint64_t job_cpus, step_cpus;
    uint64_t cpu_ns; /* the process tree's CPU time now */
    jm_gpus gpus;    /* bound to the step; of a batch script, to its job */
    jm_mode mode;
    double profile_hz;
} jm_open_request;
jm_account *jm_ledger_open(jm_ledger *ledger, const jm_open_request *request, int64_t now_ns);

/* Is it a process's, and open? */
static inline bool jm_account_runs(const jm_account *account) {
    return account->kind != JM_ACCOUNT_JOB && account->closed_ns == 0;
}

/* Empty, one a channel; NULL when memory is out. To be freed. */
jm_balance *jm_ledger_new_balances(const jm_ledger *ledger);

/* An empty account, as the store loads them. */
jm_account *jm_ledger_new_account(jm_ledger *ledger);

jm_account *jm_ledger_find(const jm_ledger *ledger, int32_t pid, uint64_t pid_start);
/* The job's latest run: Slurm keeps the number of a job that it requeues. */
jm_account *jm_ledger_find_job(const jm_ledger *ledger, uint32_t job_id);

/*
 * Divide the gains (one a channel, over the last dt_ns) among the open jobs and `unallocated`, and
 * each job's part among its running steps. A job at rest takes nothing from anybody. The caller has
 * set cpu_tick_ns and activity of the processes' accounts.
 */
void jm_ledger_tick(jm_ledger *ledger, const jm_gain *gains, int64_t dt_ns);

/* Nobody looked for gap_ns: say so in every open account. */
void jm_ledger_gap(jm_ledger *ledger, int64_t gap_ns);

/* Remember what Slurm is told now; a later close falls back on it. */
void jm_ledger_told(jm_ledger *ledger, jm_account *account, int64_t now_ns);

/* Slurm has what it was told at heard_ns, 0: nothing. A later answer was late, and dropped; one
 * that is not known (of an earlier daemon) is nothing to fall back on. */
void jm_account_heard(jm_account *account, int64_t heard_ns);

/*
 * Close a process's account, and with .extern the job's. agreed: what came after Slurm's last
 * question goes back to `unallocated`, so that Slurm's figure and ours are one; where it missed the
 * answer, as a gap. A job that is left
 * without a process rests from then on; closed while it rests, it ended when its rest began.
 */
void jm_ledger_close(jm_ledger *ledger, jm_account *account, int64_t now_ns, bool agreed);

/* From now on the job's energy is divided among its other steps alone, if this is a step of its. */
void jm_ledger_look_on(jm_ledger *ledger, jm_account *account);

/* The job was there all the time: its rest is over, and what it cost is its own. */
void jm_ledger_wake(jm_ledger *ledger, jm_account *job);

/* What went wrong, for the record. */
void jm_account_note(jm_account *account, const char *text);

/* The account whose balance is the account's energy: the job's for .extern, else itself. */
jm_account *jm_account_holder(jm_account *account);
/* The balance with the error of the account's ends, if it ended now. */
jm_balance jm_account_ended(const jm_ledger *ledger, const jm_account *account, int channel);
jm_estimate jm_ledger_estimate(const jm_ledger *ledger, const jm_account *account);

/* The channel is one of the node's total, and the account pays of it; of a GPU's whose job has it.
 */
bool jm_ledger_charges(const jm_ledger *ledger, const jm_account *account, int channel);

/* Since it was seen last: channels' errors add as those of the whole account do; and the random
 * error of one mark between, after dt_ns. */
jm_charge jm_account_gained(const jm_ledger *ledger, const jm_account *account);
/* Of a channel's energy that nobody gives back: the account's part of what is charged beyond what
 * it shows, which the next ones get less. */
double jm_account_over_uj(const jm_ledger *ledger, const jm_account *account, int channel);
jm_edge jm_account_edge(const jm_ledger *ledger, const jm_account *account, int64_t dt_ns);

/* From now on marks of the account are taken; the last tick was at boot_ns. */
void jm_ledger_watch_regions(const jm_ledger *ledger, jm_account *account, int64_t boot_ns);
/* The tick that the account was charged last, which ended at boot_ns: for the marks in it. */
jm_interval jm_ledger_region_tick(const jm_ledger *ledger, const jm_account *account,
                                  int64_t boot_ns);
/* All marks of that tick are in. */
void jm_ledger_settle_regions(const jm_ledger *ledger, jm_account *account,
                              const jm_interval *tick);

/* Energy charged to somebody, channel by channel: equals channels[i].total_uj, or the ledger is
 * wrong. */
uint64_t jm_ledger_charged_uj(const jm_ledger *ledger, int channel);

/* Forget those whom the store has whole and who are in no sum: may_go says which. */
typedef bool (*jm_account_test)(void *context, const jm_account *account);
void jm_ledger_retire(jm_ledger *ledger, jm_account_test may_go, void *context);

/* The job's record is safe: forget the job and its steps; their energy becomes `settled`. */
void jm_ledger_settle(jm_ledger *ledger, jm_account *job);

/* The node's energy since the ledger began, over the outermost channels. */
uint64_t jm_ledger_node_uj(const jm_ledger *ledger);
/* And what of it no job has. */
uint64_t jm_ledger_unallocated_uj(const jm_ledger *ledger);

#endif
