// SPDX-License-Identifier: Apache-2.0 OR MIT
// Teaches OpenIPMI's ipmi_sim to answer DCMI's "Get Power Reading": watts from a file, or raw
// bytes.
/*
 * lan.conf: loadlib "dcmi.so" "FILE". FILE holds a whole number of watts, or for answers that a
 * sick BMC gives `raw` and the answer's bytes from the completion code on, in hex: "raw c1".
 */
#include <OpenIPMI/mcserv.h>
#include <OpenIPMI/serv.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { DCMI = 0xDC, POWER_READING = 0x02, INVALID_COMMAND = 0xC1, MEASURING = 0x40 };

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
    while (length < 32 && sscanf(text, " %2x%n", &byte, &used) == 1) {
        answer[length++] = (unsigned char)byte;
        text += used;
    }
    return length;
}

static void handle(lmc_data_t *mc, msg_t *msg, unsigned char *answer, unsigned int *length,
                   void *data) {
    (void)mc, (void)data;
    char text[256] = "";
    FILE *file = fopen(watts_file, "r");
    if (file) {
        if (!fgets(text, sizeof text, file))
            text[0] = '\0';
        fclose(file);
    }
    unsigned long watts;
    if (msg->cmd == POWER_READING && strncmp(text, "raw", 3) == 0)
        *length = raw(answer, text + 3);
    else if (msg->cmd == POWER_READING && sscanf(text, "%lu", &watts) == 1)
        *length = measured(answer, watts);
    else {
        answer[0] = INVALID_COMMAND;
        *length = 1;
    }
}

int ipmi_sim_module_print_version(sys_data_t *sys, char *options) {
    (void)sys, (void)options;
    return puts("dcmi: power readings from a file") < 0;
}

int ipmi_sim_module_init(sys_data_t *sys, const char *options) {
    (void)sys;
    snprintf(watts_file, sizeof watts_file, "%s", options);
    ipmi_emu_register_group_extension_handler(DCMI, handle, NULL);
    return 0;
}
