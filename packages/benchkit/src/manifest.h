// What a line of results tells of the program and its system.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef BENCHKIT_MANIFEST_H
#define BENCHKIT_MANIFEST_H

#include "json.h"
#include "machine.h"
#include "pinning.h"

// What the energy of all nodes comes from, now that something was measured. With MPI all ranks call
// it.
void bk_gather_instruments(void);

// As the member "manifest".
void bk_write_manifest(struct json_object *line, const struct bk_machine *machine,
                       enum bk_pinning pinning);

#endif
