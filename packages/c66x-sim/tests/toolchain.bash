# For the tests that need the cross compiler: its folder is $JOULEMARK_TIC6X or $C66X_TOOLCHAIN, or it
# is in PATH, or the one that the checkout has built once.
# SPDX-License-Identifier: Apache-2.0 OR MIT
# shellcheck shell=bash disable=SC2154 # $tests: the including script's

readonly skipped=77
readonly builder=$tests/../../../spack-repo/spack_repo/joulemark/packages/tic6x_elf_gcc/build-toolchain

prefix=${JOULEMARK_TIC6X:-${C66X_TOOLCHAIN:-}}
if [[ -z $prefix && -x $builder ]] && ! command -v tic6x-elf-gcc >/dev/null; then
    prefix=$("$builder" --where) || prefix=
fi
if [[ -n $prefix ]]; then
    PATH=$prefix/bin:$PATH
fi
if ! command -v tic6x-elf-gcc >/dev/null || ! command -v tic6x-elf-objdump >/dev/null; then
    echo "skipped: no tic6x-elf-gcc; put its prefix into JOULEMARK_TIC6X, or its bin into PATH"
    exit "$skipped"
fi

library() { tic6x-elf-gcc -print-file-name="$1"; }

# A program for one core, of the sources in programs/ and dsp/.
# usage: link OUTPUT FLAG...
link() {
    local output=$1
    shift
    tic6x-elf-gcc -march=c674x -fno-reciprocal-math -ffp-contract=off -nostartfiles "$@" \
        -T "$tests/program.ld" -Wl,--no-warn-rwx-segments -Wl,--gc-sections -o "$output" \
        "$tests"/dsp/start.S "$tests"/dsp/host.c "$tests"/programs/*.c -lm
}
