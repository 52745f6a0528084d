// Command line: the options that all benchmarks share, one table for parsing and help.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "session.h"
#include "team.h"
#include "variants.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SIZES = 4096, MAX_THREADS = 8192 };

struct parser {
    const struct bk_benchmark *benchmark;
    struct bk_options *options;
    unsigned most_threads;
    const char *option; // being parsed, for errors
    const char *value;
    int status; // -1 while all is well
};

struct option {
    const char *name;
    const char *argument; // NULL: takes none
    const char *help;
    void (*parse)(struct parser *parser);
};

__attribute__((format(printf, 2, 3))) static void fail(struct parser *parser, const char *format,
                                                       ...) {
    if (parser->status >= 0)
        return;
    parser->status = BK_USAGE;
    if (bk_rank() != 0)
        return;
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s: %s", parser->benchmark->name, parser->option);
    if (parser->value != NULL)
        fprintf(stderr, " '%s'", parser->value);
    fputs(": ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
}

// A whole number from 1 on; false when `text` up to `end` is none.
static bool whole_number(const char *text, const char *end, uint64_t *number) {
    if (!isdigit((unsigned char)*text))
        return false;
    char *after;
    errno = 0;
    *number = strtoull(text, &after, 10);
    return errno == 0 && after == end && *number > 0;
}

static void add_size(struct parser *parser, uint64_t size) {
    struct bk_options *options = parser->options;
    for (size_t i = 0; i < options->size_count; i++)
        if (options->sizes[i] == size) {
            fail(parser, "size %" PRIu64 " is given twice; give each size once", size);
            return;
        }
    if (options->size_count == MAX_SIZES)
        fail(parser, "more than %d sizes; give fewer", MAX_SIZES);
    else
        options->sizes[options->size_count++] = size;
}

static const char sizes_fix[] = "give e.g. 1024,2048 or 1024:65536:x2 or 100:1000:+100";

static void parse_size_range(struct parser *parser, const char *colon) {
    const char *text = parser->value, *second = strchr(colon + 1, ':');
    uint64_t from, to, step;
    if (second == NULL || !whole_number(text, colon, &from) ||
        !whole_number(colon + 1, second, &to) || (second[1] != 'x' && second[1] != '+') ||
        !whole_number(second + 2, text + strlen(text), &step)) {
        fail(parser, "is not FROM:TO:xFACTOR or FROM:TO:+STEP; %s", sizes_fix);
        return;
    }
    bool multiplies = second[1] == 'x';
    if (from > to || (multiplies && step < 2)) {
        fail(parser, "never ends or is empty; %s", sizes_fix);
        return;
    }
    while (from <= to && parser->status < 0) {
        add_size(parser, from);
        if (multiplies ? from > UINT64_MAX / step : from > UINT64_MAX - step)
            return;
        from = multiplies ? from * step : from + step;
    }
}

static void copy_sizes(struct bk_options *options, const uint64_t *sizes, size_t count) {
    memcpy(options->sizes, sizes, count * sizeof *sizes);
    options->size_count = count;
}

static void parse_table(struct parser *parser) {
    const struct bk_benchmark *benchmark = parser->benchmark;
    uint64_t number;
    bool numeric = whole_number(parser->value, parser->value + strlen(parser->value), &number);
    for (size_t i = 0; numeric && i < benchmark->table_count; i++)
        if (benchmark->tables[i].number == number) {
            copy_sizes(parser->options, benchmark->tables[i].sizes, benchmark->tables[i].count);
            parser->options->table = benchmark->tables[i].number;
            parser->options->asked = false;
            return;
        }
    char known[128] = "";
    for (size_t i = 0, used = 0; i < benchmark->table_count && used < sizeof known; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%u", i == 0 ? "" : ", ",
                                 benchmark->tables[i].number);
    fail(parser, "no such table; give one of %s", known);
}

static void parse_sizes(struct parser *parser) {
    static const char table[] = "table";
    if (strncmp(parser->value, table, sizeof table - 1) == 0) {
        parser->value += sizeof table - 1;
        parse_table(parser);
        return;
    }
    parser->options->size_count = 0;
    parser->options->table = 0;
    parser->options->asked = true;
    const char *colon = strchr(parser->value, ':');
    if (colon != NULL) {
        parse_size_range(parser, colon);
        return;
    }
    for (const char *text = parser->value; parser->status < 0;) {
        size_t length = strcspn(text, ",");
        uint64_t size;
        if (whole_number(text, text + length, &size))
            add_size(parser, size);
        else
            fail(parser, "'%.*s' is not a whole number above 0; %s", (int)length, text, sizes_fix);
        if (text[length] == '\0')
            return;
        text += length + 1;
    }
}

static void list_names(const char *const *names, char *text, size_t size) {
    text[0] = '\0';
    for (size_t i = 0, used = 0; names[i] != NULL && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i == 0 ? "" : ",", names[i]);
}

static uint32_t name_bit(const char *const *names, const char *text, size_t length) {
    for (unsigned i = 0; names[i] != NULL; i++)
        if (strlen(names[i]) == length && strncmp(names[i], text, length) == 0)
            return UINT32_C(1) << i;
    return 0;
}

static uint32_t parse_names(struct parser *parser, const char *const *names, uint32_t all) {
    if (strcmp(parser->value, "all") == 0)
        return all;
    uint32_t mask = 0;
    for (const char *text = parser->value;;) {
        size_t length = strcspn(text, ",");
        uint32_t bit = name_bit(names, text, length);
        if (bit == 0) {
            char known[256];
            list_names(names, known, sizeof known);
            fail(parser, "'%.*s' is unknown; give all, or some of %s", (int)length, text, known);
            return 0;
        }
        mask |= bit;
        if (text[length] == '\0')
            return mask;
        text += length + 1;
    }
}

static uint32_t all_names(const char *const *names) {
    uint32_t mask = 0;
    for (unsigned i = 0; names[i] != NULL; i++)
        mask |= UINT32_C(1) << i;
    return mask;
}

static void parse_kernels(struct parser *parser) {
    const char *const *names = parser->benchmark->kernels;
    parser->options->kernels = parse_names(parser, names, all_names(names));
}

struct variant_names {
    const char *of[BK_VARIANTS_MAX + 1]; // ended by NULL
};

static struct variant_names variant_names(const struct bk_benchmark *benchmark) {
    struct variant_names names = {0};
    for (unsigned i = 0; i < BK_VARIANTS_MAX && benchmark->variants[i] != NULL; i++)
        names.of[i] = benchmark->variants[i]->name;
    return names;
}

static void parse_variants(struct parser *parser) {
    const struct bk_benchmark *benchmark = parser->benchmark;
    const uint32_t here = bk_variants_startable(benchmark);
    const struct variant_names names = variant_names(benchmark);
    const uint32_t chosen = parse_names(parser, names.of, bk_variants_all(benchmark));
    if ((chosen & ~here) == 0)
        parser->options->variants = chosen;
    else if (bk_ranks() > 1)
        fail(parser, "runs on one rank, not on %u; start it without mpirun", bk_ranks());
    else
        fail(parser, "needs MPI; start it by mpirun or srun --mpi");
}

static void parse_threads(struct parser *parser) {
    uint64_t threads;
    const char *text = parser->value;
    if (!whole_number(text, text + strlen(text), &threads) || threads > MAX_THREADS)
        fail(parser, "is not a number of threads; give 1 to %d", MAX_THREADS);
    else if (threads > parser->most_threads)
        fail(parser, "is more than OpenMP gives; give up to %u, or a greater $OMP_THREAD_LIMIT",
             parser->most_threads);
    else
        parser->options->threads = (unsigned)threads;
}

static void parse_seconds(struct parser *parser, double *seconds) {
    char *end;
    *seconds = strtod(parser->value, &end);
    if (end == parser->value || *end != '\0' || !(*seconds > 0) || !(*seconds <= 86400))
        fail(parser, "is not a number of seconds; give one above 0, up to 86400");
}

static void parse_min_seconds(struct parser *parser) {
    parse_seconds(parser, &parser->options->min_seconds);
}

static void parse_max_seconds(struct parser *parser) {
    parse_seconds(parser, &parser->options->max_seconds);
}

static void parse_cooked(struct parser *parser) {
    parser->options->cooked = parser->value;
}

static void parse_raw(struct parser *parser) {
    parser->options->raw = parser->value;
}

static void parse_quick(struct parser *parser) {
    const struct bk_benchmark *benchmark = parser->benchmark;
    copy_sizes(parser->options, benchmark->quick_sizes, benchmark->quick_count);
    parser->options->table = 0;
    parser->options->asked = false;
    parser->options->quick = true;
    parser->options->variants = bk_variants_all(benchmark);
    parser->options->min_seconds = 0.01;
}

static const struct bk_extra *find_extra(const struct bk_benchmark *benchmark, const char *argument,
                                         size_t length) {
    for (size_t i = 0; i < benchmark->extra_count; i++)
        if (strlen(benchmark->extras[i].name) == length &&
            strncmp(benchmark->extras[i].name, argument, length) == 0)
            return &benchmark->extras[i];
    return NULL;
}

static double word_index(struct parser *parser, const char *const *words) {
    for (size_t i = 0; words[i] != NULL; i++)
        if (strcmp(words[i], parser->value) == 0)
            return (double)i;
    char known[256];
    list_names(words, known, sizeof known);
    fail(parser, "is unknown; give one of %s", known);
    return 0;
}

static double extra_number(struct parser *parser, const struct bk_extra *extra) {
    char *end;
    double number = strtod(parser->value, &end);
    // Written so that a NaN does not pass.
    bool fits = number >= extra->least && number <= extra->most;
    if (end == parser->value || *end != '\0' || !fits || (extra->whole && number != floor(number)))
        fail(parser, "is not a %snumber from %.15g to %.15g; give one",
             extra->whole ? "whole " : "", extra->least, extra->most);
    return number;
}

static void parse_extra(struct parser *parser, const struct bk_extra *extra) {
    const size_t index = (size_t)(extra - parser->benchmark->extras);
    if (extra->text != NULL)
        parser->options->texts[index] = parser->value;
    else
        parser->options->extras[index] =
            extra->words == NULL ? extra_number(parser, extra) : word_index(parser, extra->words);
}

static void print_extra_help(const struct bk_extra *extra) {
    char left[64], known[256];
    const char *argument = extra->text != NULL ? "TEXT" : extra->words == NULL ? "N" : "WORD";
    snprintf(left, sizeof left, "%s %s", extra->name, argument);
    printf("  %-26s %s\n", left, extra->help);
    if (extra->text != NULL) {
        printf("  %-26s (default %s)\n", "", extra->text[0] != '\0' ? extra->text : "none");
    } else if (extra->words == NULL) {
        printf("  %-26s (%.15g to %.15g, default %.15g)\n", "", extra->least, extra->most,
               extra->standard);
    } else {
        list_names(extra->words, known, sizeof known);
        printf("  %-26s (one of %s; default %s)\n", "", known,
               extra->words[(size_t)extra->standard]);
    }
}

static void parse_help(struct parser *parser);

static const struct option options_table[] = {
    {"--sizes", "LIST", "sizes: 1024,2048 or FROM:TO:xFACTOR or FROM:TO:+STEP or tableNUMBER",
     parse_sizes},
    {"--table", "NUMBER", "sizes of a table of PRACE-1IP D9.3.3", parse_table},
    {"--kernels", "LIST", "kernels to run, or all (default)", parse_kernels},
    {"--variant", "LIST", "variants to run, or all", parse_variants},
    {"--threads", "N", "threads (default: as OpenMP, $OMP_NUM_THREADS or the usable CPUs)",
     parse_threads},
    {"--min-seconds", "S", "timed seconds of one measurement, at least (default 0.5)",
     parse_min_seconds},
    {"--max-seconds-per-size", "S", "limit on the timed seconds of one measurement",
     parse_max_seconds},
    {"--cooked", "FILE",
     "append one JSON line a measurement to FILE\n"
     "(default: PROGRAM.JOB-or-PID.cooked.jsonl in $JOULEMARK_RESULTS or here)",
     parse_cooked},
    {"--raw", "FILE", "write the raw output to FILE (default: standard output)", parse_raw},
    {"--quick", NULL, "a small verified case of every variant; later options change it",
     parse_quick},
    {"--help", NULL, "show this text", parse_help},
};
enum { OPTION_COUNT = sizeof options_table / sizeof options_table[0] };

static void print_help_line(const struct option *option) {
    char left[64];
    snprintf(left, sizeof left, "%s%s%s", option->name, option->argument == NULL ? "" : " ",
             option->argument == NULL ? "" : option->argument);
    const char *text = option->help;
    for (size_t length; *text != '\0'; text += length + (text[length] == '\n')) {
        length = strcspn(text, "\n");
        printf("  %-26s %.*s\n", text == option->help ? left : "", (int)length, text);
    }
}

static void parse_help(struct parser *parser) {
    const struct bk_benchmark *benchmark = parser->benchmark;
    char names[256];
    parser->status = BK_OK;
    if (bk_rank() != 0)
        return;
    printf("%s: %s\nUsage: %s [OPTION]...\n", benchmark->name, benchmark->summary,
           benchmark->command == NULL ? benchmark->name : benchmark->command);
    for (size_t i = 0; i < OPTION_COUNT; i++)
        print_help_line(&options_table[i]);
    for (size_t i = 0; i < benchmark->extra_count; i++)
        print_extra_help(&benchmark->extras[i]);
    printf("Sizes are %s. Tables:\n", benchmark->size_meaning);
    for (size_t i = 0; i < benchmark->table_count; i++)
        printf("  %-5u %s%s\n", benchmark->tables[i].number, benchmark->tables[i].title,
               i == benchmark->default_table ? " (default)" : "");
    list_names(benchmark->kernels, names, sizeof names);
    printf("Kernels: %s\n", names);
    list_names(variant_names(benchmark).of, names, sizeof names);
    printf("Variants: %s\n%s\n", names, benchmark->variants_help);
    printf("Exit code: 0 all well, 1 a result failed its verification, 2 wrong usage,\n"
           "3 out of memory or input/output failed, 4 a size that --sizes names was left out, or\n"
           "every size of a table.\n");
}

static const struct option *find_option(const char *argument, size_t length) {
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (strlen(options_table[i].name) == length &&
            strncmp(options_table[i].name, argument, length) == 0)
            return &options_table[i];
    return NULL;
}

// Takes `--option value` or `--option=value` at argv[i]; returns the index of the next argument.
static int parse_argument(struct parser *parser, int argc, char **argv, int i) {
    size_t length = strcspn(argv[i], "=");
    const char *attached = argv[i][length] == '=' ? argv[i] + length + 1 : NULL;
    const struct option *option = find_option(argv[i], length);
    const struct bk_extra *extra = find_extra(parser->benchmark, argv[i], length);
    const char *argument = option == NULL ? "VALUE" : option->argument;
    parser->option = option != NULL ? option->name : extra != NULL ? extra->name : argv[i];
    parser->value = NULL;
    if (option == NULL && extra == NULL)
        fail(parser, "unknown option; see --help");
    else if (argument == NULL && attached != NULL)
        fail(parser, "takes no value; leave out '=%s'", attached);
    else if (argument != NULL && attached == NULL && i + 1 == argc)
        fail(parser, "needs a value; give %s %s", parser->option, argument);
    if (parser->status >= 0)
        return argc;
    if (argument != NULL)
        parser->value = attached == NULL ? argv[++i] : attached;
    if (option != NULL)
        option->parse(parser);
    else
        parse_extra(parser, extra);
    return parser->status < 0 ? i + 1 : argc;
}

static void set_defaults(struct parser *parser) {
    const struct bk_benchmark *benchmark = parser->benchmark;
    const struct bk_table *table = &benchmark->tables[benchmark->default_table];
    copy_sizes(parser->options, table->sizes, table->count);
    parser->options->table = table->number;
    parser->options->kernels = all_names(benchmark->kernels);
    parser->options->variants = bk_variants_usual(benchmark);
    parser->options->min_seconds = 0.5;
    parser->options->max_seconds = benchmark->max_seconds;
    for (size_t i = 0; i < benchmark->extra_count; i++) {
        parser->options->extras[i] = benchmark->extras[i].standard;
        parser->options->texts[i] = benchmark->extras[i].text;
    }
}

static void check_seconds(struct parser *parser) {
    const struct bk_options *options = parser->options;
    parser->option = "--max-seconds-per-size";
    parser->value = NULL;
    if (options->max_seconds < options->min_seconds)
        fail(parser, "%g s is below --min-seconds, %g s; give more, or a smaller --min-seconds",
             options->max_seconds, options->min_seconds);
}

int bk_parse(const struct bk_benchmark *benchmark, struct bk_threads threads,
             struct bk_options *options, int argc, char **argv) {
    *options =
        (struct bk_options){.sizes = calloc(MAX_SIZES, sizeof(uint64_t)), .threads = threads.usual};
    if (options->sizes == NULL) {
        fprintf(stderr, "%s: out of memory\n", benchmark->name);
        return BK_SYSTEM;
    }
    struct parser parser = {
        .benchmark = benchmark, .options = options, .most_threads = threads.most, .status = -1};
    set_defaults(&parser);
    for (int i = 1; i < argc && parser.status < 0;)
        i = parse_argument(&parser, argc, argv, i);
    check_seconds(&parser);
    if (parser.status >= 0)
        bk_free_options(options);
    return parser.status;
}

void bk_free_options(struct bk_options *options) {
    free(options->sizes);
    options->sizes = NULL;
}
