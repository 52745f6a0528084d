// SQLite. Rows are appended as folders come, the fastest that it can; a folder's lie together.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "database.h"

#include "inodes.h"
#include "memory.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { VERSION = 2, APPLICATION = 0x4a4d4653 /* JMFS */ };

// user_version and application_id are the two above. ino, uint64_t, is kept as int64_t.
// folder: its objects are `count` from `first` on; digest: of them, without atime_ns; whole 0: not
// all could be read; folder 0 is where the root lies. object.again: another name of an object that
// is above, so not to be summed. blocks: of 512 bytes. energy_uj NULL: not measured. btime_ns: when
// it was made, 0 where the file system does not tell.
static const char SCHEMA[] =
    "CREATE TABLE scan(root BLOB NOT NULL, began_ns INTEGER NOT NULL, seconds REAL NOT NULL,"
    " folders INTEGER NOT NULL, names INTEGER NOT NULL, objects INTEGER NOT NULL,"
    " denied INTEGER NOT NULL, failed INTEGER NOT NULL, moved INTEGER NOT NULL,"
    " mounts INTEGER NOT NULL,"
    " energy_uj INTEGER, energy_error_uj INTEGER, estimated INTEGER);"
    "CREATE TABLE folder(ino INTEGER PRIMARY KEY, parent INTEGER NOT NULL, name BLOB NOT NULL,"
    " whole INTEGER NOT NULL, digest INTEGER NOT NULL, first INTEGER NOT NULL,"
    " count INTEGER NOT NULL);"
    "CREATE TABLE object(id INTEGER PRIMARY KEY, folder INTEGER NOT NULL, name BLOB NOT NULL,"
    " ino INTEGER NOT NULL, mode INTEGER NOT NULL, nlink INTEGER NOT NULL, size INTEGER NOT NULL,"
    " blocks INTEGER NOT NULL, uid INTEGER NOT NULL, gid INTEGER NOT NULL,"
    " mtime_ns INTEGER NOT NULL, ctime_ns INTEGER NOT NULL, atime_ns INTEGER NOT NULL,"
    " btime_ns INTEGER NOT NULL, again INTEGER NOT NULL)";

// It is no database before it is in its place: what keeps a database whole is left out.
static const char FAST[] = "PRAGMA page_size=16384; PRAGMA journal_mode=OFF;"
                           "PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE";

enum statement { PUT_FOLDER, FILL_FOLDER, PUT_OBJECT, PUT_SCAN, STATEMENTS };

static const char *const SQL[STATEMENTS] = {
    // a folder that moves meanwhile may be read twice: the first time counts
    [PUT_FOLDER] = "INSERT OR IGNORE INTO folder VALUES(?, ?, ?, ?, ?, ?, ?)",
    // unless it had gone from where it was seen first
    [FILL_FOLDER] = "UPDATE folder SET parent = ?2, name = ?3, whole = ?4, digest = ?5, first = ?6,"
                    " count = ?7 WHERE ino = ?1 AND NOT whole AND count = 0",
    [PUT_OBJECT] = "INSERT INTO object VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    [PUT_SCAN] = "INSERT INTO scan VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL, NULL)",
};

struct database {
    sqlite3 *file;
    sqlite3_stmt *statements[STATEMENTS];
    const char *path;
    int lock;
    int64_t rows;
    struct inodes linked; // objects of several names that were seen
};

static char partial[PATH_MAX + sizeof ".partial"]; // "": there is none

static void end_by_signal(int number) {
    unlink(partial);
    raise(number); // which SA_RESETHAND has made to end us
}

static bool fail(const struct database *database, const char *reason) {
    fprintf(stderr, "fs-scan: %s: %s\n", database->path, reason);
    return false;
}

static bool complain(const struct database *database) {
    return fail(database, sqlite3_errmsg(database->file));
}

static bool execute(struct database *database, const char *sql) {
    return sqlite3_exec(database->file, sql, NULL, NULL, NULL) == SQLITE_OK || complain(database);
}

static bool step(struct database *database, enum statement which) {
    sqlite3_stmt *statement = database->statements[which];
    const int status = sqlite3_step(statement);
    sqlite3_reset(statement);
    return status == SQLITE_DONE || complain(database);
}

// What may be replaced: nothing, or another database of ours. SQLite's header has it at 68.
static bool may_replace(const struct database *database) {
    enum { AT = 68 };
    static const char ours[] = {0x4a, 0x4d, 0x46, 0x53};
    char header[AT + sizeof ours];
    const int fd = open(database->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT || fail(database, strerror(errno));
    const ssize_t size = read(fd, header, sizeof header);
    close(fd);
    return (size == sizeof header && !memcmp(header + AT, ours, sizeof ours)) ||
           fail(database, "is there, and no database of fs-scan: name another file");
}

// A file of ours alone, under one name.
static bool is_own(const struct stat *file) {
    return S_ISREG(file->st_mode) && file->st_nlink == 1 && file->st_uid == geteuid();
}

static bool is_empty_or_sqlite(int fd) {
    static const char magic[] = "SQLite format 3"; // with its NUL
    char header[sizeof magic];
    const ssize_t size = pread(fd, header, sizeof header, 0);
    return !size || (size == sizeof header && !memcmp(header, magic, sizeof magic));
}

// What a scan that was killed has left is taken over; one that is under way has it locked.
static bool lock_partial(struct database *database) {
    static const char foreign[] = "DATABASE.partial is there, and no scan's: remove it";
    const int flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    database->lock = open(partial, flags, S_IRUSR | S_IWUSR);
    struct stat mine, there;
    if (database->lock < 0 || fstat(database->lock, &mine))
        return fail(database, errno == ELOOP ? foreign : strerror(errno));
    if (!is_own(&mine))
        return fail(database, foreign);
    const bool is_locked = !flock(database->lock, LOCK_EX | LOCK_NB);
    if (!is_locked && errno != EWOULDBLOCK)
        return fail(database, strerror(errno));
    if (!is_locked || stat(partial, &there) || mine.st_ino != there.st_ino)
        return fail(database, "another scan writes it");
    if (!is_empty_or_sqlite(database->lock))
        return fail(database, foreign);
    return !ftruncate(database->lock, 0) || fail(database, strerror(errno));
}

// A file that may not become so large is an error of its writing. Who ignores a signal, as nohup
// does, has asked for that.
static void heed_signals(void) {
    signal(SIGXFSZ, SIG_IGN);
    static const int signals[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM,
                                  SIGPIPE, SIGXCPU, SIGUSR1, SIGUSR2};
    const struct sigaction action = {.sa_handler = end_by_signal, .sa_flags = (int)SA_RESETHAND};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct sigaction before;
        if (!sigaction(signals[i], NULL, &before) && before.sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
    }
}

static bool begin(struct database *database) {
    if ((size_t)snprintf(partial, sizeof partial, "%s.partial", database->path) >= sizeof partial)
        return fail(database, strerror(ENAMETOOLONG));
    if (!may_replace(database) || !lock_partial(database)) {
        *partial = '\0'; // not ours to remove
        return false;
    }
    heed_signals();
    char mark[80];
    snprintf(mark, sizeof mark, "PRAGMA user_version=%d; PRAGMA application_id=%d", VERSION,
             APPLICATION);
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
    // NFS makes of flock what SQLite would lock itself: ours is enough
    if (sqlite3_open_v2(partial, &database->file, flags, "unix-none") != SQLITE_OK)
        return complain(database);
    if (!execute(database, FAST) || !execute(database, mark) || !execute(database, "BEGIN") ||
        !execute(database, SCHEMA))
        return false;
    for (int i = 0; i < STATEMENTS; i++)
        if (sqlite3_prepare_v3(database->file, SQL[i], -1, SQLITE_PREPARE_PERSISTENT,
                               &database->statements[i], NULL) != SQLITE_OK)
            return complain(database);
    return true;
}

struct database *database_begin(const char *path) {
    struct database *database = memory(NULL, sizeof *database);
    *database = (struct database){.path = path, .lock = -1};
    if (begin(database))
        return database;
    database_close(database);
    return NULL;
}

static bool put_folder(struct database *database, enum statement which, const struct found *found) {
    sqlite3_stmt *statement = database->statements[which];
    const struct folder *folder = found->folder;
    const struct folder *parent = folder ? folder->parent : NULL;
    const char *name = folder ? folder->name : "";
    const int64_t values[] = {found->whole, (int64_t)found->digest, database->rows + 1,
                              (int64_t)found->count};
    sqlite3_bind_int64(statement, 1, folder ? (int64_t)folder->ino : 0);
    sqlite3_bind_int64(statement, 2, parent ? (int64_t)parent->ino : 0);
    sqlite3_bind_blob(statement, 3, name, (int)strlen(name), SQLITE_STATIC);
    for (int i = 0; i < (int)(sizeof values / sizeof *values); i++)
        sqlite3_bind_int64(statement, 4 + i, values[i]);
    return step(database, which);
}

static bool put_object(struct database *database, const struct found *found,
                       const struct object *one, bool again) {
    sqlite3_stmt *statement = database->statements[PUT_OBJECT];
    const int64_t values[] = {
        (int64_t)one->ino,    one->mode,     one->nlink,    (int64_t)one->size,
        (int64_t)one->blocks, one->uid,      one->gid,      one->mtime_ns,
        one->ctime_ns,        one->atime_ns, one->btime_ns, again,
    };
    sqlite3_bind_int64(statement, 1, ++database->rows);
    sqlite3_bind_int64(statement, 2, found->folder ? (int64_t)found->folder->ino : 0);
    sqlite3_bind_blob(statement, 3, found->names + one->name_at, (int)one->name_length,
                      SQLITE_STATIC);
    for (int i = 0; i < (int)(sizeof values / sizeof *values); i++)
        sqlite3_bind_int64(statement, 4 + i, values[i]);
    return step(database, PUT_OBJECT);
}

bool database_take(struct database *database, const struct found *found, struct scan *scan) {
    if (!put_folder(database, PUT_FOLDER, found))
        return false;
    const bool is_new = sqlite3_changes(database->file);
    if (!is_new && !put_folder(database, FILL_FOLDER, found))
        return false;
    if (!sqlite3_changes(database->file))
        return true;
    for (size_t i = 0; i < found->count; i++) {
        const struct object *one = &found->objects[i];
        const bool may_be_linked = one->nlink > 1 && !S_ISDIR(one->mode);
        const bool again = may_be_linked && !inodes_add(&database->linked, one->ino);
        if (!put_object(database, found, one, again))
            return false;
        scan->objects += !again;
    }
    scan->folders += is_new && found->folder;
    scan->names += found->count;
    return true;
}

static bool put_scan(struct database *database, const struct scan *scan) {
    sqlite3_stmt *statement = database->statements[PUT_SCAN];
    const struct tally *tally = &scan->tally;
    const uint64_t counts[] = {scan->folders, scan->names,  scan->objects, tally->denied,
                               tally->failed, tally->moved, tally->mounts};
    sqlite3_bind_blob(statement, 1, scan->root, (int)strlen(scan->root), SQLITE_STATIC);
    sqlite3_bind_int64(statement, 2, scan->began_ns);
    sqlite3_bind_double(statement, 3, scan->seconds);
    for (int i = 0; i < (int)(sizeof counts / sizeof *counts); i++)
        sqlite3_bind_int64(statement, 4 + i, (int64_t)counts[i]);
    return step(database, PUT_SCAN);
}

// The rename, too, is on the disk.
static bool sync_folder(const struct database *database) {
    char *path = memory(NULL, strlen(database->path) + 1);
    strcpy(path, database->path);
    const int fd = open(dirname(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool ok = fd >= 0 && !fsync(fd);
    if (fd >= 0)
        close(fd);
    free(path);
    return ok;
}

// Whoever might read the one before, and nobody else, may read this one.
static bool take_over_rights(struct database *database) {
    struct stat before;
    if (stat(database->path, &before))
        return errno == ENOENT;
    mode_t mode = before.st_mode & ACCESSPERMS;
    if (fchown(database->lock, (uid_t)-1, before.st_gid))
        mode &= ~(mode_t)S_IRWXG; // it would be another group's
    if (fchown(database->lock, before.st_uid, (gid_t)-1))
        errno = 0; // only root may give files away
    return !fchmod(database->lock, mode);
}

// SQLite would play back what an earlier database of this name had left.
static bool remove_journals(const struct database *database) {
    static const char *const ends[] = {"-journal", "-wal", "-shm"};
    char path[PATH_MAX + sizeof "-journal"];
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        snprintf(path, sizeof path, "%s%s", database->path, ends[i]);
        if (unlink(path) && errno != ENOENT)
            return false;
    }
    return true;
}

// A signal that came between would remove what is whole, or another scan's.
static bool put_in_place(const struct database *database) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    const bool ok = !rename(partial, database->path);
    const int error = errno;
    if (ok)
        *partial = '\0';
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return ok;
}

bool database_commit(struct database *database, const struct scan *scan) {
    if (!put_scan(database, scan) || !execute(database, "COMMIT"))
        return false;
    if (!take_over_rights(database) || fsync(database->lock) || !remove_journals(database) ||
        !put_in_place(database))
        return fail(database, strerror(errno));
    if (!sync_folder(database)) // it is there, if no power fails
        fail(database, strerror(errno));
    return true;
}

void database_close(struct database *database) {
    for (int i = 0; i < STATEMENTS; i++)
        sqlite3_finalize(database->statements[i]);
    sqlite3_close(database->file);
    if (*partial)
        unlink(partial);
    if (database->lock >= 0)
        close(database->lock);
    inodes_free(&database->linked);
    free(database);
}
