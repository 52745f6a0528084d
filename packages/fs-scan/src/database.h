// What a scan finds, in a new SQLite database that takes its place when all of it is written.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef DATABASE_H
#define DATABASE_H

#include "folder.h"

struct database;

struct scan {
    const char *root;
    int64_t began_ns;
    double seconds;
    struct tally tally;
    uint64_t folders, names, objects; // objects: one of several names, a hard link's, is one
};

// Begins it beside `path`. NULL: it is told on stderr why.
struct database *database_begin(const char *path);

// Takes in all of a folder.
bool database_take(struct database *database, const struct found *found, struct scan *scan);

// Puts it in its place, whole.
bool database_commit(struct database *database, const struct scan *scan);

// Removes what is not in its place.
void database_close(struct database *database);

#endif
