// SPDX-License-Identifier: GPL-2.0-or-later
// Profiles: what a job in profile mode was charged over time, channel by channel, and its marks.
#include "profile.h"

#include "json.h"
#include "log.h"
#include "record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MARKS_MAX = 500000, MARKS_AT_A_LOOK = 256 }; /* of a job on this node */

static const double ROOT_MAX_HZ = 1000;
/* At most so much of a profile is lost when the daemon is killed; its size is looked at then. */
static const int64_t FLUSH_NS = 1000000000;
/* From here on, as a part of the greatest size, a sample comes so often: months more. */
static const double COARSE_FROM = 0.875;
static const int64_t COARSE_NS = 60 * INT64_C(1000000000);

/* A profile that is being written. */
typedef struct {
    uint32_t job_id;
    int64_t opened_ns;              /* with the number, the job's run */
    FILE *file;                     /* NULL: it cannot be written */
    int64_t sampled_ns, flushed_ns; /* CLOCK_BOOTTIME */
    int64_t size;                   /* bytes, as last looked at */
    uint64_t marks, left_out;
} profile;

struct jm_profiles {
    const jm_config *config;
    char node[JM_NAME_MAX];
    profile *list;
    int n;
};

jm_profiles *jm_profiles_new(const jm_config *config, const char *node) {
    jm_profiles *profiles = calloc(1, sizeof *profiles);
    if (!profiles)
        return NULL;
    profiles->config = config;
    jm_format(profiles->node, sizeof profiles->node, "%s", node);
    return profiles;
}

void jm_profiles_free(jm_profiles *profiles) {
    if (!profiles)
        return;
    for (int i = 0; i < profiles->n; i++)
        if (profiles->list[i].file)
            fclose(profiles->list[i].file);
    free(profiles->list);
    free(profiles);
}

double jm_profile_hz(const jm_config *config, const jm_account *job) {
    double most = job->uid == 0 ? ROOT_MAX_HZ : config->profile_max_hz;
    double hz = job->profile_hz < most ? job->profile_hz : most;
    return hz * config->period_s > 1 ? hz : 0;
}

static bool wants_samples(const jm_account *account) {
    return account->kind == JM_ACCOUNT_JOB && account->mode == JM_MODE_PROFILE &&
           account->closed_ns == 0 && account->rested_ns == 0;
}

static int64_t period_of(const jm_config *config, const jm_account *job) {
    double hz = jm_profile_hz(config, job);
    return hz > 0 ? (int64_t)(1e9 / hz) : (int64_t)(config->period_s * 1e9);
}

static void path_of(const jm_profiles *profiles, uint32_t job_id, int64_t opened_ns, char *path,
                    size_t size) {
    jm_format(path, size, "%s/profile.%" PRIu32 ".%" PRId64 ".jsonl", profiles->config->state_dir,
              job_id, opened_ns);
}

static double bytes_max(const jm_profiles *profiles) {
    return profiles->config->profile_max_mib * 1024 * 1024;
}

static bool is_coarse(const jm_profiles *profiles, int64_t size) {
    return (double)size >= COARSE_FROM * bytes_max(profiles);
}

static profile *find(const jm_profiles *profiles, const jm_account *job) {
    for (int i = 0; i < profiles->n; i++)
        if (profiles->list[i].job_id == job->job_id &&
            profiles->list[i].opened_ns == job->opened_ns)
            return &profiles->list[i];
    return NULL;
}

bool jm_profile_is_coarse(const jm_profiles *profiles, const jm_account *job) {
    const profile *one = find(profiles, job);
    char path[JM_PATH_MAX + 64];
    struct stat status;
    if (one && one->file)
        return is_coarse(profiles, one->size);
    /* an earlier daemon's, of a job that ended while none was there */
    path_of(profiles, job->job_id, job->opened_ns, path, sizeof path);
    return stat(path, &status) == 0 && is_coarse(profiles, status.st_size);
}

/* It wants no ticks of its own. */
static bool is_content(const jm_profiles *profiles, const jm_account *job) {
    const profile *one = find(profiles, job);
    return one && (!one->file || is_coarse(profiles, one->size));
}

int64_t jm_profiles_period_ns(const jm_profiles *profiles, const jm_ledger *ledger) {
    const jm_config *config = profiles->config;
    int64_t shortest_ns = 0;
    for (int i = 0; i < ledger->n_accounts; i++) {
        const jm_account *job = ledger->accounts[i];
        if (!wants_samples(job) || jm_profile_hz(config, job) <= 0 || is_content(profiles, job))
            continue;
        int64_t period_ns = period_of(config, job);
        if (shortest_ns == 0 || period_ns < shortest_ns)
            shortest_ns = period_ns;
    }
    return shortest_ns;
}

/* ---- files ---- */

static void put_head(const jm_profiles *profiles, const jm_ledger *ledger, const jm_account *job,
                     FILE *out) {
    fprintf(out, "{\"schema\":1,\"cluster\":");
    jm_json_text(out, profiles->config->cluster);
    fprintf(out, ",\"JobIDRaw\":%" PRIu32 ",\"node\":", job->job_id);
    jm_json_text(out, profiles->node);
    double hz = jm_profile_hz(profiles->config, job);
    fprintf(out,
            ",\"uid\":%" PRIu32 ",\"start_ns\":%" PRId64
            ",\"hz\":%.6g,\"asked_hz\":%.6g,\"channels\":[",
            job->uid, job->opened_ns, hz > 0 ? hz : 1 / profiles->config->period_s,
            job->profile_hz);
    const char *comma = "";
    for (int c = 0; c < ledger->n_channels; c++) {
        const jm_channel *channel = &ledger->channels[c];
        if (channel->retired) /* gains nothing any more; an earlier head had it */
            continue;
        fprintf(out, "%s{\"name\":", comma);
        comma = ",";
        jm_json_text(out, channel->name);
        fprintf(out, ",\"domain\":\"%s\",\"method\":\"%s\",\"outermost\":%s}",
                jm_domain_name(channel->info.domain), jm_method_name(channel->info.method),
                channel->outermost ? "true" : "false");
    }
    fprintf(out, "]}\n");
}

static void put_energies(FILE *out, const jm_ledger *ledger, const jm_account *job) {
    const char *comma = "\"e\":[";
    for (int c = 0; c < ledger->n_channels; c++) {
        if (ledger->channels[c].retired)
            continue;
        fprintf(out, "%s%" PRIu64, comma, job->balance[c].energy_uj);
        comma = ",";
    }
    fprintf(out, "]");
}

/* O_NOFOLLOW: state_dir is the daemon's own, but costs nothing to distrust. */
static void open_file(const jm_profiles *profiles, profile *one) {
    char path[JM_PATH_MAX + 64];
    path_of(profiles, one->job_id, one->opened_ns, path, sizeof path);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    one->file = fd >= 0 ? fdopen(fd, "a") : NULL;
    if (one->file)
        return;
    jm_warn("job %u has no profile: %s: %s; check `state_dir:` and its space", one->job_id, path,
            strerror(errno));
    if (fd >= 0)
        close(fd);
}

static bool is_of_the_ledger(const jm_ledger *ledger, uint32_t job_id, int64_t opened_ns) {
    for (int i = 0; i < ledger->n_accounts; i++) {
        const jm_account *job = ledger->accounts[i];
        if (job->kind == JM_ACCOUNT_JOB && job->job_id == job_id && job->opened_ns == opened_ns)
            return true;
    }
    return false;
}

void jm_profiles_tidy(const jm_profiles *profiles, const jm_ledger *ledger) {
    DIR *folder = opendir(profiles->config->state_dir);
    if (!folder)
        return;
    for (const struct dirent *entry; (entry = readdir(folder));) {
        uint32_t job_id;
        int64_t opened_ns;
        char path[JM_PATH_MAX + 64];
        if (sscanf(entry->d_name, "profile.%" SCNu32 ".%" SCNd64 ".jsonl", &job_id, &opened_ns) !=
                2 ||
            is_of_the_ledger(ledger, job_id, opened_ns))
            continue;
        path_of(profiles, job_id, opened_ns, path, sizeof path);
        unlink(path);
    }
    closedir(folder);
}

/* An earlier daemon may have written it too. */
static void look_at_size(const jm_profiles *profiles, profile *one) {
    struct stat status;
    if (!one->file || fflush(one->file) != 0 || fstat(fileno(one->file), &status) != 0)
        return;
    const bool was_coarse = is_coarse(profiles, one->size);
    one->size = status.st_size;
    if (!was_coarse && is_coarse(profiles, one->size))
        jm_warn("job %u: its profile has %.3g MiB: a sample a minute from here on, and no marks; "
                "see `profile_max_mib:`",
                one->job_id, (double)one->size / (1024 * 1024));
}

static profile *get(jm_profiles *profiles, const jm_ledger *ledger, const jm_account *job) {
    profile *one = find(profiles, job);
    if (one)
        return one;
    profile *list = realloc(profiles->list, (size_t)(profiles->n + 1) * sizeof *list);
    if (!list)
        return NULL;
    profiles->list = list;
    one = &list[profiles->n++];
    *one = (profile){.job_id = job->job_id, .opened_ns = job->opened_ns, .sampled_ns = INT64_MIN};
    open_file(profiles, one);
    if (one->file)
        put_head(profiles, ledger, job, one->file);
    look_at_size(profiles, one);
    return one;
}

/* A full disk ends the profile, not the job. */
static void check(const jm_profiles *profiles, profile *one, int64_t boot_ns) {
    if (one->file && boot_ns - one->flushed_ns >= FLUSH_NS) {
        look_at_size(profiles, one);
        one->flushed_ns = boot_ns;
    }
    if (!one->file || !ferror(one->file))
        return;
    jm_warn("job %u: its profile ends here: it cannot be written; check the space of `state_dir:`",
            one->job_id);
    fclose(one->file);
    one->file = NULL;
}

/* ---- samples and marks ---- */

void jm_profiles_sample(jm_profiles *profiles, const jm_ledger *ledger, int64_t boot_ns,
                        int64_t real_ns) {
    for (int i = 0; i < ledger->n_accounts; i++) {
        const jm_account *job = ledger->accounts[i];
        profile *one = wants_samples(job) ? get(profiles, ledger, job) : NULL;
        if (!one || !one->file)
            continue;
        /* Other ticks than its own must not make it finer than it may be. */
        int64_t period_ns = period_of(profiles->config, job);
        if (is_coarse(profiles, one->size) && period_ns < COARSE_NS)
            period_ns = COARSE_NS;
        if ((one->sampled_ns != INT64_MIN && boot_ns - one->sampled_ns < period_ns * 9 / 10) ||
            (double)one->size >= bytes_max(profiles))
            continue;
        one->sampled_ns = boot_ns;
        fprintf(one->file, "{\"t\":%" PRId64 ",", real_ns);
        put_energies(one->file, ledger, job);
        fputs("}\n", one->file);
        check(profiles, one, boot_ns);
    }
}

void jm_profiles_mark(jm_profiles *profiles, const jm_ledger *ledger, const jm_account *job,
                      const jm_mark *mark, int64_t boot_ns, int64_t real_ns) {
    while (job->job)
        job = job->job;
    profile *one = wants_samples(job) ? get(profiles, ledger, job) : NULL;
    if (!one || !one->file)
        return;
    if (one->marks == MARKS_MAX || is_coarse(profiles, one->size)) {
        one->left_out++;
        return;
    }
    if (++one->marks % MARKS_AT_A_LOOK == 0)
        look_at_size(profiles, one);
    fprintf(one->file, "{\"t\":%" PRId64 ",\"m\":\"%s\",\"n\":", real_ns - boot_ns + mark->boot_ns,
            mark->kind == JM_MARK_BEGIN ? "begin" : "end");
    jm_json_text(one->file, mark->path);
    fprintf(one->file, ",\"r\":%d,\"th\":%" PRIu32 "}\n", mark->rank, mark->thread);
}

/* ---- the end ---- */

typedef struct {
    FILE *from;
    const jm_ledger *ledger;
    const jm_account *job;
    uint64_t left_out;
} finish;

static double uncertainty_uj(const jm_account *job, int channel) {
    const jm_balance *balance = &job->balance[channel];
    return 2 * hypot(balance->systematic_uj / sqrt(3),
                     sqrt(balance->variance_uj2 + balance->common_uj2));
}

/* What came after the job's end, as the record has it, is left out: a close may go back in time. A
 * line that a crash cut off is none. */
static void put_profile(void *context, FILE *out) {
    finish *f = context;
    char *line = NULL;
    size_t size = 0;
    for (ssize_t n; (n = getline(&line, &size, f->from)) > 0;) {
        int64_t time_ns;
        if (line[n - 1] != '\n' || (n >= 2 && line[n - 2] != '}') ||
            (sscanf(line, "{\"t\":%" SCNd64, &time_ns) == 1 && time_ns > f->job->closed_ns))
            continue;
        fwrite(line, 1, (size_t)n, out);
    }
    free(line);
    fprintf(out, "{\"end\":%" PRId64 ",", f->job->closed_ns);
    put_energies(out, f->ledger, f->job);
    const char *comma = ",\"u\":[";
    for (int c = 0; c < f->ledger->n_channels; c++) {
        if (f->ledger->channels[c].retired)
            continue;
        fprintf(out, "%s%.0f", comma, uncertainty_uj(f->job, c));
        comma = ",";
    }
    fprintf(out, "],\"marks_left_out\":%" PRIu64 "}\n", f->left_out);
}

int jm_profiles_finish(jm_profiles *profiles, const jm_ledger *ledger, const jm_account *job,
                       const char *outbox, jm_message *why) {
    char path[JM_PATH_MAX + 64];
    profile *one = find(profiles, job);
    if (one && one->file)
        fflush(one->file);
    path_of(profiles, job->job_id, job->opened_ns, path, sizeof path);
    finish f = {.from = fopen(path, "re"), .ledger = ledger, .job = job};
    if (!f.from) {
        jm_message_set(why, "profile %s: %s", path, strerror(errno));
        return -1;
    }
    f.left_out = one ? one->left_out : 0;
    int status = jm_record_write_profile(outbox, profiles->config->cluster, profiles->node,
                                         job->job_id, put_profile, &f, why);
    fclose(f.from);
    return status;
}

void jm_profiles_forget(jm_profiles *profiles, const jm_account *job) {
    char path[JM_PATH_MAX + 64];
    path_of(profiles, job->job_id, job->opened_ns, path, sizeof path);
    profile *one = find(profiles, job);
    if (one) {
        if (one->file)
            fclose(one->file);
        *one = profiles->list[--profiles->n];
    }
    unlink(path);
}
