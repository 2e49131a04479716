// Kernels that are not in the catalogue, as CUDA C++, and their times with a cold L2 as CSV:
//   nvcc -O3 -arch=native -std=c++17 -o others others.cu && ./others > times.csv
// The L2 is emptied by reading 512 MiB; each time is the median of 25, event to event, queued
// behind that. kernels.py has the same kernels in gpusim's dialect.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

__global__ void read_all(const int4 *words, size_t count, int *never) {
    int sum = 0;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count;
         i += (size_t)gridDim.x * blockDim.x) {
        int4 v = words[i];
        sum ^= v.x ^ v.y ^ v.z ^ v.w;
    }
    if (sum == 0x5eed) *never = sum;
}

__global__ void copy(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}

__global__ void saxpy(float a, const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

__global__ void saxpy_stride(float a, const float *x, float *y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = a * x[i] + y[i];
}

__global__ void add4(const float4 *x, const float4 *y, float4 *z) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 a = x[i], b = y[i];
    z[i] = make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

__global__ void stencil(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n - 1) y[i] = x[i - 1] + x[i] + x[i + 1];
}

__global__ void stencil2d(const float *x, float *y, int n) {
    int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 8 + threadIdx.y;
    if (c > 0 && c < n - 1 && r > 0 && r < n - 1)
        y[r * n + c] = 0.2f * (x[r * n + c] + x[r * n + c - 1] + x[r * n + c + 1] +
                               x[(r - 1) * n + c] + x[(r + 1) * n + c]);
}

__global__ void convolution(const float *x, const float *weights, float *y, int n) {
    __shared__ float tile[264];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    tile[t + 4] = x[i];
    if (t < 4) {
        tile[t] = i >= 4 ? x[i - 4] : 0.f;
        tile[t + 260] = i + 256 < n ? x[i + 256] : 0.f;
    }
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < 9; k++) sum += weights[k] * tile[t + k];
    y[i] = sum;
}

__global__ void polynomial(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float v = x[i], s = 0.5f;
        for (int k = 0; k < 64; k++) s = fmaf(s, v, v);
        y[i] = s;
    }
}

__global__ void gather(const float *x, const int *places, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[places[i]];
}

__global__ void transpose(const float *x, float *y, int n) {
    int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) y[c * n + r + j] = x[(r + j) * n + c];
}

template <int WIDTH>
__global__ void transpose_tile(const float *x, float *y, int n) {
    __shared__ float tile[32 * WIDTH];
    int tx = threadIdx.x, ty = threadIdx.y;
    int c = blockIdx.x * 32 + tx, r = blockIdx.y * 32 + ty;
    for (int j = 0; j < 32; j += 8) tile[(ty + j) * WIDTH + tx] = x[(r + j) * n + c];
    __syncthreads();
    c = blockIdx.y * 32 + tx;
    r = blockIdx.x * 32 + ty;
    for (int j = 0; j < 32; j += 8) y[(r + j) * n + c] = tile[tx * WIDTH + ty + j];
}

__global__ void matrix_product(const float *a, const float *b, float *c, int n) {
    __shared__ float rows[256], columns[256];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * 16 + ty, column = blockIdx.x * 16 + tx;
    float sum = 0;
    for (int t = 0; t < n; t += 16) {
        rows[ty * 16 + tx] = a[row * n + t + tx];
        columns[ty * 16 + tx] = b[(t + ty) * n + column];
        __syncthreads();
        for (int k = 0; k < 16; k++) sum = fmaf(rows[ty * 16 + k], columns[k * 16 + tx], sum);
        __syncthreads();
    }
    c[row * n + column] = sum;
}

__global__ void matrix_product_plain(const float *a, const float *b, float *c, int n) {
    int column = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
    float sum = 0;
    for (int k = 0; k < n; k++) sum = fmaf(a[row * n + k], b[k * n + column], sum);
    c[row * n + column] = sum;
}

__global__ void row_sums(const float *x, float *y, int n) {
    int row = blockIdx.x * 8 + threadIdx.y, lane = threadIdx.x;
    float sum = 0;
    for (int k = lane; k < n; k += 32) sum += x[row * n + k];
    for (int o = 16; o > 0; o >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, o);
    if (lane == 0) y[row] = sum;
}

__global__ void column_sums(const float *x, float *y, int n) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int r = 0; r < n; r++) sum += x[r * n + c];
    y[c] = sum;
}

__global__ void dot(const float *x, const float *y, float *out, int n) {
    __shared__ float sums[256];
    int t = threadIdx.x;
    float sum = 0;
    for (int i = blockIdx.x * 256 + t; i < n; i += gridDim.x * 256) sum = fmaf(x[i], y[i], sum);
    sums[t] = sum;
    __syncthreads();
    for (int o = 128; o > 0; o >>= 1) {
        if (t < o) sums[t] += sums[t + o];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = sums[0];
}

__global__ void softmax(const float *x, float *y, int n) {
    __shared__ float part[256];
    int t = threadIdx.x, row = blockIdx.x;
    float most = -1e30f, sum = 0;
    for (int k = t; k < n; k += 256) most = fmaxf(most, x[row * n + k]);
    part[t] = most;
    __syncthreads();
    for (int o = 128; o > 0; o >>= 1) {
        if (t < o) part[t] = fmaxf(part[t], part[t + o]);
        __syncthreads();
    }
    most = part[0];
    __syncthreads();
    for (int k = t; k < n; k += 256) sum += expf(x[row * n + k] - most);
    part[t] = sum;
    __syncthreads();
    for (int o = 128; o > 0; o >>= 1) {
        if (t < o) part[t] += part[t + o];
        __syncthreads();
    }
    sum = part[0];
    for (int k = t; k < n; k += 256) y[row * n + k] = expf(x[row * n + k] - most) / sum;
}

__global__ void histogram(const int *x, int *counts, int n) {
    __shared__ int own[256];
    int t = threadIdx.x;
    own[t] = 0;
    __syncthreads();
    for (int i = blockIdx.x * 256 + t; i < n; i += gridDim.x * 256) atomicAdd(&own[x[i]], 1);
    __syncthreads();
    atomicAdd(&counts[t], own[t]);
}

__global__ void sum_by_atomics(const float *x, float *out, int n) {
    float v = x[blockIdx.x * blockDim.x + threadIdx.x];
    for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffffu, v, o);
    if (threadIdx.x % 32 == 0) atomicAdd(out, v);
}

__global__ void bitonic_sort(float *x) {
    __shared__ float s[512];
    int t = threadIdx.x;
    s[t] = x[blockIdx.x * 512 + t];
    __syncthreads();
    for (int k = 2; k <= 512; k *= 2)
        for (int j = k / 2; j > 0; j /= 2) {
            int o = t ^ j;
            if (o > t) {
                float a = s[t], b = s[o];
                if ((a > b) == ((t & k) == 0)) {
                    s[t] = b;
                    s[o] = a;
                }
            }
            __syncthreads();
        }
    x[blockIdx.x * 512 + t] = s[t];
}

__global__ void bodies(const float *px, const float *py, const float *pz, float *ax, int n) {
    __shared__ float sx[256], sy[256], sz[256];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    float x = px[i], y = py[i], z = pz[i], sum = 0;
    for (int j = 0; j < n; j += 256) {
        sx[t] = px[j + t];
        sy[t] = py[j + t];
        sz[t] = pz[j + t];
        __syncthreads();
        for (int k = 0; k < 256; k++) {
            float dx = sx[k] - x, dy = sy[k] - y, dz = sz[k] - z;
            sum = fmaf(dx, fmaf(dx, dx, fmaf(dy, dy, dz * dz)) + 0.01f, sum);
        }
        __syncthreads();
    }
    ax[i] = sum;
}

__global__ void mandelbrot(int *out, int width, int limit) {
    int px = blockIdx.x * 16 + threadIdx.x, py = blockIdx.y * 16 + threadIdx.y;
    float cx = px * (3.f / width) - 2.f, cy = py * (3.f / width) - 1.5f, x = 0, y = 0;
    int k = 0;
    while (k < limit && fmaf(x, x, y * y) < 4.f) {
        float next = fmaf(x, x, -(y * y)) + cx;
        y = fmaf(2.f * x, y, cy);
        x = next;
        k++;
    }
    out[py * width + px] = k;
}

static void check(cudaError_t error) {
    if (error != cudaSuccess) {
        fprintf(stderr, "%s\n", cudaGetErrorString(error));
        exit(1);
    }
}

const size_t EMPTIED = 512u << 20;
const int COPIES = 4, REPETITIONS = 25;
static int4 *evicting;
static int *never;
static float *x[COPIES], *y[COPIES], *z[COPIES];

using Launch = std::function<void(float *, float *, float *)>;

// Each launch is queued behind a read that empties the L2, and waited for.
static void timed(const char *name, int n, int block, Launch launch) {
    cudaEvent_t begin, end;
    check(cudaEventCreate(&begin));
    check(cudaEventCreate(&end));
    std::vector<float> us(REPETITIONS);
    for (int i = 0; i < REPETITIONS; i++) {
        read_all<<<1056, 256>>>(evicting, EMPTIED / 16, never);
        check(cudaEventRecord(begin));
        launch(x[i % COPIES], y[i % COPIES], z[i % COPIES]);
        check(cudaEventRecord(end));
        check(cudaDeviceSynchronize());
        float ms;
        check(cudaEventElapsedTime(&ms, begin, end));
        us[i] = ms * 1000;
    }
    std::sort(us.begin(), us.end());
    printf("%s,%d,%d,%.3f\n", name, n, block, us[REPETITIONS / 2]);
}

// Numbers from 0 to `mask`, a power of two less one.
static std::vector<int> at_random(int count, unsigned seed, unsigned mask) {
    std::vector<int> numbers(count);
    for (int &number : numbers) {
        seed = seed * 1664525u + 1013904223u;
        number = seed >> 8 & mask;
    }
    return numbers;
}

int main() {
    const int most = 1 << 24, some = 1 << 22;
    check(cudaMalloc(&evicting, EMPTIED));
    check(cudaMalloc(&never, 4));
    int *bytes, *places;
    float *weights;
    check(cudaMalloc(&bytes, 4 * some));
    check(cudaMalloc(&places, 4 * some));
    check(cudaMalloc(&weights, 64));
    check(cudaMemcpy(bytes, at_random(some, 12345, 255).data(), 4 * some, cudaMemcpyHostToDevice));
    check(cudaMemcpy(places, at_random(some, 99, some - 1).data(), 4 * some,
                     cudaMemcpyHostToDevice));
    for (int i = 0; i < COPIES; i++)
        for (float **array : {&x[i], &y[i], &z[i]}) {
            check(cudaMalloc(array, 4 * most));
            check(cudaMemset(*array, 0, 4 * most));
        }
    for (int i = 0; i < 300; i++) read_all<<<1056, 256>>>(evicting, EMPTIED / 16, never);
    check(cudaDeviceSynchronize());

    for (int n : {1 << 20, most}) {
        for (int b : {128, 512}) {
            int g = n / b;
            timed("copy", n, b, [=](float *x, float *y, float *) { copy<<<g, b>>>(x, y, n); });
            timed("saxpy", n, b, [=](float *x, float *y, float *) { saxpy<<<g, b>>>(2, x, y, n); });
            timed("stencil", n, b,
                  [=](float *x, float *y, float *) { stencil<<<g, b>>>(x, y, n); });
            timed("polynomial", n, b,
                  [=](float *x, float *y, float *) { polynomial<<<g, b>>>(x, y, n); });
        }
        timed("saxpy_stride", n, 256,
              [=](float *x, float *y, float *) { saxpy_stride<<<1056, 256>>>(2, x, y, n); });
        timed("add4", n, 256, [=](float *x, float *y, float *z) {
            add4<<<n / 1024, 256>>>((float4 *)x, (float4 *)y, (float4 *)z);
        });
        timed("convolution", n, 256, [=](float *x, float *y, float *) {
            convolution<<<n / 256, 256>>>(x, weights, y, n);
        });
        timed("dot", n, 256, [=](float *x, float *y, float *z) { dot<<<1056, 256>>>(x, y, z, n); });
    }
    for (int n : {1 << 18, some}) {
        timed("gather", n, 256,
              [=](float *x, float *y, float *) { gather<<<n / 256, 256>>>(x, places, y, n); });
        timed("histogram", n, 256, [=](float *x, float *, float *) {
            histogram<<<n / 2048, 256>>>(bytes, (int *)x, n);
        });
        timed("sum_by_atomics", n, 256,
              [=](float *x, float *y, float *) { sum_by_atomics<<<n / 256, 256>>>(x, y, n); });
        timed("bitonic_sort", n, 512,
              [=](float *x, float *, float *) { bitonic_sort<<<n / 512, 512>>>(x); });
    }
    for (int n : {1024, 4096}) {
        dim3 tiles(n / 32, n / 32), rows(n / 32, n / 8), wide(32, 8);
        timed("transpose", n, 256,
              [=](float *x, float *y, float *) { transpose<<<tiles, wide>>>(x, y, n); });
        timed("transpose_tile", n, 256,
              [=](float *x, float *y, float *) { transpose_tile<32><<<tiles, wide>>>(x, y, n); });
        timed("transpose_padded", n, 256,
              [=](float *x, float *y, float *) { transpose_tile<33><<<tiles, wide>>>(x, y, n); });
        timed("stencil2d", n, 256,
              [=](float *x, float *y, float *) { stencil2d<<<rows, wide>>>(x, y, n); });
        timed("row_sums", n, 256,
              [=](float *x, float *y, float *) { row_sums<<<n / 8, wide>>>(x, y, n); });
        timed("column_sums", n, 64,
              [=](float *x, float *y, float *) { column_sums<<<n / 64, 64>>>(x, y, n); });
        timed("softmax", n, 256,
              [=](float *x, float *y, float *) { softmax<<<n, 256>>>(x, y, n); });
    }
    for (int n : {512, 1024}) {
        dim3 tiles(n / 16, n / 16), square(16, 16);
        timed("matrix_product", n, 256,
              [=](float *x, float *y, float *z) { matrix_product<<<tiles, square>>>(x, y, z, n); });
        timed("mandelbrot", n, 256,
              [=](float *x, float *, float *) { mandelbrot<<<tiles, square>>>((int *)x, n, 256); });
    }
    for (int n : {256, 512}) {
        dim3 tiles(n / 16, n / 16), square(16, 16);
        timed("matrix_product_plain", n, 256, [=](float *x, float *y, float *z) {
            matrix_product_plain<<<tiles, square>>>(x, y, z, n);
        });
    }
    timed("bodies", 4096, 256, [=](float *x, float *y, float *z) {
        bodies<<<16, 256>>>(x, y, z, x + 4096, 4096);
    });
}
