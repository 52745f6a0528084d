// Files by POSIX's calls. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "io.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static bool open_file(struct io_file *file, enum io_access access, bool together, bool direct,
                      struct io_trouble *trouble) {
    (void)together;
    const int flags = (access == IO_WRITE ? O_WRONLY | O_CREAT : O_RDONLY) | O_CLOEXEC;
    file->descriptor = open(file->path, flags | (direct ? O_DIRECT : 0), 0600);
    return file->descriptor >= 0 || io_fail(trouble, "open", file->path);
}

// Interrupted and short ones go on where they ended.
static bool write_bytes(struct io_file *file, const void *bytes, size_t count, uint64_t at,
                        struct io_trouble *trouble) {
    for (size_t done = 0; done < count;) {
        const ssize_t more =
            pwrite(file->descriptor, (const char *)bytes + done, count - done, (off_t)(at + done));
        if (more < 0 && errno != EINTR)
            return io_fail(trouble, "write", file->path);
        done += more > 0 ? (size_t)more : 0;
    }
    return true;
}

static bool read_bytes(struct io_file *file, void *bytes, size_t count, uint64_t at,
                       struct io_trouble *trouble) {
    for (size_t done = 0; done < count;) {
        const ssize_t more =
            pread(file->descriptor, (char *)bytes + done, count - done, (off_t)(at + done));
        if (more < 0 && errno != EINTR)
            return io_fail(trouble, "read", file->path);
        if (more == 0)
            memset((char *)bytes + done, 0, count - done);
        done += more > 0 ? (size_t)more : more == 0 ? count - done : 0;
    }
    return true;
}

static bool sync_file(struct io_file *file, struct io_trouble *trouble) {
    return fsync(file->descriptor) == 0 || io_fail(trouble, "sync", file->path);
}

static bool close_file(struct io_file *file, struct io_trouble *trouble) {
    return close(file->descriptor) == 0 || io_fail(trouble, "close", file->path);
}

void io_drop(const char *path, struct io_trouble *trouble) {
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0 || fsync(descriptor) != 0)
        (void)io_fail(trouble, "open", path);
    else
        (void)posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED); // advice
    if (descriptor >= 0)
        close(descriptor);
}

static bool move_rest(struct io_request *request, size_t done, struct io_trouble *trouble) {
    char *rest = (char *)request->bytes + done;
    const size_t count = request->count - done;
    const uint64_t at = request->at + done;
    return request->access == IO_WRITE ? write_bytes(request->file, rest, count, at, trouble)
                                       : read_bytes(request->file, rest, count, at, trouble);
}

static bool start(struct io_request *request, struct io_trouble *trouble) {
    request->posix = (struct aiocb){
        .aio_fildes = request->file->descriptor,
        .aio_offset = (off_t)request->at,
        .aio_buf = request->bytes,
        .aio_nbytes = request->count,
        .aio_sigevent = {.sigev_notify = SIGEV_NONE},
    };
    const int status =
        request->access == IO_WRITE ? aio_write(&request->posix) : aio_read(&request->posix);
    request->is_on_its_way = status == 0;
    if (status == 0)
        return true;
    return io_note(trouble, "begin to move bytes of", request->file->path, strerror(errno),
                   "allow more threads, or give another --variant");
}

// What an interrupted or short one left is done now.
static bool finish(struct io_request *request, struct io_trouble *trouble) {
    const struct aiocb *const list[] = {&request->posix};
    const bool writes = request->access == IO_WRITE;
    if (!request->is_on_its_way)
        return true;
    request->is_on_its_way = false;
    while (aio_error(&request->posix) == EINPROGRESS)
        (void)aio_suspend(list, 1, NULL);
    const int error = aio_error(&request->posix);
    const ssize_t returned = aio_return(&request->posix);
    errno = error;
    if (error != 0 && error != EINTR)
        return io_fail(trouble, writes ? "write" : "read", request->file->path);
    return move_rest(request, returned > 0 ? (size_t)returned : 0, trouble);
}

const struct io_interface io_posix_files = {open_file,  write_bytes, read_bytes, sync_file,
                                            close_file, start,       finish};
const struct io_variant io_posix = {.base = {.name = "posix"}, .files = &io_posix_files};
const struct io_variant io_posix_async = {
    .base = {.name = "posix-async"}, .files = &io_posix_files, .overlaps = true};
