// What the emulation's parts tell each other. SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef CUDA_ON_CPU_EMULATION_H
#define CUDA_ON_CPU_EMULATION_H

#include "cuda_runtime_api.h"

#include <cstddef>
#include <cstdint>

namespace cuda_on_cpu {

constexpr int DEVICES = 2, MOST_THREADS = 1024;
constexpr unsigned MULTIPROCESSORS = 6;         // each runs one block
constexpr size_t SHARED_BYTES = 48 << 10;       // a block's, without cudaFuncSetAttribute
constexpr size_t MOST_SHARED_BYTES = 227 << 10; // with it

// The kernel's thread that runs. Memory's accesses bear the time, which goes on at each barrier: of
// two at the same time by different threads nobody knows the order. Blocks have times of their own.
struct Running {
    bool in_kernel;
    int device;
    unsigned block;                        // of those that run together
    unsigned thread;                       // of its block
    const char *stack, *stack_end;         // its own
    const char *call, *call_end;           // the launch's arguments
    uint32_t now, launch_time, block_time; // and when launch and block began
};
extern Running running;

// Says what is wrong, in which thread of which kernel, and where; ends the program. `code` is an
// address in its code, or nullptr.
[[noreturn, gnu::format(printf, 2, 3)]] void fail(const void *code, const char *format, ...);

// Says which thread of which kernel runs, if one does.
void print_thread();

// Keeps an error for cudaGetLastError, and gives it back.
cudaError_t noted(cudaError_t error);

// While one of these lives, the host too reaches the devices' memory.
class Reach {
  public:
    Reach();
    ~Reach();
    Reach(const Reach &) = delete;
    Reach &operator=(const Reach &) = delete;
};

// That a library's routine may use this memory of the current device; bytes written are noted.
void library_reads(const void *memory, size_t bytes, const char *what);
void library_writes(void *memory, size_t bytes, const char *what);

// The running block's shared memory anew, nobody having written to it.
void clear_shared_memory(size_t dynamic_bytes);

// Lets others run: the thread may be waiting for what they write.
void give_way();

// Makes later launches of so many bytes of dynamic shared memory possible.
extern size_t shared_bytes_asked_for;

} // namespace cuda_on_cpu

#endif
