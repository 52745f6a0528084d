// What a rank allocates and sends, and that ranks together are right: in an MPI job of any number
// of ranks; one alone also takes the places of ranks of larger jobs, which then send nothing.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "bk_expect.h"
#include "hydro.h"

#include <mpi.h>

// ---- Counting: MPI's profiling interface, and the linker's --wrap
// ---------------------------------------------------------------------------

static bool alone; // one rank in another's place
static struct { uint64_t messages, bytes, reductions; } sent;

int MPI_Isend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *request) {
    sent.messages += to != MPI_PROC_NULL;
    sent.bytes += (uint64_t)count * sizeof(double);
    return PMPI_Isend(data, count, type, alone ? MPI_PROC_NULL : to, tag, comm, request);
}

int MPI_Irecv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
              MPI_Request *request) {
    return PMPI_Irecv(data, count, type, alone ? MPI_PROC_NULL : from, tag, comm, request);
}

int MPI_Allreduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm) {
    sent.reductions++;
    return PMPI_Allreduce(from, to, count, type, op, comm);
}

static struct {
    void *memory;
    size_t bytes;
} allocated[8];
static size_t in_use, most_in_use;

void *__real_bk_allocate(size_t bytes);
void *__wrap_bk_allocate(size_t bytes);
void __real_bk_release(void *memory);
void __wrap_bk_release(void *memory);

static void note(void *memory, void *now, size_t bytes) {
    for (size_t k = 0; k < BK_COUNT(allocated); k++)
        if (allocated[k].memory == memory) {
            in_use += bytes - allocated[k].bytes;
            most_in_use = in_use > most_in_use ? in_use : most_in_use;
            allocated[k].memory = now;
            allocated[k].bytes = bytes;
            return;
        }
}

void *__wrap_bk_allocate(size_t bytes) {
    void *memory = __real_bk_allocate(bytes);
    note(NULL, memory, bytes);
    return memory;
}

void __wrap_bk_release(void *memory) {
    if (memory != NULL)
        note(memory, NULL, 0);
    __real_bk_release(memory);
}

// ---- Tests
// ---------------------------------------------------------------------------------------

// Begins a run, checks its steps, and tells whether they were right.
static bool steps_are_right(const struct hydro_model *model, ptrdiff_t nx, ptrdiff_t ny,
                            unsigned threads) {
    struct bk_check check = BK_CHECK_START;
    struct hydro_run run;
    most_in_use = in_use = 0;
    memset(&sent, 0, sizeof sent);
    expect(hydro_begin(&run, model, nx, ny, 0.05, threads));
    expect(hydro_check_steps(&run, &check) == NULL);
    const struct hydro_grid *grid = &run.grid;
    if (model->is.mpi) {
        const bool used = grid->nx > 0;
        const int beside_x = used * ((grid->first[0] > 0) + (grid->first[0] + grid->nx < nx));
        const int beside_y = used * ((grid->first[1] > 0) + (grid->first[1] + grid->ny < ny));
        // Three steps: a message to each neighbour in each, of two layers of four variables.
        expect_equal(sent.messages, 3 * (beside_x + beside_y));
        expect_equal(sent.bytes, 3 * (beside_x * grid->ny + beside_y * grid->nx) * 2 * 4 * 8);
        // Before and when it opens, and of the first and the third step.
        expect_equal(sent.reductions, 4);
    }
    hydro_end(&run);
    return check.ok;
}

static void allocates_what_it_says(const struct hydro_model *model, uint64_t n, unsigned threads) {
    const double said = hydro_bytes(model, n, threads);
    steps_are_right(model, (ptrdiff_t)n, (ptrdiff_t)n, threads);
    expect_near((double)most_in_use, said, 0.1 * said, "%s, %u ranks", model->is.name, bk_ranks());
}

static void take_place(unsigned rank, unsigned ranks) {
    bk_set_team(&(struct bk_team){.rank = rank, .ranks = ranks, .ranks_on_node = 1});
}

static void larger_jobs_are_as_they_say(void) {
    alone = true;
    for (unsigned ranks = 8; ranks <= 512; ranks *= 8)
        for (unsigned k = 0; k <= 3; k++) {
            take_place(k * (ranks - 1) / 3, ranks);
            allocates_what_it_says(&hydro_mpi, 1200, 1);
        }
    // A rank's memory falls with their number.
    take_place(0, 8);
    const double eight = hydro_bytes(&hydro_mpi, 40000, 1);
    take_place(0, 512);
    const double many = hydro_bytes(&hydro_mpi, 40000, 1);
    expect_near(eight / many, 64, 0.05 * 64, "bytes of a rank of 8 over those of one of 512");
    take_place(0, 1);
    alone = false;
}

int main(int argc, char **argv) {
    bk_mpi_begin(&argc, &argv);
    expect(steps_are_right(&hydro_mpi, 300, 170, 1));
    expect(steps_are_right(&hydro_mpi, 131, 97, 1));
    expect(steps_are_right(&hydro_mpi, 9, 40, 1), "too few cells for many ranks");
    allocates_what_it_says(&hydro_mpi, 300, 1);
    if (bk_ranks() == 1) {
        allocates_what_it_says(&hydro_serial, 300, 1);
#ifdef BENCH_OPENMP
        allocates_what_it_says(&hydro_omp, 300, 4);
        allocates_what_it_says(&hydro_omp, 300, 64);
#endif
        larger_jobs_are_as_they_say();
    }
    return bk_mpi_end(expect_result());
}
