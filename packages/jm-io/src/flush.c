// By way of each node's own disk: a file is written there, and a thread brings it to the shared
// folder while the program goes on, as DEEP-ER's cache does.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "io.h"

#include <stdio.h>
#include <sys/stat.h>

// ---- Options, and room -------------------------------------------------------------------------

bool io_local_check(const struct bk_run *run, unsigned option, uint32_t kernels,
                    const char *names) {
    struct bk_options *options = run->options;
    unsigned count = 0;
    if (options->texts[option][0] != '\0')
        return true;
    while (run->benchmark->kernels[count] != NULL)
        count++;
    const uint32_t all = (UINT32_C(1) << count) - 1;
    if ((options->kernels & all) != all && (options->kernels & kernels) != 0)
        return bk_refuse(run, "--kernels: %s need --local; give a folder of each node's own",
                         names);
    options->kernels &= ~kernels;
    return true;
}

const char *io_local_begin(struct bk_run *run, unsigned option, bool is_used) {
    const char *trouble = io_begin(run);
    if (trouble == NULL && is_used && !io_local_make(run, run->options->texts[option]))
        return BK_TOLD;
    return trouble;
}

bool io_local_has_room(const struct bk_run *run, uint64_t size, double bytes, unsigned dimensions,
                       const char *elements) {
    struct stat local, shared;
    const bool is_same = stat(io_local()->path, &local) == 0 &&
                         stat(io_place()->path, &shared) == 0 && local.st_dev == shared.st_dev;
    const double on_node = bk_team_maximum(bk_ranks() == 1 ? 1 : bk_rank_on_node() + 1);
    const double files = on_node + (bk_team_maximum(is_same) > 0 ? bk_ranks() : 0);
    return io_place_has_room(run, io_local(), size, bytes * files, files, dimensions, elements);
}

const char *io_local_device(void) {
    static char device[2 * sizeof(((struct io_place *)NULL)->kind) + 1];
    snprintf(device, sizeof device, "%s+%s", io_local()->kind, io_place()->kind);
    return device;
}

// ---- On its way --------------------------------------------------------------------------------

static bool bring_piece(struct io_flush *flush, struct io_file *from, struct io_file *to,
                        uint64_t at) {
    const struct io_interface *files = &io_posix_files;
    const uint64_t left = flush->bytes - at;
    const size_t bytes = (size_t)(left < flush->piece ? left : flush->piece);
    const uint64_t place = flush->place == NULL ? at : flush->place(flush->context, at);
    return files->read(from, flush->words, bytes, at, &flush->trouble) &&
           files->write(to, flush->words, bytes, place, &flush->trouble);
}

static void *bring(void *context) {
    struct io_flush *flush = context;
    struct io_trouble *trouble = &flush->trouble;
    const struct io_interface *files = &io_posix_files;
    struct io_file from = {.path = flush->from}, to = {.path = flush->to};
    if (!files->open(&from, IO_READ, false, false, trouble))
        return NULL;
    if (files->open(&to, IO_WRITE, false, false, trouble)) {
        bool ok = true;
        for (uint64_t at = 0; at < flush->bytes && ok; at += flush->piece)
            ok = bring_piece(flush, &from, &to, at);
        (void)files->sync(&to, trouble);
        (void)files->close(&to, trouble);
    }
    (void)files->close(&from, trouble);
    return NULL;
}

// A node that has no thread left does it at once.
void io_flush_begin(struct io_flush *flush, const struct io_trouble *trouble) {
    if (trouble->text[0] != '\0')
        return;
    flush->is_on_its_way = pthread_create(&flush->thread, NULL, bring, flush) == 0;
    if (!flush->is_on_its_way)
        (void)bring(flush);
}

void io_flush_end(struct io_flush *flush, struct io_trouble *trouble) {
    if (flush->is_on_its_way)
        (void)pthread_join(flush->thread, NULL);
    flush->is_on_its_way = false;
    if (trouble->text[0] == '\0')
        *trouble = flush->trouble;
}
