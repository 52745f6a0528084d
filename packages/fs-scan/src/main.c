// fs-scan: reads a file system's objects into a database; `joulemark fs scan` runs it.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "database.h"
#include "memory.h"
#include "walk.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_UNREAD = 1, EXIT_USAGE = 2, MOST_THREADS = 1024 };

static const char help[] =
    "usage: fs-scan [--threads N] FOLDER DATABASE\n"
    "Reads all of FOLDER, an absolute path, on its file system into a new DATABASE, which takes\n"
    "the place of an earlier one when it is whole, and prints what there was as JSON.\n"
    "  --threads N   that read folders (default: one a CPU)\n"
    "exit status: 0 done; 1 done, but for what could not be read; 2 usage; 3 trouble, and no\n"
    "new database\n";

static int fail(const char *subject, const char *reason) {
    fprintf(stderr, "fs-scan: %s: %s\n", subject, reason);
    return EXIT_TROUBLE;
}

// Ends the program where `text` is none.
static unsigned thread_number(const char *text) {
    char *after;
    errno = 0;
    const unsigned long number = strtoul(text, &after, 10);
    if (isdigit((unsigned char)*text) && !*after && !errno && number && number <= MOST_THREADS)
        return (unsigned)number;
    fprintf(stderr, "fs-scan: --threads '%s': give a whole number from 1 to %d\n", text,
            MOST_THREADS);
    exit(EXIT_USAGE);
}

static double seconds_since(struct timespec begin) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - begin.tv_sec) + 1e-9 * (double)(now.tv_nsec - begin.tv_nsec);
}

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// True: all that could be read is in the database, though not yet for good.
static bool take_all(struct database *database, struct walk *walk, struct scan *scan) {
    bool ok = true;
    for (struct found *found; ok && (found = walk_next(walk));) {
        ok = database_take(database, found, scan);
        found_free(found);
    }
    scan->tally = walk_end(walk);
    return ok;
}

static void print(const struct scan *scan) {
    const struct tally *tally = &scan->tally;
    printf("{\"folders\": %" PRIu64 ", \"names\": %" PRIu64 ", \"objects\": %" PRIu64,
           scan->folders, scan->names, scan->objects);
    printf(", \"denied\": %" PRIu64 ", \"failed\": %" PRIu64 ", \"moved\": %" PRIu64, tally->denied,
           tally->failed, tally->moved);
    printf(", \"mounts\": %" PRIu64 ", \"seconds\": %.6f}\n", tally->mounts, scan->seconds);
}

// `root` is given to the database, and freed.
static bool take_tree(struct database *database, struct tree *tree, struct found *root,
                      unsigned threads, struct scan *scan) {
    const uint64_t ino = root->objects[0].ino;
    const bool ok = database_take(database, root, scan);
    found_free(root);
    if (!ok)
        return false;
    struct walk *walk = walk_begin(tree, ino, threads);
    if (!walk)
        fail("threads", strerror(errno));
    return walk && take_all(database, walk, scan);
}

static int scan_into(const char *path, struct scan *scan, unsigned threads) {
    struct timespec begin;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    scan->began_ns = now_ns();
    struct tree tree;
    struct found *root = folder_root(&tree, scan->root);
    if (!root)
        return fail(scan->root, strerror(errno));
    struct database *database = database_begin(path);
    if (!database) {
        found_free(root);
        return EXIT_TROUBLE;
    }
    bool ok = take_tree(database, &tree, root, threads, scan);
    scan->seconds = seconds_since(begin);
    ok = ok && database_commit(database, scan);
    database_close(database);
    if (!ok)
        return EXIT_TROUBLE;
    print(scan);
    const struct tally *tally = &scan->tally;
    if (tally->moved)
        fprintf(stderr, "fs-scan: folders that moved before they could be read: %" PRIu64 "\n",
                tally->moved);
    return tally->denied + tally->failed + tally->moved ? EXIT_UNREAD : EXIT_SUCCESS;
}

int main(int argc, char **argv) {
    static const struct option options[] = {
        {"threads", required_argument, NULL, 't'}, {"help", no_argument, NULL, 'h'}, {0}};
    const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned threads = cpus > 0 && cpus <= MOST_THREADS ? (unsigned)cpus : 1;
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;)
        switch (option) {
        case 't':
            threads = thread_number(optarg);
            break;
        case 'h':
            return fputs(help, stdout) < 0 || fflush(stdout) ? EXIT_TROUBLE : EXIT_SUCCESS;
        default:
            return EXIT_USAGE;
        }
    if (argc - optind != 2 || *argv[optind] != '/') {
        fputs(help, stderr);
        return EXIT_USAGE;
    }
    struct scan scan = {.root = argv[optind]};
    return scan_into(argv[optind + 1], &scan, threads);
}
