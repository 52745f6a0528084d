// Console over the C6678's serial line (SPRUGP1, KeyStone UART): 115200 baud, 8N1. All output goes
// out on it; a line of a file other than the standard ones begins with the file's name: "FILE: ".
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "console.h"

#include "port.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define REGISTER(offset) (*(volatile uint32_t *)(uintptr_t)(0x02540000 + (offset)))
#define THR              REGISTER(0x00) // byte to send
#define FCR              REGISTER(0x08) // queues
#define LCR              REGISTER(0x0c) // line format
#define LSR              REGISTER(0x14) // state
#define DIVISOR_L        REGISTER(0x20) // of the input clock, 16 times the baud rate
#define DIVISOR_H        REGISTER(0x24)
#define POWER            REGISTER(0x30)

enum { LCR_8N1 = 3, LSR_ROOM = 1 << 5, FCR_ON = 1, POWER_ON = 0x6001, BAUD = 115200 };
enum { FILES = 8, FIRST_FILE = 3 };

// A sixth of the core clock feeds the UART.
static const uint32_t divisor = (BK_C66X_MHZ * 1000000U / 6 + 8 * BAUD) / (16 * BAUD);

static struct {
    char *name; // NULL: free
    bool inside_line;
} files[FILES];

static void start(void) {
    static bool started;
    if (started)
        return;
    started = true;
    POWER = 0;
    DIVISOR_L = divisor & 0xff;
    DIVISOR_H = divisor >> 8;
    LCR = LCR_8N1;
    FCR = FCR_ON;
    POWER = POWER_ON;
}

static void send(const char *data, size_t length) {
    start();
    for (size_t i = 0; i < length; i++) {
        while ((LSR & LSR_ROOM) == 0)
            continue;
        THR = (uint8_t)data[i];
    }
}

int console_open(const char *path, int flags) {
    bool writes = (flags & 3) != 0;
    for (int i = 0; writes && i < FILES; i++)
        if (files[i].name == NULL) {
            files[i].name = strdup(path);
            files[i].inside_line = false;
            return files[i].name == NULL ? -1 : i + FIRST_FILE;
        }
    return -1;
}

static int index_of(int file) {
    int index = file - FIRST_FILE;
    return index >= 0 && index < FILES && files[index].name != NULL ? index : -1;
}

int console_close(int file) {
    int index = index_of(file);
    if (index < 0)
        return -1;
    free(files[index].name);
    files[index].name = NULL;
    return 0;
}

int console_read(int file, char *data, int length) {
    (void)file, (void)data, (void)length;
    return 0;
}

static void send_named(int index, const char *data, size_t length) {
    for (size_t i = 0; i < length; i++) {
        if (!files[index].inside_line) {
            send(files[index].name, strlen(files[index].name));
            send(": ", 2);
        }
        send(&data[i], 1);
        files[index].inside_line = data[i] != '\n';
    }
}

int console_write(int file, const char *data, int length) {
    int index = index_of(file);
    if (index >= 0)
        send_named(index, data, (size_t)length);
    else if (file == 1 || file == 2)
        send(data, (size_t)length);
    else
        return -1;
    return length;
}

int console_seek(int file, int offset, int whence) {
    (void)file, (void)offset, (void)whence;
    return -1;
}

unsigned console_seconds(void) {
    return (unsigned)(bk_cycles() / (BK_C66X_MHZ * UINT64_C(1000000)));
}
