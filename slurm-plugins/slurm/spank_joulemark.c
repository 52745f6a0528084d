// SPDX-License-Identifier: GPL-2.0-or-later
// SPANK plugin: the option --energy, the accounts' opening, and the summary at the end of a job's
// output.
//
// Hooks of slurmstepd alone are used: job_prolog and job_epilog would start a process more for each
// job.
#include "client.h"
#include "gpus.h"
#include "handover.h"
#include "locate.h"

#include <errno.h>
#include <fcntl.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <slurm/spank.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

SPANK_PLUGIN(joulemark, 1)

/* Of a name that Lustre takes, with its end. */
enum { LUSTRE_JOBID_SIZE = 32 };

/* From srun to its step: no allocation was there before, so the step's end is the job's. */
static const char STANDALONE[] = "JOULEMARK_STANDALONE";

typedef enum { MODE_OFF, MODE_SUMMARY, MODE_PROFILE } mode;

/* What opened the account, for a daemon that did not hear it: the energy plugin, whose word is the
 * job's next, says it again. NULL: not yet known. */
const char *_Atomic joulemark_open_request;

static struct {
    mode mode;
    bool mode_given;
    double profile_hz; /* 0: as often as the daemon samples */
    jm_client client;
    bool opened;
    uint32_t job, step, node_index, n_nodes, tasks_left;
    bool whole_job;     /* the step is all there is of its job: a batch script, or srun without an
                           allocation */
    jm_handover output; /* the first task's standard output, for the summary */
} state = {.client = JM_CLIENT_INIT, .output = JM_HANDOVER_INIT};

/* ",10" after profile: samples a second. */
static bool take_hz(const char *text) {
    char *end;
    if (!text[0])
        return true;
    double hz = text[0] == ',' ? strtod(text + 1, &end) : 0;
    if (!(hz >= 0.001 && hz <= 1000) || *end)
        return false;
    state.profile_hz = hz;
    return true;
}

/* 0: taken, or wrong on the node, where nobody reads an error any more. */
static int take(const char *name, const char *text, bool remote) {
    static const char *const NAMES[] = {"off", "summary", "profile"};
    size_t length = strcspn(text, ",");
    for (int i = 0; i < 3 && length > 0; i++) {
        if (strncmp(text, NAMES[i], length) != 0 || NAMES[i][length])
            continue;
        if (i == MODE_PROFILE ? !take_hz(text + length) : text[length] != '\0')
            break;
        state.mode = (mode)i;
        state.mode_given = true;
        return 0;
    }
    if (remote)
        return 0;
    slurm_error("%s=%s: not one of off, summary, profile, or profile,HZ with 0.001 to 1000 samples "
                "a second",
                name, text);
    return -1;
}

static int take_option(int value, const char *text, int remote) {
    (void)value;
    return take("--energy", text ? text : "", remote != 0);
}

static struct spank_option ENERGY_OPTION = {
    .name = "energy",
    .arginfo = "off|summary|profile[,HZ]",
    .usage =
        "what to tell about the job's energy: nothing (default; it is accounted all the same), "
        "a summary at the end of its output, or that and its power over time, HZ times a second; "
        "$JOULEMARK_ENERGY says it where this option does not",
    .has_arg = 1,
    .cb = take_option,
};

static bool is_remote(spank_t spank) {
    return spank_remote(spank) == 1;
}

/* For scripts of many sites: where this plugin is not, Slurm refuses the option. */
static int take_environment(spank_t spank) {
    static const char NAME[] = "JOULEMARK_ENERGY";
    char text[32] = "";
    bool remote = is_remote(spank);
    if (state.mode_given)
        return 0;
    if (remote)
        spank_getenv(spank, NAME, text, sizeof text);
    else if (getenv(NAME))
        jm_format(text, sizeof text, "%s", getenv(NAME));
    return text[0] ? take(NAME, text, remote) : 0;
}

static void step_name(uint32_t step, char *name, size_t size) {
    if (step == SLURM_BATCH_SCRIPT)
        jm_format(name, size, "batch");
    else if (step == SLURM_EXTERN_CONT)
        jm_format(name, size, "extern");
    else if (step == SLURM_INTERACTIVE_STEP)
        jm_format(name, size, "interactive");
    else
        jm_format(name, size, "%u", step);
}

/* "0-3,8" is 5; what is no such list is 0. */
static unsigned count_cores(const char *list) {
    unsigned count = 0, first, last;
    for (const char *part = list; part && *part; part = strchr(part, ',')) {
        part += *part == ',';
        int n = sscanf(part, "%u-%u", &first, &last);
        if (n == 2 && last >= first)
            count += last - first + 1;
        else if (n >= 1)
            count++;
    }
    return count;
}

static void add_cores(spank_t spank, spank_item_t item, char *request, size_t size,
                      const char *key) {
    char *list = NULL;
    if (spank_get_item(spank, item, &list) == ESPANK_SUCCESS && list)
        jm_packet_add(request, size, key, "%u", count_cores(list));
}

/* The GPUs bound to a step, or to the job whose script this is; an .extern step is told none. Slurm
 * set the variable, or unset it, after it took the user's. */
static void add_gpus(spank_t spank, char *request, size_t size) {
    char list[JM_GPUS_TEXT_MAX];
    bool of_job = state.step == SLURM_BATCH_SCRIPT || state.step == SLURM_INTERACTIVE_STEP;
    if (spank_getenv(spank, of_job ? "SLURM_JOB_GPUS" : "SLURM_STEP_GPUS", list, sizeof list) ==
            ESPANK_SUCCESS &&
        list[0])
        jm_packet_add(request, size, "gpus", "%s", list);
}

static void open_account(spank_t spank) {
    static char request[512];
    char told[sizeof request + 16], name[JM_STEP_MAX];
    uid_t uid = 0;
    jm_message why;
    step_name(state.step, name, sizeof name);
    spank_get_item(spank, S_JOB_UID, &uid);
    jm_packet_begin(request, sizeof request, "open");
    jm_packet_add(request, sizeof request, "job", "%u", state.job);
    jm_packet_add(request, sizeof request, "step", "%s", name);
    jm_packet_add(request, sizeof request, "uid", "%u", (unsigned)uid);
    jm_packet_add(request, sizeof request, "mode", "%d", (int)state.mode);
    if (state.profile_hz > 0)
        jm_packet_add(request, sizeof request, "hz", "%g", state.profile_hz);
    add_cores(spank, S_JOB_ALLOC_CORES, request, sizeof request, "job_cpus");
    add_cores(spank, S_STEP_ALLOC_CORES, request, sizeof request, "step_cpus");
    add_gpus(spank, request, sizeof request);
    joulemark_open_request = request;
    jm_format(told, sizeof told, "%s quiet=1", request); /* the launch need not wait for it */
    state.opened = jm_client_tell(&state.client, told, &why) == 0;
    if (!state.opened)
        slurm_info("joulemark: job %u.%s has no account: %s", state.job, name, why.text);
}

/* Lustre's requests of all this step's processes carry its name, whatever becomes of their
 * environment: slurmstepd's session is the step's. A file that is not there: no Lustre is. */
static void name_session(int argc, char **argv) {
    static const char KEY[] = "lustre_jobid=";
    const char *path = "/sys/fs/lustre/jobid_this_session";
    char file[JM_PATH_MAX], cluster[JM_NAME_MAX], step[JM_STEP_MAX], name[LUSTRE_JOBID_SIZE];
    for (int i = 0; i < argc; i++)
        if (strncmp(argv[i], KEY, strlen(KEY)) == 0)
            path = argv[i] + strlen(KEY);
    int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) {
        if (errno != ENOENT)
            slurm_info("joulemark: %s: %m; Lustre will not know job %u", path, state.job);
        return;
    }
    jm_config_find(file, sizeof file);
    step_name(state.step, step, sizeof step);
    if (!jm_config_cluster(file, cluster, sizeof cluster) ||
        !jm_format(name, sizeof name, "%s.%u.%s", cluster, state.job, step))
        jm_format(name, sizeof name, "%u.%s", state.job, step);
    if (write(fd, name, strlen(name)) < 0)
        slurm_info("joulemark: %s: %m; Lustre will not know job %u", path, state.job);
    close(fd);
}

/* A batch job is summed up once, by its script; elsewhere each step sums itself up, on its first
 * node. */
static bool sums_up(spank_t spank) {
    char environment[16] = "";
    if (state.mode == MODE_OFF || !state.opened || state.node_index != 0)
        return false;
    if (state.step == SLURM_BATCH_SCRIPT)
        return true;
    spank_getenv(spank, "ENVIRONMENT", environment, sizeof environment);
    return state.step < SLURM_MAX_NORMAL_STEP_ID && strcmp(environment, "BATCH") != 0;
}

/* A batch script runs on one node of its job's many: the job's number is in its environment. */
static uint32_t count_nodes(spank_t spank) {
    char text[16];
    uint32_t step_nodes = 1;
    uint64_t job_nodes = 0;
    spank_get_item(spank, S_JOB_NNODES, &step_nodes);
    if (state.step == SLURM_BATCH_SCRIPT &&
        spank_getenv(spank, "SLURM_JOB_NUM_NODES", text, sizeof text) == ESPANK_SUCCESS &&
        jm_parse_u64(text, &job_nodes))
        return (uint32_t)job_nodes;
    return step_nodes;
}

int slurm_spank_init(spank_t spank, int argc, char **argv) {
    (void)argc, (void)argv;
    if (spank_context() != S_CTX_JOB_SCRIPT &&
        spank_option_register(spank, &ENERGY_OPTION) != ESPANK_SUCCESS)
        slurm_error("joulemark: --energy could not be registered");
    if (spank_context() == S_CTX_LOCAL && !getenv("SLURM_JOB_ID"))
        setenv(STANDALONE, "1", 1);
    return ESPANK_SUCCESS;
}

int slurm_spank_init_post_opt(spank_t spank, int argc, char **argv) {
    const char *node = getenv("SLURMD_NODENAME");
    jm_message why;
    if (take_environment(spank) != 0)
        return ESPANK_ERROR;
    if (!is_remote(spank))
        return ESPANK_SUCCESS;
    spank_get_item(spank, S_JOB_ID, &state.job);
    spank_get_item(spank, S_JOB_STEPID, &state.step);
    spank_get_item(spank, S_JOB_NODEID, &state.node_index);
    state.n_nodes = count_nodes(spank);
    spank_get_item(spank, S_JOB_LOCAL_TASK_COUNT, &state.tasks_left);
    if (jm_client_configure(&state.client, node ? node : "", &why) != 0)
        slurm_info("joulemark: %s", why.text);
    open_account(spank);
    name_session(argc, argv);
    char standalone[4];
    state.whole_job =
        state.step == SLURM_BATCH_SCRIPT ||
        spank_getenv(spank, STANDALONE, standalone, sizeof standalone) == ESPANK_SUCCESS;
    spank_unsetenv(spank, STANDALONE);
    if (state.opened)
        spank_setenv(spank, "JOULEMARK_SOCKET", state.client.socket, 1);
    /* For benchmarks' manifests: Slurm itself tells its version to no job. */
    char *version = NULL;
    if (spank_get_item(spank, S_SLURM_VERSION, &version) == ESPANK_SUCCESS && version)
        spank_setenv(spank, "JOULEMARK_SLURM_VERSION", version, 1);
    if (sums_up(spank))
        jm_handover_prepare(&state.output);
    return ESPANK_SUCCESS;
}

/* In the task's own process, just before its program: its standard output is what the summary will
 * be written to. */
int slurm_spank_task_init(spank_t spank, int argc, char **argv) {
    (void)argc, (void)argv;
    int task = -1;
    spank_get_item(spank, S_TASK_ID, &task);
    if (task == 0)
        jm_handover_give(&state.output, 1);
    return ESPANK_SUCCESS;
}

static void sum_up(void) {
    jm_packet reply;
    jm_message why;
    char text[512];
    const char *request = state.whole_job ? "read scope=job" : "read scope=step";
    if (jm_client_ask(&state.client, request, JM_REPLY_TIMEOUT_MS, &reply, &why) != 0) {
        jm_format(text, sizeof text, "Energy: not known: %s\n", why.text);
        jm_handover_write(&state.output, text);
        return;
    }
    if (jm_packet_u64(&reply, "known", 1) == 0) {
        jm_format(text, sizeof text, "Energy: not known%s: no instrument of %s showed a value\n",
                  state.n_nodes > 1 ? " on the first node" : "", "the node's total");
        jm_handover_write(&state.output, text);
        return;
    }
    double joules = jm_packet_double(&reply, "energy_uj", 0) / 1e6;
    double error_j = jm_packet_double(&reply, "uncertainty_uj", 0) / 1e6;
    double seconds = jm_packet_double(&reply, "seconds", 0);
    double gap_s = jm_packet_double(&reply, "gap_s", 0);
    char where[128] = "", gap[64] = "";
    if (state.n_nodes > 1) {
        double all_j =
            jm_handover_job_joules(state.job, state.whole_job ? "extern" : NULL, state.step);
        /* The other nodes' instruments are taken to be like this one's. */
        if (all_j > 0) {
            error_j *= joules > 0 ? all_j / joules : 1;
            joules = all_j;
            jm_format(where, sizeof where, ", %u nodes", state.n_nodes);
        } else {
            jm_format(where, sizeof where, ", the first of %u nodes alone", state.n_nodes);
        }
    }
    if (gap_s > 0)
        jm_format(gap, sizeof gap, ", %.1f s of it not observed", gap_s);
    jm_format(text, sizeof text, "Energy%s: %.1f J +- %.1f J (k=2), %.1f W mean over %.1f s%s%s\n",
              jm_packet_u64(&reply, "estimated", 0) ? " (estimated by a model, not measured)" : "",
              joules, error_j, seconds > 0 ? joules / seconds : 0, seconds, where, gap);
    jm_handover_write(&state.output, text);
}

int slurm_spank_task_exit(spank_t spank, int argc, char **argv) {
    (void)spank, (void)argc, (void)argv;
    if (state.tasks_left > 0)
        state.tasks_left--;
    if (state.tasks_left > 0)
        return ESPANK_SUCCESS;
    if (jm_handover_take(&state.output))
        sum_up();
    jm_handover_close(&state.output);
    return ESPANK_SUCCESS;
}

int slurm_spank_exit(spank_t spank, int argc, char **argv) {
    (void)spank, (void)argc, (void)argv;
    jm_message why;
    /* The energy plugin, where it is there, has closed it already: a second time changes nothing.
     */
    if (state.opened)
        jm_client_tell(&state.client, "close quiet=1", &why);
    jm_handover_close(&state.output);
    jm_client_close(&state.client);
    return ESPANK_SUCCESS;
}
