// Console over TI's C input/output (SPRU187, "Low-level I/O functions"; libgloss of newlib has the
// other side's format): the debugger or the simulator serves one request at a time.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "console.h"

#include "port.h"

#include <string.h>

enum command {
    CIO_OPEN = 0xf0,
    CIO_CLOSE = 0xf1,
    CIO_READ = 0xf2,
    CIO_WRITE = 0xf3,
    CIO_SEEK = 0xf4,
    CIO_TIME = 0xf8,
};

enum { DATA_BYTES = 256, PARAMETER_BYTES = 8 }; // TI's limit on the data

// The host reads `request` and writes `reply` over it; numbers are little endian.
union {
    struct {
        uint32_t length;
        uint8_t command;
        uint8_t parameters[PARAMETER_BYTES];
        uint8_t data[DATA_BYTES];
    } __attribute__((packed)) request;
    struct {
        uint32_t length;
        uint8_t parameters[PARAMETER_BYTES];
        uint8_t data[DATA_BYTES];
    } __attribute__((packed)) reply;
} _CIOBUF_ __attribute__((section(".cio"), aligned(8)));

static void put_16(unsigned at, int value) {
    _CIOBUF_.request.parameters[at] = (uint8_t)value;
    _CIOBUF_.request.parameters[at + 1] = (uint8_t)(value >> 8);
}

static void put_32(unsigned at, int value) {
    put_16(at, value);
    put_16(at + 2, value >> 16);
}

static uint32_t reply_32(void) {
    uint32_t value;
    memcpy(&value, _CIOBUF_.reply.parameters, sizeof value);
    return value;
}

static int reply_16(void) {
    return (int16_t)reply_32();
}

static void call(enum command command, const char *data, int length) {
    _CIOBUF_.request.length = (uint32_t)length;
    _CIOBUF_.request.command = (uint8_t)command;
    memcpy(_CIOBUF_.request.data, data, (size_t)length);
    bk_cio_call();
    __asm__ volatile("" ::: "memory");
}

int console_open(const char *path, int flags) {
    static int suggestion = 3;
    size_t length = strlen(path) + 1;
    if (length > DATA_BYTES)
        return -1;
    put_16(0, suggestion++);
    put_16(2, flags); // newlib's flags have TI's values
    call(CIO_OPEN, path, (int)length);
    return reply_16();
}

int console_close(int file) {
    put_16(0, file);
    call(CIO_CLOSE, "", 0);
    return reply_16();
}

int console_read(int file, char *data, int length) {
    int part = length < DATA_BYTES ? length : DATA_BYTES;
    put_16(0, file);
    put_16(2, part);
    call(CIO_READ, "", 0);
    int got = reply_16();
    if (got > 0)
        memcpy(data, _CIOBUF_.reply.data, (size_t)got);
    return got;
}

int console_write(int file, const char *data, int length) {
    int part = length < DATA_BYTES ? length : DATA_BYTES;
    put_16(0, file);
    put_16(2, part);
    call(CIO_WRITE, data, part);
    return reply_16();
}

int console_seek(int file, int offset, int whence) {
    put_16(0, file);
    put_32(2, offset);
    put_16(6, whence);
    call(CIO_SEEK, "", 0);
    return (int)reply_32();
}

unsigned console_seconds(void) {
    call(CIO_TIME, "", 0);
    return reply_32();
}
