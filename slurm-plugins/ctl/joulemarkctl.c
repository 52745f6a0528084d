// SPDX-License-Identifier: GPL-2.0-or-later
// joulemarkctl: asks a node's daemon from the shell: its status, its books, what is charged while
// it runs, a region around a command.
#include "client.h"
#include "clock.h"
#include "config.h"
#include "locate.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char USAGE[] =
    "usage: joulemarkctl [-N NODE] status            is the daemon well? (anybody)\n"
    "       joulemarkctl [-N NODE] books             each channel's energy and what is charged of "
    "it (root, privileged_users)\n"
    "       joulemarkctl [-N NODE] config KEY        print cluster, socket, state_dir, record_dir "
    "or store\n"
    "       joulemarkctl job [--every S] [--look-on]  what the job that this is a part of was "
    "charged "
    "on this node so far\n"
    "       joulemarkctl [-N NODE] node [--every S]  the node's energy, and what of it jobs have "
    "(root, "
    "privileged_users)\n"
    "       joulemarkctl region NAME -- COMMAND...   run COMMAND as a region of this job's step; "
    "print its energy\n"
    "       joulemarkctl region begin NAME           from here on, this shell is in a region\n"
    "       joulemarkctl region end NAME             it ends; print its energy\n"
    "\n"
    "job and node print a line key=value ...; with --every one each S seconds until their standard "
    "input ends, a job's profile_max_hz times\n"
    "a second at most. --look-on: this step does no work of the job's, and has no part of its "
    "energy.\n"
    "\n"
    "The socket is $JOULEMARK_SOCKET, else `socket:` of the configuration for NODE (-N or --node; "
    "default: $SLURMD_NODENAME, else the host).\n"
    "Exit: 0 good; 1 no answer, or the books do not balance; 2 usage; region: COMMAND's own.\n";

/* This host's, where nobody named the node whose socket is asked. */
static const char *guessed_node;

/* No job waits for it; the node may be busy, and the daemon just begin. */
enum { PATIENCE_MS = 3000 };

static int ask(jm_client *client, const char *request, jm_packet *reply) {
    jm_message why;
    if (jm_client_ask(client, request, PATIENCE_MS, reply, &why) == 0)
        return 0;
    fprintf(stderr, "joulemarkctl: %s\n", why.text);
    if (guessed_node && client->fd < 0)
        fprintf(stderr,
                "joulemarkctl: '%s', this host's name, was taken for the node's: if the node is "
                "another, name it with --node NODE\n",
                guessed_node);
    return -1;
}

static int show_status(jm_client *client) {
    jm_packet reply;
    if (ask(client, "status", &reply) != 0)
        return EXIT_FAILURE;
    for (int i = 0; i < reply.n_fields; i++)
        printf("%s: %s\n", reply.fields[i].key, reply.fields[i].value);
    return EXIT_SUCCESS;
}

static int show_books(jm_client *client) {
    uint64_t channels = 1;
    int status = EXIT_SUCCESS;
    for (uint64_t i = 0; i < channels; i++) {
        jm_packet reply;
        char request[64];
        jm_packet_begin(request, sizeof request, "books");
        jm_packet_add(request, sizeof request, "channel", "%llu", (unsigned long long)i);
        if (ask(client, request, &reply) != 0)
            return EXIT_FAILURE;
        channels = jm_packet_u64(&reply, "channels", 0);
        uint64_t total_uj = jm_packet_u64(&reply, "total_uj", 0);
        uint64_t charged_uj = jm_packet_u64(&reply, "charged_uj", 1);
        printf("%s: total %llu uJ, charged %llu uJ, of it unallocated %s uJ: %s\n",
               jm_packet_get(&reply, "name"), (unsigned long long)total_uj,
               (unsigned long long)charged_uj, jm_packet_get(&reply, "unallocated_uj"),
               total_uj == charged_uj ? "balanced" : "NOT BALANCED");
        if (total_uj != charged_uj)
            status = EXIT_FAILURE;
    }
    return status;
}

/* False: whoever reads it is gone. */
static bool print_line(const jm_packet *reply) {
    for (int i = 0; i < reply->n_fields; i++)
        printf("%s%s=%s", i ? " " : "", reply->fields[i].key, reply->fields[i].value);
    putchar('\n');
    return fflush(stdout) == 0;
}

/* Until then, on CLOCK_MONOTONIC; false: the standard input has ended. */
static bool wait_until(int64_t ns) {
    char unread[4096];
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    for (int64_t left_ns = 1; left_ns > 0;) {
        left_ns = ns - jm_clock_ns(CLOCK_MONOTONIC);
        int ready = poll(&input, 1, left_ns > 0 ? (int)(left_ns / JM_NS_PER_MS) + 1 : 0);
        if (ready > 0 && read(STDIN_FILENO, unread, sizeof unread) <= 0)
            return false;
    }
    return true;
}

/* Once, or each every_s. Of a stream a daemon that does not answer is waited for: it may begin
 * anew. */
static int show_energy(jm_client *client, const char *request, double every_s) {
    jm_packet reply;
    int64_t next_ns = jm_clock_ns(CLOCK_MONOTONIC);
    bool begun = false;
    do {
        if (ask(client, request, &reply) == 0) {
            begun = true;
            if (!print_line(&reply))
                return EXIT_FAILURE;
            every_s = fmax(every_s, every_s > 0 ? 1 / jm_packet_double(&reply, "max_hz", 1e9) : 0);
        } else if (!begun || client->fd >= 0) {
            return EXIT_FAILURE;
        }
        next_ns += (int64_t)(every_s * 1e9);
        if (next_ns < jm_clock_ns(CLOCK_MONOTONIC)) /* it was stopped, or is answered slowly */
            next_ns = jm_clock_ns(CLOCK_MONOTONIC);
    } while (every_s > 0 && wait_until(next_ns));
    return EXIT_SUCCESS;
}

/* Its options, behind the word; -1: wrong usage. */
static int run_energy(jm_client *client, const char *verb, int argc, char **argv) {
    char request[64];
    double every_s = 0;
    static const struct option OPTIONS[] = {
        {"every", required_argument, NULL, 'e'}, {"look-on", no_argument, NULL, 'l'}, {0}};
    jm_packet_begin(request, sizeof request, verb);
    optind = 0; /* another vector */
    for (int option; (option = getopt_long(argc, argv, "+", OPTIONS, NULL)) != -1;) {
        if (option == 'l')
            jm_packet_add(request, sizeof request, "look_on", "1");
        else if (option != 'e' || !jm_parse_double(optarg, &every_s) ||
                 !(every_s >= 0.001 && every_s <= 86400))
            return -1;
    }
    return optind == argc ? show_energy(client, request, every_s) : -1;
}

/* Instruments are read before the answer. */
enum { REGION_TIMEOUT_MS = 1000 };

/* owner_is_parent: the mark is that of the shell that called us. */
static int mark(jm_client *client, const char *verb, const char *name, bool owner_is_parent,
                jm_packet *reply) {
    char request[512];
    jm_message why;
    if (!getenv("JOULEMARK_SOCKET"))
        return -1;
    jm_packet_begin(request, sizeof request, verb);
    jm_packet_add(request, sizeof request, "name", "%s", name);
    if (owner_is_parent)
        jm_packet_add(request, sizeof request, "owner", "parent");
    if (jm_client_ask(client, request, REGION_TIMEOUT_MS, reply, &why) == 0)
        return 0;
    fprintf(stderr, "joulemarkctl: %s\n", why.text);
    return -1;
}

static void show_region(const char *name, const jm_packet *reply) {
    fprintf(stderr, "%s: %.3f J +- %.3f J (k=2)%s in %.3f s\n", name,
            jm_packet_double(reply, "energy_uj", 0) / 1e6,
            jm_packet_double(reply, "uncertainty_uj", 0) / 1e6,
            jm_packet_u64(reply, "estimated", 0) ? ", estimated by a model" : "",
            jm_packet_double(reply, "seconds", 0));
}

/* The command's exit status; 1 where it could not be run, which is said. */
static int run(char **command) {
    int status = 0;
    signal(SIGCHLD, SIG_DFL); /* of who ignores it, the kernel keeps no status */
    pid_t pid = fork();
    if (pid == 0) {
        execvp(command[0], command);
        perror(command[0]);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) < 0) {
        fprintf(stderr, "joulemarkctl: region: %s was not run: %s\n", command[0], strerror(errno));
        return EXIT_FAILURE;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int run_region(jm_client *client, const char *name, char **command) {
    jm_packet reply;
    bool marked = mark(client, "region_begin", name, false, &reply) == 0;
    int status = run(command);
    if (marked && mark(client, "region_end", name, false, &reply) == 0)
        show_region(name, &reply);
    return status;
}

/* A script goes on whatever becomes of its marks. */
static int mark_shell(jm_client *client, bool end, const char *name) {
    jm_packet reply;
    if (mark(client, end ? "region_end" : "region_begin", name, true, &reply) == 0 && end)
        show_region(name, &reply);
    return EXIT_SUCCESS;
}

static void report(void *context, const char *message) {
    (void)context;
    fprintf(stderr, "joulemarkctl: %s\n", message);
}

static int show_config(const char *node, const char *key) {
    static jm_config config;
    char path[JM_PATH_MAX];
    const struct {
        const char *key, *value;
    } known[] = {{"cluster", config.cluster},
                 {"socket", config.socket},
                 {"state_dir", config.state_dir},
                 {"record_dir", config.record_dir},
                 {"store", config.store}};
    jm_config_find(path, sizeof path);
    if (jm_config_load(path, node, &config, report, NULL) != 0)
        return EXIT_FAILURE;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].key, key) == 0)
            return puts(known[i].value), EXIT_SUCCESS;
    fprintf(stderr, "joulemarkctl: config: no key '%s'; see --help\n", key);
    return 2;
}

static void find_node(char *node, size_t size, const char *given) {
    const char *name = given ? given : getenv("SLURMD_NODENAME");
    if (name && jm_format(node, size, "%s", name))
        return;
    jm_host_node(node, size);
    guessed_node = node;
}

static void find_socket(jm_client *client, const char *node) {
    jm_message why;
    const char *path = getenv("JOULEMARK_SOCKET");
    if (path && jm_format(client->socket, sizeof client->socket, "%s", path))
        guessed_node = NULL;
    else if (jm_client_configure(client, node, &why) != 0)
        fprintf(stderr, "joulemarkctl: %s\n", why.text);
}

int main(int argc, char **argv) {
    jm_client client = JM_CLIENT_INIT;
    const char *given = NULL;
    char node[JM_NAME_MAX];
    static const struct option OPTIONS[] = {{"node", required_argument, NULL, 'N'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    for (int option; (option = getopt_long(argc, argv, "+N:h", OPTIONS, NULL)) != -1;) {
        if (option == 'N')
            given = optarg;
        else
            return fputs(USAGE, option == 'h' ? stdout : stderr), option == 'h' ? 0 : 2;
    }
    argc -= optind;
    argv += optind;
    find_node(node, sizeof node, given);
    if (argc == 2 && strcmp(argv[0], "config") == 0)
        return show_config(node, argv[1]);
    find_socket(&client, node);
    if (argc == 1 && strcmp(argv[0], "status") == 0)
        return show_status(&client);
    if (argc == 1 && strcmp(argv[0], "books") == 0)
        return show_books(&client);
    int status = -1;
    if (argc >= 1 && strcmp(argv[0], "job") == 0)
        status = run_energy(&client, "job_energy", argc, argv);
    else if (argc >= 1 && strcmp(argv[0], "node") == 0)
        status = run_energy(&client, "node_energy", argc, argv);
    if (status >= 0)
        return status;
    if (argc >= 4 && strcmp(argv[0], "region") == 0 && strcmp(argv[2], "--") == 0)
        return run_region(&client, argv[1], argv + 3);
    if (argc == 3 && strcmp(argv[0], "region") == 0 &&
        (strcmp(argv[1], "begin") == 0 || strcmp(argv[1], "end") == 0))
        return mark_shell(&client, strcmp(argv[1], "end") == 0, argv[2]);
    fputs(USAGE, stderr);
    return 2;
}
