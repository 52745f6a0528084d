// SPDX-License-Identifier: Apache-2.0 OR MIT
// Teaches OpenIPMI's ipmi_sim to answer DCMI's "Get Power Reading", watts from a file or raw bytes,
// and the commands of Lenovo's XCC, raw bytes.
/*
 * lan.conf: loadlib "dcmi.so" "FILE". FILE holds a whole number of watts, or for answers that a
 * sick BMC gives `raw` and the answer's bytes from the completion code on, in hex: "raw c1". To
 * XCC's 3A 32 04 NN the answer is FILE.NN, in hex; without it the command is unknown.
 */
#include <OpenIPMI/mcserv.h>
#include <OpenIPMI/serv.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { DCMI = 0xDC, POWER_READING = 0x02, INVALID_COMMAND = 0xC1, MEASURING = 0x40 };
enum { XCC_NET_FN = 0x3A, XCC_COMMAND = 0x32, XCC_METER = 4, ANSWER_MAX = 48 };

static char watts_file[512];

int ipmi_sim_module_print_version(sys_data_t *sys, char *options);
int ipmi_sim_module_init(sys_data_t *sys, const char *options);

static void put(unsigned char *at, unsigned long value, int bytes) {
    for (int i = 0; i < bytes; i++)
        at[i] = (unsigned char)(value >> (8 * i));
}

/* Completion code, DCMI, current, least, most and mean watts, time stamp, period, state. */
static unsigned int measured(unsigned char *answer, unsigned long watts) {
    answer[0] = 0;
    answer[1] = DCMI;
    for (int i = 0; i < 4; i++)
        put(answer + 2 + 2 * i, watts, 2);
    put(answer + 10, (unsigned long)time(NULL), 4);
    put(answer + 14, 1000, 4);
    answer[18] = MEASURING;
    return 19;
}

static unsigned int raw(unsigned char *answer, const char *text) {
    unsigned int length = 0, byte;
    int used;
    while (length < ANSWER_MAX && sscanf(text, " %2x%n", &byte, &used) == 1) {
        answer[length++] = (unsigned char)byte;
        text += used;
    }
    return length;
}

static void read_line(const char *path, char *text, int size) {
    FILE *file = fopen(path, "r");
    text[0] = '\0';
    if (file) {
        if (!fgets(text, size, file))
            text[0] = '\0';
        fclose(file);
    }
}

static unsigned int refuse(unsigned char *answer) {
    answer[0] = INVALID_COMMAND;
    return 1;
}

static void handle_xcc(lmc_data_t *mc, msg_t *msg, unsigned char *answer, unsigned int *length,
                       void *data) {
    (void)mc, (void)data;
    char path[sizeof watts_file + 8], text[256];
    *length = 0;
    if (msg->len >= 2 && msg->data[0] == XCC_METER) {
        snprintf(path, sizeof path, "%s.%02x", watts_file, msg->data[1]);
        read_line(path, text, sizeof text);
        *length = raw(answer, text);
    }
    if (*length == 0)
        *length = refuse(answer);
}

static void handle(lmc_data_t *mc, msg_t *msg, unsigned char *answer, unsigned int *length,
                   void *data) {
    (void)mc, (void)data;
    char text[256];
    read_line(watts_file, text, sizeof text);
    unsigned long watts;
    if (msg->cmd == POWER_READING && strncmp(text, "raw", 3) == 0)
        *length = raw(answer, text + 3);
    else if (msg->cmd == POWER_READING && sscanf(text, "%lu", &watts) == 1)
        *length = measured(answer, watts);
    else
        *length = refuse(answer);
}

int ipmi_sim_module_print_version(sys_data_t *sys, char *options) {
    (void)sys, (void)options;
    return puts("dcmi: power readings from files") < 0;
}

int ipmi_sim_module_init(sys_data_t *sys, const char *options) {
    (void)sys;
    snprintf(watts_file, sizeof watts_file, "%s", options);
    ipmi_emu_register_group_extension_handler(DCMI, handle, NULL);
    return ipmi_emu_register_cmd_handler(XCC_NET_FN, XCC_COMMAND, handle_xcc, NULL);
}
