// The ranks of an MPI job: their files by POSIX's calls, or by MPI-IO's.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "mpi_io.h"

bool io_mpi_fail(struct io_trouble *trouble, const char *doing, const char *path, int error) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    MPI_Error_string(error, text, &length);
    return io_note(trouble, doing, path, text, "give smaller --sizes, or another --folder");
}

// One is open at a time.
static MPI_File handle;

static bool open_file(struct io_file *file, enum io_access access, bool together, bool direct,
                      struct io_trouble *trouble) {
    (void)direct; // refused with this variant
    const int mode = access == IO_WRITE ? MPI_MODE_WRONLY | MPI_MODE_CREATE : MPI_MODE_RDONLY;
    const int error = MPI_File_open(together ? MPI_COMM_WORLD : MPI_COMM_SELF, file->path, mode,
                                    MPI_INFO_NULL, &handle);
    return error == MPI_SUCCESS || io_mpi_fail(trouble, "open", file->path, error);
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
    int error = MPI_File_write_at(handle, (MPI_Offset)at, bytes, (int)count, MPI_BYTE, &status);
    if (error == MPI_SUCCESS && bytes_done(&status) != count) // so a full disk may show
        error = MPI_ERR_NO_SPACE;
    return error == MPI_SUCCESS || io_mpi_fail(trouble, "write", file->path, error);
}

static bool read_bytes(struct io_file *file, void *bytes, size_t count, uint64_t at,
                       struct io_trouble *trouble) {
    MPI_Status status;
    const int error =
        MPI_File_read_at(handle, (MPI_Offset)at, bytes, (int)count, MPI_BYTE, &status);
    if (error != MPI_SUCCESS)
        return io_mpi_fail(trouble, "read", file->path, error);
    const size_t done = bytes_done(&status);
    if (done < count)
        memset((char *)bytes + done, 0, count - done);
    return true;
}

static bool sync_file(struct io_file *file, struct io_trouble *trouble) {
    const int error = MPI_File_sync(handle);
    return error == MPI_SUCCESS || io_mpi_fail(trouble, "sync", file->path, error);
}

static bool close_file(struct io_file *file, struct io_trouble *trouble) {
    const int error = MPI_File_close(&handle);
    return error == MPI_SUCCESS || io_mpi_fail(trouble, "close", file->path, error);
}

static const struct io_interface files = {open_file, write_bytes, read_bytes, sync_file,
                                          close_file};
const struct io_variant io_mpi = {.base = {.name = "mpi", .mpi = true}, .files = &io_posix_files};
const struct io_variant io_mpi_io = {.base = {.name = "mpi-io", .mpi = true}, .files = &files};
