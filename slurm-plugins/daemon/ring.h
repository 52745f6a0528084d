// SPDX-License-Identifier: GPL-2.0-or-later
// The memory that a user's process and the daemon share for marks: the daemon makes it, the process
// writes. Clients have this layout too: packages/benchkit/src/ring.h, and joulemark/regions.py.
//
// A producer takes a place by moving `head` on by one, if it is less than a ring ahead of `tail`;
// it fills the slot and last stores the place's number + 1 as `ticket`. The daemon takes slots in
// order while their tickets fit, then moves `tail`. A name's index is valid once its text is there.
#ifndef JOULEMARK_RING_H
#define JOULEMARK_RING_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum {
    JM_RING_MAGIC = 0x4a4d5231, /* JMR1 */
    JM_RING_SLOTS = 16384,
    JM_RING_NAMES = 4096,
    JM_RING_NAME = 96, /* bytes, with the NUL */
    JM_RING_WAKE_NS = 20000000,
};

enum { JM_MARK_BEGIN = 1, JM_MARK_END = 2 };

typedef struct {
    _Atomic uint64_t ticket;
    int64_t time_ns; /* CLOCK_MONOTONIC */
    uint32_t thread;
    uint16_t kind;
    uint16_t name;
    uint64_t spare;
} jm_ring_slot;

typedef struct {
    uint32_t magic, slot_count, name_count, name_size;
    uint8_t spare0[48];
    _Atomic uint64_t head; /* the process moves it */
    uint8_t spare1[56];
    _Atomic uint64_t lost; /* marks that found no place; the process counts them */
    uint8_t spare2[56];
    _Atomic uint64_t tail;        /* the daemon moves it */
    _Atomic int64_t next_wake_ns; /* CLOCK_MONOTONIC: a mark later than this wakes the daemon */
    uint8_t spare3[3888];
    jm_ring_slot slots[JM_RING_SLOTS];
    char names[JM_RING_NAMES][JM_RING_NAME];
} jm_ring;

_Static_assert(sizeof(jm_ring_slot) == 32, "slots are two to a cache line");
_Static_assert(offsetof(jm_ring, head) == 64 && offsetof(jm_ring, lost) == 128 &&
                   offsetof(jm_ring, tail) == 192 && offsetof(jm_ring, next_wake_ns) == 200 &&
                   offsetof(jm_ring, slots) == 4096,
               "clients have these offsets");

#endif
