// D in single and in double precision. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "lanes.h"

#ifdef __ARM_FEATURE_SVE
#include <arm_sve.h>
#endif

enum { QCD_LINE = 64 }; // bytes of a cache line

#define INLINE       static inline __attribute__((always_inline))
#define PRAGMA(text) _Pragma(#text)
// Where a vector takes many registers, GCC needs minutes for a site unrolled.
#ifdef __x86_64__
#define UNROLL(count) PRAGMA(GCC unroll count)
#else
#define UNROLL(count) PRAGMA(GCC unroll 1)
#endif

// The upper rows of a gamma matrix (DeGrand and Rossi): row s has i^power in `column`.
struct gamma {
    int column[2], power[2];
};
#define gamma_x ((struct gamma){{3, 2}, {1, 1}})
#define gamma_y ((struct gamma){{3, 2}, {2, 0}})
#define gamma_z ((struct gamma){{2, 3}, {1, 3}})
#define gamma_t ((struct gamma){{2, 3}, {0, 0}})

#define REAL       float
#define NAME(name) name##_single
#define BITS(name) name##32
#define PRECISION  QCD_SINGLE
#include "kernels.inc"
#undef REAL
#undef NAME
#undef BITS
#undef PRECISION

#define REAL       double
#define NAME(name) name##_double
#define BITS(name) name##64
#define PRECISION  QCD_DOUBLE
#include "kernels.inc"
