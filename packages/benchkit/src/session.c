// Output: opens a run's raw and cooked files and writes every measurement to both.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "session.h"

#include "json.h"
#include "manifest.h"
#include "team.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void bk_region_name(const struct bk_session *session, const struct bk_case *what, char *name,
                    size_t size) {
    uint32_t variants = session->options->variants;
    bool one_variant = (variants & (variants - 1)) == 0;
    // Copies that a step runs side by side are told apart; the ranks of an MPI job are one run.
    bool copies = session->machine.ranks > 1 && bk_ranks() == 1;
    const char *rank = copies ? session->machine.rank : NULL;
    snprintf(name, size, "%s/%llu%s%s%s%s", what->kernel, (unsigned long long)what->size,
             one_variant ? "" : "/", one_variant ? "" : what->variant, rank == NULL ? "" : "#",
             rank == NULL ? "" : rank);
}

static char *default_cooked_name(const struct bk_session *session) {
    const char *folder = getenv("JOULEMARK_RESULTS");
    bool here = folder == NULL || folder[0] == '\0';
    char run[32];
    snprintf(run, sizeof run, "%ld", (long)getpid());
    const char *job = session->machine.job;
    char *name;
    if (asprintf(&name, "%s%s%s.%s.cooked.jsonl", here ? "" : folder, here ? "" : "/",
                 session->benchmark->name, job == NULL ? run : job) < 0)
        return NULL;
    return name;
}

static FILE *open_output(const char *program, const char *path, const char *mode, const char *fix) {
    FILE *file = fopen(path, mode);
    if (file == NULL)
        fprintf(stderr, "%s: can't write '%s': %s; %s\n", program, path, strerror(errno), fix);
    return file;
}

// The value of a benchmark's own option, as it is typed.
static const char *extra_text(const struct bk_session *session, size_t index, char *text,
                              size_t size) {
    const struct bk_extra *extra = &session->benchmark->extras[index];
    double value = session->options->extras[index];
    if (extra->text != NULL)
        return session->options->texts[index];
    if (extra->words != NULL)
        return extra->words[(size_t)value];
    snprintf(text, size, "%.15g", value);
    return text;
}

static void write_header(struct bk_session *session) {
    const struct bk_machine *machine = &session->machine;
    const struct bk_options *options = session->options;
    char start[40];
    bk_write_now(start, sizeof start);
    bk_note(session, "%s: %s", session->benchmark->name, session->benchmark->summary);
    bk_note(session, "start %s, node %s, job %s, step %s, %u ranks", start, machine->node,
            machine->job == NULL ? "none" : machine->job,
            machine->step == NULL ? "none" : machine->step,
            bk_ranks() > 1 ? bk_ranks() : machine->ranks);
    bk_note(session, "%s, %s, %u threads", machine->target, machine->cpu, options->threads);
    bk_note(session, "at least %g s a measurement, no repetition starts after %g s",
            options->min_seconds, options->max_seconds);
    for (size_t i = 0; i < session->benchmark->extra_count; i++) {
        char value[64];
        bk_note(session, "%s %s", session->benchmark->extras[i].name,
                extra_text(session, i, value, sizeof value));
    }
    bk_note(session, "cooked output: %s", session->cooked_name);
}

static void free_session(struct bk_session *session) {
    if (session->raw != NULL && session->raw != stdout)
        fclose(session->raw);
    if (session->cooked != NULL)
        fclose(session->cooked);
    free(session->cooked_name);
    free(session);
}

// Where standard output is closed, the next file that is opened would take its place, and the raw
// output.
static bool raw_has_a_place(const char *program, const struct bk_options *options) {
    struct stat status;
    if (options->raw != NULL || fstat(STDOUT_FILENO, &status) == 0)
        return true;
    fprintf(stderr, "%s: can't write 'standard output': it is closed; give --raw FILE\n", program);
    return false;
}

static bool open_outputs(struct bk_session *session) {
    const char *program = session->benchmark->name;
    static const struct bk_options silent = {.cooked = "/dev/null", .raw = "/dev/null"};
    const struct bk_options *options = bk_rank() == 0 ? session->options : &silent;
    if (!raw_has_a_place(program, options))
        return false;
    session->cooked_name =
        options->cooked == NULL ? default_cooked_name(session) : strdup(options->cooked);
    if (session->cooked_name == NULL) {
        fprintf(stderr, "%s: out of memory\n", program);
        return false;
    }
    // Appended, a line a write: the steps and ranks of one job share the file.
    session->cooked =
        open_output(program, session->cooked_name, "ae",
                    "give --cooked FILE in a folder where you may write (a job template: "
                    "JOULEMARK_RESULTS)");
    if (session->cooked == NULL)
        return false;
    setvbuf(session->cooked, NULL, _IOFBF, 1 << 16);
    session->raw_name = options->raw == NULL ? "standard output" : options->raw;
    session->raw = options->raw == NULL
                       ? stdout
                       : open_output(program, options->raw, "we", "give --raw FILE elsewhere");
    return session->raw != NULL;
}

struct bk_session *bk_open(const struct bk_benchmark *benchmark, const struct bk_options *options) {
    struct bk_session *session = calloc(1, sizeof *session);
    if (session == NULL) {
        fprintf(stderr, "%s: out of memory\n", benchmark->name);
        return NULL;
    }
    session->benchmark = benchmark;
    session->options = options;
    bk_find_machine(&session->machine);
    session->team_nodes = (unsigned)bk_team_sum(bk_team()->first_on_node);
    bool open = open_outputs(session);
    if (bk_team_maximum(!open) > 0) {
        free_session(session);
        return NULL;
    }
    write_header(session);
    return session;
}

void bk_note(struct bk_session *session, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("# ", session->raw);
    vfprintf(session->raw, format, arguments);
    fputc('\n', session->raw);
    va_end(arguments);
    fflush(session->raw);
}

static unsigned ranks_of(const struct bk_session *session, const struct bk_case *what) {
    if (what->ranks > 0)
        return what->ranks;
    return bk_ranks() > 1 ? 1 : session->machine.ranks;
}

// A case of fewer ranks than there are is on one node, for all that is known.
static unsigned nodes_of(const struct bk_session *session, const struct bk_case *what) {
    if (bk_ranks() == 1)
        return session->machine.nodes;
    return ranks_of(session, what) == bk_ranks() ? session->team_nodes : 1;
}

static void write_raw(struct bk_session *session, const struct bk_case *what,
                      const struct bk_timing *timing, const struct bk_check *check, bool verified) {
    FILE *raw = session->raw;
    fprintf(raw, "%s %s, %u ranks of %u threads, %s: %llu repetitions of %llu iterations\n",
            timing->region, what->variant, ranks_of(session, what), what->threads,
            what->device == NULL ? "CPU" : what->device, (unsigned long long)timing->repetitions,
            (unsigned long long)(timing->iterations / timing->repetitions));
    fprintf(raw, "  verification: %s, %llu values compared, worst error %.3g of its bound\n",
            verified ? "passed" : "FAILED", (unsigned long long)check->compared,
            check->worst_ratio);
    if (!verified && check->ok && bk_ranks() > 1) {
        fprintf(raw, "  the wrong values are in other ranks' parts\n");
        return;
    }
    if (!verified) {
        fprintf(raw, "  value %llu is %.17g and should be %.17g\n",
                (unsigned long long)check->worst_index, check->got, check->want);
        return;
    }
    fprintf(raw, "  time per iteration: %.6g s +- %.2g s (k=1)\n", timing->time_s,
            timing->spread_s);
    fprintf(raw, "  performance: %.6g %s/s\n", what->operations / timing->time_s, what->operation);
    if (timing->has_energy)
        fprintf(raw, "  energy per iteration: %.6g J +- %.2g J (k=2), %.4g W%s\n", timing->energy_j,
                timing->energy_uncertainty_j, timing->power_w,
                timing->estimated ? ", ESTIMATED by a model, not measured" : "");
    fputs("  repetitions [s per iteration]:", raw);
    for (uint64_t i = 0; i < timing->repetitions; i++)
        fprintf(raw, " %.6g", timing->repetition_s[i]);
    fputc('\n', raw);
}

// The name of what is counted in a second; bytes and flops have letters.
static const char *unit_of(const struct bk_case *what, char *text, size_t size) {
    if (strcmp(what->operation, "byte") == 0)
        return "B/s";
    if (strcmp(what->operation, "flop") == 0)
        return "F/s";
    snprintf(text, size, "%s/s", what->operation);
    return text;
}

// A benchmark's own options, `--cache-line` as "option_cache_line".
static void write_extras(struct json_object *line, const struct bk_session *session) {
    for (size_t i = 0; i < session->benchmark->extra_count; i++) {
        const struct bk_extra *extra = &session->benchmark->extras[i];
        char key[64];
        if (extra->text != NULL)
            continue;
        snprintf(key, sizeof key, "option_%s", extra->name + strspn(extra->name, "-"));
        for (char *dash = key; (dash = strchr(dash, '-')) != NULL;)
            *dash = '_';
        if (extra->words == NULL)
            json_number(line, key, session->options->extras[i]);
        else
            json_text(line, key, extra_text(session, i, NULL, 0));
    }
}

static void write_energy(struct json_object *line, const struct bk_timing *timing, bool known) {
    static const char *const keys[] = {"energy_j", "energy_uncertainty_j", "power_w", "estimated"};
    if (!known) {
        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
            json_null(line, keys[i]);
        return;
    }
    json_number(line, keys[0], timing->energy_j);
    json_number(line, keys[1], timing->energy_uncertainty_j);
    json_number(line, keys[2], timing->power_w);
    json_bool(line, keys[3], timing->estimated);
}

static void write_cooked(struct bk_session *session, const struct bk_case *what,
                         const struct bk_timing *timing, const struct bk_check *check,
                         bool verified) {
    const struct bk_machine *machine = &session->machine;
    char unit[64], digest[17];
    snprintf(digest, sizeof digest, "%016llx", (unsigned long long)check->digest);
    struct json_object line = json_begin(session->cooked);
    json_text(&line, "benchmark", session->benchmark->name);
    json_text(&line, "kernel", what->kernel);
    json_text(&line, "variant", what->variant);
    json_count(&line, "size", what->size);
    json_number(&line, "bytes_or_flops", what->operations);
    json_number(&line, "operations", what->operations);
    json_text(&line, "operation", what->operation);
    json_count(&line, "iterations", timing->iterations);
    json_count(&line, "repetitions", timing->repetitions);
    json_count(&line, "runs", 1);
    const double none = (double)NAN;
    json_number(&line, "time_s", verified ? timing->time_s : none);
    json_number(&line, "time_best_s", verified ? timing->best_s : none);
    json_number(&line, "time_spread_s", verified ? timing->spread_s : none);
    json_number(&line, "performance", verified ? what->operations / timing->time_s : none);
    json_text(&line, "unit", unit_of(what, unit, sizeof unit));
    json_bool(&line, "verified", verified);
    json_text(&line, "digest", bk_ranks() > 1 ? NULL : digest); // of this rank's part alone
    json_count(&line, "threads", what->threads);
    json_count(&line, "ranks", ranks_of(session, what));
    json_count(&line, "nodes", nodes_of(session, what));
    json_text(&line, "target", machine->target);
    json_text(&line, "cpu", machine->cpu);
    json_text(&line, "device", what->device);
    write_extras(&line, session);
    json_text(&line, "region", timing->region);
    json_number(&line, "region_seconds", timing->region_seconds);
    write_energy(&line, timing, verified && timing->has_energy);
    json_text(&line, "job", machine->job);
    json_text(&line, "step", machine->step);
    json_text(&line, "node", machine->node);
    json_text(&line, "start", timing->start);
    bk_write_manifest(&line, machine, session->pinning);
    json_end(&line);
    fflush(session->cooked);
}

static void check_stream(struct bk_session *session, FILE *file, const char *name) {
    if (!ferror(file))
        return;
    clearerr(file);
    fprintf(stderr, "%s: can't write '%s': results are lost; is the disk full?\n",
            session->benchmark->name, name);
    session->status = BK_SYSTEM;
}

void bk_unverified(struct bk_session *session) {
    if (session->status == BK_OK)
        session->status = BK_UNVERIFIED;
}

// Of the host; a device's are not the kernel's to place.
static unsigned host_threads(const struct bk_case *what) {
    return what->device == NULL ? what->threads : 1;
}

// Once a run.
static void tell_of_floating(struct bk_session *session, const struct bk_case *what) {
    if (session->told_of_floating || session->pinning != BK_FLOATING ||
        host_threads(what) * ranks_of(session, what) == 1)
        return;
    session->told_of_floating = true;
    static const char text[] =
        "threads float from core to core, away from their caches and memory: "
        "set OMP_PROC_BIND=close OMP_PLACES=cores; give each rank "
        "cores for its threads (srun --cpus-per-task=THREADS --cpu-bind=cores, mpirun --map-by "
        "slot:PE=THREADS --bind-to core)";
    fprintf(stderr, "%s: %s\n", session->benchmark->name, text);
    bk_note(session, "%s", text);
}

void bk_report(struct bk_session *session, const struct bk_case *what,
               const struct bk_timing *timing, const struct bk_check *check) {
    // Nothing compared is nothing verified.
    bool verified = bk_team_maximum(!check->ok) == 0 && bk_team_sum((double)check->compared) > 0;
    session->pinning = (enum bk_pinning)bk_team_maximum(bk_find_pinning(host_threads(what)));
    session->measured = true;
    bk_gather_instruments();
    if (!verified)
        bk_unverified(session);
    if (bk_rank() != 0)
        return;
    tell_of_floating(session, what);
    if (!verified)
        fprintf(stderr, "%s: %s %s: the result is wrong; it is reported without performance\n",
                session->benchmark->name, timing->region, what->variant);
    write_raw(session, what, timing, check, verified);
    fflush(session->raw);
    write_cooked(session, what, timing, check, verified);
    check_stream(session, session->raw, session->raw_name);
    check_stream(session, session->cooked, session->cooked_name);
}

int bk_close(struct bk_session *session) {
    fflush(session->raw);
    check_stream(session, session->raw, session->raw_name);
    int status = session->status;
    free_session(session);
    return status;
}
