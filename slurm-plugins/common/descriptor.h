// SPDX-License-Identifier: GPL-2.0-or-later
// Descriptors that may be many: out of the way of libraries that know only the lowest.
#ifndef JOULEMARK_DESCRIPTOR_H
#define JOULEMARK_DESCRIPTOR_H

#include <fcntl.h>
#include <sys/select.h>
#include <unistd.h>

/*
 * Gives fd a number that select() does not know, where the limit has one; -1 stays -1. An
 * instrument's library that gets such a number ends the process (libmodbus), or fails
 * (libmosquitto): the low ones are kept for them.
 */
static inline int jm_descriptor_move_up(int fd) {
    int moved = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, FD_SETSIZE) : -1;
    if (moved < 0)
        return fd;
    close(fd);
    return moved;
}

#endif
