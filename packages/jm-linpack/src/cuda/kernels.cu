// The steps of a panel that are no matrix product. SPDX-License-Identifier: Apache-2.0 OR MIT
//
// A leaf's rows lie in the registers of as many blocks as it takes, all of which run at once. For
// each column every block sends its candidate for the pivot and the row of it to all others and
// takes the best one's: that takes one way through the L2 cache, where kernels or barriers of the
// whole grid would take several. Each word of such mail has the data and a tag, of which no other
// column's is the same, so that nothing else need be ordered; there are two boxes by turns, for a
// block sends the next mail only after it has all of the last.
#include "kernels.h"

#include "../element.h"

namespace {

using Word = uint64_t; // of mail: its tag and half a number

constexpr int WARP = 32, MOST_WARPS = 16, MOST_THREADS = MOST_WARPS * WARP;
constexpr unsigned ALL = 0xffffffff;
constexpr int REGISTERS = 32; // numbers of a leaf that a thread holds

__global__ void fill(double *a, size_t n, size_t stride, uint64_t seed) {
    for (size_t i = threadIdx.x; i < n; i += blockDim.x)
        a[blockIdx.x * stride + i] = linpack_element(seed, n, i, blockIdx.x);
}

// ---- Elections

__device__ unsigned largest_of_warp(unsigned value) {
#if __CUDA_ARCH__ >= 800
    return __reduce_max_sync(ALL, value);
#else
    for (int offset = WARP / 2; offset > 0; offset /= 2) {
        const unsigned other = __shfl_xor_sync(ALL, value, offset);
        value = other > value ? other : value;
    }
    return value;
#endif
}

// The first lane of the warp that has the largest key; nearly always the upper half tells.
__device__ unsigned elect(uint64_t key) {
    const auto high = static_cast<unsigned>(key >> 32), low = static_cast<unsigned>(key);
    bool mine = high == largest_of_warp(high);
    unsigned elected = __ballot_sync(ALL, mine);
    if ((elected & (elected - 1)) != 0) {
        const unsigned most_low = largest_of_warp(mine ? low : 0);
        elected = __ballot_sync(ALL, mine && low == most_low);
    }
    return static_cast<unsigned>(__ffs(static_cast<int>(elected))) - 1;
}

// A key that is the larger the larger the number is, and never 0.
__device__ uint64_t key_of(double value) {
    return static_cast<uint64_t>(__double_as_longlong(fabs(value))) + 1;
}

// ---- Mail

// Where a block's mail of one box lies: first all blocks' keys, of two words; then their rows.
struct Box {
    volatile Word *first;
    unsigned blocks, words_of_row;
    __device__ volatile Word *key(unsigned block) const {
        return first + block;
    }
    __device__ volatile Word *row(unsigned block) const {
        return first + 2 * blocks + block * words_of_row;
    }
};

// Of a block's row: its numbers, its place and the reciprocal of the first number.
constexpr __host__ __device__ unsigned row_words(int width) {
    return 2 * width + 3;
}

// Of a block.
constexpr __host__ __device__ unsigned mail_words(int width) {
    return 2 + row_words(width);
}

__device__ void send(volatile Word *to, unsigned data, unsigned tag) {
    *to = static_cast<Word>(tag) << 32 | data;
}

__device__ void send_double(volatile Word *to, double value, unsigned tag) {
    const auto bits = static_cast<uint64_t>(__double_as_longlong(value));
    send(to, static_cast<unsigned>(bits >> 32), tag);
    send(to + 1, static_cast<unsigned>(bits), tag);
}

// Waits until all words have come.
template <int N>
__device__ void receive(volatile Word *const (&from)[N], unsigned tag, unsigned (&data)[N]) {
    for (bool here = false; !here;) {
        Word got[N];
        here = true;
        for (int i = 0; i < N; i++)
            got[i] = *from[i];
        for (int i = 0; i < N; i++) {
            here = here && got[i] >> 32 == tag;
            data[i] = static_cast<unsigned>(got[i]);
        }
    }
}

__device__ uint64_t joined(unsigned high, unsigned low) {
    return static_cast<uint64_t>(high) << 32 | low;
}

__device__ double to_double(unsigned high, unsigned low) {
    return __longlong_as_double(static_cast<long long>(joined(high, low)));
}

// A block with the largest key; by one warp.
template <int AT_ONCE> __device__ unsigned best_block(const Box &box, unsigned tag) {
    const unsigned lane = threadIdx.x % WARP;
    uint64_t best = 0;
    unsigned block = 0;
    for (unsigned first = lane; first < box.blocks; first += AT_ONCE * WARP) {
        volatile Word *from[2 * AT_ONCE];
        unsigned data[2 * AT_ONCE];
        for (int i = 0; i < AT_ONCE; i++) {
            const unsigned one = first + i * WARP;
            from[2 * i] = box.key(one < box.blocks ? one : lane);
            from[2 * i + 1] = from[2 * i] + box.blocks;
        }
        receive(from, tag, data);
        for (int i = 0; i < AT_ONCE; i++) {
            const uint64_t key = joined(data[2 * i], data[2 * i + 1]);
            if (key > best) {
                best = key;
                block = first + i * WARP;
            }
        }
    }
    return __shfl_sync(ALL, block, static_cast<int>(elect(best)));
}

// ---- A leaf

// What the block's threads share. `place` is where a row would lie if rows were exchanged at once.
template <int W> struct Shared {
    double row[MOST_WARPS][W]; // each warp's candidate
    uint64_t key[MOST_WARPS];
    int place[MOST_WARPS];
    double pivot_row[W], reciprocal;
    int pivot_place;
};

// By the first warp: the block's candidate to all others, and the best one's row from them, of
// which `left` columns are not yet factored.
template <int W>
__device__ void exchange_candidates(Shared<W> &shared, const Box &box, unsigned tag, int left) {
    const unsigned lane = threadIdx.x, warps = blockDim.x / WARP, column = lane % W;
    const unsigned own = elect(lane < warps ? shared.key[lane] : 0);
    volatile Word *const to = box.row(blockIdx.x);
    if (lane < 2)
        send(box.key(blockIdx.x) + lane * box.blocks,
             static_cast<unsigned>(shared.key[own] >> (lane == 0 ? 32 : 0)), tag);
    if (lane < W)
        send_double(to + 2 * lane, shared.row[own][lane], tag);
    if (lane == 0) {
        send(to + 2 * W, static_cast<unsigned>(shared.place[own]), tag);
        send_double(to + 2 * W + 1, 1 / shared.row[own][0], tag); // while the keys are on their way
    }
    volatile Word *const row =
        box.row(box.blocks <= WARP ? best_block<1>(box, tag) : best_block<4>(box, tag));
    volatile Word *const from[] = {row + 2 * column, row + 2 * column + 1, row + 2 * W,
                                   row + 2 * W + 1, row + 2 * W + 2};
    unsigned data[5];
    receive(from, tag, data);
    if (lane < W)
        shared.pivot_row[lane] = static_cast<int>(lane) < left ? to_double(data[0], data[1]) : 0;
    if (lane == 0) {
        shared.pivot_place = static_cast<int>(data[2]);
        shared.reciprocal = to_double(data[3], data[4]);
    }
}

// The rows' numbers turn in their registers: v[0] is the column that is factored, and behind the
// others come those that are.
template <int W, int R>
__global__ void __launch_bounds__(MOST_THREADS)
    leaf(double *a, size_t n, size_t stride, size_t d, int width, Word *mail, unsigned first_tag,
         int *moves) {
    __shared__ Shared<W> shared;
    const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const size_t first_row = d + static_cast<size_t>(blockIdx.x) * R * blockDim.x + threadIdx.x;
    double v[R][W];
    int place[R];
#pragma unroll
    for (int r = 0; r < R; r++) {
        const size_t row = first_row + r * blockDim.x;
        place[r] = row < n ? static_cast<int>(row) : -1;
#pragma unroll
        for (int c = 0; c < W; c++)
            v[r][c] = row < n && c < width ? a[(d + c) * stride + row] : 0;
    }
    for (int j = 0; j < width; j++) {
        const unsigned tag = first_tag + j;
        const int top = static_cast<int>(d) + j; // a row whose place is above it has been a pivot
        uint64_t key = 0;
        int best = 0;
#pragma unroll
        for (int r = 0; r < R; r++)
            if (place[r] >= top && key_of(v[r][0]) > key) {
                key = key_of(v[r][0]);
                best = r;
            }
        if (elect(key) == lane) {
            shared.key[warp] = key;
#pragma unroll
            for (int r = 0; r < R; r++)
                if (r == best) {
                    shared.place[warp] = place[r];
#pragma unroll
                    for (int c = 0; c < W; c++)
                        shared.row[warp][c] = v[r][c];
                }
        }
        __syncthreads();
        if (warp == 0) {
            const Box box = {mail + tag % 2 * gridDim.x * mail_words(W), gridDim.x, row_words(W)};
            exchange_candidates(shared, box, tag, width - j);
        }
        __syncthreads();
        const int pivot = shared.pivot_place;
#pragma unroll
        for (int r = 0; r < R; r++) {
            place[r] = place[r] == pivot ? top : place[r] == top ? pivot : place[r];
            const bool below = place[r] > top;
            const double first = v[r][0], factor = below ? first * shared.reciprocal : 0;
#pragma unroll
            for (int c = 1; c < W; c++)
                v[r][c - 1] = v[r][c] - factor * shared.pivot_row[c];
            v[r][W - 1] = below ? factor : first;
        }
    }
#pragma unroll
    for (int r = 0; r < R; r++) {
        const size_t row = first_row + r * blockDim.x;
        if (row >= n)
            continue;
#pragma unroll
        for (int c = 0; c < W; c++)
            if (c >= W - width)
                a[(d + c - (W - width)) * stride + row] = v[r][c];
        // Which row comes to each place of the top, and where those of the top go else.
        const size_t target = place[r] - d;
        if (target < width)
            moves[target] = static_cast<int>(row);
        if (row - d < width)
            moves[W + row - d] = target < width ? -1 : place[r];
    }
}

// ---- Exchanges

// Of the rows of a column from row d on, as `width` columns' leaves say: the pivots' rows go to
// `top`, others into the column. A thread for each move of a leaf.
template <typename T, int COLUMNS>
__device__ void exchange_columns(T *column, size_t stride, T *top, size_t top_stride,
                                 size_t columns, int d, int width, const int *moves, int leaf) {
    const int own = threadIdx.x % (2 * leaf), i = own % leaf;
    const bool to_top = own < leaf;
    for (int done = 0; done < width; done += leaf, moves += 2 * leaf) {
        const int here = done + i, there = here < width ? moves[own] : -1;
        const bool moving = there >= 0 && threadIdx.x < 2 * leaf;
        T kept[COLUMNS];
#pragma unroll
        for (int c = 0; c < COLUMNS; c++)
            if (moving && c < columns)
                kept[c] = column[c * stride + (to_top ? there : d + here)];
        __syncthreads();
#pragma unroll
        for (int c = 0; c < COLUMNS; c++)
            if (moving && c < columns)
                *(to_top ? top + c * top_stride + here : column + c * stride + there) = kept[c];
        __syncthreads();
    }
}

constexpr int EXCHANGE_COLUMNS = 8; // of a block

__global__ void exchange(double *a, size_t stride, double *top, size_t top_stride, int d, int width,
                         const int *moves, size_t first, size_t last) {
    const size_t column = first + static_cast<size_t>(blockIdx.x) * EXCHANGE_COLUMNS;
    exchange_columns<double, EXCHANGE_COLUMNS>(a + column * stride, stride,
                                               top + column * top_stride, top_stride, last - column,
                                               d, width, moves, static_cast<int>(blockDim.x / 2));
}

// By one block: the moves of the leaves of `width` columns as those of one leaf of so many; `row`
// is a column of n rows to do them with.
__global__ void compose(int *row, int n, int d, int width, const int *moves, int leaf,
                        int *composed) {
    const int thread = threadIdx.x, threads = blockDim.x;
    for (int i = d + thread; i < n; i += threads)
        row[i] = i;
    __syncthreads();
    exchange_columns<int, 1>(row, 0, row + d, 0, 1, d, width, moves, leaf);
    for (int i = thread; i < width; i += threads) {
        composed[i] = row[d + i];
        composed[width + i] = -1;
    }
    __syncthreads();
    // Only rows of the top go further down.
    for (int i = thread; i < width; i += threads) {
        const int place = moves[i / leaf * 2 * leaf + leaf + i % leaf];
        if (place >= d + width)
            atomicMax(&composed[width + row[place] - d], place);
    }
}

// ---- Triangles

constexpr int SOLVE_WARPS = 8;

// X of L X = B in B's place, a warp for a column, whose rows its threads hold by turns.
template <int PARTS>
__global__ void __launch_bounds__(SOLVE_WARPS *WARP)
    solve(int m, size_t n, const double *__restrict__ l, size_t l_stride, double *b,
          size_t stride) {
    constexpr int AHEAD = PARTS > 4 ? 4 : 8; // columns of L that are loaded before they are needed
    const int lane = threadIdx.x % WARP;
    const size_t column = static_cast<size_t>(blockIdx.x) * SOLVE_WARPS + threadIdx.x / WARP;
    if (column >= n)
        return;
    b += column * stride;
    double x[PARTS];
#pragma unroll
    for (int i = 0; i < PARTS; i++)
        x[i] = i * WARP + lane < m ? b[i * WARP + lane] : 0;
#pragma unroll
    for (int part = 0; part < PARTS; part++)
        for (int first = 0; first < WARP; first += AHEAD) {
            double value[AHEAD][PARTS];
#pragma unroll
            for (int k = 0; k < AHEAD; k++)
#pragma unroll
                for (int i = part; i < PARTS; i++) {
                    const int pivot = part * WARP + first + k, row = i * WARP + lane;
                    value[k][i] = row > pivot && row < m ? l[pivot * l_stride + row] : 0;
                }
#pragma unroll
            for (int k = 0; k < AHEAD; k++) {
                const double factor = __shfl_sync(ALL, x[part], first + k);
#pragma unroll
                for (int i = part; i < PARTS; i++)
                    x[i] -= factor * value[k][i];
            }
        }
#pragma unroll
    for (int i = 0; i < PARTS; i++)
        if (i * WARP + lane < m)
            b[i * WARP + lane] = x[i];
}

__global__ void unit(double *x, size_t m) {
    for (size_t i = threadIdx.x; i < m; i += blockDim.x)
        x[blockIdx.x * m + i] = i == blockIdx.x ? 1 : 0;
}

unsigned blocks_for(size_t all, size_t each) {
    return static_cast<unsigned>((all + each - 1) / each);
}

using Leaf = void (*)(double *, size_t, size_t, size_t, int, Word *, unsigned, int *);

// For leaves of so many columns.
Leaf leaf_of(unsigned width) {
    switch (width) {
    case 32:
        return leaf<32, REGISTERS / 32>;
    case 16:
        return leaf<16, REGISTERS / 16>;
    default:
        return leaf<8, REGISTERS / 8>;
    }
}

// That factor a leaf from the row d on.
unsigned blocks_of(const linpack_gpu &gpu, size_t d) {
    return blocks_for(gpu.n - d, gpu.threads * (REGISTERS / gpu.leaf));
}

} // namespace

bool linpack_gpu_choose(linpack_gpu *gpu, int device) {
    // The later ones need fewer blocks, but more leaves.
    static const struct {
        unsigned leaf, threads;
    } shapes[] = {
        {32, MOST_THREADS / 2}, {32, MOST_THREADS}, {16, MOST_THREADS}, {8, MOST_THREADS}};
    cudaDeviceProp properties;
    if (cudaGetDeviceProperties(&properties, device) != cudaSuccess)
        return false;
    const auto processors = static_cast<unsigned>(properties.multiProcessorCount);
    for (const auto &shape : shapes) {
        gpu->leaf = shape.leaf;
        gpu->threads = shape.threads;
        // Each waits for all others, and the rest of the device multiplies meanwhile.
        if (blocks_of(*gpu, 0) <= processors / 3)
            return true;
    }
    return blocks_of(*gpu, 0) <= processors;
}

size_t linpack_gpu_mail_bytes(const linpack_gpu *gpu) {
    return 2 * blocks_of(*gpu, 0) * mail_words(static_cast<int>(gpu->leaf)) * sizeof(Word);
}

cudaError_t linpack_gpu_fill(double *a, size_t n, size_t stride, size_t columns, uint64_t seed,
                             cudaStream_t stream) {
    fill<<<static_cast<unsigned>(columns), 256, 0, stream>>>(a, n, stride, seed);
    return cudaGetLastError();
}

cudaError_t linpack_gpu_leaf(linpack_gpu *gpu, size_t d, size_t width, int *moves,
                             cudaStream_t stream) {
    int columns = static_cast<int>(width);
    unsigned tag = gpu->tag + 1;
    gpu->tag += static_cast<unsigned>(width);
    void *arguments[] = {&gpu->a, &gpu->n, &gpu->stride, &d, &columns, &gpu->mail, &tag, &moves};
    return cudaLaunchCooperativeKernel(leaf_of(gpu->leaf), blocks_of(*gpu, d), gpu->threads,
                                       arguments, 0, stream);
}

cudaError_t linpack_gpu_exchange(const linpack_gpu *gpu, size_t d, size_t width, const int *moves,
                                 size_t leaf, size_t first, size_t last, double *top,
                                 size_t top_stride, cudaStream_t stream) {
    exchange<<<blocks_for(last - first, EXCHANGE_COLUMNS), static_cast<unsigned>(2 * leaf), 0,
               stream>>>(gpu->a, gpu->stride, top, top_stride, static_cast<int>(d),
                         static_cast<int>(width), moves, first, last);
    return cudaGetLastError();
}

cudaError_t linpack_gpu_compose(const linpack_gpu *gpu, size_t d, size_t width, const int *moves,
                                int *row, int *composed, cudaStream_t stream) {
    compose<<<1, 1024, 0, stream>>>(row, static_cast<int>(gpu->n), static_cast<int>(d),
                                    static_cast<int>(width), moves, static_cast<int>(gpu->leaf),
                                    composed);
    return cudaGetLastError();
}

cudaError_t linpack_gpu_unit(double *x, size_t m, cudaStream_t stream) {
    unit<<<static_cast<unsigned>(m), 256, 0, stream>>>(x, m);
    return cudaGetLastError();
}

cudaError_t linpack_gpu_solve(size_t m, size_t n, const double *l, size_t l_stride, double *b,
                              size_t stride, cudaStream_t stream) {
    const auto kernel = m <= 32 ? solve<1> : m <= 64 ? solve<2> : m <= 128 ? solve<4> : solve<8>;
    kernel<<<blocks_for(n, SOLVE_WARPS), SOLVE_WARPS * WARP, 0, stream>>>(static_cast<int>(m), n, l,
                                                                          l_stride, b, stride);
    return cudaGetLastError();
}
