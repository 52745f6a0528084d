// What the parts of the test program share.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef C66X_PROGRAMS_H
#define C66X_PROGRAMS_H

#include <stdint.h>

uint64_t random_bits(void);                      // the same sequence everywhere
void show_bits(const char *name, uint64_t bits); // newlib's printf may know no 64-bit numbers

void integers(void);
void numbers(void);
void loops(void);
void texts(void);

#endif
