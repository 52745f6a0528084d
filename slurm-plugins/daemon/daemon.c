// SPDX-License-Identifier: GPL-2.0-or-later
// The daemon's state and what it does with it: ticks, accounts, records.
#include "daemon.h"

#include "log.h"
#include "presence.h"
#include "process.h"
#include "record.h"
#include "unsaved.h"
#include "usage.h"

#include <string.h>

#define NO_ACCOUNT "no account of job %u is open here"
/* Two ticks closer than this tell nothing apart; most instruments have no finer time. */
static const int64_t SHORTEST_TICK_NS = 100000;
/* What is opened or closed is on disk after this time: beyond a short step's launch, within a tick.
 */
static const int64_t SAVE_WITHIN_NS = 50000000;
/* Where a save of all takes long, it and the records of what has ended rest for so many times that,
 * and no longer than this. */
static const int64_t SAVE_REST = 100, SAVE_REST_MAX_NS = 1000000000;
/* With no account what is saved is where the channels stood: seldomer, and a restart still joins
 * the powers before and after it (MAX_GAP_PERIODS). */
static const int64_t SAVE_OF_NOBODY_NS = 2500000000;
/* So long records are written, and then what was asked meanwhile is heard. */
static const int64_t RECORDS_PART_NS = 1000000;
/* Nobody goes on at a pace for longer: a look at all begins, or after a sleep is made at once. */
static const int64_t SWEEP_OLDEST_NS = 1000000000, PACE_LONGEST_NS = 5000000000;
/* A folder that is full or gone is not tried again at every event. */
static const int64_t RECORDS_EVERY_NS = 10 * INT64_C(1000000000);
/* A closed job whose epilog has not come for so long gets its record without it. */
static const int64_t EPILOG_PATIENCE_NS = 30 * INT64_C(1000000000);

/* Whose part of this tick has to be exact, of those that have a pace to go on at. */
static bool is_asked_for(const jm_account *account, jm_asked asked, uint32_t job_id) {
    return account->job_id == job_id || account->regions.watched ||
           (account->job && account->job->regions.watched) ||
           (asked == JM_ASKED_BY_PERIOD && account->job && account->job->mode == JM_MODE_PROFILE);
}

/* Of all, or where that takes long of those alone that are asked for. */
static void read_cpu_times(jm_daemon *daemon, jm_asked asked, uint32_t job_id, int64_t boot_ns) {
    const jm_ledger *ledger = &daemon->ledger;
    for (int i = 0; i < ledger->n_accounts; i++) {
        jm_account *account = ledger->accounts[i];
        if (jm_account_runs(account) &&
            (!account->pace.known || is_asked_for(account, asked, job_id)))
            jm_usage_read("/proc", account, boot_ns);
    }
    daemon->read_job_id = job_id;
    if (daemon->sweep.began_ns == 0 && boot_ns - daemon->sweep.whole_ns > SWEEP_OLDEST_NS)
        jm_sweep_begin(&daemon->sweep);
}

static void read_all_cpu_times(jm_daemon *daemon) {
    jm_sweep_begin(&daemon->sweep);
    jm_sweep_go_on(&daemon->sweep, &daemon->ledger, true);
}

static void take_cpu_times(const jm_ledger *ledger, int64_t boot_ns) {
    for (int i = 0; i < ledger->n_accounts; i++)
        if (jm_account_runs(ledger->accounts[i]))
            jm_usage_take(ledger->accounts[i], boot_ns);
}

/* Of what was heard meanwhile the last tick does for all, or for those that were read since. */
static bool has_its_tick(const jm_daemon *daemon, uint32_t job_id) {
    bool read = job_id == 0 || job_id == daemon->read_job_id ||
                daemon->sweep.whole_ns >= daemon->heard_boot_ns;
    return read && daemon->heard_boot_ns > 0 && daemon->last_tick_boot_ns >= daemon->heard_boot_ns;
}

static jm_moment last_tick(const jm_daemon *daemon) {
    jm_moment moment = {.boot_ns = daemon->last_tick_boot_ns, .real_ns = daemon->last_tick_real_ns};
    memcpy(moment.boot_id, daemon->boot_id, sizeof moment.boot_id);
    return moment;
}

static void save(jm_daemon *daemon) {
    daemon->unsaved_since_ns = 0;
    if (!daemon->store)
        return;
    jm_message why;
    jm_moment moment = last_tick(daemon);
    if (jm_store_save(daemon->store, &daemon->ledger, &moment, &why) != 0) {
        jm_error("%s; the ledger goes on in memory", why.text);
        daemon->store_fault = why;
        return;
    }
    if (daemon->store_fault.text[0]) {
        jm_info("the ledger is saved again");
        daemon->store_fault.text[0] = '\0';
    }
    if (daemon->charged_unsaved)
        jm_unsaved_clear(daemon->config.socket);
    daemon->charged_unsaved = false;
    daemon->saved_boot_ns = moment.boot_ns;
}

static bool needs_save(const jm_daemon *daemon) {
    return daemon->ledger.n_accounts > 0 || daemon->unsaved_since_ns != 0 ||
           daemon->store_fault.text[0] || daemon->charged_unsaved ||
           daemon->last_tick_boot_ns - daemon->saved_boot_ns >= SAVE_OF_NOBODY_NS;
}

static void save_all(jm_daemon *daemon) {
    int64_t began_ns = jm_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    save(daemon);
    daemon->save_ns = jm_clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns;
}

static void mark_unsaved(jm_daemon *daemon) {
    if (daemon->unsaved_since_ns == 0)
        daemon->unsaved_since_ns = jm_boot_ns();
}

/* Until the tick's own moment: what comes after that is the next one's to notice. */
static void notice_absence(jm_daemon *daemon, int64_t boot_ns) {
    jm_moment seen = last_tick(daemon);
    if (!daemon->recovering && jm_presence_after_pause(daemon, &seen, boot_ns))
        mark_unsaved(daemon);
}

static void sample(jm_daemon *daemon, jm_asked asked, uint32_t job_id) {
    jm_gain gains[JM_CHANNELS_MAX];
    int64_t begun_ns = jm_boot_ns();
    if (jm_sweep_is_long(&daemon->sweep) && begun_ns - daemon->sweep.whole_ns < PACE_LONGEST_NS)
        read_cpu_times(daemon, asked, job_id, begun_ns);
    else
        read_all_cpu_times(daemon);
    int64_t boot_ns = jm_boot_ns(), real_ns = jm_real_ns();
    notice_absence(daemon, boot_ns);
    take_cpu_times(&daemon->ledger, boot_ns);
    int64_t dt_ns = boot_ns - daemon->last_tick_boot_ns;
    jm_sampler_read(&daemon->sampler, &daemon->ledger, real_ns, boot_ns, asked, gains);
    if (daemon->recovering) {
        /* The gap is the whole time without a daemon, whatever a channel could make up for. */
        for (int c = 0; c < daemon->ledger.n_channels; c++)
            gains[c].lost_ns = 0, gains[c].unread = false;
        jm_ledger_gap(&daemon->ledger, dt_ns);
        daemon->recovering = false;
    }
    jm_ledger_tick(&daemon->ledger, gains, dt_ns);
    daemon->last_tick_boot_ns = boot_ns;
    daemon->last_tick_real_ns = real_ns;
    /* A job's begin or end does not wait for what others have marked. */
    if (asked != JM_ASKED_BY_JOB) {
        daemon->powers_boot_ns = boot_ns;
        jm_marks_drain(daemon->marks, &daemon->ledger, 0, boot_ns);
    }
    jm_profiles_sample(daemon->profiles, &daemon->ledger, boot_ns, real_ns);
}

/* Until a tick tells something apart from the last. */
static void wait_for_tick(const jm_daemon *daemon) {
    const struct timespec shortest = {.tv_nsec = SHORTEST_TICK_NS};
    if (jm_boot_ns() - daemon->last_tick_boot_ns < SHORTEST_TICK_NS)
        nanosleep(&shortest, NULL);
}

void jm_daemon_sample(jm_daemon *daemon, jm_asked asked) {
    wait_for_tick(daemon);
    sample(daemon, asked, 0);
}

void jm_daemon_sample_for_job(jm_daemon *daemon, uint32_t job_id) {
    if (has_its_tick(daemon, job_id))
        return;
    wait_for_tick(daemon);
    sample(daemon, JM_ASKED_BY_JOB, job_id);
}

/* The store has it as it ended, and its slurmstepd will not ask again: its record comes from there.
 */
static bool is_over(void *context, const jm_account *account) {
    (void)context;
    return account->kind != JM_ACCOUNT_JOB && account->closed_ns != 0 && !account->dirty &&
           !jm_presence_lives(account->pid, account->pid_start);
}

void jm_daemon_tick(jm_daemon *daemon) {
    jm_forwarder_keep(&daemon->forwarder);
    jm_presence_look(daemon);
    daemon->tick_due = false;
    jm_daemon_sample(daemon, JM_ASKED_BY_PERIOD);
    jm_presence_close_lost(daemon);
    if (needs_save(daemon))
        save_all(daemon);
    if (daemon->store && !daemon->store_fault.text[0])
        jm_ledger_retire(&daemon->ledger, is_over, NULL);
}

void jm_daemon_begin_tick(jm_daemon *daemon) {
    if (!daemon->tick_due && jm_sweep_is_long(&daemon->sweep))
        jm_sweep_begin(&daemon->sweep);
    daemon->tick_due = true;
}

bool jm_daemon_go_on(jm_daemon *daemon) {
    if (jm_sweep_go_on(&daemon->sweep, &daemon->ledger, false))
        return true;
    if (daemon->tick_due && daemon->bringing_ns == 0)
        jm_daemon_tick(daemon);
    return false;
}

int64_t jm_daemon_sample_if_older(jm_daemon *daemon, int64_t max_age_ns, jm_asked asked) {
    if (jm_boot_ns() - daemon->powers_boot_ns >= max_age_ns)
        jm_daemon_sample(daemon, asked);
    return jm_boot_ns() - daemon->powers_boot_ns;
}

static void settle(jm_daemon *daemon, jm_account *job) {
    jm_message why;
    if (daemon->store && jm_store_settle(daemon->store, job, &why) != 0)
        jm_error("job %u: %s; its record may be written again", job->job_id, why.text);
    jm_ledger_settle(&daemon->ledger, job);
}

static bool is_recorded(const jm_daemon *daemon, const jm_unsaved *left, const jm_account *job) {
    if (jm_unsaved_has(left, job->job_id, job->opened_ns))
        return true;
    for (int i = 0; i < JM_OUTBOXES; i++)
        if (jm_record_waits(daemon->outboxes.path[i], daemon->config.cluster, daemon->node, job))
            return true;
    return false;
}

/* Their records were written after the ledger was last saved: what it knows of them is older. */
static void settle_the_recorded(jm_daemon *daemon, const jm_unsaved *left) {
    for (int i = daemon->ledger.n_accounts - 1; i >= 0; i--) { /* a job is before its steps */
        jm_account *job = daemon->ledger.accounts[i];
        if (job->kind != JM_ACCOUNT_JOB || !is_recorded(daemon, left, job))
            continue;
        jm_info("job %u: its record was written before the ledger could be saved, and stands",
                job->job_id);
        settle(daemon, job);
    }
}

static void open_store(jm_daemon *daemon, const jm_unsaved *left, jm_moment *before) {
    char path[JM_PATH_MAX + 16];
    jm_format(path, sizeof path, "%s/ledger.sqlite", daemon->config.state_dir);
    jm_message *why = &daemon->store_fault;
    *before = (jm_moment){0};
    if (jm_store_open(&daemon->store, path, why) != 0 ||
        jm_store_load(daemon->store, &daemon->ledger, jm_presence_lives, before, why) != 0) {
        jm_error("%s; the ledger lives in memory only", why->text);
        jm_store_close(daemon->store);
        daemon->store = NULL;
        return;
    }
    why->text[0] = '\0';
    settle_the_recorded(daemon, left);
    for (int i = 0; i < daemon->ledger.n_accounts; i++)
        daemon->contains |= daemon->ledger.accounts[i]->contained;
}

/* It runs from the first tick on. */
static void start_forwarder(jm_daemon *daemon) {
    jm_message why;
    if (jm_outbox_make(&daemon->outboxes, &why) != 0)
        jm_error("%s; records wait in %s", why.text, daemon->outboxes.path[1]);
    daemon->forwarder = (jm_forwarder){.config = &daemon->config, .node = daemon->node};
}

static void keep_mark(void *context, const jm_account *holder, const jm_mark *mark) {
    jm_daemon *daemon = context;
    jm_profiles_mark(daemon->profiles, &daemon->ledger, holder, mark, daemon->last_tick_boot_ns,
                     daemon->last_tick_real_ns);
}

/* Counters make up for the time without a daemon, unless records have charged some of it. */
static void take_up_channels(jm_daemon *daemon, int64_t before_boot_ns, bool charged) {
    if (charged)
        jm_warn("records were written while the ledger could not be saved: what the counters "
                "gained since it was is charged to nobody again");
    for (int c = 0; c < daemon->ledger.n_channels; c++) {
        if (charged)
            jm_channel_forget(&daemon->ledger.channels[c]);
        else
            daemon->ledger.channels[c].settled_boot_ns = before_boot_ns;
    }
}

int jm_daemon_start(jm_daemon *daemon) {
    const jm_config *config = &daemon->config;
    jm_ledger_init(&daemon->ledger, (uint64_t)config->cpus,
                   (int64_t)(config->period_s * (double)JM_NS_PER_S));
    if (jm_read_small_file("/proc/sys/kernel/random/boot_id", daemon->boot_id,
                           sizeof daemon->boot_id) < 0)
        daemon->boot_id[0] = '\0';
    jm_sampler_open(&daemon->sampler, config, &daemon->ledger);
    if (daemon->ledger.n_channels == 0) {
        jm_error("%s: no instrument could be opened, nothing to measure with; see above",
                 config->path);
        return -1;
    }
    daemon->profiles = jm_profiles_new(config, daemon->node);
    daemon->marks = jm_marks_new(keep_mark, daemon);
    if (!daemon->profiles || !daemon->marks) {
        jm_error("no memory or descriptors for marks and profiles");
        return -1;
    }
    jm_moment before;
    jm_outbox_find(&daemon->config, &daemon->outboxes);
    jm_unsaved left = jm_unsaved_read(config->socket);
    int64_t charged_ns = left.until_ns;
    open_store(daemon, &left, &before);
    jm_unsaved_free(&left);
    jm_profiles_tidy(daemon->profiles, &daemon->ledger);
    start_forwarder(daemon);

    int64_t boot_ns = jm_boot_ns();
    bool same_boot = strcmp(before.boot_id, daemon->boot_id) == 0 && before.boot_ns <= boot_ns;
    if (before.boot_id[0])
        jm_presence_close_unseen(daemon, &before, same_boot,
                                 same_boot ? "down" : "down (the node was rebooted)");
    daemon->recovering = same_boot && before.boot_id[0];
    daemon->charged_unsaved = charged_ns > 0;
    daemon->started_boot_ns = boot_ns;
    daemon->started_uj = jm_ledger_node_uj(&daemon->ledger);
    daemon->last_tick_boot_ns = daemon->recovering ? before.boot_ns : boot_ns - SHORTEST_TICK_NS;
    if (!daemon->recovering)
        for (int c = 0; c < daemon->ledger.n_channels; c++)
            jm_channel_forget(&daemon->ledger.channels[c]);
    else {
        take_up_channels(daemon, before.boot_ns, charged_ns > before.boot_ns);
        jm_info("taking up the ledger left %.3f s ago, %d accounts in it",
                (double)(boot_ns - before.boot_ns) / 1e9, daemon->ledger.n_accounts);
    }
    jm_daemon_tick(daemon);
    jm_daemon_write_due_records(daemon);
    return 0;
}

static void write_unknown(const jm_daemon *daemon, jm_end *end) {
    jm_message missing, why;
    jm_message_set(&missing, NO_ACCOUNT, end->job_id);
    for (int i = 0; i < JM_OUTBOXES && end->unknown; i++)
        end->unknown =
            jm_record_write_missing(daemon->outboxes.path[i], daemon->config.cluster, daemon->node,
                                    end->job_id, end->uid, missing.text, &why) != 0;
    if (end->unknown)
        jm_error("job %u: %s; tried again later", end->job_id, why.text);
}

/* Their epilogs could say so, too, were they not killed. */
static void write_all_unknown(jm_daemon *daemon) {
    for (int i = 0; i < JM_ENDS_MAX; i++)
        if (daemon->ends[i].unknown)
            write_unknown(daemon, &daemon->ends[i]);
}

void jm_daemon_stop(jm_daemon *daemon) {
    daemon->sweep = (jm_sweep){0}; /* so the last tick reads all */
    mark_unsaved(daemon);
    jm_daemon_tick(daemon);
    jm_daemon_write_due_records(daemon); /* of jobs without an account, nothing else has them */
    jm_forwarder_stop(&daemon->forwarder);
    jm_store_close(daemon->store);
    jm_sampler_close(&daemon->sampler);
    jm_marks_free(daemon->marks);
    jm_profiles_free(daemon->profiles);
    jm_ledger_free(&daemon->ledger);
}

/* What began well before its account did has lost that time. */
static void note_late_opening(const jm_daemon *daemon, jm_account *account, int64_t late_ns) {
    if (late_ns <= (int64_t)(daemon->config.period_s * (double)JM_NS_PER_S))
        return;
    char text[128];
    jm_format(text, sizeof text, "joulemarkd did not see its first %.3f s", (double)late_ns / 1e9);
    jm_account_note(account, text);
    account->gap_ns += late_ns;
}

jm_account *jm_daemon_open_account(jm_daemon *daemon, jm_open_request *request,
                                   int64_t sent_boot_ns, jm_message *why) {
    if (!jm_presence_admits(daemon, request, sent_boot_ns, why))
        return NULL;
    jm_account *account = jm_ledger_find(&daemon->ledger, request->pid, request->pid_start);
    bool is_new = account == NULL;
    const jm_account *job = jm_ledger_find_job(&daemon->ledger, request->job_id);
    bool is_new_job = !job || job->closed_ns != 0;
    const int64_t rest_ns = job ? job->rest_ns : 0; /* more than that the step did not miss of it */
    if (is_new) {
        request->cpu_ns = jm_process_tree_cpu_ns(request->pid, NULL);
        jm_daemon_sample_for_job(daemon, 0);
    }
    account = jm_ledger_open(&daemon->ledger, request, daemon->last_tick_real_ns);
    if (!account) {
        jm_message_set(why, "out of memory");
        return NULL;
    }
    if (is_new) {
        int64_t late_ns = jm_boot_ns() - jm_process_start_boot_ns(request->pid_start);
        note_late_opening(daemon, account, late_ns);
        note_late_opening(daemon, account->job,
                          is_new_job || late_ns < rest_ns ? late_ns : rest_ns);
        mark_unsaved(daemon);
    }
    daemon->contains |= account->kind == JM_ACCOUNT_EXTERN;
    return account;
}

void jm_daemon_close_account(jm_daemon *daemon, jm_account *account, bool agreed) {
    if (account->closed_ns != 0)
        return;
    jm_daemon_sample_for_job(daemon, account->job_id);
    if (!agreed && account->closed_ns == 0)
        jm_account_note(account, "its slurmstepd ended without a word");
    jm_marks_drain(daemon->marks, &daemon->ledger, account->job_id, daemon->last_tick_boot_ns);
    jm_ledger_close(&daemon->ledger, account, daemon->last_tick_real_ns, agreed);
    mark_unsaved(daemon);
}

static void warn_without_contain(jm_daemon *daemon, const jm_account *job) {
    if (job->contained || daemon->warned_contain)
        return;
    daemon->warned_contain = true;
    jm_warn("job %u had no .extern step: PrologFlags=Contain is not set in slurm.conf, so sacct's "
            "job rows lack the "
            "energy of batch scripts and of the time between steps; our records have it",
            job->job_id);
}

/* The option is read where no configuration is: who asked for too much learns it here. */
static void note_coarser_profile(const jm_daemon *daemon, jm_account *job) {
    double hz = jm_profile_hz(&daemon->config, job);
    if (hz <= 0 || hz >= job->profile_hz || strstr(job->note, "profile_max_hz"))
        return;
    char text[128];
    jm_format(text, sizeof text, "its profile has %g samples a second, not %g: `profile_max_hz`",
              hz, job->profile_hz);
    jm_account_note(job, text);
}

static void note_large_profile(const jm_daemon *daemon, jm_account *job) {
    static const char NOTE[] = "its profile is one sample a minute at last: `profile_max_mib`";
    if (jm_profile_is_coarse(daemon->profiles, job) && !strstr(job->note, NOTE))
        jm_account_note(job, NOTE);
}

/* Without our SPANK plugin nobody tells. */
static void note_the_unknown(jm_account *job) {
    const char *unknown = job->uid == JM_UID_UNKNOWN ? "user, cores and GPUs" : "cores";
    char text[128];
    jm_format(text, sizeof text, "nobody told its %s: `joulemark doctor` finds why", unknown);
    if ((job->uid == JM_UID_UNKNOWN || job->cpus == 0) && !strstr(job->note, text))
        jm_account_note(job, text);
}

/* Before the record, so that whoever finds the record finds the profile too. */
static void write_profile(jm_daemon *daemon, const jm_account *job) {
    jm_message why;
    for (int i = 0; i < JM_OUTBOXES; i++)
        if (jm_profiles_finish(daemon->profiles, &daemon->ledger, job, daemon->outboxes.path[i],
                               &why) == 0)
            return;
    jm_warn("job %u: no profile: %s", job->job_id, why.text);
}

/* The second outbox where the first's disk is full. False and why: neither took the record. */
static bool write_to_an_outbox(const jm_daemon *daemon, jm_account *job, jm_message *why) {
    for (int i = 0; i < JM_OUTBOXES; i++)
        if (jm_record_write(daemon->outboxes.path[i], daemon->config.cluster, daemon->node,
                            &daemon->ledger, daemon->store, job, &daemon->sampler, why) == 0)
            return true;
    return false;
}

/* False and why: the next daemon could not be told, so nothing may be charged now. */
static bool charge_unsaved(jm_daemon *daemon, jm_message *why) {
    daemon->charged_unsaved = true;
    return jm_unsaved_mark(daemon->config.socket, daemon->last_tick_boot_ns, why) == 0;
}

/* That the next daemon finds the job in what was saved, and shall leave it alone. */
static void list_recorded(const jm_daemon *daemon, uint32_t job_id, int64_t opened_ns) {
    jm_message why;
    if (jm_unsaved_recorded(daemon->config.socket, job_id, opened_ns, &why) != 0)
        jm_error("job %u: %s", job_id, why.text);
}

/* The ledger was just saved, or could not be. */
static int write_record(jm_daemon *daemon, jm_account *job, jm_message *why) {
    if (daemon->store_fault.text[0] && !strstr(job->note, "not saved on disk")) {
        jm_account_note(job, "the ledger was not saved on disk: ");
        jm_account_note(job, daemon->store_fault.text);
    }
    note_the_unknown(job);
    const bool unsaved = daemon->store_fault.text[0] != '\0';
    const uint32_t job_id = job->job_id;
    const int64_t opened_ns = job->opened_ns;
    if (job->mode == JM_MODE_PROFILE) {
        note_coarser_profile(daemon, job);
        note_large_profile(daemon, job);
        write_profile(daemon, job);
    }
    if (unsaved && !charge_unsaved(daemon, why))
        return -1;
    if (!write_to_an_outbox(daemon, job, why))
        return -1;
    if (unsaved)
        list_recorded(daemon, job_id, opened_ns);
    if (job->mode == JM_MODE_PROFILE)
        jm_profiles_forget(daemon->profiles, job);
    settle(daemon, job);
    save(daemon);
    jm_message failure;
    if (!unsaved && daemon->store_fault.text[0]) { /* the disk has filled since */
        if (!charge_unsaved(daemon, &failure))
            jm_error("job %u: %s", job_id, failure.text);
        list_recorded(daemon, job_id, opened_ns);
    }
    return 0;
}

void jm_daemon_set_cores(jm_daemon *daemon, uint64_t cores) {
    jm_ledger *ledger = &daemon->ledger;
    if (cores == 0 || (ledger->cpus_told && ledger->cpus == cores))
        return;
    jm_daemon_sample_for_job(daemon, 0); /* what was until now is divided by what was known */
    if (ledger->cpus != cores)
        jm_info("Slurm gives %llu cores of this node to jobs; so far it was taken to have %llu",
                (unsigned long long)cores, (unsigned long long)ledger->cpus);
    ledger->cpus = cores;
    ledger->cpus_told = true;
    mark_unsaved(daemon);
}

/* Does some process of the job belong to a later run of it than the one that ended? */
static bool runs_again(const jm_ledger *ledger, const jm_account *job, int64_t sent_boot_ns) {
    for (int i = 0; i < ledger->n_accounts; i++) {
        const jm_account *account = ledger->accounts[i];
        if (account->job == job && account->closed_ns == 0 &&
            jm_process_start_boot_ns(account->pid_start) > sent_boot_ns)
            return true;
    }
    return false;
}

int jm_daemon_end_job(jm_daemon *daemon, uint32_t job_id, int64_t sent_boot_ns, jm_message *why) {
    jm_account *job = jm_ledger_find_job(&daemon->ledger, job_id);
    jm_presence_job_ended(daemon, job_id, sent_boot_ns);
    if (!job) {
        jm_message_set(why, NO_ACCOUNT, job_id);
        return -1;
    }
    if (job->closed_ns == 0) {
        jm_daemon_sample_for_job(daemon, job_id);
        jm_marks_drain(daemon->marks, &daemon->ledger, job_id, daemon->last_tick_boot_ns);
    }
    if (runs_again(&daemon->ledger, job, sent_boot_ns)) {
        jm_message_set(why, "job %u has begun again since", job_id);
        return -1;
    }
    jm_ledger_wake(&daemon->ledger, job);
    int64_t now_ns = daemon->last_tick_real_ns;
    for (int i = 0; i < daemon->ledger.n_accounts; i++)
        if (daemon->ledger.accounts[i]->job == job)
            jm_ledger_close(&daemon->ledger, daemon->ledger.accounts[i], now_ns, false);
    jm_ledger_close(&daemon->ledger, job, now_ns, false);
    warn_without_contain(daemon, job);
    daemon->contains = job->contained;
    /* The epilog holds up the node, so all this is saved, and recorded, after it has its answer. */
    job->due = true;
    daemon->records_due = true;
    mark_unsaved(daemon);
    if (!job->contained || job->id == 0)
        save(daemon); /* the next daemon would not find it, or not that it is over */
    return 0;
}

bool jm_daemon_end_unknown_job(jm_daemon *daemon, uint32_t job_id, uint32_t uid) {
    if (jm_ledger_find_job(&daemon->ledger, job_id))
        return false;
    jm_end *end = &daemon->ends[(daemon->n_ends - 1) % JM_ENDS_MAX];
    end->uid = uid;
    end->unknown = true;
    daemon->unknown_due = true;
    return true;
}

static bool has_record_due(const jm_account *job, int64_t now_ns, int64_t boot_ns) {
    return job->kind == JM_ACCOUNT_JOB && job->closed_ns != 0 &&
           (job->due || now_ns - job->closed_ns >= EPILOG_PATIENCE_NS) &&
           (job->failed_boot_ns == 0 || boot_ns - job->failed_boot_ns > RECORDS_EVERY_NS / 2);
}

/* One at least, and then as long as that. True: more are due. */
static bool write_records(jm_daemon *daemon, int64_t part_ns) {
    const int64_t now_ns = jm_real_ns(), boot_ns = jm_boot_ns();
    bool tried = false, saved = false;
    for (int i = 0; i < daemon->ledger.n_accounts; i++) {
        jm_account *job = daemon->ledger.accounts[i];
        if (!has_record_due(job, now_ns, boot_ns))
            continue;
        if (tried && jm_boot_ns() - boot_ns >= part_ns)
            return true;
        tried = true;
        if (!saved && (job->dirty || daemon->store_fault.text[0]))
            save(daemon);    /* as it ended; or else what follows knows that it cannot be */
        saved |= job->dirty; /* or tried in vain: once for all */
        jm_message why;
        if (write_record(daemon, job, &why) != 0) {
            jm_error("job %u: %s; tried again later", job->job_id, why.text);
            job->failed_boot_ns = boot_ns;
            continue;
        }
        i = -1; /* the list has changed */
    }
    return false;
}

void jm_daemon_write_due_records(jm_daemon *daemon) {
    write_all_unknown(daemon);
    write_records(daemon, INT64_MAX);
}

/* Also those that could not be written, and those whose epilog never came. */
static void look_for_records(jm_daemon *daemon, int64_t now_ns) {
    if (daemon->unknown_due || now_ns >= daemon->next_records_ns)
        write_all_unknown(daemon);
    daemon->unknown_due = false;
    if (now_ns < daemon->next_records_ns)
        return;
    daemon->next_records_ns = now_ns + RECORDS_EVERY_NS;
    daemon->records_due = true;
}

int jm_daemon_flush(jm_daemon *daemon) {
    int64_t now_ns = jm_boot_ns(), rest_ns = SAVE_REST * daemon->save_ns;
    look_for_records(daemon, now_ns);
    if (daemon->unsaved_since_ns == 0 && !daemon->records_due)
        return -1;
    if (rest_ns > SAVE_REST_MAX_NS)
        rest_ns = SAVE_REST_MAX_NS;
    int64_t due_ns = daemon->records_due ? now_ns : daemon->unsaved_since_ns + SAVE_WITHIN_NS;
    if (due_ns < daemon->flushed_boot_ns + rest_ns)
        due_ns = daemon->flushed_boot_ns + rest_ns;
    if (due_ns > now_ns)
        return (int)((due_ns - now_ns) / 1000000) + 1;
    if (daemon->records_due && write_records(daemon, RECORDS_PART_NS))
        return 0;
    daemon->records_due = false;
    if (daemon->unsaved_since_ns != 0)
        save(daemon);
    daemon->flushed_boot_ns = jm_boot_ns();
    return -1;
}

static jm_account *account_of_descendant(const jm_daemon *daemon, int32_t pid) {
    jm_process process;
    for (int depth = 0; depth < 64 && pid > 1 && jm_process_read(pid, &process); depth++) {
        jm_account *account = jm_ledger_find(&daemon->ledger, pid, process.start);
        if (account && account->closed_ns == 0)
            return account;
        pid = process.parent;
    }
    return NULL;
}

jm_account *jm_daemon_marked_account(const jm_daemon *daemon, jm_peer *peer, jm_message *why) {
    jm_process process;
    if (!jm_process_read(peer->pid, &process) || process.start != peer->pid_start) {
        jm_message_set(why, "process %d has ended, its number is another's or nobody's", peer->pid);
        return NULL;
    }
    jm_account *account = jm_ledger_find(&daemon->ledger, peer->step_pid, peer->step_start);
    if (!account || account->closed_ns != 0)
        account = account_of_descendant(daemon, peer->pid);
    if (account && account->uid == peer->uid) {
        peer->step_pid = account->pid;
        peer->step_start = account->pid_start;
        return account;
    }
    jm_message_set(why, "this process belongs to no job step here");
    return NULL;
}
