// Streams: what is read or written once, in place, swept several times, or a part of what there is.

#include <cuda_fp16.h>

__global__ void fill(float value, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = value;
}

__global__ void iota4(int4 *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n / 4) y[i] = make_int4(4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3);
}

// Mostly writes: sixteen elements are made of one.
__global__ void expand(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i / 16] * (1 + i % 16);
}

__global__ void scale_in_place(float factor, float4 *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n / 4) return;
    float4 v = x[i];
    x[i] = make_float4(factor * v.x, factor * v.y, factor * v.z, factor * v.w);
}

// Few blocks, each of which goes through far more than it holds at a time.
__global__ void copy_by_few_blocks(const float4 *x, float4 *y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n / 4; i += gridDim.x * blockDim.x)
        y[i] = x[i];
}

// One word of each 128 bytes is read, one of each 32 bytes is written.
__global__ void every_line(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[32 * (size_t)i];
}

__global__ void every_sector(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[8 * (size_t)i] = x[i];
}

// One word of each 32 KiB: more pages than a TLB knows.
__global__ void every_page(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[8192 * (size_t)i] + 1;
}

// The same array from its beginning to its end, four times.
__global__ void sweeps(const float *x, float *y, int n) {
    int first = blockIdx.x * blockDim.x + threadIdx.x, step = gridDim.x * blockDim.x;
    float sum = 0;
    for (int sweep = 0; sweep < 4; sweep++)
        for (int i = first; i < n; i += step) sum = fmaf(sum, 0.5f, x[i]);
    y[first] = sum;
}

// A thread's eight words lie in one sector, but each is fetched a whole array's sweep later.
__global__ void sector_by_words(const float *x, float *y, int n) {
    int first = blockIdx.x * blockDim.x + threadIdx.x, step = gridDim.x * blockDim.x;
    float sum = 0;
    for (int word = 0; word < 8; word++)
        for (int i = first; i < n / 8; i += step) sum += x[8 * i + word];
    y[first] = sum;
}

// A lane has a row of 32 words to itself: neighbouring lanes never share a line.
__global__ void lane_rows(const float *x, float *y, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < 32; k++) sum += x[32 * row + k];
    y[row] = sum;
}

// A square in the corner of a matrix whose rows are eight times as long.
__global__ void submatrix_add(const float *x, float *y, int width, int pitch) {
    int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 8 + threadIdx.y;
    if (c < width && r < width) y[r * pitch + c] += x[r * pitch + c];
}

struct Particle {
    float px, py, pz, vx, vy, vz, mass, age;
};

__global__ void particles_as_structs(float dt, Particle *all, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Particle *one = all + i;
    one->px = fmaf(dt, one->vx, one->px);
    one->py = fmaf(dt, one->vy, one->py);
    one->pz = fmaf(dt, one->vz, one->pz);
}

__global__ void particles_as_arrays(float dt, float *px, float *py, float *pz, const float *vx,
                                    const float *vy, const float *vz, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    px[i] = fmaf(dt, vx[i], px[i]);
    py[i] = fmaf(dt, vy[i], py[i]);
    pz[i] = fmaf(dt, vz[i], pz[i]);
}

__global__ void lengths(const float3 *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float3 v = x[i];
    y[i] = sqrtf(v.x * v.x + v.y * v.y + v.z * v.z);
}

__global__ void gray(const uchar3 *x, unsigned char *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    uchar3 v = x[i];
    y[i] = (77 * v.x + 150 * v.y + 29 * v.z) >> 8;
}

__global__ void saxpy_half2(const __half2 *x, __half2 *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n / 2) y[i] = __hfma2(__float2half2_rn(2.f), x[i], y[i]);
}

// Sixteen products of bytes a thread at a time.
__global__ void dot_int8(const int4 *x, const int4 *y, int *out, int n) {
    int sum = 0, step = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n / 16; i += step) {
        int4 a = x[i], b = y[i];
        sum = __dp4a(a.x, b.x, sum);
        sum = __dp4a(a.y, b.y, sum);
        sum = __dp4a(a.z, b.z, sum);
        sum = __dp4a(a.w, b.w, sum);
    }
    for (int o = 16; o > 0; o >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, o);
    if (threadIdx.x % 32 == 0) atomicAdd(out, sum);
}

__global__ void daxpy(double a, const double *x, double *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fma(a, x[i], y[i]);
}

__global__ void black_scholes(const float *price, const float *strike, const float *years,
                              float *call, float *put, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = price[i] + 1e-3f, k = strike[i] + 1e-3f, t = years[i] + 1e-3f, root = sqrtf(t);
    float d1 = (logf(s / k) + (0.02f + 0.045f) * t) / (0.3f * root), d2 = d1 - 0.3f * root;
    float n1 = 1.f / (1.f + expf(-1.702f * d1)), n2 = 1.f / (1.f + expf(-1.702f * d2));
    float left = k * expf(-0.02f * t);
    call[i] = s * n1 - left * n2;
    put[i] = left * (1.f - n2) - s * (1.f - n1);
}

__device__ unsigned mixed(unsigned v) {
    v ^= v >> 16;
    v *= 0x7feb352du;
    v ^= v >> 15;
    v *= 0x846ca68bu;
    return v ^ v >> 16;
}

// A random number for each element, of its number alone.
__global__ void random_fill(unsigned *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = mixed(i);
}

// How many of each thread's points lie in a quarter of a circle.
__global__ void circle(unsigned *inside, int points) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, state = mixed(i) | 1, hits = 0;
    for (int k = 0; k < points; k++) {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        unsigned x = state & 0xffff, y = state >> 16;
        hits += x * x + y * y >= x * x;  // the sum wraps where the point lies outside
    }
    inside[i] = hits;
}
