// The ranks of an MPI job: their files by POSIX's calls, or by MPI-IO's.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "mpi_io.h"

#include <stdlib.h>

bool io_mpi_fail(struct io_trouble *trouble, const char *doing, const char *path, int error) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    MPI_Error_string(error < 0 ? MPI_ERR_IO : error, text, &length); // of OMPIO's own there is none
    return io_note(trouble, doing, path, text, "give smaller --sizes, or another --folder");
}

static bool open_file(struct io_file *file, enum io_access access, bool together, bool direct,
                      struct io_trouble *trouble) {
    (void)direct; // refused with this variant
    MPI_File *handle = malloc(sizeof *handle);
    const int mode = access == IO_WRITE ? MPI_MODE_WRONLY | MPI_MODE_CREATE : MPI_MODE_RDONLY;
    const int error = MPI_File_open(together ? MPI_COMM_WORLD : MPI_COMM_SELF, file->path, mode,
                                    MPI_INFO_NULL, handle);
    file->handle = handle;
    if (error == MPI_SUCCESS)
        return true;
    free(handle);
    return io_mpi_fail(trouble, "open", file->path, error);
}

static MPI_File handle_of(const struct io_file *file) {
    return *(MPI_File *)file->handle;
}

// Bytes of an operation that ended well.
static size_t bytes_done(const MPI_Status *status) {
    int done = 0;
    MPI_Get_count(status, MPI_BYTE, &done);
    return done > 0 ? (size_t)done : 0;
}

static bool write_bytes(struct io_file *file, const void *bytes, size_t count, uint64_t at,
                        struct io_trouble *trouble) {
    MPI_Status status;
    int error =
        MPI_File_write_at(handle_of(file), (MPI_Offset)at, bytes, (int)count, MPI_BYTE, &status);
    if (error == MPI_SUCCESS && bytes_done(&status) != count) // so a full disk may show
        error = MPI_ERR_NO_SPACE;
    return error == MPI_SUCCESS || io_mpi_fail(trouble, "write", file->path, error);
}

static bool read_bytes(struct io_file *file, void *bytes, size_t count, uint64_t at,
                       struct io_trouble *trouble) {
    MPI_Status status;
    const int error =
        MPI_File_read_at(handle_of(file), (MPI_Offset)at, bytes, (int)count, MPI_BYTE, &status);
    if (error != MPI_SUCCESS)
        return io_mpi_fail(trouble, "read", file->path, error);
    const size_t done = bytes_done(&status);
    if (done < count)
        memset((char *)bytes + done, 0, count - done);
    return true;
}

static bool start(struct io_request *request, struct io_trouble *trouble) {
    const MPI_File file = handle_of(request->file);
    const MPI_Offset at = (MPI_Offset)request->at;
    const int count = (int)request->count;
    MPI_Request *mpi = malloc(sizeof *mpi);
    const int error = request->access == IO_WRITE
                          ? MPI_File_iwrite_at(file, at, request->bytes, count, MPI_BYTE, mpi)
                          : MPI_File_iread_at(file, at, request->bytes, count, MPI_BYTE, mpi);
    request->is_on_its_way = error == MPI_SUCCESS;
    request->mpi = mpi;
    if (request->is_on_its_way)
        return true;
    free(mpi);
    return io_mpi_fail(trouble, "begin to move bytes of", request->file->path, error);
}

// Whether all has come or gone. MPI_Wait would end the program by a request's error, which
// MPI_Request_get_status does not tell: it is asked only where nothing is short.
static bool is_whole(const struct io_request *request) {
    MPI_Request *mpi = request->mpi;
    MPI_Status status;
    int done = 0, error = MPI_SUCCESS;
    while (!done && error == MPI_SUCCESS)
        error = MPI_Request_get_status(*mpi, &done, &status);
    if (error == MPI_SUCCESS && bytes_done(&status) == request->count)
        return MPI_Wait(mpi, &status) == MPI_SUCCESS;
    MPI_Request_free(mpi);
    return false;
}

// What is not whole is done again, waiting, which tells why it can't be.
static bool finish(struct io_request *request, struct io_trouble *trouble) {
    if (!request->is_on_its_way)
        return true;
    request->is_on_its_way = false;
    const bool well = is_whole(request);
    free(request->mpi);
    if (well)
        return true;
    return request->access == IO_WRITE
               ? write_bytes(request->file, request->bytes, request->count, request->at, trouble)
               : read_bytes(request->file, request->bytes, request->count, request->at, trouble);
}

static bool sync_file(struct io_file *file, struct io_trouble *trouble) {
    const int error = MPI_File_sync(handle_of(file));
    return error == MPI_SUCCESS || io_mpi_fail(trouble, "sync", file->path, error);
}

static bool close_file(struct io_file *file, struct io_trouble *trouble) {
    const int error = MPI_File_close(file->handle);
    free(file->handle);
    return error == MPI_SUCCESS || io_mpi_fail(trouble, "close", file->path, error);
}

static const struct io_interface files = {open_file,  write_bytes, read_bytes, sync_file,
                                          close_file, start,       finish};

static void exchange(const uint64_t *sent, uint64_t *came, size_t count) {
    const int ranks = (int)bk_ranks(), rank = (int)bk_rank();
    MPI_Sendrecv(sent, (int)count, MPI_UINT64_T, (rank + 1) % ranks, 0, came, (int)count,
                 MPI_UINT64_T, (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

const struct io_variant io_mpi = {
    .base = {.name = "mpi", .mpi = true}, .files = &io_posix_files, .exchange = exchange};
const struct io_variant io_mpi_async = {
    .base = {.name = "mpi-async", .mpi = true}, .files = &io_posix_files, .overlaps = true};
const struct io_variant io_mpi_io = {
    .base = {.name = "mpi-io", .mpi = true}, .files = &files, .exchange = exchange};
const struct io_variant io_mpi_io_async = {
    .base = {.name = "mpi-io-async", .mpi = true}, .files = &files, .overlaps = true};
