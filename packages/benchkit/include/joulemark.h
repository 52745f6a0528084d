/* Energy regions for users' programs: mark a part of a run, and Joulemark charges its joules apart.
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 *     joulemark_region_begin("solve");
 *     solve();
 *     joulemark_region_end("solve");
 *
 * Link with benchkit (CMake: benchkit::benchkit). The node's daemon, found through
 * $JOULEMARK_SOCKET in a Slurm job, keeps the region in the job's record. Without a daemon the
 * calls do nothing. They never fail or end the program, and wait at most 100 ms for a daemon that
 * hangs. Callable from any thread; marks are a whole step's, so begin and end a name once per step,
 * not once per thread.
 */
#ifndef JOULEMARK_H
#define JOULEMARK_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Energy that the caller's step was charged between the two marks of a region. */
struct joulemark_energy {
    int64_t energy_uj;     /* microjoules */
    double uncertainty_uj; /* microjoules, coverage factor k=2 */
    double seconds;        /* between the marks, by the daemon's clock */
    uint64_t samples;      /* instrument readings inside the region */
    bool estimated;        /* from a model of the machine, not from an instrument */
};

/* Longest region name, in bytes. */
#define JOULEMARK_REGION_NAME_MAX 255

/* Marks the start of region `name`: 1 to 255 bytes, any characters.
 * Returns true when the daemon took the mark; false (no daemon, bad name) needs no handling. */
bool joulemark_region_begin(const char *name);

/* Marks the end of region `name`. Returns as joulemark_region_begin. */
bool joulemark_region_end(const char *name);

/* Marks the end of region `name` and tells its energy. On false, *energy is zeroed. */
bool joulemark_region_end_energy(const char *name, struct joulemark_energy *energy);

#ifdef __cplusplus
}
#endif
#endif
