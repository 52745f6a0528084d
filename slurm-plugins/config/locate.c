// SPDX-License-Identifier: GPL-2.0-or-later
// Where the configuration file is and where the daemon listens.
#include "locate.h"

#include "protocol.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

static const char usual[] = "/etc/slurm/joulemark.yaml";

/* joulemark.yaml beside $SLURM_CONF; false where there is none to be beside of. */
static bool beside_slurm(char *path, size_t size) {
    const char *slurm = getenv("SLURM_CONF");
    const char *slash = slurm ? strrchr(slurm, '/') : NULL;
    return slash && jm_format(path, size, "%.*s/joulemark.yaml", (int)(slash - slurm), slurm);
}

void jm_config_find(char *path, size_t size) {
    const char *given = getenv("JOULEMARK_CONFIG");
    if (given && *given)
        jm_format(path, size, "%s", given);
    /* a configless slurmd names a folder of its own, which has what slurmctld sends alone */
    else if (!beside_slurm(path, size) || access(path, F_OK) != 0)
        jm_format(path, size, "%s", usual);
}

void jm_config_unopened(const char *path, int error, jm_message *why) {
    char beside[JM_PATH_MAX];
    bool two = strcmp(path, usual) == 0 && beside_slurm(beside, sizeof beside) &&
               strcmp(path, beside) != 0;
    jm_message_set(why, "%s: cannot be opened: %s%s%s%s; write it or set JOULEMARK_CONFIG", path,
                   strerror(error), two ? ", nor is " : "", two ? beside : "", two ? " seen" : "");
}

void jm_host_node(char *node, size_t size) {
    gethostname(node, size - 1);
    node[size - 1] = '\0';
    node[strcspn(node, ".")] = '\0';
}

const char *jm_expand_node(const char *text, const char *node, char *out, size_t size) {
    size_t length = 0;
    for (const char *c = text; *c; c++) {
        const char *piece = (char[]){*c, '\0'};
        if (*c == '%') {
            c++;
            if (*c != 'n' && *c != '%')
                return "may hold %n (the node's name) and %% (a percent sign) only";
            piece = *c == 'n' ? node : "%";
        }
        size_t more = strlen(piece);
        if (length + more >= size)
            return "is too long";
        memcpy(out + length, piece, more);
        length += more;
    }
    out[length] = '\0';
    return NULL;
}

/* The value of a line `key: value`, unquoted and without comment; NULL for any other line. */
static char *value_of(char *line, const char *key) {
    size_t key_length = strlen(key);
    if (strncmp(line, key, key_length) != 0 || line[key_length] != ':')
        return NULL;
    char *value = line + key_length + 1;
    value[strcspn(value, "\r\n")] = '\0'; /* a quote may lack its end */
    value += strspn(value, " \t");
    if (*value == '"' || *value == '\'') {
        char *end = strchr(value + 1, *value);
        if (end)
            *end = '\0';
        return value + 1;
    }
    char *comment = strstr(value, " #");
    if (comment)
        *comment = '\0';
    size_t length = strlen(value);
    while (length > 0 && (value[length - 1] == ' ' || value[length - 1] == '\t'))
        length--;
    value[length] = '\0';
    return value;
}

static int take_socket(const char *path, int number, const char *value, const char *node,
                       char *socket, size_t size, jm_message *why) {
    char expanded[sizeof(((struct sockaddr_un *)0)->sun_path) + 1 - sizeof JM_SOCKET_OF_SLURM];
    const char *wrong = jm_expand_node(value, node, expanded, sizeof expanded);
    if (!wrong && expanded[0] != '/')
        wrong = "must be an absolute path";
    if (!wrong && jm_format(socket, size, "%s", expanded))
        return 0;
    jm_message_set(why, "%s:%d: key 'socket': %s, is '%s'; at most %zu bytes", path, number,
                   wrong ? wrong : "is too long", value, sizeof expanded - 1);
    jm_format(socket, size, "%s", JM_DEFAULT_SOCKET);
    return -1;
}

int jm_config_socket(const char *path, const char *node, char *socket, size_t size,
                     jm_message *why) {
    jm_format(socket, size, "%s", JM_DEFAULT_SOCKET);
    FILE *file = fopen(path, "re");
    if (!file) {
        jm_config_unopened(path, errno, why);
        return -1;
    }
    char *line = NULL;
    size_t capacity = 0;
    int status = 0;
    for (int number = 1; getline(&line, &capacity, file) >= 0; number++) {
        char *value = value_of(line, "socket");
        if (!value)
            continue;
        status = take_socket(path, number, value, node ? node : "", socket, size, why);
        break;
    }
    free(line);
    fclose(file);
    return status;
}

bool jm_config_cluster(const char *path, char *cluster, size_t size) {
    FILE *file = fopen(path, "re");
    char *line = NULL, *value = NULL;
    size_t capacity = 0;
    while (file && !value && getline(&line, &capacity, file) >= 0)
        value = value_of(line, "cluster");
    bool found = value && *value && jm_format(cluster, size, "%s", value);
    free(line);
    if (file)
        fclose(file);
    return found;
}
