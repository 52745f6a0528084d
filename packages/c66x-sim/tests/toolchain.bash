# For the tests that need the cross compiler: its folder is $JOULEMARK_TIC6X, or it is in PATH.
# SPDX-License-Identifier: Apache-2.0 OR MIT
# shellcheck shell=bash disable=SC2154 # $tests: the including script's

readonly skipped=77

if [[ -n ${JOULEMARK_TIC6X:-} ]]; then
    PATH=$JOULEMARK_TIC6X/bin:$PATH
fi
if ! command -v tic6x-elf-gcc >/dev/null || ! command -v tic6x-elf-objdump >/dev/null; then
    echo "skipped: no tic6x-elf-gcc; put its prefix into JOULEMARK_TIC6X, or its bin into PATH"
    exit "$skipped"
fi

library() { tic6x-elf-gcc -print-file-name="$1"; }

# A program for one core, with newlib's start-up and its own C input and output.
# usage: link OUTPUT FLAG|SOURCE...
link() {
    local output=$1
    shift
    tic6x-elf-gcc -march=c674x -fno-reciprocal-math -ffp-contract=off -nostdlib \
        -T "$tests/program.ld" -Wl,--no-warn-rwx-segments -Wl,--gc-sections -o "$output" \
        "$(library crt0.o)" "$(library crti.o)" "$(library crtbegin.o)" "$@" \
        -Wl,--start-group -lc -lm -lsim -lgcc -Wl,--end-group \
        "$(library crtend.o)" "$(library crtn.o)"
}
