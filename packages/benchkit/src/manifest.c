// What a line of results tells of the program and its system: runs that differ in it are not of one
// kind, and are not averaged. Who ran it, where and when is in the line itself.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "manifest.h"

#include "benchkit.h"
#include "instruments.h"
#include "words.h"

static struct bk_build build;
static char libraries[4096];
static char instruments[BK_WORDS_MAX], channels[BK_WORDS_MAX];

void bk_set_build(const struct bk_build *now) {
    build = *now;
    bk_find_libraries(libraries, sizeof libraries);
}

void bk_gather_instruments(void) {
    bk_gather_words(joulemark_instruments(), instruments);
    bk_gather_words(joulemark_channels(), channels);
}

static const char *known(const char *text) {
    return text[0] == '\0' ? NULL : text;
}

static const char *const pinnings[] = {
    [BK_PINNING_UNKNOWN] = NULL,
    [BK_PINNED_TO_CORES] = "core",
    [BK_PINNED_TO_NODES] = "NUMA node",
    [BK_FLOATING] = "none",
};

void bk_write_manifest(struct json_object *line, const struct bk_machine *machine,
                       enum bk_pinning pinning) {
    struct json_object manifest = json_begin_inner(line, "manifest");
    json_text(&manifest, "version", build.version);
    json_text(&manifest, "compiler", build.compiler);
    json_text(&manifest, "flags", build.flags);
    json_text(&manifest, "libraries", known(libraries));
    json_text(&manifest, "spack_spec", build.spack_spec);
    json_text(&manifest, "spack_hash", build.spack_hash);
    json_text(&manifest, "os_kernel", known(machine->os_kernel));
    json_text(&manifest, "governor", known(machine->governor));
    json_text(&manifest, "pinning", pinnings[pinning]);
    json_text(&manifest, "slurm", machine->slurm);
    json_text(&manifest, "instruments", known(instruments));
    json_text(&manifest, "channels", known(channels));
    json_number(&manifest, "frequency_hz", bk_frequency_hz());
    json_end_inner(&manifest);
}
