// Runs a fuzzer's function over the files it is given, where the compiler has no fuzzer of its own.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int argc, char **argv) {
    static uint8_t data[1 << 20];
    for (int i = 1; i < argc; i++) {
        FILE *file = fopen(argv[i], "rb");
        if (!file) {
            perror(argv[i]);
            return EXIT_FAILURE;
        }
        size_t size = fread(data, 1, sizeof data, file);
        fclose(file);
        LLVMFuzzerTestOneInput(data, size);
    }
    printf("%d inputs\n", argc - 1);
    return argc > 1 ? EXIT_SUCCESS : EXIT_FAILURE;
}
