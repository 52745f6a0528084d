; Where a core of the C6678 starts, and what C can't say: control registers and the points at which
; a debugger or the simulator steps in.
; SPDX-License-Identifier: Apache-2.0 OR MIT

        .section .text.bk_start, "ax", @progbits

; Every core begins here, in whatever state the loader left it: interrupts off, its own stack, the
; time stamp counter on; then bk_start_core(number of this core).
        .global _start
_start:
        mvc     .s2     csr, b0
        and     .l2     -2, b0, b0
        mvc     .s2     b0, csr
        mvc     .s2     b0, tscl
        mvkl    .s2     __c6xabi_DSBT_BASE, b14
        mvkh    .s2     __c6xabi_DSBT_BASE, b14
        mvc     .s2     dnum, b0
        mvkl    .s2     bk_stacks_end, b15
        mvkh    .s2     bk_stacks_end, b15
        shl     .s2     b0, 16, b1      ; c6678.ld: 64 KiB of stack a core
        sub     .l2     b15, b1, b15
        sub     .l2     b15, 8, b15
        mvkl    .s2     bk_start_core, b1
        mvkh    .s2     bk_start_core, b1
        b       .s2     b1
        mv      .l1x    b0, a4
        zero    .l2     b3              ; nothing to return to
        nop     3

        .text

; uint64_t bk_cycles(void): the time stamp counter; reading its lower half holds the upper one.
        .global bk_cycles
bk_cycles:
        b       .s2     b3
        mvc     .s2     tscl, b0
        mvc     .s2     tsch, b1
        mv      .l1x    b0, a4
        mv      .l1x    b1, a5
        nop     1

; void bk_pause(void): a few cycles in a loop that waits for another core. An IDLE in the delay slots
; of a branch ends with it; the simulator lets the other cores run.
        .global bk_pause
bk_pause:
        b       .s2     paused
        idle
paused:
        b       .s2     b3
        nop     5

; void bk_cio_call(void): TI's C input/output. The debugger stops the core at C$$IO$$, serves the
; request in _CIOBUF_, and lets it go on.
        .global bk_cio_call, C$$IO$$
bk_cio_call:
        nop     5
C$$IO$$:
        nop     1
        b       .s2     b3
        nop     5

; void bk_halt(int status): the end, where TI's debugger stops; the simulator takes the status in A4.
        .global bk_halt, C$$EXIT
bk_halt:
        nop     5
C$$EXIT:
        nop     1
        b       .s2     C$$EXIT
        nop     5
