/* Energy regions for users' programs: mark a part of a run, and Joulemark charges its joules apart.
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 *     joulemark_region_begin("solve");
 *     solve();
 *     joulemark_region_end("solve");
 *
 * Link with libjoulemark (CMake: benchkit::joulemark; pkg-config: joulemark). Fortran programs
 * compile joulemark.f90, which lies beside this file, with their own.
 *
 * The node's daemon, found through $JOULEMARK_SOCKET in a Slurm job, keeps the region in the job's
 * record. A mark is a few stores into memory that the daemon reads: well under a microsecond, and
 * no system call but one every 20 ms. Outside a job, or without a daemon, the calls do nothing.
 * They never fail or end the program; the first mark waits at most 100 ms for a daemon that hangs.
 *
 * Regions nest: a region begun inside another is "outer/inner" in the record. Each thread has its
 * own nesting; a thread's end ends the innermost region of that name and those inside it. Threads
 * and MPI ranks of a step that are in the same region at one time are counted once: its energy is
 * what the step was charged while at least one of them was inside. What one rank used beside the
 * others is not told apart.
 */
#ifndef JOULEMARK_H
#define JOULEMARK_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Energy that the caller's step was charged on this node between one begin and its end. */
struct joulemark_energy {
    int64_t energy_uj;     /* microjoules */
    double uncertainty_uj; /* microjoules, coverage factor k=2 */
    double seconds;        /* between the marks */
    uint64_t samples;      /* instrument readings inside the region */
    bool estimated;        /* from a model of the machine, not from an instrument */
};

/* Longest region name, in bytes. */
#define JOULEMARK_REGION_NAME_MAX 95

/* Marks the start of region `name`: 1 to 95 bytes, UTF-8; at most 4096 names in a program, 32
 * regions within one another. Returns true when the mark was taken; false (no daemon, bad name, the
 * ring of 16384 marks is full: counted, and told in the record) needs no handling. */
bool joulemark_region_begin(const char *name);

/* Marks the end of region `name`, which this thread began. Returns as joulemark_region_begin. */
bool joulemark_region_end(const char *name);

/* Marks the end and tells the energy since its begin. Waits for the instruments: about 20 ms, at
 * most 500 ms. On false, *energy is zeroed. */
bool joulemark_region_end_energy(const char *name, struct joulemark_energy *energy);

#ifdef __cplusplus
}
#endif
#endif
