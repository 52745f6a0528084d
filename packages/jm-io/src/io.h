// What the patterns of jm-io share: a place for files, interfaces to files, and bytes that tell
// where they belong. SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef JM_IO_H
#define JM_IO_H

#include "benchkit.h"

#include <aio.h>
#include <limits.h>
#include <pthread.h>

// ---- The place: place.c ----------------------------------------------------------------------

// A folder of our own. It is removed when a run ends, also by SIGINT, SIGTERM or SIGHUP.
struct io_place {
    char path[PATH_MAX]; // "": there is none
    char kind[64];       // of file system, as the kernel's mounts name it: ext4, lustre, ...
};

// First of all in main: signals end the process by a thread that removes the place.
void io_place_guard(void);

// Makes one in the folder `within` if there is none, by rank 0 for all ranks. False after an error
// that it printed.
bool io_place_make(struct bk_run *run, const char *within);
// A pattern's `begin`: in that of its option --folder, the first of its own.
enum { IO_FOLDER };
const char *io_begin(struct bk_run *run);
void io_place_remove(void); // all ranks call it, before MPI ends: a launcher kills what lingers
const struct io_place *io_place(void);

// Each node's own beside it, in the folder `within` of its own, by the node's first rank; likewise.
bool io_local_make(struct bk_run *run, const char *within);
const struct io_place *io_local(void);

// Whether so many bytes and files, by all ranks that share the place, fit what is free there and a
// twentieth more; leaves the size out where not, of so many `elements` in each of some dimensions.
// All ranks call it.
bool io_place_has_room(const struct bk_run *run, const struct io_place *where, uint64_t size,
                       double bytes, double files, unsigned dimensions, const char *elements);

// Bytes of a block of its file system, alike for all ranks, which a network's clients need not say.
// All ranks call it.
uint64_t io_place_block_bytes(void);
static inline uint64_t io_round_up(uint64_t number, uint64_t unit) {
    return (number + unit - 1) / unit * unit;
}

// Whether --task-offset, or what else is not to reach the number of ranks, does not; refuses it.
bool io_less_than_ranks(const struct bk_run *run, const char *option, uint64_t value);

// ---- Trouble -----------------------------------------------------------------------------------

// What went wrong first; "" while all is well. Kernels do nothing once there is some.
struct io_trouble {
    char text[PATH_MAX + 256];
};

// Notes why what was done to a path failed, and how to mend it; always false.
bool io_note(struct io_trouble *trouble, const char *doing, const char *path, const char *why,
             const char *fix);
// Likewise of errno.
bool io_fail(struct io_trouble *trouble, const char *doing, const char *path);

// Whether any rank has some: all ranks call it, and meet here.
bool io_stopped(const struct io_trouble *trouble);

// What is to be measured of run->variant: an iteration of each task does so many operations, on
// files of the place. What is given to the kernel and to `prepare` begins with a struct io_trouble.
struct bk_case io_case(const struct bk_run *run, unsigned kernel, uint64_t size, double operations,
                       const char *operation, bk_kernel *prepare);

// Measures that, verifies it by `verify` and reports it. NULL, or what `measure` is to return.
// `context` begins likewise. All ranks call it.
typedef struct bk_check io_verify(void *context, unsigned kernel);
const char *io_measure(struct bk_run *run, const struct bk_case *what, bk_kernel *kernel,
                       void *context, unsigned number, io_verify *verify);

// What `measure` is to return: each rank that has some has printed it. All ranks call it.
const char *io_told(const struct bk_run *run, const struct io_trouble *trouble);

// ---- Interfaces: serial/ and mpi/ --------------------------------------------------------------

enum io_access { IO_READ, IO_WRITE }; // to write is to make the file where there is none

struct io_file {
    const char *path;
    int descriptor; // POSIX's
    void *handle;   // MPI's
};

// Bytes on their way, while others are computed; they belong to it until it is done.
struct io_request {
    struct io_file *file;
    enum io_access access;
    void *bytes;
    size_t count;
    uint64_t at;
    bool is_on_its_way;
    struct aiocb posix;
    void *mpi;
};

// All return false after noting what is wrong.
struct io_interface {
    // `together`: by all ranks, who all call it; else by one. `direct`: past the page cache.
    bool (*open)(struct io_file *file, enum io_access access, bool together, bool direct,
                 struct io_trouble *trouble);
    bool (*write)(struct io_file *file, const void *bytes, size_t count, uint64_t at,
                  struct io_trouble *trouble);
    // Bytes behind a file's end come as zeros: wrong, for all were written.
    bool (*read)(struct io_file *file, void *bytes, size_t count, uint64_t at,
                 struct io_trouble *trouble);
    bool (*sync)(struct io_file *file, struct io_trouble *trouble); // to the servers' or own disks
    bool (*close)(struct io_file *file, struct io_trouble *trouble);
    // Likewise of write and read, whose end `finish` waits for.
    bool (*start)(struct io_request *request, struct io_trouble *trouble);
    bool (*finish)(struct io_request *request, struct io_trouble *trouble);
};

struct io_variant {
    struct bk_variant base;
    const struct io_interface *files;
    bool overlaps; // computation and files
    // Sends words to the next rank, and has those of the one before; NULL: there is one task.
    void (*exchange)(const uint64_t *sent, uint64_t *came, size_t count);
};

// By its access the one or the other.
static inline bool io_move(const struct io_interface *files, struct io_file *file,
                           enum io_access access, void *bytes, size_t count, uint64_t at,
                           struct io_trouble *trouble) {
    return access == IO_WRITE ? files->write(file, bytes, count, at, trouble)
                              : files->read(file, bytes, count, at, trouble);
}

// Drops what this node has of a file in memory, when it is on its disks.
void io_drop(const char *path, struct io_trouble *trouble);

// These two all ranks call for a file each, and meet before and after: none is still at it, and
// none begins. Both do nothing once there is trouble. Drops it; whether all is well.
bool io_drop_all(const char *path, struct io_trouble *trouble);
// Removes it, if it is there, by one of those whose file it is.
void io_remove_all(const char *path, bool is_mine, struct io_trouble *trouble);

extern const struct io_interface io_posix_files;
extern const struct io_variant io_posix, io_posix_async, io_mpi, io_mpi_async, io_mpi_io,
    io_mpi_io_async;

// ---- By way of each node's own disk: flush.c ---------------------------------------------------

// The kernels that need the option --local are left out where it has no text; refuses them by
// their `names` where --kernels asks for them.
bool io_local_check(const struct bk_run *run, unsigned option, uint32_t kernels, const char *names);

// A pattern's `begin` that has --local: the place, and where it is used each node's own.
const char *io_local_begin(struct bk_run *run, unsigned option, bool is_used);

// Whether each task's local file of so many bytes has room beside those of the node's others, and
// beside the shared ones where both are on one disk; as io_place_has_room. All ranks call it.
bool io_local_has_room(const struct bk_run *run, uint64_t size, double bytes, unsigned dimensions,
                       const char *elements);

// Of files that go to both: "tmpfs+lustre".
const char *io_local_device(void);

// A local file on its way to the shared folder, while the program goes on.
struct io_flush {
    struct io_trouble trouble;
    pthread_t thread;
    bool is_on_its_way;
    const char *from, *to;
    uint64_t bytes;  // of the local file
    uint64_t piece;  // of it, each moved by one call
    uint64_t *words; // of a piece
    // Where in the other file the piece is that begins here; NULL: likewise.
    uint64_t (*place)(const void *context, uint64_t at);
    const void *context;
};

// Of a file that is whole, unless there was trouble.
void io_flush_begin(struct io_flush *flush, const struct io_trouble *trouble);
// Waits for it, if it is on its way, and takes its trouble over.
void io_flush_end(struct io_flush *flush, struct io_trouble *trouble);

// ---- Contents: content.c -----------------------------------------------------------------------

// Bytes of a word, and of the noise after which a task's transfers begin at its begin again.
enum { IO_WORD = sizeof(uint64_t), IO_NOISE = 1 << 20 };

// What the transfers of one task and generation hold: noise, in which each 512 bytes have a word of
// their own, of the task, the generation and the place.
struct io_content {
    size_t bytes;    // of a transfer, a multiple of IO_WORD
    uint64_t *noise; // IO_NOISE and a transfer; in which one begins here or there
    uint64_t *sent;  // to write from: io_content_stamp's
    uint64_t *came;  // to read into
};

bool io_content_make(struct io_content *content, size_t bytes); // false: memory is out
void io_content_free(struct io_content *content);

// A number that no run and no iteration has had; all ranks ask for as many.
uint64_t io_next_generation(void);

// Makes `sent` what task's transfer at `at` holds, of its own bytes counted from 0.
void io_content_stamp(struct io_content *content, uint64_t generation, unsigned task, uint64_t at);

// Whether the first and the last stamp of `came` are those of that transfer: while it is timed.
bool io_content_seems_right(const struct io_content *content, uint64_t generation, unsigned task,
                            uint64_t at);

// How many bytes of `came` are that transfer's; changes `sent`.
size_t io_content_right(struct io_content *content, uint64_t generation, unsigned task,
                        uint64_t at);

// What a program does between files: so many multiplications of a word. Each can be undone: unlike
// words stay unlike.
static inline uint64_t io_worked_on(uint64_t word, unsigned rounds) {
    for (unsigned i = 0; i < rounds; i++)
        word = (word ^ word >> 32) * 0xd6e8feb86659fd93U;
    return word;
}

// ---- Blocks of an array in one file: serial/ and mpi/ ------------------------------------------

enum { IO_DIMENSIONS = 3 };

// A task's block of an array of words, the last index running fastest in memory and in the file.
struct io_block {
    uint64_t whole[IO_DIMENSIONS]; // of the array
    uint64_t first[IO_DIMENSIONS], count[IO_DIMENSIONS];
    uint64_t *words;
    // For MPI-IO; 0: as it chooses.
    unsigned aggregators; // ranks that gather for others
    uint64_t buffer;      // bytes that one gathers at a time
};

// Where in the array a row of the block begins, these counted from 0.
static inline uint64_t io_block_row(const struct io_block *block, uint64_t row) {
    const uint64_t i = block->first[0] + row / block->count[1];
    const uint64_t j = block->first[1] + row % block->count[1];
    return (i * block->whole[1] + j) * block->whole[2] + block->first[2];
}

// A task's cube of that edge, of an array that so many tasks have together; collective.c.
struct io_block io_block_of(unsigned task, unsigned tasks, uint64_t edge);

// Writes the block to its places in the file, to the disks, or reads it. False after noting what is
// wrong.
typedef bool io_move_block(const struct io_block *block, const char *path, enum io_access access,
                           struct io_trouble *trouble);

io_move_block io_block_by_rows; // by POSIX's calls

struct io_block_variant {
    struct bk_variant base;
    io_move_block *move;
};

extern const struct io_block_variant io_block_posix, io_block_mpi, io_block_mpi_io,
    io_block_mpi_io_all;

// ---- Patterns ----------------------------------------------------------------------------------

extern const struct bk_benchmark io_bandwidth, io_checkpoint, io_collective, io_metadata,
    io_out_of_core, io_tracing;

#endif
