// SPDX-License-Identifier: GPL-2.0-or-later
// The outbox: finished files of this node, on its own disk, until they have arrived where they go.
// The daemon puts files in by rename and never waits for anything; the forwarder takes them out.
//
// There are two: one beside the ledger, and for when that disk is full or broken one beside the
// socket, which is in memory on most systems.
#ifndef JOULEMARK_OUTBOX_H
#define JOULEMARK_OUTBOX_H

#include "config.h"

#include <stddef.h>
#include <sys/types.h>
#include <time.h>

enum { JM_OUTBOXES = 2 };

typedef struct {
    char path[JM_OUTBOXES][JM_PATH_MAX];
} jm_outboxes;

/* A file in an outbox, as it was when it was looked at. */
typedef struct {
    const char *outbox;
    char name[JM_PATH_MAX]; /* relative to the outbox: "c.12.n1.json",
                               "profiles/c.12.n1.profile.jsonl" */
    ino_t inode;
    struct timespec changed;
    size_t size;
} jm_parcel;

/* STATE_DIR/outbox and SOCKET.outbox. */
void jm_outbox_find(const jm_config *config, jm_outboxes *outboxes);

/* Make the folders where they are missing, put back what a crash left half taken out, and remove
 * what one left half written. 0, or -1 and why: the first cannot be made. */
int jm_outbox_make(const jm_outboxes *outboxes, jm_message *why);

/* All finished files, in *parcels, which the caller frees. How many, or -1: out of memory. */
int jm_outbox_list(const jm_outboxes *outboxes, jm_parcel **parcels);

/* The file's bytes and a NUL after them, which the caller frees; NULL and why. The parcel becomes
 * that of the file that was read. */
char *jm_outbox_read(jm_parcel *parcel, jm_message *why);

/* A regular file of the folder that only we, root or the folder's owner can have put there or write
 * to; -1: it is not (EPERM), or there is none. Flags as of open(2); it waits for nobody. */
int jm_open_ours(int folder, const char *name, int flags);

/* One in an outbox that is ours, to be read. */
int jm_outbox_open(const char *outbox, const char *name);

/* It has arrived: remove it, unless the daemon has meanwhile put another of its name there. */
void jm_outbox_discard(const jm_parcel *parcel);

#endif
