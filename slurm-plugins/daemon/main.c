// SPDX-License-Identifier: GPL-2.0-or-later
// joulemarkd: one node's ledger. Samples its instruments, splits the energy among its jobs, answers
// on a Unix socket.
#include "describe.h"
#include "forward.h"
#include "gateway.h"
#include "locate.h"
#include "log.h"
#include "probe.h"
#include "server.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EXIT_USAGE = 2, EXIT_BAD_CONFIG = 78 };

static const char USAGE[] =
    "usage: joulemarkd [-N NODE] [-c FILE] [--check | --describe | --probe COUNT | --forward PID | "
    "--gateway]\n"
    "\n"
    "  -N, --node NODE    this node's name in Slurm; default: the host's name up to the first dot\n"
    "  -c, --config FILE  configuration; default $JOULEMARK_CONFIG, else joulemark.yaml beside "
    "slurm.conf,\n"
    "                     else /etc/slurm/joulemark.yaml\n"
    "      --check        validate the configuration, say every error in it, and end\n"
    "      --describe     print a JSON line a channel, with its error budget, and end; reads "
    "nothing\n"
    "      --probe COUNT  read every instrument COUNT times, print a JSON line a value as the\n"
    "                     instrument gives it (`part` is not applied), and end; beside it, on\n"
    "                     standard error, what `auto` takes and why nothing else\n"
    "      --forward PID  bring the outbox's records to where they go, for the daemon of that "
    "number,\n"
    "                     which starts this itself\n"
    "      --gateway      read instruments for many nodes, publish the nodes' power over MQTT\n"
    "  -V, --version      print the version and end\n"
    "  -h, --help         print this and end\n"
    "\n"
    "Runs in the foreground. SIGHUP reopens the log file, SIGTERM saves the ledger and ends.\n"
    "Exit: 0 ended by a signal, --check found no error, all --probe's readings succeeded; 1 cannot "
    "run, or a reading failed; 2 usage; 78 the "
    "configuration is wrong.\n";

typedef struct {
    char config[JM_PATH_MAX];
    char node[JM_NAME_MAX];
    bool check, describe, gateway;
    int probe;   /* readings; 0: not asked for */
    int forward; /* whose; 0: not asked for */
} arguments;

static bool read_count(const char *text, int *count) {
    int64_t number;
    if (!jm_parse_i64(text, &number) || number < 1 || number > INT32_MAX)
        return false;
    *count = (int)number;
    return true;
}

/* -1: go on; else the exit status. */
static int parse(int argc, char **argv, arguments *args) {
    static const struct option OPTIONS[] = {
        {"node", required_argument, NULL, 'N'},  {"config", required_argument, NULL, 'c'},
        {"check", no_argument, NULL, 'C'},       {"describe", no_argument, NULL, 'D'},
        {"probe", required_argument, NULL, 'P'}, {"forward", required_argument, NULL, 'F'},
        {"gateway", no_argument, NULL, 'G'},     {"version", no_argument, NULL, 'V'},
        {"help", no_argument, NULL, 'h'},        {NULL, 0, NULL, 0}};
    *args = (arguments){0};
    jm_config_find(args->config, sizeof args->config);
    jm_host_node(args->node, sizeof args->node);
    for (int option; (option = getopt_long(argc, argv, "N:c:Vh", OPTIONS, NULL)) != -1;) {
        bool fits = true;
        if (option == 'N')
            fits = jm_format(args->node, sizeof args->node, "%s", optarg);
        else if (option == 'c')
            fits = jm_format(args->config, sizeof args->config, "%s", optarg);
        else if (option == 'C')
            args->check = true;
        else if (option == 'D')
            args->describe = true;
        else if (option == 'G')
            args->gateway = true;
        else if (option == 'P' && read_count(optarg, &args->probe))
            continue;
        else if (option == 'F' && read_count(optarg, &args->forward))
            continue;
        else if (option == 'V')
            return puts("joulemarkd " JOULEMARK_VERSION), EXIT_SUCCESS;
        else if (option == 'h')
            return fputs(USAGE, stdout), EXIT_SUCCESS;
        else
            return fputs(USAGE, stderr), EXIT_USAGE;
        if (!fits)
            return fprintf(stderr, "joulemarkd: -%c: too long: %s\n", option, optarg), EXIT_USAGE;
    }
    if (optind < argc)
        return fputs(USAGE, stderr), EXIT_USAGE;
    return -1;
}

static void report(void *context, const char *message) {
    (void)context;
    fprintf(stderr, "joulemarkd: %s\n", message);
    jm_error("%s", message);
}

static void report_check(void *context, const char *message) {
    (void)context;
    fprintf(stderr, "%s\n", message);
}

static int check(const arguments *args) {
    static jm_config config;
    int errors = jm_config_load(args->config, args->node, &config, report_check, NULL);
    if (errors == 0)
        errors = jm_config_check_zone(&config, report_check, NULL);
    if (errors == 0)
        printf("%s: good; node %s, %d instruments\n", args->config, args->node,
               config.n_instruments);
    jm_config_free(&config);
    return errors == 0 ? EXIT_SUCCESS : EXIT_BAD_CONFIG;
}

static int describe(const arguments *args) {
    static jm_config config;
    if (jm_config_load(args->config, args->node, &config, report_check, NULL) != 0)
        return EXIT_BAD_CONFIG;
    jm_config_take_gpus(&config, NULL);
    int failed = jm_describe(&config);
    jm_config_free(&config);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static void explain(const char *type, const char *what) {
    size_t length = strlen(type); /* what an instrument says begins with its type */
    bool said = strncmp(what, type, length) == 0 && what[length] == ':';
    fprintf(stderr, "auto: %s%s%s\n", said ? "" : type, said ? "" : ": ", what);
}

static int probe(const arguments *args) {
    static jm_config config;
    if (jm_config_load(args->config, args->node, &config, report_check, NULL) != 0)
        return EXIT_BAD_CONFIG;
    jm_config_take_gpus(&config, explain);
    int failed = jm_probe(&config, args->probe);
    jm_config_free(&config);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Nobody reads its memory, where secrets are; no child gains rights; a user's connections end
 * before descriptors do; what users may see is given to them, not left open. */
static void harden(void) {
    struct rlimit files;
    umask(0027);
    prctl(PR_SET_DUMPABLE, 0);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
}

static int forward(const arguments *args) {
    static jm_config config;
    harden(); /* a program that is executed is as open as ever */
    if (jm_config_load(args->config, args->node, &config, report, NULL) != 0)
        return EXIT_BAD_CONFIG;
    jm_log_open(config.log_file);
    int status = jm_forward_run(&config, args->node, args->forward);
    jm_config_free(&config);
    return status;
}

static int gateway(const arguments *args) {
    static jm_config config;
    harden();
    if (jm_config_load(args->config, args->node, &config, report, NULL) != 0)
        return EXIT_BAD_CONFIG;
    if (!config.gateway_nodes) {
        fprintf(stderr, "joulemarkd: %s: --gateway needs 'gateway: {nodes: n[001-072]}'\n",
                args->config);
        return EXIT_BAD_CONFIG;
    }
    if (jm_log_open(config.log_file) != 0)
        jm_warn("log_file %s: %s; logging to standard error", config.log_file, strerror(errno));
    int status = jm_gateway_run(&config);
    jm_config_free(&config);
    return status;
}

/* A gateway's instruments are other nodes' meters: none of them is this node's energy. */
static bool is_gateways(const jm_config *config) {
    if (config->gateway_nodes)
        fprintf(stderr, "joulemarkd: %s: is a gateway's; start with --gateway\n", config->path);
    return config->gateway_nodes != NULL;
}

/* Two daemons on one ledger would charge twice. True: this one may go on. */
static bool lock_ledger(const jm_config *config) {
    char path[JM_PATH_MAX + 16];
    mkdir(config->state_dir, 0750);
    jm_format(path, sizeof path, "%s/lock", config->state_dir);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
    if (fd < 0) {
        jm_warn("%s: %s; the ledger cannot be locked", path, strerror(errno));
        return true;
    }
    return flock(fd, LOCK_EX | LOCK_NB) == 0;
}

int main(int argc, char **argv) {
    static jm_daemon daemon;
    arguments args;
    int status = parse(argc, argv, &args);
    if (status >= 0)
        return status;
    if (args.check)
        return check(&args);
    if (args.describe)
        return describe(&args);
    if (args.probe)
        return probe(&args);
    if (args.gateway)
        return gateway(&args);
    if (args.forward)
        return forward(&args);

    harden();
    if (jm_config_load(args.config, args.node, &daemon.config, report, NULL) != 0)
        return EXIT_BAD_CONFIG;
    if (is_gateways(&daemon.config))
        return EXIT_BAD_CONFIG;
    memcpy(daemon.node, args.node, sizeof daemon.node);
    if (jm_log_open(daemon.config.log_file) != 0)
        jm_warn("log_file %s: %s; logging to standard error", daemon.config.log_file,
                strerror(errno));
    if (!lock_ledger(&daemon.config)) {
        jm_error("another joulemarkd has the ledger in %s", daemon.config.state_dir);
        return EXIT_FAILURE;
    }
    jm_message why;
    jm_listeners listeners;
    if (jm_server_listen(&daemon, &listeners, &why) != 0) {
        jm_error("%s", why.text);
        return EXIT_FAILURE;
    }
    jm_config_take_gpus(&daemon.config, NULL);
    if (jm_daemon_start(&daemon) != 0)
        return EXIT_FAILURE;
    jm_info("joulemarkd " JOULEMARK_VERSION " on node %s: %d channels, every %g s, socket %s",
            daemon.node, daemon.ledger.n_channels, daemon.config.period_s, daemon.config.socket);
    status = jm_server_run(&daemon, &listeners);
    jm_daemon_stop(&daemon);
    jm_server_unlink(&daemon);
    jm_config_free(&daemon.config);
    jm_info("joulemarkd ends");
    return status == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
