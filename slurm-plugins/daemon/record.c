// SPDX-License-Identifier: GPL-2.0-or-later
// A job's record of one node, as JSON, put into the record directory by atomic rename.
#include "record.h"

#include "json.h"
#include "log.h"
#include "outbox.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SCHEMA = 1, FILE_MODE = 0640, DIRECTORY_MODE = 0750 };

static void put_key_text(FILE *out, const char *key, const char *text) {
    fprintf(out, "\"%s\": ", key);
    jm_json_text(out, text);
}

static const char *method_name(const jm_estimate *estimate) {
    return estimate->mixed ? "mixed" : jm_method_name(estimate->method);
}

static void put_domains(FILE *out, const jm_estimate *estimate) {
    fprintf(out, "\"domains_uj\": {");
    const char *comma = "";
    for (int d = 0; d < JM_DOMAIN_COUNT; d++) {
        if (!estimate->domain_known[d])
            continue;
        fprintf(out, "%s\"%s\": %" PRIu64, comma, jm_domain_name((jm_domain)d),
                estimate->domain_uj[d]);
        comma = ", ";
    }
    fprintf(out, "},\n   ");
}

static void put_channels(FILE *out, const jm_ledger *ledger, const jm_account *holder) {
    fprintf(out, "\"channels\": [");
    const char *comma = "";
    for (int c = 0; c < ledger->n_channels; c++) {
        const jm_channel *channel = &ledger->channels[c];
        if (channel->retired && holder->balance[c].energy_uj == 0)
            continue;
        fprintf(out, "%s{", comma);
        put_key_text(out, "name", channel->name);
        fprintf(out,
                ", \"domain\": \"%s\", \"method\": \"%s\", \"outermost\": %s, \"energy_uj\": "
                "%" PRIu64 "}",
                jm_domain_name(channel->info.domain), jm_method_name(channel->info.method),
                channel->outermost ? "true" : "false", holder->balance[c].energy_uj);
        comma = ", ";
    }
    fprintf(out, "],\n   ");
}

static double meter_uncertainty_uj(const jm_meter *meter) {
    return 2 * hypot(meter->systematic_uj, sqrt(meter->variance_uj2));
}

static uint64_t meter_uj(const jm_meter *meter) {
    return meter->energy_uj > 0 ? (uint64_t)meter->energy_uj : 0;
}

/* A region within another has the name "outer/inner", and its parent's name beside it. */
static void put_region(FILE *out, const jm_region_book *book, int index, bool is_known) {
    const jm_region *region = &book->list[index];
    char path[JM_REGION_DEPTH_MAX * JM_REGION_NAME_MAX];
    jm_region_path(book, index, path, sizeof path);
    fprintf(out, "{");
    put_key_text(out, "name", path);
    fprintf(out, ", \"parent\": ");
    jm_region_path(book, region->parent, path, sizeof path);
    if (path[0])
        jm_json_text(out, path);
    else
        fprintf(out, "null");
    const jm_meter *whole = &region->inclusive, *own = &region->exclusive;
    fprintf(out, ", \"count\": %" PRIu64 ", \"seconds\": %.9f, ", region->count,
            (double)whole->duration_ns / 1e9);
    if (!is_known) {
        fputs("\"energy_uj\": null, \"uncertainty_uj\": null}", out);
        return;
    }
    fprintf(out,
            "\"energy_uj\": %" PRIu64
            ", \"uncertainty_uj\": %.0f, \"exclusive_seconds\": %.9f, \"exclusive_uj\": %" PRIu64
            ", \"exclusive_uncertainty_uj\": %.0f}",
            meter_uj(whole), meter_uncertainty_uj(whole), (double)own->duration_ns / 1e9,
            meter_uj(own), meter_uncertainty_uj(own));
}

static void put_regions(FILE *out, const jm_region_book *book, bool is_known) {
    if (book->refused > 0)
        fprintf(out, "\"marks_lost\": %" PRIu64 ", ", book->refused);
    fprintf(out, "\"regions\": [");
    for (int i = 0; i < book->n; i++) {
        fputs(i ? ", " : "", out);
        put_region(out, book, i, is_known);
    }
    fprintf(out, "]");
}

static void put_notes(FILE *out, const jm_account *account) {
    fprintf(out, "\"notes\": [");
    if (account->note[0])
        jm_json_text(out, account->note);
    if (account->suspended_ns > 0)
        fprintf(out,
                "%s\"suspended for %.1f s: of that time it has its share of the idle power alone\"",
                account->note[0] ? ", " : "", (double)account->suspended_ns / 1e9);
    fprintf(out, "], ");
}

/* A job's is that of its steps, "mixed" where they differ. */
static const char *cpu_time_source(const jm_account *account) {
    if (account->kind != JM_ACCOUNT_JOB)
        return jm_cpu_source_name(account->cpu_source);
    for (jm_cpu_source source = JM_CPU_PROC; source <= JM_CPU_CGROUP2; source++)
        if (account->cpu_sources == 1u << source)
            return jm_cpu_source_name(source);
    return account->cpu_sources ? "mixed" : jm_cpu_source_name(JM_CPU_PROC);
}

/* What the split rested on. */
static void put_shares(FILE *out, const jm_account *account) {
    char gpus[JM_GPUS_TEXT_MAX];
    fprintf(out, "\"cpu_time\": \"%s\", ", cpu_time_source(account));
    if (account->suspended_ns > 0)
        fprintf(out, "\"suspended_seconds\": %.6f, ", (double)account->suspended_ns / 1e9);
    if (account->gpus != 0) {
        jm_gpus_format(account->gpus, gpus, sizeof gpus);
        fprintf(out, "\"gpus\": \"%s\", ", gpus);
    }
    fprintf(out, "\n   ");
}

static void put_energy(FILE *out, const jm_estimate *estimate, double peak_w) {
    fprintf(out, "\"energy_uj\": %" PRIu64 ", \"idle_uj\": %" PRIu64 ", \"overhead_uj\": 0,\n   ",
            estimate->energy_uj, estimate->idle_uj);
    put_domains(out, estimate);
    fprintf(out, "\"average_w\": %.6f, \"peak_w\": %.6f,\n   ", estimate->mean_w, peak_w);
    fprintf(out,
            "\"uncertainty_systematic_uj\": %.3f, \"uncertainty_common_uj\": %.3f, "
            "\"uncertainty_random_uj\": %.3f, \"uncertainty_uj\": %.3f,\n   ",
            estimate->systematic_uj, estimate->common_uj,
            hypot(estimate->common_uj, estimate->random_uj), estimate->uncertainty_uj);
    fprintf(out, "\"method\": \"%s\", ", method_name(estimate));
}

static void put_account(FILE *out, const jm_ledger *ledger, const jm_account *account) {
    const jm_account *holder = account->kind == JM_ACCOUNT_EXTERN ? account->job : account;
    jm_estimate estimate = jm_ledger_estimate(ledger, holder);
    fprintf(out, "  {");
    put_key_text(out, "step", account->step);
    /* A clock set back during the job must not end it before it began. */
    int64_t end_ns = account->closed_ns >= account->opened_ns
                         ? account->closed_ns
                         : account->opened_ns + account->active_ns;
    fprintf(out, ", \"start_ns\": %" PRId64 ", \"end_ns\": %" PRId64 ",\n   ", account->opened_ns,
            end_ns);
    if (estimate.known)
        put_energy(out, &estimate, fmax(holder->peak_w, estimate.mean_w));
    else
        fprintf(out, "\"energy_uj\": null, ");
    fprintf(out,
            "\"estimated\": %s, \"samples\": %" PRIu64 ", \"gap_seconds\": %.6f, \"cpus\": %" PRIu64
            ",\n   ",
            estimate.method == JM_METHOD_MODEL ? "true" : "false", account->samples,
            (double)account->gap_ns / 1e9, holder->cpus);
    put_shares(out, account);
    put_notes(out, account);
    put_channels(out, ledger, holder);
    put_regions(out, &account->regions, estimate.known);
    fprintf(out, "}");
}

static void put_head(FILE *out, const char *cluster, uint32_t job_id, const char *node,
                     uint32_t uid, const char *missing) {
    fprintf(out, "{\"schema\": %d, ", SCHEMA);
    put_key_text(out, "cluster", cluster);
    fprintf(out, ", \"JobIDRaw\": %" PRIu32 ", ", job_id);
    put_key_text(out, "node", node);
    fprintf(out, ", \"uid\": %" PRIu32 ",\n \"split_policy\": \"%s\", \"missing\": ", uid,
            JM_SPLIT_POLICY);
    if (missing)
        jm_json_text(out, missing);
    else
        fprintf(out, "null");
    fprintf(out, ",\n \"accounts\": [");
}

static const char UNREADABLE[] = "some of its steps cannot be read of the ledger";

typedef struct {
    FILE *out;
    const jm_ledger *ledger;
} step_writer;

static void put_step(void *context, const jm_account *step) {
    const step_writer *writer = context;
    fprintf(writer->out, ",\n");
    put_account(writer->out, writer->ledger, step);
}

/* A file is written beside its final place, under a name that no reader takes, then renamed. */
typedef struct {
    char path[2 * JM_PATH_MAX], temporary[2 * JM_PATH_MAX + 32];
    FILE *out;
} draft;

static int begin(draft *file, const char *directory, const char *cluster, const char *node,
                 uint32_t job_id, const char *suffix, jm_message *why) {
    jm_format(file->path, sizeof file->path, "%s/%s.%" PRIu32 ".%s.%s", directory, cluster, job_id,
              node, suffix);
    /* An epilog that waits no longer writes of the same job while we do. */
    jm_format(file->temporary, sizeof file->temporary, "%s/.%s.%" PRIu32 ".%s.%ld.tmp", directory,
              cluster, job_id, node, (long)getpid());
    unlink(file->temporary);
    /* O_EXCL: a link that another user planted is never followed. */
    int fd = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, FILE_MODE);
    struct stat owner;
    /* The epilog is root; the merge is not: the record belongs to whom the directory belongs. */
    if (fd >= 0 && geteuid() == 0 && stat(directory, &owner) == 0 &&
        fchown(fd, owner.st_uid, owner.st_gid) != 0) {
        close(fd);
        fd = -1;
    }
    file->out = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (file->out)
        return 0;
    jm_message_set(why, "record %s: cannot be written: %s; check the folder, its owner and space",
                   file->temporary, strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

static int finish(draft *file, bool replace, jm_message *why) {
    bool written = fflush(file->out) == 0 && fsync(fileno(file->out)) == 0;
    int failure = errno;
    if (fclose(file->out) != 0 && written) {
        written = false;
        failure = errno;
    }
    if (written && replace)
        written = rename(file->temporary, file->path) == 0;
    else if (written)
        written = link(file->temporary, file->path) == 0 || errno == EEXIST;
    if (!written) {
        failure = failure ? failure : errno;
        jm_message_set(why, "record %s: cannot be written: %s; check the folder and its space",
                       file->path, strerror(failure));
    }
    if (!written || !replace)
        unlink(file->temporary);
    return written ? 0 : -1;
}

/* When the file was written; -1: there is none. */
static int64_t written_ns(const char *path) {
    struct stat status;
    if (stat(path, &status) != 0)
        return -1;
    return status.st_mtim.tv_sec * INT64_C(1000000000) + status.st_mtim.tv_nsec;
}

int jm_record_write(const char *folder, const char *cluster, const char *node,
                    const jm_ledger *ledger, jm_store *store, jm_account *job,
                    const jm_sampler *sampler, jm_message *why) {
    draft file;
    if (begin(&file, folder, cluster, node, job->job_id, "json", why) != 0)
        return -1;
    /* A requeued job's earlier run is a record of its own. */
    int64_t before_ns = written_ns(file.path);
    if (before_ns >= 0 && before_ns < job->opened_ns) {
        jm_message_set(why,
                       "record %s: that of an earlier run of the job still waits there; see why "
                       "it cannot be brought to `record_dir:`",
                       file.path);
        fclose(file.out);
        unlink(file.temporary);
        return -1;
    }
    put_head(file.out, cluster, job->job_id, node, job->uid == JM_UID_UNKNOWN ? 0 : job->uid, NULL);
    fprintf(file.out, "\n");
    put_account(file.out, ledger, job);
    step_writer writer = {file.out, ledger};
    if (jm_store_each_step(store, ledger, job, put_step, &writer) != 0 &&
        !strstr(job->note, UNREADABLE)) {
        fclose(file.out);
        unlink(file.temporary);
        jm_warn("job %u: %s", job->job_id, UNREADABLE);
        jm_account_note(job, UNREADABLE);
        return jm_record_write(folder, cluster, node, ledger, store, job, sampler, why);
    }
    fprintf(file.out, "],\n \"node_cpus\": %" PRIu64 ", ", ledger->cpus);
    jm_sampler_put_faults(sampler, job->opened_ns, job->closed_ns, file.out);
    fprintf(file.out, "}\n");
    errno = 0;
    return finish(&file, true, why);
}

bool jm_record_exists(const char *folder, const char *cluster, const char *node, uint32_t job_id,
                      int64_t since_ns) {
    char path[2 * JM_PATH_MAX];
    return jm_format(path, sizeof path, "%s/%s.%" PRIu32 ".%s.json", folder, cluster, job_id,
                     node) &&
           written_ns(path) >= since_ns;
}

bool jm_record_waits(const char *outbox, const char *cluster, const char *node,
                     const jm_account *job) {
    char name[JM_PATH_MAX], head[2048], begun[96];
    jm_format(name, sizeof name, "%s.%" PRIu32 ".%s.json", cluster, job->job_id, node);
    int fd = jm_outbox_open(outbox, name);
    ssize_t length = fd >= 0 ? read(fd, head, sizeof head - 1) : 0;
    if (fd >= 0)
        close(fd);
    head[length > 0 ? length : 0] = '\0';
    /* the first of its accounts */
    jm_format(begun, sizeof begun, "{\"step\": \"job\", \"start_ns\": %" PRId64 ",",
              job->opened_ns);
    return strstr(head, begun) != NULL;
}

int jm_record_write_missing(const char *folder, const char *cluster, const char *node,
                            uint32_t job_id, uint32_t uid, const char *missing, jm_message *why) {
    draft file;
    if (begin(&file, folder, cluster, node, job_id, "json", why) != 0)
        return -1;
    put_head(file.out, cluster, job_id, node, uid, missing);
    fprintf(file.out, "]}\n");
    errno = 0;
    return finish(&file, false, why);
}

int jm_record_write_profile(const char *folder, const char *cluster, const char *node,
                            uint32_t job_id, void (*put)(void *context, FILE *out), void *context,
                            jm_message *why) {
    char directory[JM_PATH_MAX + 16];
    jm_format(directory, sizeof directory, "%s/profiles", folder);
    mkdir(directory, DIRECTORY_MODE);
    draft file;
    if (begin(&file, directory, cluster, node, job_id, "profile.jsonl", why) != 0)
        return -1;
    put(context, file.out);
    errno = 0;
    return finish(&file, true, why);
}
