// SPDX-License-Identifier: GPL-2.0-or-later
// No account without somebody on the node: who may open one, and which are closed although nobody
// said so, for their processes died while joulemarkd was away, or nothing stands for them.
#include "presence.h"

#include "life.h"
#include "log.h"
#include "process.h"
#include "record.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

/* A job with no process left is over after this time; a step may follow the one before. */
static const int64_t ORPHAN_PATIENCE_NS = 5 * INT64_C(1000000000);
/* Without PrologFlags=Contain nothing of a job need be there between two steps: then so long. */
static const int64_t UNCONTAINED_PATIENCE_NS = 24 * 3600 * INT64_C(1000000000);
/* A tick so late: joulemarkd was stopped, and saw no process end meanwhile. */
static const double AWAY_PERIODS = 2, AWAY_LEAST_S = 0.5;

static const char HIDDEN[] =
    "/proc hides it: mount it with hidepid=2,gid=GROUP and have joulemarkd in that group "
    "(SupplementaryGroups= of its unit)";

void jm_presence_look(jm_daemon *daemon) {
    const bool blind = jm_process_hidden("/proc");
    if (blind && !daemon->blind)
        jm_error("no job is charged whose slurmstepd is another user's: %s", HIDDEN);
    else if (!blind && daemon->blind)
        jm_info("processes are seen again");
    daemon->blind = blind;
}

/* Of any user's but ours. */
static bool is_hidden(int32_t pid) {
    jm_process process;
    return !jm_process_read(pid, &process) && jm_process_hidden("/proc");
}

/* One that is hidden is taken for the one it was. */
bool jm_presence_lives(int32_t pid, uint64_t pid_start) {
    jm_process process;
    if (jm_process_read(pid, &process))
        return process.start == pid_start && !process.ended;
    return jm_process_hidden("/proc") && (kill(pid, 0) == 0 || errno == EPERM);
}

/* May anything on the node stand for the job? */
static bool may_live(uint32_t job_id) {
    return jm_process_hidden("/proc") || jm_life_of_job("/proc", job_id);
}

/* ---- who may open an account ---- */

void jm_presence_job_ended(jm_daemon *daemon, uint32_t job_id, int64_t sent_boot_ns) {
    jm_end *end = &daemon->ends[daemon->n_ends++ % JM_ENDS_MAX];
    *end = (jm_end){.job_id = job_id, .boot_ns = sent_boot_ns};
}

/* Was it begun before an epilog of its job? What a job's last processes sent may come late. */
static bool had_its_end(const jm_daemon *daemon, uint32_t job_id, int64_t began_boot_ns) {
    for (int i = 0; i < JM_ENDS_MAX; i++)
        if (daemon->ends[i].job_id == job_id && began_boot_ns <= daemon->ends[i].boot_ns)
            return true;
    return false;
}

bool jm_presence_admits(const jm_daemon *daemon, const jm_open_request *request,
                        int64_t sent_boot_ns, jm_message *why) {
    int64_t began_boot_ns = jm_process_start_boot_ns(request->pid_start);
    uint32_t job_id = jm_life_titled("/proc", request->pid);
    if (is_hidden(request->pid))
        jm_message_set(why, "process %d is not seen: %s", request->pid, HIDDEN);
    else if (!jm_presence_lives(request->pid, request->pid_start))
        jm_message_set(why, "process %d is gone", request->pid);
    else if (began_boot_ns > sent_boot_ns)
        jm_message_set(why, "process %d began after this was sent: its number was another's",
                       request->pid);
    else if (job_id != 0 && job_id != request->job_id)
        jm_message_set(why, "process %d is a slurmstepd of job %u, not of job %u", request->pid,
                       job_id, request->job_id);
    else if (had_its_end(daemon, request->job_id, began_boot_ns))
        jm_message_set(why, "job %u is over, its epilog has come", request->job_id);
    else
        return true;
    return false;
}

/* ---- whose end nobody saw ---- */

static void end_unseen(jm_ledger *ledger, jm_account *account, const jm_moment *seen,
                       int64_t gap_ns, const char *away) {
    char text[JM_MESSAGE_MAX];
    bool rested = account->rested_ns != 0 && account->rested_ns != seen->real_ns;
    int64_t end_ns = rested ? account->rested_ns : seen->real_ns;
    jm_format(text, sizeof text, "ended while joulemarkd was %s: nothing is known after %.3f s",
              away, (double)(end_ns - account->opened_ns) / 1e9);
    jm_account_note(account, text);
    account->gap_ns += rested ? 0 : gap_ns;
    jm_ledger_close(ledger, account, seen->real_ns, false);
}

/* Has its epilog come, while nobody was there to hear it? */
static bool had_epilog(const jm_daemon *daemon, const jm_account *job) {
    return jm_record_exists(daemon->outboxes.path[0], daemon->config.cluster, daemon->node,
                            job->job_id, job->opened_ns);
}

bool jm_presence_close_unseen(jm_daemon *daemon, const jm_moment *seen, bool same_boot,
                              const char *away) {
    jm_ledger *ledger = &daemon->ledger;
    bool closed = false;
    int64_t gap_ns = same_boot ? jm_boot_ns() - seen->boot_ns : jm_real_ns() - seen->real_ns;
    if (gap_ns < 0) /* the clock was set back meanwhile */
        gap_ns = 0;
    for (int i = 0; i < ledger->n_accounts; i++) {
        jm_account *account = ledger->accounts[i];
        if (account->closed_ns != 0)
            continue;
        bool is_job = account->kind == JM_ACCOUNT_JOB; /* they come before their steps */
        bool over = is_job ? had_epilog(daemon, account)
                           : !jm_presence_lives(account->pid, account->pid_start) ||
                                 (account->job && account->job->closed_ns != 0);
        if (over || !same_boot) {
            end_unseen(ledger, account, seen, gap_ns, away);
            account->due = is_job;
            closed = true;
        }
    }
    /* A job all of whose processes, .extern with them, died without us is over too. A step that
     * began meanwhile has yet to tell of itself. */
    for (int i = 0; i < ledger->n_accounts; i++) {
        jm_account *job = ledger->accounts[i];
        if (job->kind == JM_ACCOUNT_JOB && job->closed_ns == 0 && job->contained &&
            job->rested_ns != 0) {
            if (may_live(job->job_id)) {
                job->gap_ns += gap_ns;
                job->dirty = true;
            } else {
                end_unseen(ledger, job, seen, gap_ns, away);
            }
            closed = true;
        }
    }
    return closed;
}

bool jm_presence_after_pause(jm_daemon *daemon, const jm_moment *seen, int64_t boot_ns) {
    double late_s = (double)(boot_ns - seen->boot_ns) / 1e9;
    return late_s > AWAY_PERIODS * daemon->config.period_s + AWAY_LEAST_S &&
           jm_presence_close_unseen(daemon, seen, true, "held up");
}

/* ---- who is there no more ---- */

static void close_the_unwatched(jm_daemon *daemon) {
    for (int i = 0; i < daemon->ledger.n_accounts; i++) {
        jm_account *account = daemon->ledger.accounts[i];
        if (jm_account_runs(account) && !account->watched &&
            !jm_presence_lives(account->pid, account->pid_start))
            jm_daemon_close_account(daemon, account, false);
    }
}

/* Nothing of the job is on the node, and nothing more will be. */
static bool is_orphan(const jm_daemon *daemon, jm_account *job) {
    bool contained = job->contained || daemon->contains;
    int64_t patience_ns = contained ? ORPHAN_PATIENCE_NS : UNCONTAINED_PATIENCE_NS;
    if (job->closed_ns != 0 || job->rested_ns == 0 || job->rest_ns - job->looked_ns < patience_ns)
        return false;
    if (!may_live(job->job_id))
        return true;
    job->looked_ns = job->rest_ns;
    return false;
}

/* Its epilog was killed, or came before its account did: nobody else will say that it is over. */
static void close_orphans(jm_daemon *daemon) {
    for (int i = 0; i < daemon->ledger.n_accounts; i++) {
        jm_account *job = daemon->ledger.accounts[i];
        if (!is_orphan(daemon, job))
            continue;
        jm_account_note(job, "none of its processes was left and no epilog came");
        jm_ledger_close(&daemon->ledger, job, daemon->last_tick_real_ns, false);
        job->due = true;
    }
}

void jm_presence_close_lost(jm_daemon *daemon) {
    close_the_unwatched(daemon);
    close_orphans(daemon);
}

void jm_presence_lifeless(const jm_ledger *ledger, char *text, size_t size) {
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < ledger->n_accounts; i++) {
        const jm_account *job = ledger->accounts[i];
        if (job->closed_ns == 0 && job->rested_ns != 0 && job->rest_ns >= ORPHAN_PATIENCE_NS &&
            jm_format(text + used, size - used, "%s%u", used ? " " : "", job->job_id))
            used = strlen(text);
    }
    text[used] = '\0';
}
