// Where a benchmark runs: reads the kernel's and Slurm's descriptions.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "machine.h"

#include "benchkit.h"
#include "team.h"

#include <link.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>

#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

// Value of the first "key : value" line of a /proc file; false when there is none.
static bool read_proc(const char *path, const char *key, char *value, size_t size) {
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    char line[512];
    bool found = false;
    while (!found && fgets(line, sizeof line, file) != NULL) {
        char *colon = strchr(line, ':');
        if (colon == NULL || strncmp(line, key, strlen(key)) != 0)
            continue;
        colon += 1 + strspn(colon + 1, " \t");
        colon[strcspn(colon, "\n")] = '\0';
        snprintf(value, size, "%s", colon);
        found = true;
    }
    fclose(file);
    return found;
}

#define CPUFREQ "/sys/devices/system/cpu/cpu0/cpufreq/"

void bk_read_line(const char *path, char *text, size_t size) {
    text[0] = '\0';
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return;
    if (fgets(text, (int)size, file) != NULL)
        text[strcspn(text, "\n")] = '\0';
    fclose(file);
}

double bk_frequency_hz(void) {
    char text[64];
    bk_read_line(CPUFREQ "scaling_cur_freq", text, sizeof text);
    if (strtod(text, NULL) > 0)
        return 1e3 * strtod(text, NULL);
    if (!read_proc("/proc/cpuinfo", "cpu MHz", text, sizeof text))
        return (double)NAN;
    return 1e6 * strtod(text, NULL);
}

struct list {
    char *text;
    size_t size, used;
};

static void append(struct list *list, const char *name) {
    const int length = snprintf(list->text + list->used, list->size - list->used, "%s%s",
                                list->used == 0 ? "" : " ", name);
    const bool fits = length >= 0 && (size_t)length < list->size - list->used;
    list->text[list->used += fits ? (size_t)length : 0] = '\0';
}

// A library's name is often a link to the file that has its version in its name.
static int append_library(struct dl_phdr_info *info, size_t size, void *list) {
    (void)size;
    char *path = realpath(info->dlpi_name, NULL);
    const char *slash = path == NULL ? NULL : strrchr(path, '/');
    if (slash != NULL && strncmp(slash + 1, "lib", 3) == 0)
        append(list, slash + 1);
    free(path);
    return 0;
}

void bk_find_libraries(char *text, size_t size) {
    struct list list = {.text = text, .size = size};
    text[0] = '\0';
#ifdef __GLIBC__
    char libc[64]; // whose file is libc.so.6 in every version
    snprintf(libc, sizeof libc, "glibc-%s", gnu_get_libc_version());
    append(&list, libc);
#endif
    dl_iterate_phdr(append_library, &list);
}

// What Slurm says of the step, or 1.
static unsigned count_of_step(const char *name) {
    const char *text = getenv(name);
    return text != NULL && atoi(text) > 0 ? (unsigned)atoi(text) : 1;
}

static const char *step_of_job(void) {
    const char *step = getenv("SLURM_STEP_ID");
    // Slurm numbers the special steps from the top of 32 bits.
    if (step == NULL || strcmp(step, "4294967291") == 0)
        return "batch";
    if (strcmp(step, "4294967290") == 0)
        return "interactive";
    return step;
}

void bk_find_machine(struct bk_machine *machine) {
    *machine = (struct bk_machine){.ranks = 1, .nodes = 1};
    struct utsname name;
    bool known = uname(&name) == 0;
    snprintf(machine->target, sizeof machine->target, "%s", known ? name.machine : "unknown");
    snprintf(machine->os_kernel, sizeof machine->os_kernel, "%s", known ? name.release : "");
    bk_read_line(CPUFREQ "scaling_governor", machine->governor, sizeof machine->governor);
    if (!read_proc("/proc/cpuinfo", "model name", machine->cpu, sizeof machine->cpu))
        snprintf(machine->cpu, sizeof machine->cpu, "%s", machine->target);
    const char *node = getenv("SLURMD_NODENAME");
    if (node == NULL)
        node = known ? name.nodename : "unknown";
    snprintf(machine->node, sizeof machine->node, "%s", node);
    machine->job = getenv("SLURM_JOB_ID");
    if (machine->job == NULL)
        return;
    machine->slurm = getenv("JOULEMARK_SLURM_VERSION");
    machine->step = step_of_job();
    machine->ranks = count_of_step("SLURM_STEP_NUM_TASKS");
    machine->nodes = count_of_step("SLURM_STEP_NUM_NODES");
    machine->rank = getenv("SLURM_PROCID");
}

void *bk_allocate(size_t bytes) {
    const size_t huge_page = (size_t)2 << 20;
    const size_t alignment = bytes < huge_page ? 4096 : huge_page;
    if (bytes > SIZE_MAX - alignment)
        return NULL;
    size_t rounded = (bytes + alignment - 1) / alignment * alignment;
    void *memory = aligned_alloc(alignment, rounded);
    if (memory != NULL && bytes >= huge_page) {
        // What was released before has its pages still, wherever they were touched.
        (void)madvise(memory, rounded, MADV_DONTNEED);
        // Only advice: without huge pages the figures are lower, not wrong.
        (void)madvise(memory, rounded, MADV_HUGEPAGE);
    }
    return memory;
}

void bk_release(void *memory) {
    free(memory);
}

bool bk_memory_suffices(const char *program, uint64_t size, double bytes) {
    char value[64];
    double needed = bytes * bk_team()->ranks_on_node;
    double available = (double)INFINITY;
    if (read_proc("/proc/meminfo", "MemAvailable", value, sizeof value))
        available = 1024.0 * strtod(value, NULL);
    double missing = bk_team_maximum(needed - available);
    if (missing > 0 && bk_rank() == 0)
        fprintf(stderr,
                "%s: size %llu needs %.1f MiB of memory, %.1f MiB are free: give smaller --sizes\n",
                program, (unsigned long long)size, needed / 0x1p20, (needed - missing) / 0x1p20);
    return !(missing > 0);
}
