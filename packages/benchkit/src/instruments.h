// What a step's energy comes from, as the node's daemon told it with the ring for marks.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef BENCHKIT_INSTRUMENTS_H
#define BENCHKIT_INSTRUMENTS_H

// Their types and domains, `powercap/cpu nvml/gpu`, and their channels' names; each empty before
// the first mark that was taken, or where the daemon is of an earlier release.
const char *joulemark_instruments(void);
const char *joulemark_channels(void);

#endif
