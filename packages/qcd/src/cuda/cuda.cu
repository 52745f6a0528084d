// CUDA: a thread for each site of a parity, on the first GPU. Fields are arrays over the sites of
// each complex number of a spinor, links likewise, so that neighbouring threads read neighbouring
// numbers. SPDX-License-Identifier: Apache-2.0 OR MIT
#include "bk_cuda.h"
#include "qcd.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

namespace {

constexpr int group = 128;
// At most so many groups of the sums; each adds up its part, the host the groups' sums.
constexpr int sum_groups = 2048;
constexpr int spinor_numbers = QCD_SPINOR / 2, link_numbers = QCD_LINK / 2;

template <typename Real> struct alignas(2 * sizeof(Real)) Complex { Real re, im; };

struct Engine {
    int4 size;
    long sites;        // of a parity
    void *links[2][2]; // [precision][parity]: [direction][forward, backward][number][site]
    double *partial;   // [sum_groups], on the device
};

} // namespace

struct qcd_field {
    qcd_precision precision;
    void *values; // [number][site]
};

namespace {

// An error of the device: no result would be right.
void must(cudaError_t error, const char *what) {
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "qcd: cuda: %s: %s; see `nvidia-smi`\n", what, cudaGetErrorString(error));
    exit(BK_SYSTEM);
}

Engine *engine_of(const qcd_run *run) {
    return static_cast<Engine *>(run->own);
}

// ---- Where sites lie
// ----------------------------------------------------------------------------------

// In 32 bits: no GPU's memory holds as many sites.
__host__ __device__ int4 site_at(int4 size, int parity, unsigned index) {
    unsigned rest = 2 * index;
    int4 c;
    c.x = (int)(rest % (unsigned)size.x), rest /= (unsigned)size.x;
    c.y = (int)(rest % (unsigned)size.y), rest /= (unsigned)size.y;
    c.z = (int)(rest % (unsigned)size.z), rest /= (unsigned)size.z;
    c.w = (int)rest;
    c.x += (c.x + c.y + c.z + c.w + parity) & 1;
    return c;
}

__host__ __device__ unsigned index_at(int4 size, int4 c) {
    return (unsigned)(((c.w * size.z + c.z) * size.y + c.y) * size.x + c.x) / 2;
}

__device__ int after(int c, int size) {
    return c + 1 == size ? 0 : c + 1;
}

__device__ int before(int c, int size) {
    return c == 0 ? size - 1 : c - 1;
}

// ---- D
// ---------------------------------------------------------------------------------------------------

// to += i^power from
template <int power, typename Real>
__device__ __forceinline__ void add_turned(Complex<Real> &to, Complex<Real> from) {
    constexpr int turn = power & 3;
    if constexpr (turn == 0)
        to.re += from.re, to.im += from.im;
    else if constexpr (turn == 1)
        to.re -= from.im, to.im += from.re;
    else if constexpr (turn == 2)
        to.re -= from.re, to.im -= from.im;
    else
        to.re += from.im, to.im -= from.re;
}

// Links are read once: the caches are for spinors, which eight sites read.
__device__ __forceinline__ Complex<float> read_once(const Complex<float> *from) {
    const float2 value = __ldcs(reinterpret_cast<const float2 *>(from));
    return {value.x, value.y};
}

__device__ __forceinline__ Complex<double> read_once(const Complex<double> *from) {
    const double2 value = __ldcs(reinterpret_cast<const double2 *>(from));
    return {value.x, value.y};
}

// out = u h, or u^+ h, for two spins; u is the link's first number.
template <bool adjoint, typename Real>
__device__ __forceinline__ void multiply(Complex<Real> out[2][3], const Complex<Real> *u,
                                         long sites, const Complex<Real> h[2][3]) {
#pragma unroll
    for (int i = 0; i < 6; i++)
        out[i / 3][i % 3] = {0, 0};
#pragma unroll
    for (int number = 0; number < link_numbers; number++) {
        const Complex<Real> a = read_once(u + number * sites);
        const int row = number / 3, column = number % 3;
        const int i = adjoint ? column : row, k = adjoint ? row : column;
        const Real im = adjoint ? -a.im : a.im;
#pragma unroll
        for (int s = 0; s < 2; s++) {
            out[s][i].re += a.re * h[s][k].re; // each product with its sum: one instruction
            out[s][i].im += a.re * h[s][k].im;
            out[s][i].re -= im * h[s][k].im;
            out[s][i].im += im * h[s][k].re;
        }
    }
}

// sum += (1 + sign gamma) u psi; the upper rows of gamma have i^power in columns c0 and c1.
template <int c0, int c1, int power0, int power1, int sign, bool adjoint, typename Real>
__device__ __forceinline__ void hop(Complex<Real> sum[4][3], const Complex<Real> *u,
                                    const Complex<Real> *in, long sites, unsigned next) {
    constexpr int turn = sign > 0 ? 0 : 2;
    Complex<Real> h[2][3], g[2][3];
#pragma unroll
    for (int c = 0; c < 3; c++) {
        h[0][c] = in[c * sites + next];
        h[1][c] = in[(3 + c) * sites + next];
        add_turned<power0 + turn>(h[0][c], in[(3 * c0 + c) * sites + next]);
        add_turned<power1 + turn>(h[1][c], in[(3 * c1 + c) * sites + next]);
    }
    multiply<adjoint>(g, u, sites, h);
#pragma unroll
    for (int c = 0; c < 3; c++) {
        add_turned<0>(sum[0][c], g[0][c]);
        add_turned<0>(sum[1][c], g[1][c]);
        add_turned<turn - power0 + 4>(sum[c0][c], g[0][c]);
        add_turned<turn - power1 + 4>(sum[c1][c], g[1][c]);
    }
}

// As many groups of a multiprocessor as its registers allow without keeping sums in memory.
template <typename Real> constexpr int groups_at_once = sizeof(Real) == 8 ? 4 : 6;

template <int sign, typename Real>
__global__ void __launch_bounds__(group, groups_at_once<Real>)
    dslash_sites(Complex<Real> *__restrict__ out, const Complex<Real> *__restrict__ in,
                 const Complex<Real> *__restrict__ links, int4 size, long sites, int parity) {
    const unsigned site = blockIdx.x * group + threadIdx.x;
    if (site >= sites)
        return;
    const int4 c = site_at(size, parity, site);
    const long link = (long)link_numbers * sites;
    links += site;
    Complex<Real> sum[4][3] = {};
    int4 n = c;
    n.x = after(c.x, size.x);
    hop<3, 2, 1, 1, sign, false>(sum, links, in, sites, index_at(size, n));
    n.x = before(c.x, size.x);
    hop<3, 2, 1, 1, -sign, true>(sum, links + link, in, sites, index_at(size, n));
    n.x = c.x, n.y = after(c.y, size.y);
    hop<3, 2, 2, 0, sign, false>(sum, links + 2 * link, in, sites, index_at(size, n));
    n.y = before(c.y, size.y);
    hop<3, 2, 2, 0, -sign, true>(sum, links + 3 * link, in, sites, index_at(size, n));
    n.y = c.y, n.z = after(c.z, size.z);
    hop<2, 3, 1, 3, sign, false>(sum, links + 4 * link, in, sites, index_at(size, n));
    n.z = before(c.z, size.z);
    hop<2, 3, 1, 3, -sign, true>(sum, links + 5 * link, in, sites, index_at(size, n));
    n.z = c.z, n.w = after(c.w, size.w);
    hop<2, 3, 0, 0, sign, false>(sum, links + 6 * link, in, sites, index_at(size, n));
    n.w = before(c.w, size.w);
    hop<2, 3, 0, 0, -sign, true>(sum, links + 7 * link, in, sites, index_at(size, n));
#pragma unroll
    for (int s = 0; s < 4; s++)
#pragma unroll
        for (int k = 0; k < 3; k++)
            out[(3 * s + k) * sites + site] = sum[s][k];
}

template <typename Real>
void launch_dslash(const Engine *engine, int parity, bool adjoint, qcd_field *out,
                   const qcd_field *in) {
    auto *to = static_cast<Complex<Real> *>(out->values);
    const auto *from = static_cast<const Complex<Real> *>(in->values);
    const auto *links = static_cast<const Complex<Real> *>(engine->links[out->precision][parity]);
    const unsigned groups = (unsigned)((engine->sites + group - 1) / group);
    if (adjoint)
        dslash_sites<1><<<groups, group>>>(to, from, links, engine->size, engine->sites, parity);
    else
        dslash_sites<-1><<<groups, group>>>(to, from, links, engine->size, engine->sites, parity);
    must(cudaGetLastError(), "dslash");
}

void dslash(qcd_run *run, int parity, bool adjoint, qcd_field *out, qcd_field *in) {
    if (out->precision == QCD_SINGLE)
        launch_dslash<float>(engine_of(run), parity, adjoint, out, in);
    else
        launch_dslash<double>(engine_of(run), parity, adjoint, out, in);
}

// ---- Sums of fields
// ---------------------------------------------------------------------------------------

// y = x_factor x + y_factor y; each group's part of the square of y's norm.
template <typename Y, typename X>
__global__ void __launch_bounds__(group)
    combine(Complex<Y> *__restrict__ y, Y y_factor, const Complex<X> *__restrict__ x, Y x_factor,
            long count, double *__restrict__ partial) {
    __shared__ double part[group];
    double sum = 0;
    for (long i = (long)blockIdx.x * group + threadIdx.x; i < count; i += (long)gridDim.x * group) {
        const Complex<Y> old = y[i];
        const Complex<X> other = x[i];
        const Complex<Y> value = {x_factor * (Y)other.re + y_factor * old.re,
                                  x_factor * (Y)other.im + y_factor * old.im};
        y[i] = value;
        sum += (double)value.re * (double)value.re + (double)value.im * (double)value.im;
    }
    part[threadIdx.x] = sum;
    for (int reach = group / 2; reach > 0; reach /= 2) {
        __syncthreads();
        if (threadIdx.x < reach)
            part[threadIdx.x] += part[threadIdx.x + reach];
    }
    if (threadIdx.x == 0)
        partial[blockIdx.x] = part[0];
}

template <typename Y, typename X>
void launch_combine(const Engine *engine, qcd_field *y, double y_factor, const qcd_field *x,
                    double x_factor, int groups) {
    combine<<<groups, group>>>(static_cast<Complex<Y> *>(y->values), (Y)y_factor,
                               static_cast<const Complex<X> *>(x->values), (Y)x_factor,
                               spinor_numbers * engine->sites, engine->partial);
    must(cudaGetLastError(), "combine");
}

double combine_fields(const qcd_run *run, qcd_field *y, double y_factor, const qcd_field *x,
                      double x_factor) {
    const Engine *engine = engine_of(run);
    static double partial[sum_groups];
    const long whole_groups = (spinor_numbers * engine->sites + group - 1) / group;
    const int groups = (int)std::min<long>(whole_groups, sum_groups);
    if (y->precision == QCD_SINGLE && x->precision == QCD_SINGLE)
        launch_combine<float, float>(engine, y, y_factor, x, x_factor, groups);
    else if (y->precision == QCD_SINGLE)
        launch_combine<float, double>(engine, y, y_factor, x, x_factor, groups);
    else if (x->precision == QCD_SINGLE)
        launch_combine<double, float>(engine, y, y_factor, x, x_factor, groups);
    else
        launch_combine<double, double>(engine, y, y_factor, x, x_factor, groups);
    must(cudaMemcpy(partial, engine->partial, (size_t)groups * sizeof(double),
                    cudaMemcpyDeviceToHost),
         "cudaMemcpy");
    return std::accumulate(partial, partial + groups, 0.0);
}

double add(qcd_run *run, qcd_field *y, double a, const qcd_field *x) {
    return combine_fields(run, y, 1, x, a);
}

double scale_add(qcd_run *run, qcd_field *y, double a, const qcd_field *x) {
    return combine_fields(run, y, a, x, 1);
}

// Zero times what was there is zero: fields never hold what is not finite.
double copy(qcd_run *run, qcd_field *y, const qcd_field *x) {
    return combine_fields(run, y, 0, x, 1);
}

void wait(qcd_run *run) {
    (void)run;
    must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

// ---- Fields
// ---------------------------------------------------------------------------------------------------

size_t field_bytes(const qcd_run *run, qcd_precision precision) {
    return QCD_SPINOR * (size_t)engine_of(run)->sites *
           (precision == QCD_SINGLE ? sizeof(float) : sizeof(double));
}

void clear(qcd_run *run, qcd_field *y) {
    must(cudaMemset(y->values, 0, field_bytes(run, y->precision)), "cudaMemset");
}

void free_field(qcd_run *run, qcd_field *field) {
    (void)run;
    if (field != nullptr)
        cudaFree(field->values);
    free(field);
}

qcd_field *new_field(qcd_run *run, qcd_precision precision) {
    qcd_field *field = static_cast<qcd_field *>(calloc(1, sizeof(qcd_field)));
    if (field == nullptr)
        return nullptr;
    field->precision = precision;
    if (cudaMalloc(&field->values, field_bytes(run, precision)) != cudaSuccess) {
        cudaGetLastError(); // answered by NULL
        free(field);
        return nullptr;
    }
    clear(run, field);
    return field;
}

void fill(qcd_run *run, qcd_field *field, int parity, qcd_source *source) {
    const Engine *engine = engine_of(run);
    const size_t sites = (size_t)engine->sites;
    std::vector<double> values(QCD_SPINOR * sites);
    for (size_t index = 0; index < sites; index++) {
        const int4 c = site_at(engine->size, parity, (unsigned)index);
        const int site[QCD_DIRECTIONS] = {c.x, c.y, c.z, c.w};
        double spinor[QCD_SPINOR];
        source(&run->lattice, site, spinor);
        for (size_t k = 0; k < QCD_SPINOR; k++)
            values[2 * (k / 2 * sites + index) + k % 2] = spinor[k];
    }
    must(cudaMemcpy(field->values, values.data(), values.size() * sizeof(double),
                    cudaMemcpyHostToDevice),
         "cudaMemcpy");
}

bool read(qcd_run *run, const qcd_field *field, const int site[QCD_DIRECTIONS],
          double spinor[QCD_SPINOR]) {
    const Engine *engine = engine_of(run);
    const size_t index = index_at(engine->size, make_int4(site[0], site[1], site[2], site[3]));
    const double *values = static_cast<const double *>(field->values) + 2 * index;
    must(cudaMemcpy2D(spinor, 2 * sizeof(double), values,
                      2 * (size_t)engine->sites * sizeof(double), 2 * sizeof(double),
                      spinor_numbers, cudaMemcpyDeviceToHost),
         "cudaMemcpy2D");
    return true;
}

// ---- Links
// ------------------------------------------------------------------------------------------------------

// Those of one direction, forward or backward, of a parity's sites: to the device in both
// precisions.
void make_links(const qcd_run *run, int parity, int direction, bool backward) {
    const Engine *engine = engine_of(run);
    const size_t sites = (size_t)engine->sites, count = QCD_LINK * sites;
    const size_t first = (size_t)(2 * direction + backward) * count;
    std::vector<double> values(count);
    std::vector<float> singles(count);
    for (size_t index = 0; index < sites; index++) {
        const int4 c = site_at(engine->size, parity, (unsigned)index);
        int site[QCD_DIRECTIONS] = {c.x, c.y, c.z, c.w};
        const int length = run->lattice.whole[direction];
        qcd_complex u[QCD_COLOURS][QCD_COLOURS];
        if (backward)
            site[direction] = (site[direction] + length - 1) % length;
        qcd_link(&run->lattice, site, direction, u);
        for (size_t k = 0; k < link_numbers; k++) {
            values[2 * (k * sites + index)] = u[k / 3][k % 3].re;
            values[2 * (k * sites + index) + 1] = u[k / 3][k % 3].im;
        }
    }
    for (size_t k = 0; k < count; k++)
        singles[k] = (float)values[k];
    must(cudaMemcpy(static_cast<double *>(engine->links[QCD_DOUBLE][parity]) + first, values.data(),
                    count * sizeof(double), cudaMemcpyHostToDevice),
         "cudaMemcpy");
    must(cudaMemcpy(static_cast<float *>(engine->links[QCD_SINGLE][parity]) + first, singles.data(),
                    count * sizeof(float), cudaMemcpyHostToDevice),
         "cudaMemcpy");
}

bool allocate(Engine *engine) {
    const size_t reals = 8 * QCD_LINK * (size_t)engine->sites;
    bool ok = cudaMalloc(&engine->partial, sum_groups * sizeof(double)) == cudaSuccess;
    for (int parity = 0; parity < 2 && ok; parity++)
        ok = cudaMalloc(&engine->links[QCD_SINGLE][parity], reals * sizeof(float)) == cudaSuccess &&
             cudaMalloc(&engine->links[QCD_DOUBLE][parity], reals * sizeof(double)) == cudaSuccess;
    return ok;
}

void close(qcd_run *run) {
    Engine *engine = engine_of(run);
    for (int parity = 0; parity < 2; parity++) {
        cudaFree(engine->links[QCD_SINGLE][parity]);
        cudaFree(engine->links[QCD_DOUBLE][parity]);
    }
    cudaFree(engine->partial);
    free(engine);
}

const char *open(qcd_run *run) {
    if (bk_cuda_device() == nullptr)
        return "there is no NVIDIA GPU; install its driver, or leave out --variant cuda";
    Engine *engine = static_cast<Engine *>(calloc(1, sizeof(Engine)));
    if (engine == nullptr)
        return "out of memory";
    const int *size = run->lattice.size;
    run->own = engine;
    engine->size = make_int4(size[0], size[1], size[2], size[3]);
    engine->sites = (long)size[0] * size[1] * size[2] * size[3] / 2;
    if (!allocate(engine)) {
        cudaGetLastError(); // has been answered
        close(run);
        return "the GPU is out of memory: give smaller --sizes";
    }
    for (int parity = 0; parity < 2; parity++)
        for (int direction = 0; direction < QCD_DIRECTIONS; direction++)
            for (int backward = 0; backward < 2; backward++)
                make_links(run, parity, direction, backward != 0);
    return nullptr;
}

qcd_model make_model() {
    qcd_model model = {};
    model.is.name = "cuda";
    model.is.device = bk_cuda_device;
    model.is.memory = bk_cuda_memory;
    model.open = open;
    model.close = close;
    model.new_field = new_field;
    model.free_field = free_field;
    model.fill = fill;
    model.read = read;
    model.dslash = dslash;
    model.clear = clear;
    model.add = add;
    model.scale_add = scale_add;
    model.copy = copy;
    model.wait = wait;
    return model;
}

} // namespace

extern "C" {
extern const qcd_model qcd_cuda;
const qcd_model qcd_cuda = make_model();
}
