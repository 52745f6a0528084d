// SPDX-License-Identifier: GPL-2.0-or-later
// Sets of a node's GPUs by their numbers, as Slurm writes them: "0,1" or "0-3".
#ifndef JOULEMARK_GPUS_H
#define JOULEMARK_GPUS_H

#include "text.h"

enum { JM_GPUS_MAX = 64, JM_GPUS_TEXT_MAX = 192 };

/* Bit N is GPU N. */
typedef uint64_t jm_gpus;

/* False (and *gpus untouched) where the text is no list of numbers below JM_GPUS_MAX; "" is none.
 */
bool jm_gpus_parse(const char *text, jm_gpus *gpus);

/* "0,1,5", at least JM_GPUS_TEXT_MAX bytes. */
void jm_gpus_format(jm_gpus gpus, char *text, size_t size);

/*
 * The GPUs that a channel "instrument/channel" measures: gpu-A.B-pair (an MI250's two) both; of
 * gpu-N-PART N; else the number its name ends in, else the number the instrument's name ends in. 0:
 * none, and so for gpu-N-mig, whose counter its instances share.
 */
jm_gpus jm_gpus_of_channel(const char *name);

#endif
