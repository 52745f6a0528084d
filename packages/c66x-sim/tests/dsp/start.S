; The test program's start: a stack, the base of near data, then begin() of host.c.
; SPDX-License-Identifier: Apache-2.0 OR MIT

        .section .text.start, "ax", @progbits
        .global _start
_start:
        mvkl    .s2     stack_end - 8, b15
        mvkh    .s2     stack_end - 8, b15
        mvkl    .s2     __c6xabi_DSBT_BASE, b14
        mvkh    .s2     __c6xabi_DSBT_BASE, b14
        callp   .s2     begin, b3

        .text
; void ask_host(void): the simulator answers the request in _CIOBUF_.
        .global ask_host, C$$IO$$
ask_host:
        nop     5
C$$IO$$:
        nop     1
        b       .s2     b3
        nop     5

; void leave(int status): the simulator ends.
        .global leave, C$$EXIT
leave:
        nop     5
C$$EXIT:
        nop     1
        b       .s2     C$$EXIT
        nop     5
