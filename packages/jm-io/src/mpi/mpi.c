// The ranks of an MPI job: their files by POSIX's calls, or by MPI-IO's.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "mpi_io.h"

#include <stdlib.h>

bool io_mpi_fail(struct io_trouble *trouble, const char *doing, const char *path, int error) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    MPI_Error_string(error, text, &length);
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

static bool has_written(const struct io_file *file, int error, const MPI_Status *status,
                        size_t count, struct io_trouble *trouble) {
    if (error == MPI_SUCCESS && bytes_done(status) != count) // so a full disk may show
        error = MPI_ERR_NO_SPACE;
    return error == MPI_SUCCESS || io_mpi_fail(trouble, "write", file->path, error);
}

static bool has_read(const struct io_file *file, int error, const MPI_Status *status, void *bytes,
                     size_t count, struct io_trouble *trouble) {
    if (error != MPI_SUCCESS)
        return io_mpi_fail(trouble, "read", file->path, error);
    const size_t done = bytes_done(status);
    if (done < count)
        memset((char *)bytes + done, 0, count - done);
    return true;
}

static bool write_bytes(struct io_file *file, const void *bytes, size_t count, uint64_t at,
                        struct io_trouble *trouble) {
    MPI_Status status;
    const int error =
        MPI_File_write_at(handle_of(file), (MPI_Offset)at, bytes, (int)count, MPI_BYTE, &status);
    return has_written(file, error, &status, count, trouble);
}

static bool read_bytes(struct io_file *file, void *bytes, size_t count, uint64_t at,
                       struct io_trouble *trouble) {
    MPI_Status status;
    const int error =
        MPI_File_read_at(handle_of(file), (MPI_Offset)at, bytes, (int)count, MPI_BYTE, &status);
    return has_read(file, error, &status, bytes, count, trouble);
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

// MPI_Wait would end the program by a request's error, or come to nobody's handler: it is asked
// only where all went well.
static int wait_for(struct io_request *request, MPI_Status *status) {
    MPI_Request *mpi = request->mpi;
    int done = 0, error = MPI_SUCCESS;
    status->MPI_ERROR = MPI_SUCCESS;
    while (!done && error == MPI_SUCCESS)
        error = MPI_Request_get_status(*mpi, &done, status);
    if (error == MPI_SUCCESS)
        error = status->MPI_ERROR;
    if (error == MPI_SUCCESS && bytes_done(status) == request->count)
        return MPI_Wait(mpi, status);
    MPI_Request_free(mpi);
    return error;
}

static bool finish(struct io_request *request, struct io_trouble *trouble) {
    MPI_Status status;
    if (!request->is_on_its_way)
        return true;
    request->is_on_its_way = false;
    const int error = wait_for(request, &status);
    free(request->mpi);
    return request->access == IO_WRITE
               ? has_written(request->file, error, &status, request->count, trouble)
               : has_read(request->file, error, &status, request->bytes, request->count, trouble);
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
