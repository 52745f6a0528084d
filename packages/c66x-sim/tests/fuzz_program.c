// Fuzz target: any bytes as a program's file are refused with a reason, or loaded, written as text
// and run for a moment. The host's side of C I/O is off: such a program must not touch this
// machine's files. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "disassemble.h"
#include "machine.h"

#include "bk_fuzz.h"

static void run(const struct c66x_elf *elf, struct c66x_message *why) {
    const struct c66x_options options = {.cores = 2, .quantum = 100};
    struct c66x_machine machine;
    char *words[] = {(char[]){"program"}, (char[]){"argument"}};
    if (c66x_machine_make(&machine, elf, &options, why)) {
        c66x_machine_arguments(&machine, 2, words, why);
        machine.traps[0] = 0;
        for (unsigned i = 0; i < 2; i++)
            c66x_core_run(machine.cores[i], 500);
        char place[32];
        c66x_elf_describe(elf, machine.cores[0]->pc, place, sizeof place);
    } else
        abort_if(!why->text[0]);
    c66x_machine_free(&machine);
}

FUZZ(data, size) {
    static FILE *nowhere;
    struct c66x_elf elf;
    struct c66x_message why = {""};
    if (!nowhere)
        nowhere = fopen("/dev/null", "w");
    if (!c66x_elf_open(data, size, &elf, &why)) {
        abort_if(!why.text[0]);
        return;
    }
    c66x_disassemble(&elf, nowhere, &why);
    why.text[0] = '\0';
    run(&elf, &why);
}
