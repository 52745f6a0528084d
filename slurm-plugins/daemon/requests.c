// SPDX-License-Identifier: GPL-2.0-or-later
// What is asked on the daemon's socket, what of it who may, and what is answered.
#include "requests.h"

#include "clock.h"
#include "log.h"
#include "marks.h"
#include "presence.h"
#include "process.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* A user's marks never make the instruments be read faster than this (Platypus: fine power traces
 * leak secrets). */
static const int64_t USER_SAMPLE_NS = 20000000;
/* Marks wait no longer than this for the values of instruments that are slow. */
static const int64_t BRING_LONGEST_NS = 100000000;
/* And look so often whether they are there. */
static const int64_t LOOK_AGAIN_NS = 5000000;
/* An answer about a region waits no longer than this for marks before it. */
static const int64_t WAIT_LONGEST_NS = 200000000;
/* Plugins of another release are told of so long after they asked last. */
static const int64_t MIXED_NS = 600 * INT64_C(1000000000);

void jm_requests_refuse(char *answer, const char *text) {
    jm_packet_begin(answer, JM_PACKET_MAX, "error");
    jm_packet_add(answer, JM_PACKET_MAX, "text", "%s", text);
}

static void add_u64(char *answer, const char *key, uint64_t value) {
    jm_packet_add(answer, JM_PACKET_MAX, key, "%llu", (unsigned long long)value);
}

static void add_double(char *answer, const char *key, double value) {
    jm_packet_add(answer, JM_PACKET_MAX, key, "%.6f", value);
}

static jm_account *own_account(jm_requests *r, const jm_asker *client) {
    return jm_ledger_find(&r->daemon->ledger, client->peer.pid, client->peer.pid_start);
}

static void do_open(jm_requests *r, jm_asker *client, const jm_packet *packet, char *answer) {
    const char *step = jm_packet_get(packet, "step");
    uint64_t job = jm_packet_u64(packet, "job", 0);
    if (!step || strlen(step) >= JM_STEP_MAX || job == 0 || job > UINT32_MAX) {
        jm_requests_refuse(answer, "open needs job=NUMBER and step=NAME");
        return;
    }
    jm_open_request request = {
        .job_id = (uint32_t)job,
        .uid = (uint32_t)jm_packet_u64(packet, "uid", JM_UID_UNKNOWN),
        .step = step,
        .pid = client->peer.pid,
        .pid_start = client->peer.pid_start,
        .job_cpus = jm_packet_u64(packet, "job_cpus", 0),
        .step_cpus = jm_packet_u64(packet, "step_cpus", 0),
        .mode = (jm_mode)jm_packet_u64(packet, "mode", JM_MODE_OFF),
        .profile_hz = jm_packet_double(packet, "hz", 0),
    };
    const char *gpus = jm_packet_get(packet, "gpus");
    if (gpus && !jm_gpus_parse(gpus, &request.gpus))
        jm_warn("job %u.%s: gpus '%s' is no list of numbers below %d: not bound to it",
                request.job_id, step, gpus, JM_GPUS_MAX);
    jm_message why;
    jm_account *account = jm_daemon_open_account(r->daemon, &request, client->sent_ns, &why);
    if (!account)
        jm_requests_refuse(answer, why.text);
    else if (!account->watched)
        r->opened = account;
}

/* A reply that took too long was dropped: Slurm still has the one before. */
static void note_heard(jm_account *account, const jm_packet *packet) {
    if (jm_packet_get(packet, "heard_ns"))
        jm_account_heard(account, (int64_t)jm_packet_u64(packet, "heard_ns", 0));
}

static void do_read(jm_requests *r, jm_asker *client, const jm_packet *packet, char *answer) {
    jm_account *account = own_account(r, client);
    if (!account) {
        jm_requests_refuse(answer, "no account is open for this process");
        return;
    }
    jm_daemon_sample_for_job(r->daemon, account->job_id);
    const char *scope = jm_packet_get(packet, "scope");
    bool whole_job = scope && strcmp(scope, "job") == 0;
    if (!scope && account->closed_ns == 0) {
        note_heard(account, packet);
        jm_ledger_told(&r->daemon->ledger, account, r->daemon->last_tick_real_ns);
        add_u64(answer, "told_ns", (uint64_t)r->daemon->last_tick_real_ns);
    }
    const jm_account *holder =
        whole_job && account->job ? account->job : jm_account_holder(account);
    jm_estimate estimate = jm_ledger_estimate(&r->daemon->ledger, holder);
    add_u64(answer, "energy_uj", estimate.energy_uj);
    add_u64(answer, "known", estimate.known);
    add_double(answer, "uncertainty_uj", estimate.uncertainty_uj);
    add_double(answer, "watts", holder->current_w > 0 ? holder->current_w : estimate.mean_w);
    add_double(answer, "mean_w", estimate.mean_w);
    add_u64(answer, "estimated", estimate.method == JM_METHOD_MODEL);
    add_double(answer, "gap_s", (double)holder->gap_ns / 1e9);
    add_double(answer, "seconds", (double)holder->active_ns / 1e9);
}

static void do_close(jm_requests *r, jm_asker *client, const jm_packet *packet, char *answer) {
    jm_account *account = own_account(r, client);
    if (!account) {
        jm_requests_refuse(answer, "no account is open for this process");
        return;
    }
    /* The energy plugin's own word comes, too, and after a pause of ours perhaps later. */
    if (jm_account_holder(account)->told.balance && !jm_packet_get(packet, "heard_ns"))
        return;
    note_heard(account, packet);
    jm_account_holder(account)->missed = jm_packet_u64(packet, "missed", 0) == 1;
    jm_daemon_close_account(r->daemon, account, true);
}

static void do_end(jm_requests *r, jm_asker *client, const jm_packet *packet, char *answer) {
    jm_message why;
    uint64_t job = jm_packet_u64(packet, "job", 0);
    uint32_t user = (uint32_t)jm_packet_u64(packet, "uid", 0);
    if (job == 0 || job > UINT32_MAX)
        jm_requests_refuse(answer, "end needs job=NUMBER");
    else if (jm_daemon_end_job(r->daemon, (uint32_t)job, client->sent_ns, &why) != 0) {
        jm_error("job %u: %s", (unsigned)job, why.text);
        if (!jm_daemon_end_unknown_job(r->daemon, (uint32_t)job, user))
            jm_requests_refuse(answer, why.text);
    }
}

static void do_node(jm_requests *r, jm_asker *client, const jm_packet *packet, char *answer) {
    (void)client;
    jm_daemon_set_cores(r->daemon, jm_packet_u64(packet, "cores", 0));
    jm_daemon_sample_if_older(r->daemon, r->daemon->ledger.window_ns, JM_ASKED_BY_PERIOD);
    uint64_t energy_uj = jm_ledger_node_uj(&r->daemon->ledger);
    double up_s = (double)(r->daemon->last_tick_boot_ns - r->daemon->started_boot_ns) / 1e9;
    add_u64(answer, "energy_uj", energy_uj);
    add_double(answer, "watts", r->daemon->ledger.node_w);
    add_double(answer, "mean_w",
               up_s > 0 ? (double)(energy_uj - r->daemon->started_uj) / 1e6 / up_s : 0);
}

static void do_books(jm_requests *r, jm_asker *client, const jm_packet *packet, char *answer) {
    (void)client;
    const jm_ledger *ledger = &r->daemon->ledger;
    uint64_t channel = jm_packet_u64(packet, "channel", 0);
    if (channel >= (uint64_t)ledger->n_channels) {
        jm_requests_refuse(answer, "no such channel");
        return;
    }
    jm_packet_add(answer, JM_PACKET_MAX, "name", "%s", ledger->channels[channel].name);
    add_u64(answer, "total_uj", ledger->channels[channel].total_uj);
    add_u64(answer, "charged_uj", jm_ledger_charged_uj(ledger, (int)channel));
    add_u64(answer, "unallocated_uj", ledger->unallocated[channel].energy_uj);
    add_u64(answer, "channels", (uint64_t)ledger->n_channels);
}

/* ---- regions ---- */

static void stop_waiting(jm_requests *r, jm_asker *client) {
    int kept = 0;
    for (int i = 0; i < r->n_waiting; i++)
        if (r->waiting[i] != client)
            r->waiting[kept++] = r->waiting[i];
    r->n_waiting = kept;
    client->asked_ns = 0;
}

/* The slow ones' values of marks are there, or have taken too long. */
static bool are_brought(jm_requests *r) {
    jm_sampler *sampler = &r->daemon->sampler;
    int64_t boot_ns = jm_boot_ns();
    if (r->daemon->bringing_ns == 0) {
        jm_sampler_ask_at_marks(sampler, &r->daemon->ledger, jm_real_ns(), boot_ns);
        r->daemon->bringing_ns = boot_ns;
    }
    if (jm_sampler_awaits_marks(sampler, r->daemon->bringing_ns) &&
        boot_ns - r->daemon->bringing_ns < BRING_LONGEST_NS)
        return false;
    r->daemon->bringing_ns = 0;
    return true;
}

/* For marks, instruments are read now, or as soon as users may have them read again. */
static void sample_for_marks(jm_requests *r) {
    int64_t rest_ns = LOOK_AGAIN_NS;
    if (are_brought(r)) {
        int64_t age_ns = jm_daemon_sample_if_older(r->daemon, USER_SAMPLE_NS, JM_ASKED_BY_MARK);
        rest_ns = age_ns < USER_SAMPLE_NS ? USER_SAMPLE_NS - age_ns : 1;
    }
    struct itimerspec once = {.it_value = jm_timespec(rest_ns + 1000)};
    r->resting = timerfd_settime(r->rest_fd, 0, &once, NULL) == 0;
}

static void wait_for_region(jm_requests *r, jm_asker *client, uint32_t thread, char *answer) {
    if (client->asked_ns == 0 && r->n_waiting == JM_WAITING_MAX) {
        jm_requests_refuse(answer, "too many processes ask for regions");
        return;
    }
    if (client->asked_ns == 0)
        r->waiting[r->n_waiting++] = client;
    client->asked_ns = jm_boot_ns();
    client->asked_thread = thread;
    if (!r->resting)
        sample_for_marks(r);
}

/* The account that this client's marks go to, and that it may be told of. */
static jm_account *marked_account(jm_requests *r, jm_asker *client, char *answer) {
    jm_message why;
    jm_account *account = jm_daemon_marked_account(r->daemon, &client->peer, &why);
    if (!account)
        jm_requests_refuse(answer, why.text);
    return account;
}

/* One word more; none twice. False: there is no room for it. */
static bool add_word(char words[JM_VALUE_MAX], const char *word) {
    size_t used = strlen(words), length = strlen(word);
    for (const char *at = words; (at = strstr(at, word)); at += length)
        if ((at == words || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    return jm_format(words + used, JM_VALUE_MAX - used, "%s%s", used ? " " : "", word);
}

/* What the account's energy comes from, as its node is set up; of too many channels no names, for
 * a part of them would pass for all. */
static void tell_channels(const jm_ledger *ledger, const jm_account *account, char *answer) {
    char instruments[JM_VALUE_MAX] = "", channels[JM_VALUE_MAX] = "", word[2 * JM_NAME_MAX];
    bool all = true;
    for (int c = 0; c < ledger->n_channels; c++) {
        const jm_channel *channel = &ledger->channels[c];
        if (!jm_ledger_charges(ledger, account, c))
            continue;
        jm_format(word, sizeof word, "%s/%s", channel->info.type,
                  jm_domain_name(channel->info.domain));
        all = add_word(instruments, word) && add_word(channels, channel->name) && all;
    }
    jm_packet_add(answer, JM_PACKET_MAX, "instruments", "%s", instruments);
    jm_packet_add(answer, JM_PACKET_MAX, "channels", "%s", all ? channels : "");
}

static void do_marks(jm_requests *r, jm_asker *client, const jm_packet *packet, char *answer) {
    jm_account *account = marked_account(r, client, answer);
    if (!account)
        return;
    if (client->source) {
        jm_requests_refuse(answer, "this process has its ring already");
        return;
    }
    uint64_t rank = jm_packet_u64(packet, "rank", UINT64_MAX);
    jm_message why;
    client->source = jm_marks_attach(r->daemon->marks, &r->daemon->ledger, account,
                                     rank <= INT32_MAX ? (int)rank : -1,
                                     r->daemon->last_tick_boot_ns, r->passed_fds, &why);
    if (client->source)
        tell_channels(&r->daemon->ledger, account, answer);
    else
        jm_requests_refuse(answer, why.text);
}

/* A shell's marks come from children of its own: owner=parent has them belong to the shell. */
static uint32_t marking_thread(const jm_asker *client, const jm_packet *packet) {
    const char *owner = jm_packet_get(packet, "owner");
    jm_process process;
    if (owner && strcmp(owner, "parent") == 0 && jm_process_read(client->peer.pid, &process))
        return (uint32_t)process.parent;
    return (uint32_t)client->peer.pid;
}

static bool put_mark(jm_requests *r, jm_asker *client, const jm_packet *packet, int kind,
                     char *answer) {
    const char *name = jm_packet_get(packet, "name");
    if (!name || !name[0] || strlen(name) >= JM_REGION_NAME_MAX) {
        jm_requests_refuse(answer, "a region needs name=TEXT of 1 to 95 bytes");
        return false;
    }
    jm_account *account = marked_account(r, client, answer);
    if (!account)
        return false;
    if (!jm_marks_put(r->daemon->marks, &r->daemon->ledger, account, marking_thread(client, packet),
                      kind, name, jm_boot_ns(), r->daemon->last_tick_boot_ns)) {
        jm_requests_refuse(answer, "too many marks at a time");
        return false;
    }
    if (!r->resting)
        sample_for_marks(r);
    return true;
}

static void do_region_begin(jm_requests *r, jm_asker *client, const jm_packet *packet,
                            char *answer) {
    put_mark(r, client, packet, JM_MARK_BEGIN, answer);
}

static void do_region_end(jm_requests *r, jm_asker *client, const jm_packet *packet, char *answer) {
    if (put_mark(r, client, packet, JM_MARK_END, answer))
        wait_for_region(r, client, marking_thread(client, packet), answer);
}

static void do_region_last(jm_requests *r, jm_asker *client, const jm_packet *packet,
                           char *answer) {
    if (client->source)
        wait_for_region(r, client, (uint32_t)jm_packet_u64(packet, "thread", 0), answer);
    else
        jm_requests_refuse(answer, "this process has no ring");
}

static void answer_region(jm_requests *r, jm_asker *client) {
    char answer[JM_PACKET_MAX];
    jm_ledger *ledger = &r->daemon->ledger;
    jm_packet_begin(answer, sizeof answer, "ok");
    jm_account *account = marked_account(r, client, answer);
    jm_source *source = client->source ? client->source
                        : account      ? jm_marks_of_shells(r->daemon->marks, account)
                                       : NULL;
    jm_visit_sum sum;
    jm_estimate estimate = {0};
    if (account)
        estimate = jm_ledger_estimate(ledger, account);
    if (account && !estimate.known) {
        jm_requests_refuse(answer, "no instrument of the node's total has shown a value");
    } else if (account && source && jm_marks_last(source, ledger, client->asked_thread, &sum)) {
        add_u64(answer, "energy_uj", sum.energy_uj);
        add_double(answer, "uncertainty_uj", sum.uncertainty_uj);
        add_double(answer, "seconds", (double)sum.duration_ns / 1e9);
        add_u64(answer, "estimated", estimate.method == JM_METHOD_MODEL);
        add_u64(answer, "samples", sum.samples);
    } else if (account) {
        jm_requests_refuse(answer, "no region of this name was begun by this process");
    }
    stop_waiting(r, client);
    if (client->signs)
        jm_packet_sign(answer, sizeof answer);
    if (send(client->fd, answer, strlen(answer), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        shutdown(client->fd, SHUT_RDWR);
}

/* Whose marks a tick has taken in meanwhile. */
void jm_requests_answer_waiting(jm_requests *r) {
    for (int i = r->n_waiting - 1; i >= 0; i--) {
        jm_asker *client = r->waiting[i];
        bool behind = client->source && jm_source_pending(client->source) &&
                      jm_boot_ns() - client->asked_ns < WAIT_LONGEST_NS;
        if (r->daemon->powers_boot_ns >= client->asked_ns && !behind)
            answer_region(r, client);
    }
}

void jm_requests_marked(jm_requests *r) {
    sample_for_marks(r);
}

bool jm_requests_rest_over(jm_requests *r) {
    if (r->n_waiting > 0 || jm_marks_pending(r->daemon->marks))
        sample_for_marks(r);
    else
        r->resting = false, r->daemon->bringing_ns = 0; /* a job's tick took the marks in */
    return !r->resting;
}

/* ---- while it runs ---- */

/* What the job was charged by the last tick, or by an earlier one: a user is shown no two ticks
 * closer than a profile's. */
static const jm_shown *show(const jm_daemon *daemon, jm_account *job) {
    const int64_t rest_ns = (int64_t)(1e9 / daemon->config.profile_max_hz);
    jm_shown *shown = &job->shown;
    if (shown->boot_ns == 0 || daemon->last_tick_boot_ns - shown->boot_ns >= rest_ns)
        *shown = (jm_shown){daemon->last_tick_boot_ns, job->active_ns,
                            jm_ledger_estimate(&daemon->ledger, job)};
    return shown;
}

static void add_domains(char *answer, const jm_estimate *estimate) {
    char key[JM_KEY_MAX];
    for (int d = 0; d < JM_DOMAIN_COUNT; d++) {
        if (!estimate->domain_known[d])
            continue;
        jm_format(key, sizeof key, "%s_uj", jm_domain_name((jm_domain)d));
        add_u64(answer, key, estimate->domain_uj[d]);
    }
}

static void do_job_energy(jm_requests *r, jm_asker *client, const jm_packet *packet, char *answer) {
    jm_account *account = marked_account(r, client, answer);
    if (!account)
        return;
    if (jm_packet_u64(packet, "look_on", 0) == 1)
        jm_ledger_look_on(&r->daemon->ledger, account);
    const jm_shown *shown = show(r->daemon, account->job);
    const jm_estimate *estimate = &shown->estimate;
    jm_packet_add(answer, JM_PACKET_MAX, "node", "%s", r->daemon->node);
    add_u64(answer, "job", account->job_id);
    add_u64(answer, "time_ns", (uint64_t)shown->boot_ns);
    add_double(answer, "seconds", (double)shown->active_ns / 1e9);
    add_u64(answer, "energy_uj", estimate->energy_uj);
    add_u64(answer, "known", estimate->known);
    add_double(answer, "uncertainty_uj", estimate->uncertainty_uj);
    add_double(answer, "systematic_uj", estimate->systematic_uj);
    add_double(answer, "common_uj", estimate->common_uj);
    add_double(answer, "random_uj", estimate->random_uj);
    add_double(answer, "ends_uj", estimate->ends_uj);
    add_u64(answer, "estimated", estimate->method == JM_METHOD_MODEL);
    add_double(answer, "max_hz", r->daemon->config.profile_max_hz);
    add_domains(answer, estimate);
}

static bool is_estimated(const jm_ledger *ledger) {
    bool estimated = false;
    for (int c = 0; c < ledger->n_channels; c++)
        estimated |= ledger->channels[c].outermost && !ledger->channels[c].retired &&
                     ledger->channels[c].info.method == JM_METHOD_MODEL;
    return estimated;
}

static void do_node_energy(jm_requests *r, jm_asker *client, const jm_packet *packet,
                           char *answer) {
    (void)client, (void)packet;
    const jm_ledger *ledger = &r->daemon->ledger;
    uint64_t energy_uj = jm_ledger_node_uj(ledger);
    uint64_t unallocated_uj = jm_ledger_unallocated_uj(ledger);
    uint64_t jobs = 0;
    for (int i = 0; i < ledger->n_accounts; i++)
        jobs += ledger->accounts[i]->kind == JM_ACCOUNT_JOB && ledger->accounts[i]->closed_ns == 0;
    jm_packet_add(answer, JM_PACKET_MAX, "node", "%s", r->daemon->node);
    add_u64(answer, "time_ns", (uint64_t)r->daemon->last_tick_boot_ns);
    add_u64(answer, "energy_uj", energy_uj);
    add_u64(answer, "charged_uj", energy_uj - unallocated_uj);
    add_u64(answer, "unallocated_uj", unallocated_uj);
    add_u64(answer, "jobs", jobs);
    add_u64(answer, "estimated", is_estimated(ledger));
}

static void add_protocol(const jm_requests *r, char *answer) {
    char name[JM_NAME_MAX], mixed[JM_VALUE_MAX] = "";
    int64_t ago_ns = jm_boot_ns() - r->other_boot_ns;
    if (r->other_boot_ns != 0 && ago_ns < MIXED_NS) {
        jm_speaker_name(&r->other, name, sizeof name);
        jm_format(mixed, sizeof mixed, "%s, asked %lld s ago", name,
                  (long long)(ago_ns / INT64_C(1000000000)));
    }
    jm_packet_add(answer, JM_PACKET_MAX, "protocol", "%d-%d", JM_PROTOCOL_OLDEST, JM_PROTOCOL);
    jm_packet_add(answer, JM_PACKET_MAX, "mixed", "%s", mixed);
}

/* Of the node's total: what was configured and could not be opened, and what showed no value yet.
 */
static void tell_blanks(const jm_daemon *daemon, char *answer) {
    char left_out[JM_VALUE_MAX] = "", unread[JM_VALUE_MAX] = "";
    for (int i = 0; i < daemon->sampler.n_left_out; i++)
        add_word(left_out, daemon->sampler.left_out[i].name);
    for (int c = 0; c < daemon->ledger.n_channels; c++) {
        const jm_channel *channel = &daemon->ledger.channels[c];
        if (channel->outermost && !channel->retired && !channel->has_last)
            add_word(unread, channel->name);
    }
    jm_packet_add(answer, JM_PACKET_MAX, "left_out", "%s", left_out);
    jm_packet_add(answer, JM_PACKET_MAX, "unread", "%s", unread);
}

/* Whether both are of one instrument, domain and method, and both measure, or none does. */
static bool is_alike(const jm_channel *a, const jm_channel *b) {
    size_t length = strcspn(a->name, "/");
    return a->retired == b->retired && strncmp(a->name, b->name, length + 1) == 0 &&
           a->info.domain == b->info.domain && a->info.method == b->info.method;
}

/* What measures the node, INSTRUMENT/DOMAIN/METHOD and how many: the same on nodes of one kind. */
static void tell_meters(const jm_ledger *ledger, char *answer) {
    char meters[JM_VALUE_MAX] = "";
    for (int c = 0; c < ledger->n_channels; c++) {
        const jm_channel *channel = &ledger->channels[c];
        int first = 0, alike = 0;
        while (!is_alike(channel, &ledger->channels[first]))
            first++;
        if (first < c || channel->retired)
            continue; /* told with the first of its kind, or measures no more */
        for (int i = c; i < ledger->n_channels; i++)
            alike += is_alike(channel, &ledger->channels[i]);
        char word[3 * JM_NAME_MAX];
        jm_format(word, sizeof word, "%.*s/%s/%s*%d", (int)strcspn(channel->name, "/"),
                  channel->name, jm_domain_name(channel->info.domain),
                  jm_method_name(channel->info.method), alike);
        add_word(meters, word);
    }
    jm_packet_add(answer, JM_PACKET_MAX, "meters", "%s", meters);
}

static void do_status(jm_requests *r, jm_asker *client, const jm_packet *packet, char *answer) {
    (void)client, (void)packet;
    char lifeless[JM_VALUE_MAX];
    jm_presence_lifeless(&r->daemon->ledger, lifeless, sizeof lifeless);
    jm_packet_add(answer, JM_PACKET_MAX, "version", "%s", JOULEMARK_VERSION);
    jm_packet_add(answer, JM_PACKET_MAX, "node", "%s", r->daemon->node);
    add_u64(answer, "accounts", (uint64_t)r->daemon->ledger.n_accounts);
    add_u64(answer, "channels", (uint64_t)r->daemon->ledger.n_channels);
    tell_blanks(r->daemon, answer);
    tell_meters(&r->daemon->ledger, answer);
    add_u64(answer, "cores", r->daemon->ledger.cpus_told ? r->daemon->ledger.cpus : 0);
    add_u64(answer, "blind", r->daemon->blind);
    jm_packet_add(answer, JM_PACKET_MAX, "lifeless", "%s", lifeless);
    jm_packet_add(answer, JM_PACKET_MAX, "fault", "%s", r->daemon->store_fault.text);
    add_protocol(r, answer);
}

static const struct {
    const char *verb;
    bool privileged;
    void (*run)(jm_requests *, jm_asker *, const jm_packet *, char *);
} VERBS[] = {
    {"open", true, do_open},
    {"read", true, do_read},
    {"close", true, do_close},
    {"end", true, do_end},
    {"node", true, do_node},
    {"books", true, do_books},
    {"marks", false, do_marks},
    {"region_last", false, do_region_last},
    {"region_begin", false, do_region_begin},
    {"region_end", false, do_region_end},
    {"job_energy", false, do_job_energy},
    {"node_energy", true, do_node_energy},
    {"status", false, do_status},
};

/* When a request was sent, by its own word: never later than now. */
static int64_t sent_ns(const jm_packet *packet) {
    int64_t now_ns = jm_boot_ns();
    uint64_t told_ns = jm_packet_u64(packet, "sent_ns", (uint64_t)now_ns);
    return told_ns < (uint64_t)now_ns ? (int64_t)told_ns : now_ns;
}

/* Its sender waits no more: whatever it asked for, it has gone on without. */
static bool is_void(const jm_asker *client, const jm_packet *packet) {
    uint64_t wait_ms = jm_packet_u64(packet, "wait_ms", UINT64_MAX);
    return (uint64_t)(jm_boot_ns() - client->sent_ns) / 1000000 > wait_ms;
}

/* Of Slurm's own processes; a new one is logged. */
static void note_other(jm_requests *r, const jm_speaker *speaker) {
    char name[JM_NAME_MAX];
    if (jm_speaker_is_ours(speaker))
        return;
    if (r->other_boot_ns == 0 || memcmp(&r->other, speaker, sizeof *speaker) != 0) {
        jm_speaker_name(speaker, name, sizeof name);
        jm_info("Slurm's plugins here are %s, this is joulemarkd " JOULEMARK_VERSION
                ", protocol %d-%d: jobs keep those they began with",
                name, JM_PROTOCOL_OLDEST, JM_PROTOCOL);
    }
    r->other = *speaker;
    r->other_boot_ns = jm_boot_ns();
}

static void answer_verb(jm_requests *r, jm_asker *client, const jm_packet *packet,
                        const jm_speaker *speaker, char *answer) {
    jm_message why;
    for (size_t i = 0; i < sizeof VERBS / sizeof *VERBS; i++) {
        if (strcmp(VERBS[i].verb, packet->verb) != 0)
            continue;
        if (VERBS[i].privileged && client->privileged)
            note_other(r, speaker);
        if (VERBS[i].privileged && !client->privileged)
            jm_requests_refuse(answer,
                               "not permitted: only root and `privileged_users` may ask this");
        else if (!jm_speaker_fits(speaker, &why))
            jm_requests_refuse(answer, why.text);
        else if (VERBS[i].run != do_end && is_void(client, packet))
            jm_requests_refuse(answer, "void: it waited longer here than its sender does");
        else
            VERBS[i].run(r, client, packet, answer);
        return;
    }
    jm_requests_refuse(answer, "unknown request: joulemarkd " JOULEMARK_VERSION
                               " has none such; perhaps a later one has");
}

void jm_requests_answer(jm_requests *r, jm_asker *client, jm_packet *packet, char *answer) {
    int n_fields = packet->n_fields;
    const jm_speaker speaker = jm_packet_take_speaker(packet);
    r->opened = NULL;
    jm_packet_begin(answer, JM_PACKET_MAX, "ok");
    client->signs = packet->n_fields < n_fields;
    client->sent_ns = sent_ns(packet);
    answer_verb(r, client, packet, &speaker, answer);
    if (client->signs)
        jm_packet_sign(answer, JM_PACKET_MAX);
}

void jm_requests_forget(jm_requests *r, jm_asker *client) {
    if (client->asked_ns != 0)
        stop_waiting(r, client);
    if (client->source)
        jm_marks_detach(client->source);
}

void jm_requests_answered(jm_requests *r) {
    if (r->passed_fds[0] >= 0)
        close(r->passed_fds[0]); /* the event stays ours too */
    r->passed_fds[0] = -1;
}
