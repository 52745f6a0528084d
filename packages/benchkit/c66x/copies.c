// Copies of structures, which GCC calls for: libgcc's own use SPLOOP, as nothing else here does.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include <stddef.h>
#include <stdint.h>

// The run-time support of the C6000's ABI (SPRAB89): whole words, aligned, at least one.
void __c6xabi_strasgi(uint32_t *target, const uint32_t *source, size_t bytes);
void __c6xabi_strasgi_64plus(uint32_t *target, const uint32_t *source, size_t bytes);

void __c6xabi_strasgi(uint32_t *target, const uint32_t *source, size_t bytes) {
    for (size_t i = 0; i < bytes / sizeof *target; i++)
        target[i] = source[i];
}

void __c6xabi_strasgi_64plus(uint32_t *target, const uint32_t *source, size_t bytes) {
    __c6xabi_strasgi(target, source, bytes);
}
