// The test program's system: newlib's calls as requests of TI's C I/O, and the arguments.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OPEN = 0xf0, CLOSE = 0xf1, READ = 0xf2, WRITE = 0xf3, SEEK = 0xf4, UNLINK = 0xf5 };
enum { DATA_BYTES = 256 };

// An answer has no command: its parameters and data begin a byte before the request's.
struct request {
    uint32_t length;
    uint8_t command;
    uint8_t parameters[8];
    uint8_t data[DATA_BYTES];
} __attribute__((packed));

struct request _CIOBUF_ __attribute__((section(".cio"), aligned(8)));
int __c_args__[64] __attribute__((section(".args")));
extern char heap_begin[], heap_end[];

void ask_host(void);
_Noreturn void leave(int status);
int main(int argc, char **argv);

static int ask(uint8_t command, int first, int second, const void *data, size_t length) {
    int answer;
    _CIOBUF_.length = length;
    _CIOBUF_.command = command;
    _CIOBUF_.parameters[0] = (uint8_t)first;
    _CIOBUF_.parameters[1] = (uint8_t)(first >> 8);
    for (int i = 0; i < 4; i++)
        _CIOBUF_.parameters[2 + i] = (uint8_t)(second >> 8 * i);
    memcpy(_CIOBUF_.data, data, length);
    ask_host();
    __asm__ volatile("" ::: "memory");
    memcpy(&answer, &_CIOBUF_.command, sizeof answer);
    return answer;
}

static int part(size_t length) {
    return length < DATA_BYTES ? (int)length : DATA_BYTES;
}

int open(const char *path, int flags, ...) {
    return (int16_t)ask(OPEN, 3, flags, path, strlen(path) + 1);
}

int close(int file) {
    return (int16_t)ask(CLOSE, file, 0, "", 0);
}

ssize_t read(int file, void *data, size_t length) {
    int got = (int16_t)ask(READ, file, part(length), "", 0);
    if (got > 0)
        memcpy(data, _CIOBUF_.parameters + 7, (size_t)got);
    return got;
}

ssize_t write(int file, const void *data, size_t length) {
    return (int16_t)ask(WRITE, file, part(length), data, (size_t)part(length));
}

off_t lseek(int file, off_t offset, int whence) {
    _CIOBUF_.parameters[6] = (uint8_t)whence;
    _CIOBUF_.parameters[7] = 0;
    return ask(SEEK, file, (int)offset, "", 0);
}

int unlink(const char *path) {
    return (int16_t)ask(UNLINK, 0, 0, path, strlen(path) + 1);
}

int isatty(int file) {
    return file <= 2;
}

int fstat(int file, struct stat *status) {
    *status = (struct stat){.st_mode = isatty(file) ? S_IFCHR : S_IFREG, .st_blksize = DATA_BYTES};
    return 0;
}

void *sbrk(ptrdiff_t bytes) {
    static char *end = heap_begin;
    if (bytes > heap_end - end)
        return (void *)-1;
    end += bytes;
    return end - bytes;
}

int getpid(void) {
    return 1;
}

int kill(int process, int signal) {
    leave(128 + signal + 0 * process);
}

void _exit(int status) {
    leave(status);
}

_Noreturn void begin(void) {
    exit(main(__c_args__[0], (char **)&__c_args__[1]));
}
