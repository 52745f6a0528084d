// Launches: blocks one after the other, or all of a cooperative launch; their threads by turns.
// Each thread has a stack of its own and runs until it waits for others, so that barriers are what
// they are on a GPU. The order of blocks and threads is random, by CUDA_ON_CPU_SEED.
// SPDX-License-Identifier: Apache-2.0 OR MIT
#define CUDA_ON_CPU_THREADS
#include "emulation.h"

#include "cuda_runtime.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <random>
#include <string>
#include <sys/mman.h>
#include <ucontext.h>
#include <vector>

// The kernels' own, constants to them: cuda_runtime.h.
uint3 threadIdx, blockIdx, blockDim, gridDim;

namespace cuda_on_cpu {

int warp = 32;

namespace {

constexpr size_t STACK_BYTES = 1 << 16, PAGE_BYTES = 4096;
constexpr int ALL = -1;

enum State { READY, AT_BLOCK, AT_WARP, ENDED };

struct Thread {
    void *kept[5]; // where it goes on: __builtin_setjmp's
    char *stack;
    unsigned number; // of all that run together
    State state;
    Place place; // of what it waits at
    // A shuffle's:
    uint64_t mask;
    int lane;    // from which it takes its value, or ALL
    void *value; // or the values of all
    size_t bytes;
    std::string given;
};

// A block that runs, and its time.
struct Block {
    uint3 index;
    uint32_t begin, now;
};

struct Kernel {
    const Launch *launch;
    void (*run)(const void *call);
    const void *call;
};

constexpr uint32_t MOST_BARRIERS = 1 << 10; // of a block that runs with others

std::vector<Thread> pool;
std::vector<Block> blocks; // that run together
unsigned block_threads;    // of each
size_t threads;            // of all: the pool's first
Thread *current;
void *scheduler[5];
Kernel kernel;
cudaError_t last_error;

// ---- One thread and the next

// The compiler must take these for calls like any other, after which nothing is as it was.
[[gnu::noipa, noreturn]] void jump(void **to) {
    __builtin_longjmp(to, 1);
}

[[gnu::noipa]] void change(void **from, void **to) {
    if (__builtin_setjmp(from) == 0)
        jump(to);
}

void pause(State state, Place place) {
    current->state = state;
    current->place = place;
    running.in_kernel = false;
    change(current->kept, scheduler);
    running.in_kernel = true;
}

// A thread of the pool is a kernel's again and again.
void live() {
    for (;;) {
        pause(ENDED, {});
        kernel.run(kernel.call);
    }
}

[[gnu::noipa]] void begin(Thread *thread, const ucontext_t *start) {
    current = thread;
    if (__builtin_setjmp(scheduler) == 0)
        setcontext(start);
}

void make_thread(Thread *thread, unsigned number) {
    void *stack = mmap(nullptr, STACK_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED || mprotect(stack, PAGE_BYTES, PROT_NONE) != 0)
        fail(nullptr, "no memory for the stack of thread %u", number);
    thread->number = number;
    thread->stack = static_cast<char *>(stack);
    ucontext_t start;
    getcontext(&start);
    start.uc_stack.ss_sp = stack;
    // Not all of them as far from a page's beginning: caches would have no room.
    start.uc_stack.ss_size = STACK_BYTES - number % 32 * 128;
    makecontext(&start, live, 0);
    begin(thread, &start);
}

// What runs from now on is this block's.
void enter(unsigned block) {
    blockIdx = blocks[block].index;
    running.block = block;
    running.now = blocks[block].now;
    running.block_time = blocks[block].begin;
}

void resume(Thread *thread) {
    const dim3 block = kernel.launch->block;
    const unsigned number = thread->number % block_threads;
    current = thread;
    enter(thread->number / block_threads);
    threadIdx = {number % block.x, number / block.x % block.y, number / block.x / block.y};
    running.thread = number;
    running.stack = thread->stack;
    running.stack_end = thread->stack + STACK_BYTES;
    change(scheduler, thread->kept);
    running.in_kernel = false;
}

// ---- Waiting

bool same(Place a, Place b) {
    return a.line == b.line && (a.file == b.file || std::strcmp(a.file, b.file) == 0);
}

Thread *in_warp(const Thread *thread, int lane) {
    const unsigned own = thread->number % block_threads;
    const unsigned number = own / warp * warp + static_cast<unsigned>(lane);
    return lane >= 0 && lane < warp && number < block_threads ? &pool[thread->number - own + number]
                                                              : nullptr;
}

// Whether all those whom it waits for have come to the same shuffle.
bool has_its_mask(const Thread *thread) {
    for (int lane = 0; lane < warp; lane++) {
        const Thread *other = in_warp(thread, lane);
        if (other != nullptr && (thread->mask >> lane & 1) != 0 &&
            (other->state != AT_WARP || other->mask != thread->mask ||
             !same(other->place, thread->place)))
            return false;
    }
    return true;
}

void take_value(const Thread *thread, int lane, void *value) {
    const Thread *from = in_warp(thread, lane);
    if (from == nullptr || (thread->mask >> lane & 1) == 0)
        fail(nullptr, "%s:%d: takes the value of lane %d, which is not in the mask",
             thread->place.file, thread->place.line, lane);
    std::memcpy(value, from->given.data(), thread->bytes);
}

void take(Thread *thread) {
    current = thread;
    if (thread->lane == ALL)
        for (int lane = 0; lane < warp; lane++)
            take_value(thread, lane, static_cast<char *>(thread->value) + lane * thread->bytes);
    else
        take_value(thread, thread->lane, thread->value);
}

// Lets warps go on of which all have come; whether there was one.
bool release_warps() {
    bool any = false;
    for (size_t i = 0; i < threads; i++) {
        if (pool[i].state != AT_WARP || !has_its_mask(&pool[i]))
            continue;
        any = true;
        const uint64_t mask = pool[i].mask;
        for (int lane = 0; lane < warp; lane++)
            if (Thread *one = in_warp(&pool[i], lane); one != nullptr && (mask >> lane & 1) != 0) {
                take(one);
                one->state = READY;
            }
    }
    return any;
}

std::string count(State state, const char *what) {
    const auto end = pool.begin() + static_cast<ptrdiff_t>(threads);
    const auto is = [=](const Thread &thread) { return thread.state == state; };
    const auto number = std::count_if(pool.begin(), end, is);
    const auto first = std::find_if(pool.begin(), end, is);
    if (number == 0)
        return "";
    std::string text = " " + std::to_string(number) + what;
    if (state != ENDED)
        text += " (the first at " + std::string(first->place.file) + ":" +
                std::to_string(first->place.line) + ")";
    return text + ";";
}

// Lets blocks go on of which all threads have come to one barrier; whether there was one.
bool release_blocks() {
    bool any = false;
    for (unsigned i = 0; i < blocks.size(); i++) {
        Thread *first = &pool[i * block_threads], *end = first + block_threads;
        if (!std::all_of(first, end, [=](const Thread &thread) {
                return thread.state == AT_BLOCK && same(thread.place, first->place);
            }))
            continue;
        any = true;
        std::for_each(first, end, [](Thread &thread) { thread.state = READY; });
        blocks[i].now++;
        if (blocks.size() > 1 && blocks[i].now == blocks[i].begin + MOST_BARRIERS)
            fail(nullptr, "more than %u barriers of a cooperative kernel", MOST_BARRIERS);
    }
    return any;
}

[[noreturn]] void fail_to_go_on() {
    current = nullptr;
    fail(nullptr, "a barrier or shuffle that not all threads reach:%s%s%s",
         count(AT_BLOCK, " wait at __syncthreads").c_str(),
         count(AT_WARP, " wait at a shuffle").c_str(), count(ENDED, " have ended").c_str());
}

// ---- Blocks

template <typename T> std::vector<T> shuffled(T number, std::mt19937 &random) {
    std::vector<T> order(number);
    std::iota(order.begin(), order.end(), T{0});
    std::shuffle(order.begin(), order.end(), random);
    return order;
}

std::mt19937 &random_numbers() {
    static std::mt19937 numbers = [] {
        const char *seed = std::getenv("CUDA_ON_CPU_SEED");
        return std::mt19937(seed == nullptr ? 1 : static_cast<unsigned>(std::atoi(seed)));
    }();
    return numbers;
}

bool all_ended() {
    return std::all_of(pool.begin(), pool.begin() + static_cast<ptrdiff_t>(threads),
                       [](const Thread &thread) { return thread.state == ENDED; });
}

// Runs so many blocks together, from this one of the grid on.
void run_blocks(uint64_t first, unsigned count) {
    const dim3 grid = kernel.launch->grid;
    threads = size_t{count} * block_threads;
    blocks.resize(count);
    for (unsigned i = 0; i < count; i++) {
        const uint64_t number = first + i;
        blocks[i].index = {static_cast<unsigned>(number % grid.x),
                           static_cast<unsigned>(number / grid.x % grid.y),
                           static_cast<unsigned>(number / grid.x / grid.y)};
        blocks[i].begin = blocks[i].now = running.now + 1 + i * MOST_BARRIERS;
    }
    for (unsigned i = 0; i < count; i++) {
        enter(i);
        clear_shared_memory(kernel.launch->shared);
    }
    for (size_t i = 0; i < threads; i++)
        pool[i].state = READY;
    for (const auto order = shuffled(threads, random_numbers()); !all_ended();) {
        bool any = false;
        for (size_t number : order)
            if (pool[number].state == READY) {
                resume(&pool[number]);
                any = true;
            }
        any = release_warps() || any;
        if (!(release_blocks() || any))
            fail_to_go_on();
    }
    running.now = blocks.back().now;
}

uint64_t volume(dim3 size) {
    return uint64_t{size.x} * size.y * size.z;
}

// As a device refuses a launch.
bool is_possible(const Launch &launch) {
    return volume(launch.grid) > 0 && launch.grid.x <= 0x7fffffff && launch.grid.y <= 65535 &&
           launch.grid.z <= 65535 && volume(launch.block) > 0 &&
           volume(launch.block) <= MOST_THREADS && launch.block.z <= 64 &&
           launch.shared <= shared_bytes_asked_for;
}

void run_grid() {
    const Launch &launch = *kernel.launch;
    gridDim = {launch.grid.x, launch.grid.y, launch.grid.z};
    blockDim = {launch.block.x, launch.block.y, launch.block.z};
    block_threads = static_cast<unsigned>(volume(launch.block));
    if (pool.empty()) {
        pool.resize(MULTIPROCESSORS * MOST_THREADS);
        for (unsigned i = 0; i < pool.size(); i++)
            make_thread(&pool[i], i);
    }
    running.launch_time = ++running.now;
    const uint64_t number = volume(launch.grid);
    if (launch.together)
        run_blocks(0, static_cast<unsigned>(number));
    else
        for (uint64_t block : shuffled(number, random_numbers()))
            run_blocks(block, 1);
    running.now++;
}

} // namespace

void Launch::run(void (*thread)(const void *call), const void *call, size_t bytes) {
    if (!is_possible(*this)) {
        noted(cudaErrorInvalidConfiguration);
        return;
    }
    if (together && volume(grid) > MULTIPROCESSORS) {
        noted(cudaErrorCooperativeLaunchTooLarge);
        return;
    }
    Reach reach;
    kernel = {this, thread, call};
    running.call = static_cast<const char *>(call);
    running.call_end = running.call + bytes;
    run_grid();
    kernel = {};
}

cudaError_t noted(cudaError_t error) {
    return last_error = error;
}

void wait_for_block(Place place) {
    if (!running.in_kernel)
        fail(nullptr, "%s:%d: the host calls __syncthreads", place.file, place.line);
    pause(AT_BLOCK, place);
}

namespace {

void exchange(uint64_t mask, int lane, const void *given, void *taken, size_t bytes, Place place) {
    current->mask = mask;
    current->lane = lane;
    current->value = taken;
    current->bytes = bytes;
    current->given.assign(static_cast<const char *>(given), bytes);
    pause(AT_WARP, place);
}

} // namespace

void give_way() {
    if (running.in_kernel)
        pause(READY, {});
}

void shuffle(uint64_t mask, int lane, void *value, size_t bytes, Place place) {
    if ((mask >> own_lane() & 1) == 0)
        fail(nullptr, "%s:%d: a shuffle by a lane that is not in its mask", place.file, place.line);
    exchange(mask, lane, value, value, bytes, place);
}

void gather(const void *value, size_t bytes, void *of_all, Place place) {
    exchange(~uint64_t{0}, ALL, value, of_all, bytes, place);
}

int own_lane() {
    return static_cast<int>(current->number % block_threads % warp);
}

void print_thread() {
    if (kernel.launch == nullptr)
        return;
    std::fprintf(stderr, "%s (%s:%d), block (%u, %u, %u)", kernel.launch->name,
                 kernel.launch->place.file, kernel.launch->place.line, blockIdx.x, blockIdx.y,
                 blockIdx.z);
    if (current != nullptr)
        std::fprintf(stderr, ", thread %u", current->number % block_threads);
    std::fputs(": ", stderr);
}

} // namespace cuda_on_cpu

using namespace cuda_on_cpu;

extern "C" {

cudaError_t cudaGetLastError(void) {
    const cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

cudaError_t cudaDeviceSynchronize(void) {
    return last_error;
}

// ---- Streams and events: what they order is in the order of the calls.

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
    *least = *greatest = 0;
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned, int) {
    static char one;
    *stream = reinterpret_cast<cudaStream_t>(&one);
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t) {
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t) {
    return last_error;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) {
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned) {
    static char one;
    *event = reinterpret_cast<cudaEvent_t>(&one);
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t) {
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) {
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t) {
    return last_error;
}

const char *cudaGetErrorString(cudaError_t error) {
    switch (error) {
    case cudaSuccess:
        return "no error";
    case cudaErrorInvalidValue:
        return "invalid argument";
    case cudaErrorMemoryAllocation:
        return "out of memory";
    case cudaErrorInvalidConfiguration:
        return "invalid configuration argument";
    case cudaErrorInvalidDevice:
        return "invalid device ordinal";
    case cudaErrorPeerAccessAlreadyEnabled:
        return "peer access is already enabled";
    case cudaErrorCooperativeLaunchTooLarge:
        return "too many blocks in cooperative launch";
    }
    return "unknown error";
}

cudaError_t cudaFuncSetAttribute(const void *, cudaFuncAttribute attribute, int value) {
    if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize) {
        if (value < 0 || static_cast<size_t>(value) > MOST_SHARED_BYTES)
            return noted(cudaErrorInvalidValue);
        // Of all kernels: a launch knows its kernel by name only.
        shared_bytes_asked_for = std::max(shared_bytes_asked_for, static_cast<size_t>(value));
    }
    return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *, int number,
                                                          size_t shared_bytes) {
    *blocks = number <= MOST_THREADS && shared_bytes <= shared_bytes_asked_for ? 1 : 0;
    return cudaSuccess;
}
}
