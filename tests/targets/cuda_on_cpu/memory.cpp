// The devices' memory: who may use what, and what each thread's accesses mean for the others.
// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Kernels are compiled with -fsanitize=thread, which calls __tsan_read8 and the like before each
// access; those functions are ours, so that we see each one. Four bytes of memory are a cell.
#include "emulation.h"

#include "cuda_pipeline.h"
#include "cuda_runtime.h"

#include <cstdarg>
#include <cstdio>
#include <deque>
#include <dlfcn.h>
#include <iterator>
#include <map>
#include <new>
#include <set>
#include <signal.h>
#include <string>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include <vector>

namespace cuda_on_cpu {

Running running;

namespace {

constexpr size_t CELL = 4, DEVICE_BYTES = size_t{8} << 30, SHARED_SPAN = 1 << 20; // a block's
constexpr size_t GAP = 1 << 16;         // between allocations: at least
constexpr int FAILED = 86;              // exit status
constexpr uint32_t NOBODY = 0, NEW = 1; // a cell's `written`: not allocated; allocated
constexpr uint16_t SEVERAL = 0x7fff, ATOMIC = 0x8000; // a cell's threads

// When the cell was last written and read, and by whom; when last read by a block before the last
// reader's.
struct Cell {
    uint32_t written, read, read_before;
    uint16_t writer, reader;
};

enum Access { READS, WRITES, UPDATES }; // the last is atomic, or volatile

template <typename T> T *reserve(size_t bytes, int protection) {
    void *memory =
        mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        fail(nullptr, "no address space of %zu bytes", bytes);
    madvise(memory, bytes, MADV_HUGEPAGE); // protecting small ones would take most of the time
    return static_cast<T *>(memory);
}

// Memory with cells.
class Region {
  public:
    Region(size_t size, int protection)
        : base(reserve<char>(size, protection)), bytes(size),
          cells(reserve<Cell>(size / CELL * sizeof(Cell), PROT_READ | PROT_WRITE)) {
    }
    bool has(const void *address) const {
        return static_cast<size_t>(static_cast<const char *>(address) - base) < bytes;
    }
    Cell *cell(const void *address) const {
        return cells + (static_cast<const char *>(address) - base) / CELL;
    }
    void mark(const void *from, size_t size, uint32_t written) const {
        Cell *end = cell(static_cast<const char *>(from) + size + CELL - 1);
        for (Cell *one = cell(from); one < end; one++)
            *one = {written, 0, 0, 0, 0};
    }
    char *const base;
    const size_t bytes;

  private:
    Cell *const cells;
};

struct Device : Region {
    Device() : Region(DEVICE_BYTES, PROT_NONE), next(base + GAP) {
    }
    std::map<const char *, size_t> allocations; // and their bytes
    char *next;                                 // addresses are never given twice
    bool reaches[DEVICES] = {};                 // which peers' memory
};

std::map<const char *, size_t> pinned; // memory of the host that all devices reach, and its bytes

bool is_pinned(const char *address) {
    auto next = pinned.upper_bound(address);
    return next != pinned.begin() && address < std::prev(next)->first + std::prev(next)->second;
}

Device *const devices = new Device[DEVICES];
Region *const shared_region = new Region(MULTIPROCESSORS * SHARED_SPAN, PROT_READ | PROT_WRITE);

int device_of(const void *address) {
    for (int i = 0; i < DEVICES; i++)
        if (devices[i].has(address))
            return i;
    return -1;
}

// ---- What a kernel's thread does

const char *const verbs[] = {"reads", "writes", "updates"};

bool of_another_block(uint32_t time) {
    return time < running.block_time || time > running.now;
}

// Whether an access is in no order with one of now: another block's of this launch, or another
// thread's since the last barrier.
bool unordered(uint32_t time, unsigned thread) {
    if (time < running.launch_time)
        return false;
    return of_another_block(time) || (time == running.now && thread != running.thread);
}

std::string other(uint32_t time, unsigned thread) {
    if (of_another_block(time))
        return "another block";
    return thread == SEVERAL ? "several threads" : "thread " + std::to_string(thread);
}

void check_race(const Cell &cell, Access access, const void *address, const void *code) {
    const unsigned writer = cell.writer & ~ATOMIC;
    const bool both_atomic = access == UPDATES && (cell.writer & ATOMIC) != 0;
    if (!both_atomic && unordered(cell.written, writer))
        fail(code, "%s %p, which %s wrote, with no barrier between", verbs[access], address,
             other(cell.written, writer).c_str());
    if (access == READS)
        return;
    if (unordered(cell.read, cell.reader))
        fail(code, "%s %p, which %s read, with no barrier between", verbs[access], address,
             other(cell.read, cell.reader).c_str());
    if (cell.read_before >= running.launch_time)
        fail(code, "%s %p, which another block read", verbs[access], address);
}

void note_read(Cell &cell) {
    const auto thread = static_cast<uint16_t>(running.thread);
    if (of_another_block(cell.read))
        cell.read_before = cell.read;
    cell.reader = cell.read == running.now && cell.reader != thread ? SEVERAL : thread;
    cell.read = running.now;
}

void note(Cell &cell, Access access, const void *address, const void *code) {
    if (cell.written == NOBODY)
        fail(code, "%s %p, which is in no allocation", verbs[access], address);
    if (cell.written == NEW && access != WRITES)
        fail(code, "%s %p, to which nothing was written before", verbs[access], address);
    check_race(cell, access, address, code);
    if (access == READS) {
        note_read(cell);
    } else {
        cell.written = running.now;
        cell.writer = static_cast<uint16_t>(running.thread | (access == UPDATES ? ATOMIC : 0));
    }
}

// nullptr: pinned memory, which anyone may use.
const Region *region_for(const void *address, Access access, const void *code) {
    const Device &own = devices[running.device];
    if (own.has(address))
        return &own;
    if (shared_region->has(address))
        return shared_region;
    if (is_pinned(static_cast<const char *>(address)))
        return nullptr;
    const int peer = device_of(address);
    if (peer < 0)
        fail(code, "%s %p, which is the host's", verbs[access], address);
    if (!own.reaches[peer])
        fail(code, "%s %p, which is device %d's: no peer access", verbs[access], address, peer);
    return &devices[peer];
}

void access(const void *address, size_t bytes, Access access, const void *code) {
    const char *from = static_cast<const char *>(address);
    if (!running.in_kernel || (from >= running.stack && from < running.stack_end) ||
        (from >= running.call && from < running.call_end && access == READS))
        return;
    const Region *region = region_for(address, access, code);
    if (region == nullptr)
        return;
    Cell *end = region->cell(from + bytes + CELL - 1);
    for (Cell *cell = region->cell(from); cell < end; cell++)
        note(*cell, access, address, code);
}

// ---- A block's shared memory

struct Shared {
    const void *site; // of the declaration; nullptr: of dynamic shared memory
    char *memory;
    size_t bytes;
};
// Of each block that runs, in the order of their memory, the dynamic first.
std::vector<Shared> shared_arrays[MULTIPROCESSORS];

// Behind the last array and a gap.
void *add_shared(const void *site, size_t bytes) {
    Region &region = (*shared_region);
    char *memory = region.base + running.block * SHARED_SPAN;
    std::vector<Shared> &arrays = shared_arrays[running.block];
    if (!arrays.empty())
        memory = arrays.back().memory + (arrays.back().bytes / 256 + 2) * 256;
    region.mark(memory, bytes, NEW);
    arrays.push_back({site, memory, bytes});
    return memory;
}

// ---- Asynchronous copies into it

struct Copy {
    char *to;
    const char *from;
    size_t bytes;
};
using Group = std::vector<Copy>;

// Of each thread that runs, by its stack; the last group is open.
std::map<const char *, std::deque<Group>> copies;

std::deque<Group> &own_copies() {
    std::deque<Group> &groups = copies[running.stack];
    if (groups.empty())
        groups.emplace_back();
    return groups;
}

} // namespace

size_t shared_bytes_asked_for = SHARED_BYTES;

void clear_shared_memory(size_t dynamic_bytes) {
    copies.clear();
    std::vector<Shared> &arrays = shared_arrays[running.block];
    for (const Shared &array : arrays)
        shared_region->mark(array.memory, array.bytes, NOBODY);
    arrays.clear();
    add_shared(nullptr, dynamic_bytes);
}

void *dynamic_shared_memory() {
    return shared_region->base + running.block * SHARED_SPAN;
}

void *shared_memory(const void *site, size_t bytes, const char *name) {
    size_t sum = bytes;
    for (const Shared &array : shared_arrays[running.block]) {
        if (array.site == site)
            return array.memory;
        sum += array.site == nullptr ? 0 : array.bytes;
    }
    if (sum > SHARED_BYTES)
        fail(__builtin_return_address(0), "__shared__ %s: more than %zu bytes", name, SHARED_BYTES);
    return add_shared(site, bytes);
}

void note_atomic(void *address, size_t bytes) {
    access(address, bytes, UPDATES, __builtin_return_address(0));
}

// ---- What the host does

namespace {
int reaching;

void protect(int protection) {
    for (int i = 0; i < DEVICES; i++)
        mprotect(devices[i].base, DEVICE_BYTES, protection);
}
} // namespace

Reach::Reach() {
    if (reaching++ == 0)
        protect(PROT_READ | PROT_WRITE);
}

Reach::~Reach() {
    if (--reaching == 0)
        protect(PROT_NONE);
}

namespace {

// The device whose allocation has all these bytes; -1: the host's; another is an error.
int owner(const void *memory, size_t bytes, const char *what) {
    const int device = device_of(memory);
    if (device < 0)
        return device;
    const auto &allocations = devices[device].allocations;
    const char *from = static_cast<const char *>(memory);
    auto next = allocations.upper_bound(from);
    if (next == allocations.begin())
        fail(nullptr, "%s: %p is in no allocation", what, memory);
    const auto &[base, size] = *--next;
    if (from + bytes > base + size)
        fail(nullptr, "%s: %zu bytes at %p, of an allocation of %zu bytes at %p", what, bytes,
             memory, size, static_cast<const void *>(base));
    return device;
}

void written(const void *memory, size_t bytes) {
    const int device = device_of(memory);
    if (device >= 0)
        devices[device].mark(memory, bytes, running.now);
}

} // namespace

void library_reads(const void *memory, size_t bytes, const char *what) {
    if (owner(memory, bytes, what) != running.device)
        fail(nullptr, "%s: %p is not the current device's", what, memory);
}

void library_writes(void *memory, size_t bytes, const char *what) {
    library_reads(memory, bytes, what);
    written(memory, bytes);
}

namespace {

// `code`'s file and line, by the tool of the compiler's.
void print_place(const void *code) {
    Dl_info object;
    if (code == nullptr || dladdr(code, &object) == 0)
        return;
    const char *address = static_cast<const char *>(code) - 1; // in the call, not behind it
    char command[512];
    std::snprintf(command, sizeof command, "addr2line -se '%s' %#tx >&2", object.dli_fname,
                  address - static_cast<const char *>(object.dli_fbase));
    if (std::system(command) != 0)
        std::fprintf(stderr, "at %p of %s\n", code, object.dli_fname);
}

// Who touches what is protected: the host, or a thread whose stack is full.
void on_fault(int signal_number, siginfo_t *info, void *context) {
#if defined(__x86_64__)
    const auto code = static_cast<ucontext_t *>(context)->uc_mcontext.gregs[REG_RIP] + 1;
#elif defined(__aarch64__)
    const auto code = static_cast<ucontext_t *>(context)->uc_mcontext.pc + 1;
#endif
    const bool of_kernel = running.in_kernel;
    running.in_kernel = false;
    if (device_of(info->si_addr) >= 0)
        fail(reinterpret_cast<const void *>(code), "the host's code touches %p of a device",
             info->si_addr);
    running.in_kernel = of_kernel;
    if (of_kernel)
        fail(reinterpret_cast<const void *>(code), "touches %p: is the stack full?", info->si_addr);
    signal(signal_number, SIG_DFL);
}

// Before main: what this is; the handler of faults, on a stack of its own.
const bool watching = [] {
    std::fputs("cuda-on-cpu: no GPU: kernels run on this CPU, to find errors; times mean nothing\n",
               stderr);
    static char stack[1 << 16];
    stack_t other_stack = {};
    other_stack.ss_sp = stack;
    other_stack.ss_size = sizeof stack;
    sigaltstack(&other_stack, nullptr);
    struct sigaction action = {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &action, nullptr);
    running.now = NEW + 1;
    return true;
}();

} // namespace

void fail(const void *code, const char *format, ...) {
    std::fflush(stdout);
    std::fputs("cuda-on-cpu: ", stderr);
    print_thread();
    va_list arguments;
    va_start(arguments, format);
    std::vfprintf(stderr, format, arguments);
    va_end(arguments);
    std::fputc('\n', stderr);
    print_place(code);
    _exit(FAILED);
}

} // namespace cuda_on_cpu

using namespace cuda_on_cpu;

// ---- Asynchronous copies

void __pipeline_memcpy_async(void *to, const void *from, size_t bytes) {
    const void *code = __builtin_return_address(0);
    if (bytes != 4 && bytes != 8 && bytes != 16)
        fail(code, "an asynchronous copy of %zu bytes", bytes);
    if (reinterpret_cast<uintptr_t>(to) % bytes != 0 ||
        reinterpret_cast<uintptr_t>(from) % bytes != 0)
        fail(code, "an asynchronous copy of %zu bytes from %p to %p: not aligned", bytes, from, to);
    if (!shared_region->has(to) || device_of(from) < 0)
        fail(code,
             "an asynchronous copy to %p, which is not the block's, or from %p, which is no "
             "device's",
             to, from);
    access(from, bytes, READS, code);
    access(to, bytes, WRITES, code);
    shared_region->mark(to, bytes, NEW);
    own_copies().back().push_back(
        {static_cast<char *>(to), static_cast<const char *>(from), bytes});
}

void __pipeline_commit() {
    own_copies().emplace_back();
}

void __pipeline_wait_prior(size_t prior) {
    std::deque<Group> &groups = own_copies();
    for (; groups.size() > prior + 1; groups.pop_front())
        for (const Copy &copy : groups.front()) {
            access(copy.to, copy.bytes, WRITES, __builtin_return_address(0));
            std::memcpy(copy.to, copy.from, copy.bytes);
        }
}

// ---- CUDA's functions

namespace {
int version(const char *name, int standard) {
    const char *major = std::getenv(name);
    return major == nullptr ? standard : std::atoi(major);
}

int capability() {
    return version("CUDA_ON_CPU_CAPABILITY", 9);
}
} // namespace

extern "C" {

// A device that others have taken, by CUDA_ON_CPU_FULL.
static bool is_full(int device) {
    const char *full = getenv("CUDA_ON_CPU_FULL");
    return full != nullptr && atoi(full) == device;
}

// Bytes that the current device has left: an allocation takes twice its own, and a gap.
static size_t bytes_left() {
    const Device &device = devices[running.device];
    const size_t left = static_cast<size_t>(device.base + device.bytes - device.next);
    return is_full(running.device) || left / 2 < GAP ? 0 : left / 2 - GAP;
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *all) {
    *available = bytes_left();
    *all = DEVICE_BYTES;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **memory, size_t bytes) {
    Device &device = devices[running.device];
    if (bytes == 0) {
        *memory = nullptr;
        return cudaSuccess;
    }
    if (bytes > bytes_left())
        return noted(cudaErrorMemoryAllocation);
    Reach reach;
    *memory = device.next;
    device.allocations[device.next] = bytes;
    device.mark(device.next, bytes, NEW);
    std::memset(device.next, 0xff, bytes); // not zeros: those might look right
    // As much again: an index that is somewhat too large must not meet the next one.
    device.next += (bytes / GAP + 1) * 2 * GAP;
    return cudaSuccess;
}

cudaError_t cudaFree(void *memory) {
    if (memory == nullptr)
        return cudaSuccess;
    const int owner = device_of(memory);
    auto &allocations = devices[owner < 0 ? 0 : owner].allocations;
    auto found = allocations.find(static_cast<char *>(memory));
    if (found == allocations.end())
        fail(nullptr, "cudaFree: %p is no allocation's beginning", memory);
    devices[owner].mark(memory, found->second, NOBODY);
    allocations.erase(found);
    return cudaSuccess;
}

cudaError_t cudaMallocHost(void **memory, size_t bytes) {
    *memory = std::malloc(bytes);
    if (*memory == nullptr)
        return noted(cudaErrorMemoryAllocation);
    pinned[static_cast<char *>(*memory)] = bytes;
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *memory) {
    if (memory != nullptr && pinned.erase(static_cast<char *>(memory)) == 0)
        fail(nullptr, "cudaFreeHost: %p is no allocation's beginning", memory);
    std::free(memory);
    return cudaSuccess;
}

cudaError_t cudaMemset(void *memory, int value, size_t bytes) {
    if (owner(memory, bytes, "cudaMemset") < 0)
        fail(nullptr, "cudaMemset: %p is the host's", memory);
    Reach reach;
    std::memset(memory, value, bytes);
    written(memory, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
    if (bytes == 0)
        return cudaSuccess;
    const bool to_device = owner(to, bytes, "cudaMemcpy's target") >= 0;
    const bool from_device = owner(from, bytes, "cudaMemcpy's source") >= 0;
    if (kind != cudaMemcpyDefault && kind != (from_device ? 2 : 0) + (to_device ? 1 : 0))
        fail(nullptr, "cudaMemcpy from the %s to the %s, but its kind is %d",
             from_device ? "device" : "host", to_device ? "device" : "host", kind);
    Reach reach;
    std::memcpy(to, from, bytes);
    written(to, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t) {
    return cudaMemcpy(to, from, bytes, kind);
}

cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                         size_t width, size_t height, cudaMemcpyKind kind) {
    if (width > to_pitch || width > from_pitch)
        return noted(cudaErrorInvalidValue);
    Reach reach;
    for (size_t row = 0; row < height; row++)
        cudaMemcpy(static_cast<char *>(to) + row * to_pitch,
                   static_cast<const char *>(from) + row * from_pitch, width, kind);
    return cudaSuccess;
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device,
                                size_t bytes, cudaStream_t) {
    if (device_of(to) != to_device || device_of(from) != from_device)
        fail(nullptr, "cudaMemcpyPeerAsync: %p and %p are not those devices'", to, from);
    return cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToDevice);
}

cudaError_t cudaGetDeviceCount(int *count) {
    *count = DEVICES;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device) {
    if (device < 0 || device >= DEVICES)
        return noted(cudaErrorInvalidDevice);
    *properties = {"no GPU: CUDA emulated on a CPU",  DEVICE_BYTES, SHARED_BYTES, MOST_SHARED_BYTES,
                   static_cast<int>(MULTIPROCESSORS), warp,         capability(), 0};
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device) {
    *device = running.device;
    return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *of, const void *) {
    *of = {10 * version("CUDA_ON_CPU_PTX", capability())};
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
    if (device < 0 || device >= DEVICES)
        return noted(cudaErrorInvalidDevice);
    running.device = device;
    return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) {
    *can = device != peer;
    return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
    bool &reaches = devices[running.device].reaches[peer];
    if (reaches)
        return noted(cudaErrorPeerAccessAlreadyEnabled);
    reaches = true;
    return cudaSuccess;
}

// ---- What the compiler's instrumentation calls

#define ON_ACCESS(name, size, access_kind)                                                         \
    void __tsan_##name##size(void *address) {                                                      \
        access(address, size, access_kind, __builtin_return_address(0));                           \
    }
#define ON_ACCESSES(size)                                                                          \
    ON_ACCESS(read, size, READS)                                                                   \
    ON_ACCESS(write, size, WRITES)                                                                 \
    ON_ACCESS(unaligned_read, size, READS)                                                         \
    ON_ACCESS(unaligned_write, size, WRITES)
ON_ACCESSES(1)
ON_ACCESSES(2)
ON_ACCESSES(4)
ON_ACCESSES(8)
ON_ACCESSES(16)

// What a thread reads again and again, others may write at any time.
#define ON_VOLATILE(size)                                                                          \
    ON_ACCESS(volatile_write, size, UPDATES)                                                       \
    void __tsan_volatile_read##size(void *address) {                                               \
        access(address, size, UPDATES, __builtin_return_address(0));                               \
        give_way();                                                                                \
    }
ON_VOLATILE(4)
ON_VOLATILE(8)

void __tsan_read_range(void *address, size_t bytes) {
    access(address, bytes, READS, __builtin_return_address(0));
}

void __tsan_write_range(void *address, size_t bytes) {
    access(address, bytes, WRITES, __builtin_return_address(0));
}

void __tsan_vptr_update(void **, void *) {
}

void __tsan_init() {
}

void __tsan_func_entry(void *) {
}

void __tsan_func_exit() {
}
}
