// Files, environment and time for the program, by the host's system calls.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "cio.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum command {
    OPEN = 0xf0,
    CLOSE = 0xf1,
    READ = 0xf2,
    WRITE = 0xf3,
    SEEK = 0xf4,
    UNLINK = 0xf5,
    GETENV = 0xf6,
    RENAME = 0xf7,
    GET_TIME = 0xf8,
    GET_CLOCK = 0xf9,
    SYNC = 0xff,
};

enum { REQUEST_HEAD = 13, ANSWER_HEAD = 12, MOST_DATA = 1 << 16 };

// The program's flags for open (fcntl.h of newlib and of TI's library).
enum {
    TARGET_APPEND = 0x8,
    TARGET_CREATE = 0x200,
    TARGET_TRUNCATE = 0x400,
    TARGET_EXCLUSIVE = 0x800
};

struct call {
    struct c66x_cio *cio;
    uint8_t *buffer; // of REQUEST_HEAD + MOST_DATA bytes, or less where memory ends
    uint32_t room;   // bytes of data that the buffer surely has
    uint32_t length;
    uint8_t parameters[8];
    const char *data; // of the request; ends with a zero byte
    uint64_t cycle;
};

static unsigned half(const struct call *call, unsigned at) {
    unsigned first = call->parameters[at], second = call->parameters[at + 1];
    return call->cio->swapped ? first << 8 | second : second << 8 | first;
}

static int32_t word(const struct call *call, unsigned at) {
    uint32_t first = half(call, at), second = half(call, at + 2);
    return (int32_t)(call->cio->swapped ? first << 16 | second : second << 16 | first);
}

// The answer: a number of `size` bytes in the parameters, and data that is in place already.
static bool answer(struct call *call, int64_t value, unsigned size, uint32_t length) {
    memcpy(call->buffer, &length, sizeof length);
    for (unsigned i = 0; i < size; i++) {
        unsigned at = call->cio->swapped ? size - 1 - i : i;
        call->buffer[4 + at] = (uint8_t)(value >> 8 * i);
    }
    return true;
}

static bool answer_half(struct call *call, int64_t value) {
    return answer(call, value, 2, 0);
}

static int *file_at(struct call *call, unsigned number) {
    return number < C66X_FILES ? &call->cio->files[number] : NULL;
}

static int file_of(struct call *call) {
    const int *file = file_at(call, half(call, 0));
    return file ? *file : -1;
}

// The number that the program suggests, or else the first that is free.
static int *free_file(struct call *call, unsigned *number) {
    *number = half(call, 0);
    int *file = file_at(call, *number);
    if (file && *file < 0)
        return file;
    for (*number = 3; *number < C66X_FILES; ++*number)
        if (call->cio->files[*number] < 0)
            return &call->cio->files[*number];
    return NULL;
}

static bool open_file(struct call *call) {
    unsigned target = half(call, 2), number;
    int flags = O_CLOEXEC | (int)(target & 3); // O_RDONLY, O_WRONLY, O_RDWR
    flags |= target & TARGET_APPEND ? O_APPEND : 0;
    flags |= target & TARGET_CREATE ? O_CREAT : 0;
    flags |= target & TARGET_TRUNCATE ? O_TRUNC : 0;
    flags |= target & TARGET_EXCLUSIVE ? O_EXCL : 0;
    int *file = free_file(call, &number);
    if (!file)
        return answer_half(call, -1);
    *file = open(call->data, flags, 0666);
    return answer_half(call, *file < 0 ? -1 : (int)number);
}

static bool close_file(struct call *call) {
    int *file = file_at(call, half(call, 0));
    int result = file && *file > STDERR_FILENO ? close(*file) : 0;
    if (file)
        *file = -1;
    return answer_half(call, result);
}

static bool read_file(struct call *call) {
    uint32_t length = half(call, 2);
    if (length > call->room)
        length = call->room;
    ssize_t got = read(file_of(call), call->buffer + ANSWER_HEAD, length);
    return answer(call, got, 2, got > 0 ? (uint32_t)got : 0);
}

static bool write_file(struct call *call) {
    uint32_t length = half(call, 2);
    if (length != call->length && (uint16_t)(length << 8 | length >> 8) == call->length) {
        call->cio->swapped = !call->cio->swapped;
        length = call->length;
    }
    if (length > call->length)
        length = call->length;
    uint32_t done = 0;
    while (done < length) {
        ssize_t written = write(file_of(call), call->data + done, length - done);
        if (written <= 0)
            return answer_half(call, done ? (int64_t)done : -1);
        done += (uint32_t)written;
    }
    return answer_half(call, done);
}

static bool seek_file(struct call *call) {
    static const int whence[] = {SEEK_SET, SEEK_CUR, SEEK_END};
    unsigned origin = half(call, 6);
    off_t at = origin < 3 ? lseek(file_of(call), word(call, 2), whence[origin]) : -1;
    return answer(call, at > INT32_MAX ? -1 : at, 4, 0);
}

static bool rename_file(struct call *call) {
    size_t first = strlen(call->data);
    const char *new_name = first < call->length ? call->data + first + 1 : "";
    return answer_half(call, rename(call->data, new_name));
}

static bool get_environment(struct call *call) {
    const char *value = getenv(call->data);
    size_t length = value ? strlen(value) + 1 : 0;
    if (length > call->room)
        length = 0;
    if (length)
        memcpy(call->buffer + ANSWER_HEAD, value, length);
    return answer(call, length ? 0 : -1, 2, (uint32_t)length);
}

static bool carry_out(struct call *call, enum command command) {
    switch (command) {
    case OPEN:
        return open_file(call);
    case CLOSE:
        return close_file(call);
    case READ:
        return read_file(call);
    case WRITE:
        return write_file(call);
    case SEEK:
        return seek_file(call);
    case UNLINK:
        return answer_half(call, unlink(call->data));
    case GETENV:
        return get_environment(call);
    case RENAME:
        return rename_file(call);
    case GET_TIME:
        return answer(call, (int64_t)time(NULL), 4, 0);
    case GET_CLOCK:
        return answer(call, (int64_t)(call->cycle & INT32_MAX), 4, 0);
    case SYNC:
        return answer_half(call, 0);
    }
    return false;
}

// Bytes of data that surely lie in memory after an answer's head.
static uint32_t room_at(const struct c66x_memory *memory, unsigned core, uint32_t address) {
    uint32_t room = MOST_DATA;
    while (room && !c66x_memory_at(memory, core, address, ANSWER_HEAD + room))
        room /= 2;
    return room;
}

bool c66x_cio_call(struct c66x_cio *cio, const struct c66x_memory *memory, unsigned core,
                   uint32_t address, uint64_t cycle) {
    struct call call = {.cio = cio, .cycle = cycle};
    call.buffer = c66x_memory_at(memory, core, address, REQUEST_HEAD);
    if (!call.buffer)
        return false;
    memcpy(&call.length, call.buffer, sizeof call.length);
    if (call.length > MOST_DATA ||
        !c66x_memory_at(memory, core, address, REQUEST_HEAD + call.length))
        return false;
    memcpy(call.parameters, call.buffer + 5, sizeof call.parameters);
    call.room = room_at(memory, core, address);
    char *data = malloc(call.length + 1);
    if (!data)
        return false;
    memcpy(data, call.buffer + REQUEST_HEAD, call.length);
    data[call.length] = '\0';
    call.data = data;
    bool done = carry_out(&call, call.buffer[4]);
    free(data);
    return done;
}

void c66x_cio_start(struct c66x_cio *cio) {
    *cio = (struct c66x_cio){0};
    for (int i = 0; i < C66X_FILES; i++)
        cio->files[i] = i <= STDERR_FILENO ? i : -1;
}

void c66x_cio_end(struct c66x_cio *cio) {
    for (int i = 0; i < C66X_FILES; i++)
        if (cio->files[i] > STDERR_FILENO)
            close(cio->files[i]);
}
