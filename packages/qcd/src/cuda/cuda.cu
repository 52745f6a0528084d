// CUDA or HIP: a thread for each site of a parity, on a GPU. Fields are arrays over the sites of
// 16 bytes of a spinor each, links likewise, so that neighbouring threads read neighbouring bytes.
// Of a link two rows are kept: the third is made of them. SPDX-License-Identifier: Apache-2.0 OR
// MIT
#include "bk_cuda.h"
#include "qcd.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <system_error>
#include <thread>
#include <vector>

namespace {

constexpr int group = 128, finishing_group = 1024;
constexpr int spinor_numbers = QCD_SPINOR / 2, link_numbers = QCD_LINK / 3;

template <typename Real> struct Complex { Real re, im; };

// What a thread reads or writes at once: 16 bytes, of two complex numbers or of one.
template <typename Real> struct WideOf;
template <> struct WideOf<float> { using type = float4; };
template <> struct WideOf<double> { using type = double2; };
template <typename Real> using Wide = typename WideOf<Real>::type;
template <typename Real> constexpr int wide_numbers = sizeof(Wide<Real>) / sizeof(Complex<Real>);

struct Engine {
    int4 size;
    long sites;         // of a parity
    void *links[2][2];  // [precision][parity]: forward, [direction][16 bytes of a link][site]
    double *partial;    // groups' sums, on the device
    double *sum;        // of them, on the host
    cudaEvent_t summed; // when it is there
};

} // namespace

struct qcd_field {
    qcd_precision precision;
    void *values; // [16 bytes of a spinor][site]
};

namespace {

// An error of the device: no result would be right.
void must(cudaError_t error, const char *what) {
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "qcd: " BENCH_GPU ": %s: %s; see `" BK_GPU_QUERY "`\n", what,
            cudaGetErrorString(error));
    exit(BK_SYSTEM);
}

Engine *engine_of(const qcd_run *run) {
    return static_cast<Engine *>(run->own);
}

unsigned groups_of(const Engine *engine) {
    return (unsigned)((engine->sites + group - 1) / group);
}

template <typename Real> Wide<Real> *values_of(const qcd_field *field) {
    return static_cast<Wide<Real> *>(field->values);
}

// ---- Where sites lie
// ----------------------------------------------------------------------------------

// Rows along x lie in tiles: a group's sites are each other's neighbours, whose spinors its
// multiprocessor's cache then has. Sides are multiples of a tile's.
constexpr int tile_y = 2, tile_z = 2, tile_t = 2;

// In 32 bits: no GPU's memory holds as many sites.
__host__ __device__ int4 site_at(int4 size, int parity, unsigned index) {
    unsigned rest = 2 * index;
    const auto next = [&rest](int count) {
        const unsigned digit = rest % (unsigned)count;
        rest /= (unsigned)count;
        return (int)digit;
    };
    int4 c;
    c.x = next(size.x);
    c.y = next(tile_y), c.z = next(tile_z), c.w = next(tile_t);
    c.y += tile_y * next(size.y / tile_y);
    c.z += tile_z * next(size.z / tile_z);
    c.w += tile_t * (int)rest;
    c.x += (c.x + c.y + c.z + c.w + parity) & 1;
    return c;
}

__host__ __device__ unsigned index_at(int4 size, int4 c) {
    int index = c.w / tile_t;
    index = index * (size.z / tile_z) + c.z / tile_z;
    index = index * (size.y / tile_y) + c.y / tile_y;
    index = (index * tile_t + c.w % tile_t) * tile_z + c.z % tile_z;
    index = index * tile_y + c.y % tile_y;
    return (unsigned)(index * size.x + c.x) / 2;
}

__device__ int after(int c, int size) {
    return c + 1 == size ? 0 : c + 1;
}

__device__ int before(int c, int size) {
    return c == 0 ? size - 1 : c - 1;
}

// ---- Reading and writing
// ------------------------------------------------------------------------------

__device__ __forceinline__ void unpack(Complex<float> *to, float4 from) {
    to[0] = {from.x, from.y};
    to[1] = {from.z, from.w};
}

__device__ __forceinline__ void unpack(Complex<double> *to, double2 from) {
    to[0] = {from.x, from.y};
}

__device__ __forceinline__ float4 pack(const Complex<float> *from) {
    return make_float4(from[0].re, from[0].im, from[1].re, from[1].im);
}

__device__ __forceinline__ double2 pack(const Complex<double> *from) {
    return make_double2(from[0].re, from[0].im);
}

template <typename Real>
__device__ __forceinline__ void read_spinor(Complex<Real> to[spinor_numbers],
                                            const Wide<Real> *from, long sites) {
    constexpr int each = wide_numbers<Real>;
#pragma unroll
    for (int i = 0; i < spinor_numbers / each; i++)
        unpack(to + i * each, from[i * sites]);
}

template <typename Real>
__device__ __forceinline__ void write_spinor(Wide<Real> *to, const Complex<Real> *from,
                                             long sites) {
    constexpr int each = wide_numbers<Real>;
#pragma unroll
    for (int i = 0; i < spinor_numbers / each; i++)
        to[i * sites] = pack(from + i * each);
}

// u = the link; its third row is the conjugate of the others' vector product, but for the sign at
// the border in t. Links are read once: the caches are for spinors, which eight sites read.
template <typename Real>
__device__ __forceinline__ void read_link(Complex<Real> u[9], const Wide<Real> *from, long sites,
                                          Real sign) {
    constexpr int each = wide_numbers<Real>;
#pragma unroll
    for (int i = 0; i < link_numbers / each; i++)
        unpack(u + i * each, __ldcs(from + i * sites));
#pragma unroll
    for (int c = 0; c < 3; c++) {
        const Complex<Real> a = u[(c + 1) % 3], b = u[3 + (c + 2) % 3];
        const Complex<Real> d = u[(c + 2) % 3], e = u[3 + (c + 1) % 3];
        u[6 + c].re = sign * (a.re * b.re - a.im * b.im - d.re * e.re + d.im * e.im);
        u[6 + c].im = sign * (d.re * e.im + d.im * e.re - a.re * b.im - a.im * b.re);
    }
}

// ---- Sums over sites
// --------------------------------------------------------------------------------------

template <typename Real> __device__ __forceinline__ double square_of(const Complex<Real> *spinor) {
    Real sum = 0;
#pragma unroll
    for (int k = 0; k < spinor_numbers; k++)
        sum += spinor[k].re * spinor[k].re + spinor[k].im * spinor[k].im;
    return (double)sum;
}

// to = a to + b from
template <typename Real>
__device__ __forceinline__ void combine(Complex<Real> to[spinor_numbers], Real a,
                                        const Complex<Real> from[spinor_numbers], Real b) {
#pragma unroll
    for (int k = 0; k < spinor_numbers; k++)
        to[k] = {a * to[k].re + b * from[k].re, a * to[k].im + b * from[k].im};
}

// *sum = all the group's threads' values; each of them comes here.
template <int threads> __device__ __forceinline__ void sum_group(double value, double *sum) {
    __shared__ double part[threads / BK_WARP];
    for (int reach = BK_WARP / 2; reach > 0; reach /= 2)
        value += __shfl_down_sync(BK_ALL_LANES, value, (unsigned)reach);
    if (threadIdx.x % BK_WARP == 0)
        part[threadIdx.x / BK_WARP] = value;
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    for (int i = 1; i < threads / BK_WARP; i++)
        value += part[i];
    *sum = value;
}

__global__ void __launch_bounds__(finishing_group)
    finish_sum(double *total, const double *partial, unsigned count) {
    double value = 0;
    for (unsigned i = threadIdx.x; i < count; i += finishing_group)
        value += partial[i];
    sum_group<finishing_group>(value, total);
}

// After a kernel that left its groups' sums: their sum to the host, which does not wait.
void launch_sum(const Engine *engine) {
    finish_sum<<<1, finishing_group>>>(engine->sum, engine->partial, groups_of(engine));
    must(cudaGetLastError(), "finish_sum");
    must(cudaEventRecord(engine->summed), "cudaEventRecord");
}

double sum(qcd_run *run) {
    must(cudaEventSynchronize(engine_of(run)->summed), "cudaEventSynchronize");
    return *engine_of(run)->sum;
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

// out = u h, or u^+ h, for two spins.
template <bool adjoint, typename Real>
__device__ __forceinline__ void multiply(Complex<Real> out[6], const Complex<Real> u[9],
                                         const Complex<Real> h[6]) {
#pragma unroll
    for (int i = 0; i < 6; i++)
        out[i] = {0, 0};
#pragma unroll
    for (int number = 0; number < 9; number++) {
        const Complex<Real> a = u[number];
        const int row = number / 3, column = number % 3;
        const int i = adjoint ? column : row, k = adjoint ? row : column;
        const Real im = adjoint ? -a.im : a.im;
#pragma unroll
        for (int s = 0; s < 6; s += 3) {
            out[s + i].re += a.re * h[s + k].re; // each product with its sum: one instruction
            out[s + i].im += a.re * h[s + k].im;
            out[s + i].re -= im * h[s + k].im;
            out[s + i].im += im * h[s + k].re;
        }
    }
}

// sum += (1 + sign gamma) u psi; the upper rows of gamma have i^power in columns c0 and c1.
template <int c0, int c1, int power0, int power1, int sign, bool adjoint, typename Real>
__device__ __forceinline__ void hop(Complex<Real> sum[spinor_numbers], const Wide<Real> *link,
                                    const Wide<Real> *spinor, long sites, Real link_sign = 1) {
    constexpr int turn = sign > 0 ? 0 : 2;
    Complex<Real> u[9], psi[spinor_numbers], g[6];
    read_spinor(psi, spinor, sites);
    read_link(u, link, sites, link_sign);
#pragma unroll
    for (int c = 0; c < 3; c++) {
        add_turned<power0 + turn>(psi[c], psi[3 * c0 + c]);
        add_turned<power1 + turn>(psi[3 + c], psi[3 * c1 + c]);
    }
    multiply<adjoint>(g, u, psi);
#pragma unroll
    for (int c = 0; c < 3; c++) {
        add_turned<0>(sum[c], g[c]);
        add_turned<0>(sum[3 + c], g[3 + c]);
        add_turned<turn - power0 + 4>(sum[3 * c0 + c], g[c]);
        add_turned<turn - power1 + 4>(sum[3 * c1 + c], g[3 + c]);
    }
}

// D at a site, or its adjoint.
template <int sign, typename Real>
__device__ __forceinline__ void
dslash_site(Complex<Real> sum[spinor_numbers], const Wide<Real> *__restrict__ in,
            const Wide<Real> *__restrict__ here, const Wide<Real> *__restrict__ there, int4 size,
            long sites, int parity, unsigned site) {
    const int4 c = site_at(size, parity, site);
    const long direction = link_numbers / wide_numbers<Real> * sites;
    int4 n = c;
    unsigned next;
    n.x = after(c.x, size.x), next = index_at(size, n);
    hop<3, 2, 1, 1, sign, false, Real>(sum, here + site, in + next, sites);
    n.x = before(c.x, size.x), next = index_at(size, n);
    hop<3, 2, 1, 1, -sign, true, Real>(sum, there + next, in + next, sites);
    here += direction, there += direction;
    n.x = c.x, n.y = after(c.y, size.y), next = index_at(size, n);
    hop<3, 2, 2, 0, sign, false, Real>(sum, here + site, in + next, sites);
    n.y = before(c.y, size.y), next = index_at(size, n);
    hop<3, 2, 2, 0, -sign, true, Real>(sum, there + next, in + next, sites);
    here += direction, there += direction;
    n.y = c.y, n.z = after(c.z, size.z), next = index_at(size, n);
    hop<2, 3, 1, 3, sign, false, Real>(sum, here + site, in + next, sites);
    n.z = before(c.z, size.z), next = index_at(size, n);
    hop<2, 3, 1, 3, -sign, true, Real>(sum, there + next, in + next, sites);
    here += direction, there += direction;
    n.z = c.z, n.w = after(c.w, size.w), next = index_at(size, n);
    hop<2, 3, 0, 0, sign, false, Real>(sum, here + site, in + next, sites,
                                       n.w == 0 ? (Real)-1 : (Real)1);
    n.w = before(c.w, size.w), next = index_at(size, n);
    hop<2, 3, 0, 0, -sign, true, Real>(sum, there + next, in + next, sites,
                                       c.w == 0 ? (Real)-1 : (Real)1);
}

// As many groups of a multiprocessor as its registers allow without keeping sums in memory.
template <typename Real> constexpr int groups_at_once = sizeof(Real) == 8 ? 2 : 4;

template <int sign, typename Real>
__global__ void BK_LAUNCH_BOUNDS(group, groups_at_once<Real>)
    dslash_sites(Wide<Real> *__restrict__ out, const Wide<Real> *__restrict__ in,
                 const Wide<Real> *__restrict__ here, const Wide<Real> *__restrict__ there,
                 int4 size, long sites, int parity) {
    const unsigned site = blockIdx.x * group + threadIdx.x;
    if (site >= sites)
        return;
    Complex<Real> sum[spinor_numbers] = {};
    dslash_site<sign>(sum, in, here, there, size, sites, parity, site);
    write_spinor(out + site, sum, sites);
}

// y = z + s (x + a D in), and each group's part of the square of y's norm. z may be y, or nullptr.
template <int sign, typename Real>
__global__ void BK_LAUNCH_BOUNDS(group, groups_at_once<Real>)
    dslash_add_sites(Wide<Real> *y, const Wide<Real> *z, Real s, const Wide<Real> *x, Real a,
                     const Wide<Real> *__restrict__ in, const Wide<Real> *__restrict__ here,
                     const Wide<Real> *__restrict__ there, int4 size, long sites, int parity,
                     double *__restrict__ partial) {
    const unsigned site = blockIdx.x * group + threadIdx.x;
    double square = 0;
    if (site < sites) {
        Complex<Real> sum[spinor_numbers] = {}, other[spinor_numbers];
        dslash_site<sign>(sum, in, here, there, size, sites, parity, site);
        read_spinor(other, x + site, sites);
        combine(sum, s * a, other, s);
        if (z != nullptr) {
            read_spinor(other, z + site, sites);
            combine(sum, (Real)1, other, (Real)1);
        }
        write_spinor(y + site, sum, sites);
        square = square_of(sum);
    }
    sum_group<group>(square, partial + blockIdx.x);
}

template <typename Real>
void launch_dslash(const Engine *engine, int parity, bool adjoint, const qcd_field *out,
                   const qcd_field *in) {
    const auto *here = static_cast<const Wide<Real> *>(engine->links[out->precision][parity]);
    const auto *there = static_cast<const Wide<Real> *>(engine->links[out->precision][1 - parity]);
    const auto kernel = adjoint ? dslash_sites<1, Real> : dslash_sites<-1, Real>;
    kernel<<<groups_of(engine), group>>>(values_of<Real>(out), values_of<Real>(in), here, there,
                                         engine->size, engine->sites, parity);
    must(cudaGetLastError(), "dslash");
}

void dslash(qcd_run *run, int parity, bool adjoint, qcd_field *out, qcd_field *in) {
    if (out->precision == QCD_SINGLE)
        launch_dslash<float>(engine_of(run), parity, adjoint, out, in);
    else
        launch_dslash<double>(engine_of(run), parity, adjoint, out, in);
}

template <typename Real>
void launch_dslash_add(const Engine *engine, int parity, bool adjoint, const qcd_step *step) {
    const int precision = step->y->precision;
    const auto *here = static_cast<const Wide<Real> *>(engine->links[precision][parity]);
    const auto *there = static_cast<const Wide<Real> *>(engine->links[precision][1 - parity]);
    const auto *z = step->z == nullptr ? nullptr : values_of<Real>(step->z);
    const auto kernel = adjoint ? dslash_add_sites<1, Real> : dslash_add_sites<-1, Real>;
    kernel<<<groups_of(engine), group>>>(values_of<Real>(step->y), z, (Real)step->s,
                                         values_of<Real>(step->x), (Real)step->a,
                                         values_of<Real>(step->in), here, there, engine->size,
                                         engine->sites, parity, engine->partial);
    must(cudaGetLastError(), "dslash_add");
    launch_sum(engine);
}

void dslash_add(qcd_run *run, int parity, bool adjoint, const qcd_step *step) {
    if (step->y->precision == QCD_SINGLE)
        launch_dslash_add<float>(engine_of(run), parity, adjoint, step);
    else
        launch_dslash_add<double>(engine_of(run), parity, adjoint, step);
}

// ---- Sums of fields
// ---------------------------------------------------------------------------------------

// y = x_factor x + y_factor y, or of x alone; each group's part of the square of y's norm.
template <bool copies, typename Y, typename X>
__global__ void __launch_bounds__(group)
    combine_sites(Wide<Y> *__restrict__ y, Y y_factor, const Wide<X> *__restrict__ x, Y x_factor,
                  long sites, double *__restrict__ partial) {
    const unsigned site = blockIdx.x * group + threadIdx.x;
    double square = 0;
    if (site < sites) {
        Complex<X> other[spinor_numbers];
        Complex<Y> value[spinor_numbers], old[spinor_numbers];
        read_spinor(other, x + site, sites);
#pragma unroll
        for (int k = 0; k < spinor_numbers; k++)
            value[k] = {(Y)other[k].re, (Y)other[k].im};
        if constexpr (!copies) {
            read_spinor(old, y + site, sites);
            combine(value, x_factor, old, y_factor);
        }
        write_spinor(y + site, value, sites);
        square = square_of(value);
    }
    sum_group<group>(square, partial + blockIdx.x);
}

template <bool copies, typename Y, typename X>
void launch_combine(const Engine *engine, const qcd_field *y, double y_factor, const qcd_field *x,
                    double x_factor) {
    combine_sites<copies, Y, X><<<groups_of(engine), group>>>(
        values_of<Y>(y), (Y)y_factor, values_of<X>(x), (Y)x_factor, engine->sites, engine->partial);
    must(cudaGetLastError(), "combine");
    launch_sum(engine);
}

template <bool copies = false>
void combine_fields(const Engine *engine, const qcd_field *y, double y_factor, const qcd_field *x,
                    double x_factor) {
    if (y->precision == QCD_SINGLE && x->precision == QCD_SINGLE)
        launch_combine<copies, float, float>(engine, y, y_factor, x, x_factor);
    else if (y->precision == QCD_SINGLE)
        launch_combine<copies, float, double>(engine, y, y_factor, x, x_factor);
    else if (x->precision == QCD_SINGLE)
        launch_combine<copies, double, float>(engine, y, y_factor, x, x_factor);
    else
        launch_combine<copies, double, double>(engine, y, y_factor, x, x_factor);
}

void add(qcd_run *run, qcd_field *y, double a, const qcd_field *x) {
    combine_fields(engine_of(run), y, 1, x, a);
}

void scale_add(qcd_run *run, qcd_field *y, double a, const qcd_field *x) {
    combine_fields(engine_of(run), y, a, x, 1);
}

void copy(qcd_run *run, qcd_field *y, const qcd_field *x) {
    combine_fields<true>(engine_of(run), y, 0, x, 1);
}

// x += a p; p = r + b p
template <typename Real>
__global__ void __launch_bounds__(group)
    advance_sites(Wide<Real> *__restrict__ x, Wide<Real> *__restrict__ p, Real a,
                  const Wide<Real> *__restrict__ r, Real b, long sites) {
    const unsigned site = blockIdx.x * group + threadIdx.x;
    if (site >= sites)
        return;
    Complex<Real> direction[spinor_numbers], other[spinor_numbers];
    read_spinor(direction, p + site, sites);
    read_spinor(other, x + site, sites);
    combine(other, (Real)1, direction, a);
    write_spinor(x + site, other, sites);
    read_spinor(other, r + site, sites);
    combine(direction, b, other, (Real)1);
    write_spinor(p + site, direction, sites);
}

template <typename Real>
void launch_advance(const Engine *engine, const qcd_field *x, const qcd_field *p, double a,
                    const qcd_field *r, double b) {
    advance_sites<Real><<<groups_of(engine), group>>>(values_of<Real>(x), values_of<Real>(p),
                                                      (Real)a, values_of<Real>(r), (Real)b,
                                                      engine->sites);
    must(cudaGetLastError(), "advance");
}

void advance(qcd_run *run, qcd_field *x, qcd_field *p, double a, const qcd_field *r, double b) {
    if (x->precision == QCD_SINGLE)
        launch_advance<float>(engine_of(run), x, p, a, r, b);
    else
        launch_advance<double>(engine_of(run), x, p, a, r, b);
}

void wait(qcd_run *run) {
    (void)run;
    must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

// ---- Fields
// ---------------------------------------------------------------------------------------------------

// By a thread of its own, or at once where there can be no more.
template <typename Function> void start(std::vector<std::thread> *team, Function function) {
    try {
        team->emplace_back(function);
    } catch (const std::system_error &) {
        function();
    }
}

// Calls a function for each site of a parity, by all of the host's cores.
template <typename Function> void for_sites(const qcd_run *run, int parity, Function function) {
    const Engine *engine = engine_of(run);
    const long parts = std::max(1L, (long)std::thread::hardware_concurrency());
    std::vector<std::thread> team;
    for (long part = 0; part < parts; part++)
        start(&team, [=] {
            const long end = engine->sites * (part + 1) / parts;
            for (long index = engine->sites * part / parts; index < end; index++) {
                const int4 c = site_at(engine->size, parity, (unsigned)index);
                const int site[QCD_DIRECTIONS] = {c.x, c.y, c.z, c.w};
                function((size_t)index, site);
            }
        });
    for (std::thread &one : team)
        one.join();
}

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
        (void)cudaFree(field->values);
    free(field);
}

qcd_field *new_field(qcd_run *run, qcd_precision precision) {
    qcd_field *field = static_cast<qcd_field *>(calloc(1, sizeof(qcd_field)));
    if (field == nullptr)
        return nullptr;
    field->precision = precision;
    if (cudaMalloc(&field->values, field_bytes(run, precision)) != cudaSuccess) {
        (void)cudaGetLastError(); // answered by NULL
        free(field);
        return nullptr;
    }
    clear(run, field);
    return field;
}

void fill(qcd_run *run, qcd_field *field, int parity, qcd_source *source) {
    const size_t sites = (size_t)engine_of(run)->sites;
    std::vector<double> values(QCD_SPINOR * sites);
    for_sites(run, parity, [=, &values](size_t index, const int site[QCD_DIRECTIONS]) {
        double spinor[QCD_SPINOR];
        source(&run->lattice, site, spinor);
        for (size_t k = 0; k < QCD_SPINOR; k++)
            values[2 * (k / 2 * sites + index) + k % 2] = spinor[k];
    });
    must(cudaMemcpy(field->values, values.data(), values.size() * sizeof(double),
                    cudaMemcpyHostToDevice),
         "cudaMemcpy");
}

std::vector<double> on_host(const qcd_run *run, const qcd_field *field) {
    std::vector<double> values(QCD_SPINOR * (size_t)engine_of(run)->sites);
    must(cudaMemcpy(values.data(), field->values, values.size() * sizeof(double),
                    cudaMemcpyDeviceToHost),
         "cudaMemcpy");
    return values;
}

void compare(qcd_run *run, const qcd_field *got, const qcd_field *want, double tolerance,
             bk_check *check) {
    const std::vector<double> got_values = on_host(run, got), want_values = on_host(run, want);
    for (size_t i = 0; i < got_values.size(); i++)
        bk_check_value(check, i, got_values[i], want_values[i], tolerance);
}

// ---- Links
// ------------------------------------------------------------------------------------------------------

// Those of one direction, forward of a parity's sites, to the device in double precision.
void make_links(const qcd_run *run, int parity, int direction) {
    const size_t sites = (size_t)engine_of(run)->sites;
    std::vector<double> values(2 * link_numbers * sites);
    for_sites(run, parity, [=, &values](size_t index, const int site[QCD_DIRECTIONS]) {
        qcd_complex u[QCD_COLOURS][QCD_COLOURS];
        qcd_link(&run->lattice, site, direction, u);
        for (size_t k = 0; k < link_numbers; k++) {
            values[2 * (k * sites + index)] = u[k / 3][k % 3].re;
            values[2 * (k * sites + index) + 1] = u[k / 3][k % 3].im;
        }
    });
    double *to = static_cast<double *>(engine_of(run)->links[QCD_DOUBLE][parity]);
    must(cudaMemcpy(to + (size_t)direction * values.size(), values.data(),
                    values.size() * sizeof(double), cudaMemcpyHostToDevice),
         "cudaMemcpy");
}

// In single precision: two directions' links have as many numbers as a spinor.
void round_links(const Engine *engine, int parity) {
    for (long i = 0; i < QCD_DIRECTIONS / 2; i++) {
        const long first = i * QCD_SPINOR * engine->sites;
        qcd_field from = {QCD_DOUBLE,
                          static_cast<double *>(engine->links[QCD_DOUBLE][parity]) + first};
        qcd_field to = {QCD_SINGLE,
                        static_cast<float *>(engine->links[QCD_SINGLE][parity]) + first};
        combine_fields<true>(engine, &to, 0, &from, 1);
    }
}

bool allocate(Engine *engine) {
    const size_t reals = 2 * link_numbers * QCD_DIRECTIONS * (size_t)engine->sites;
    bool ok = cudaMalloc(&engine->partial, groups_of(engine) * sizeof(double)) == cudaSuccess &&
              cudaMallocHost(&engine->sum, sizeof(double)) == cudaSuccess &&
              cudaEventCreateWithFlags(&engine->summed, cudaEventDisableTiming) == cudaSuccess;
    for (int parity = 0; parity < 2 && ok; parity++)
        ok = cudaMalloc(&engine->links[QCD_SINGLE][parity], reals * sizeof(float)) == cudaSuccess &&
             cudaMalloc(&engine->links[QCD_DOUBLE][parity], reals * sizeof(double)) == cudaSuccess;
    return ok;
}

void close(qcd_run *run) {
    Engine *engine = engine_of(run);
    for (int parity = 0; parity < 2; parity++) {
        (void)cudaFree(engine->links[QCD_SINGLE][parity]);
        (void)cudaFree(engine->links[QCD_DOUBLE][parity]);
    }
    (void)cudaFree(engine->partial);
    (void)cudaFreeHost(engine->sum);
    if (engine->summed != nullptr)
        (void)cudaEventDestroy(engine->summed);
    free(engine);
}

const char *open(qcd_run *run) {
    if (bk_cuda_device() == nullptr)
        return "there is no GPU; install its driver, or leave out --variant " BENCH_GPU;
    Engine *engine = static_cast<Engine *>(calloc(1, sizeof(Engine)));
    if (engine == nullptr)
        return "out of memory";
    const int *size = run->lattice.size;
    run->own = engine;
    engine->size = make_int4(size[0], size[1], size[2], size[3]);
    engine->sites = (long)size[0] * size[1] * size[2] * size[3] / 2;
    if (!allocate(engine)) {
        (void)cudaGetLastError(); // has been answered
        close(run);
        return "the GPU is out of memory: give smaller --sizes";
    }
    for (int parity = 0; parity < 2; parity++) {
        for (int direction = 0; direction < QCD_DIRECTIONS; direction++)
            make_links(run, parity, direction);
        round_links(engine, parity);
    }
    return nullptr;
}

qcd_model make_model() {
    qcd_model model = {};
    model.is.name = BENCH_GPU;
    model.is.device = bk_cuda_device;
    model.is.memory = bk_cuda_memory;
    model.is.take = bk_cuda_take;
    model.link_values = 2 * link_numbers;
    model.open = open;
    model.close = close;
    model.new_field = new_field;
    model.free_field = free_field;
    model.fill = fill;
    model.compare = compare;
    model.dslash = dslash;
    model.dslash_add = dslash_add;
    model.clear = clear;
    model.add = add;
    model.scale_add = scale_add;
    model.copy = copy;
    model.advance = advance;
    model.sum = sum;
    model.wait = wait;
    return model;
}

} // namespace

extern "C" {
extern const qcd_model qcd_cuda;
const qcd_model qcd_cuda = make_model();
}
