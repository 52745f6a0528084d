// What users of MPI-IO share. SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef JM_IO_MPI_IO_H
#define JM_IO_MPI_IO_H

#include "io.h"

#include <mpi.h>
#include <string.h>

// Notes an error in MPI's own words, for an operation that failed has no errno; always false.
bool io_mpi_fail(struct io_trouble *trouble, const char *doing, const char *path, int error);

#endif
