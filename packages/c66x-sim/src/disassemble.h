// Text of a whole file's code, for a comparison with objdump -d.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef C66X_DISASSEMBLE_H
#define C66X_DISASSEMBLE_H

#include "elf.h"

#include <stdio.h>

// Writes `address<tab>word<tab>text` for each instruction of each section with code. False with a
// reason where a section cannot be read, or the output not written.
bool c66x_disassemble(const struct c66x_elf *elf, FILE *output, struct c66x_message *why);

#endif
