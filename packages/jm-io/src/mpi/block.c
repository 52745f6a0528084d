// A block of an array by the ranks of an MPI job, who write one file: each its rows, or by MPI-IO,
// which is told of all places at once, alone or by all together (Thakur, Gropp, Lusk 1999).
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "io.h"
#include "mpi_io.h"

#include <mpi.h>
#include <stdio.h>

// Names of hints are MPI-2's; ROMIO gathers for all accesses only where it is told to.
static MPI_Info hints(const struct io_block *block) {
    char text[24];
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "romio_cb_write", "enable");
    MPI_Info_set(info, "romio_cb_read", "enable");
    if (block->aggregators > 0) {
        snprintf(text, sizeof text, "%u", block->aggregators);
        MPI_Info_set(info, "cb_nodes", text);
        MPI_Info_set(info, "num_aggregators", text); // OMPIO's
    }
    if (block->buffer > 0) {
        snprintf(text, sizeof text, "%llu", (unsigned long long)block->buffer);
        MPI_Info_set(info, "cb_buffer_size", text);
    }
    return info;
}

static MPI_Datatype places(const struct io_block *block) {
    int whole[IO_DIMENSIONS], first[IO_DIMENSIONS], count[IO_DIMENSIONS];
    for (unsigned i = 0; i < IO_DIMENSIONS; i++) {
        whole[i] = (int)block->whole[i];
        first[i] = (int)block->first[i];
        count[i] = (int)block->count[i];
    }
    MPI_Datatype type;
    MPI_Type_create_subarray(IO_DIMENSIONS, whole, count, first, MPI_ORDER_C, MPI_UINT64_T, &type);
    MPI_Type_commit(&type);
    return type;
}

static int transfer(MPI_File file, const struct io_block *block, enum io_access access,
                    bool together, size_t *done) {
    const int count = (int)(block->count[0] * block->count[1] * block->count[2]);
    MPI_Status status;
    int error;
    if (access == IO_WRITE)
        error = together ? MPI_File_write_all(file, block->words, count, MPI_UINT64_T, &status)
                         : MPI_File_write(file, block->words, count, MPI_UINT64_T, &status);
    else
        error = together ? MPI_File_read_all(file, block->words, count, MPI_UINT64_T, &status)
                         : MPI_File_read(file, block->words, count, MPI_UINT64_T, &status);
    int words = 0; // not bytes, which an int has no room for
    if (error == MPI_SUCCESS)
        MPI_Get_count(&status, MPI_UINT64_T, &words);
    *done = words > 0 ? (size_t)words * IO_WORD : 0;
    return error;
}

// All ranks make the same calls, whatever fails.
static bool move(const struct io_block *block, const char *path, enum io_access access,
                 bool together, struct io_trouble *trouble) {
    const size_t bytes = (size_t)(block->count[0] * block->count[1] * block->count[2]) * IO_WORD;
    const int mode = access == IO_WRITE ? MPI_MODE_WRONLY | MPI_MODE_CREATE : MPI_MODE_RDONLY;
    MPI_Info info = hints(block);
    MPI_Datatype type = places(block);
    MPI_File file;
    size_t done = 0;
    int error = MPI_File_open(MPI_COMM_WORLD, path, mode, info, &file);
    const bool is_open = error == MPI_SUCCESS;
    if (is_open) {
        error = MPI_File_set_view(file, 0, MPI_UINT64_T, type, "native", info);
        const int moved = transfer(file, block, access, together, &done);
        const int synced = access == IO_WRITE ? MPI_File_sync(file) : MPI_SUCCESS;
        const int closed = MPI_File_close(&file);
        error = error != MPI_SUCCESS ? error : moved != MPI_SUCCESS ? moved : synced;
        error = error != MPI_SUCCESS ? error : closed;
        if (error == MPI_SUCCESS && access == IO_WRITE && done != bytes)
            error = MPI_ERR_NO_SPACE;
    }
    MPI_Type_free(&type);
    MPI_Info_free(&info);
    if (error == MPI_SUCCESS && done < bytes) // behind the file's end: wrong
        memset((char *)block->words + done, 0, bytes - done);
    const char *doing = !is_open ? "open" : access == IO_WRITE ? "write" : "read";
    return error == MPI_SUCCESS || io_mpi_fail(trouble, doing, path, error);
}

static bool move_alone(const struct io_block *block, const char *path, enum io_access access,
                       struct io_trouble *trouble) {
    return move(block, path, access, false, trouble);
}

static bool move_together(const struct io_block *block, const char *path, enum io_access access,
                          struct io_trouble *trouble) {
    return move(block, path, access, true, trouble);
}

const struct io_block_variant io_block_mpi = {.base = {.name = "mpi", .mpi = true},
                                              .move = io_block_by_rows};
const struct io_block_variant io_block_mpi_io = {.base = {.name = "mpi-io", .mpi = true},
                                                 .move = move_alone};
const struct io_block_variant io_block_mpi_io_all = {.base = {.name = "mpi-io-all", .mpi = true},
                                                     .move = move_together};
