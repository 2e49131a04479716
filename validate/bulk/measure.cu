// Times of bulk copies, mbarriers and the kernels beside it. To build and run, with a GPU of compute
// capability 9.0: nvcc -O3 -arch=sm_90a -o measure measure.cu -lcuda && ./measure > h200.csv
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>
#include "kernels.cu"
#define OK(x) do { cudaError_t e = (x); if (e) { printf("# %s: %s\n", #x, cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void empty(const uint4 *x, size_t n, uint4 *y) {
    uint4 s = {};
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        uint4 v = x[i]; s.x ^= v.x; s.y ^= v.y; s.z ^= v.z; s.w ^= v.w;
    }
    if (s.x == 0x12345678 && s.y == 77) *y = s;
}
// -- probes: cycles of one block ----------------------------------------------------------------
__global__ void several(const char *x, long long *out, int bytes, int count) {
    extern __shared__ __align__(128) char place[];
    __shared__ u64 full;
    init(&full, 1); FENCE;
    long long a = clock64();
    expect(&full, bytes * count);
    for (int i = 0; i < count; i++) load(place + i * bytes, x + (size_t)i * bytes, bytes, &full);
    long long b = clock64();
    wait(&full, 0);
    out[0] = clock64() - a; out[1] = b - a;
}
__global__ void several_out(char *x, long long *out, int bytes, int count) {
    extern __shared__ __align__(128) char place[];
    long long a = clock64();
    for (int i = 0; i < count; i++) save(x + (size_t)i * bytes, place + i * bytes, bytes);
    COMMIT;
    long long b = clock64();
    READ(0);
    out[0] = clock64() - a; out[1] = b - a;
}
__global__ void alone(long long *out, int count) {
    __shared__ u64 bar;
    init(&bar, 1);
    long long a = clock64();
    for (int i = 0; i < count; i++) { arrive(&bar); wait(&bar, i % 2); }
    out[0] = clock64() - a;
}
__global__ void to_and_fro(long long *out, int count) {
    __shared__ u64 bar[2];
    int w = threadIdx.x / 32;
    if (threadIdx.x == 0) { init(&bar[0], 1); init(&bar[1], 1); }
    __syncthreads();
    if (threadIdx.x % 32) return;
    long long a = clock64();
    for (int i = 0; i < count; i++) {
        if (w == 0) { arrive(&bar[0]); wait(&bar[1], i % 2); }
        else { wait(&bar[0], i % 2); arrive(&bar[1]); }
    }
    if (w == 0) out[0] = clock64() - a;
}
__global__ void all_arrive(long long *out, int count) {
    __shared__ u64 bar;
    if (threadIdx.x == 0) init(&bar, blockDim.x);
    __syncthreads();
    long long a = clock64();
    for (int i = 0; i < count; i++) { arrive(&bar); wait(&bar, i % 2); }
    if (threadIdx.x == 0) out[0] = clock64() - a;
}
static float *x, *y; static long long *out; static uint4 *big; static size_t bigs = (size_t)512 << 20;
static cudaEvent_t e0, e1;
template <class F> void row(const char *what, int threads, int bytes, int count, F f, int divide = 1) {
    std::vector<long long> r;
    long long h[2];
    for (int i = 0; i < 9; i++) {
        f(); OK(cudaDeviceSynchronize());
        OK(cudaMemcpy(h, out, 16, cudaMemcpyDeviceToHost));
        r.push_back(h[0]);
    }
    std::sort(r.begin(), r.end());
    printf("%s,1,%d,%d,%d,%.1f,cycles\n", what, threads, bytes, count, (double)r[4] / divide);
}
static void flush() { empty<<<1056, 256>>>(big, bigs / 16, (uint4 *)out); }
template <class K> void timed(const char *what, K k, int grid, int block, int shared, int n) {
    OK(cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
    for (int warm = 0; warm < 2; warm++) {
        std::vector<float> r;
        for (int i = 0; i < 21; i++) {
            if (warm) k<<<grid, block, shared>>>(x, y, n); else flush();
            OK(cudaEventRecord(e0));
            k<<<grid, block, shared>>>(x, y, n);
            OK(cudaEventRecord(e1));
            OK(cudaDeviceSynchronize());
            float ms; OK(cudaEventElapsedTime(&ms, e0, e1));
            r.push_back(1000 * ms);
        }
        std::sort(r.begin(), r.end());
        printf("%s %s,%d,%d,%d,%d,%.2f,us\n", what, warm ? "warm" : "cold", grid, block, shared, n, r[10]);
    }
}
int main() {
    cudaDeviceProp p; OK(cudaGetDeviceProperties(&p, 0));
    printf("# %s, sm_%d%d\nwhat,grid,threads,bytes,count,value,unit\n", p.name, p.major, p.minor);
    size_t most = (size_t)1 << 28;
    OK(cudaMalloc(&x, most)); OK(cudaMalloc(&y, most)); OK(cudaMalloc(&out, 4096)); OK(cudaMalloc(&big, bigs));
    OK(cudaMemset(x, 0, most)); OK(cudaMemset(big, 1, bigs)); OK(cudaEventCreate(&e0)); OK(cudaEventCreate(&e1));
    for (int i = 0; i < 200; i++) flush();
    OK(cudaFuncSetAttribute(several, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 << 10));
    OK(cudaFuncSetAttribute(several_out, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 << 10));
    for (int bytes : {16, 64, 256, 1024, 4096, 16384})
        for (int count : {1, 2, 4, 8, 16, 32, 64})
            if (bytes * count <= 128 << 10) {
                row("loads in flight warm", 1, bytes, count, [&] { several<<<1, 1, 128 << 10>>>((char *)x, out, bytes, count); });
                row("loads in flight cold", 1, bytes, count, [&] { flush(); several<<<1, 1, 128 << 10>>>((char *)x, out, bytes, count); });
                row("stores in flight", 1, bytes, count, [&] { several_out<<<1, 1, 128 << 10>>>((char *)y, out, bytes, count); });
            }
    row("arrive and wait", 1, 0, 1, [&] { alone<<<1, 1>>>(out, 200); }, 200);
    row("two warps to and fro", 64, 0, 1, [&] { to_and_fro<<<1, 64>>>(out, 200); }, 200);
    for (int t : {32, 64, 128, 256, 512, 1024})
        row("all arrive and wait", t, 0, 1, [&] { all_arrive<<<1, t>>>(out, 200); }, 200);
    int K = 1 << 10, M = 1 << 20;
    for (int n : {M, 4 * M, 16 * M, 64 * M}) {
        timed("add_4k_by_4", add_4k_by_4, 264, 256, 16 * K, n);
        timed("add_16k_by_2", add_16k_by_2, 264, 256, 32 * K, n);
        timed("specialised", specialised, 264, 160, 32 * K, n);
        timed("copy_tiles", copy_tiles, 528, 32, 32 * K, n);
        timed("scale_tile", scale_tile, n / 2048, 256, 0, n);
        timed("softmax_row", softmax_row, n / 4096, 256, 0, n);
    }
    for (int n : {4 * M, 16 * M}) {
        timed("add_16k_by_4", add_16k_by_4, 132, 512, 64 * K, n);
        timed("add_16k_by_2", add_16k_by_2, 132, 256, 32 * K, n);
        timed("add_4k_by_4", add_4k_by_4, 132, 128, 16 * K, n);
        timed("add_1k_by_8", add_1k_by_8, 1056, 128, 8 * K, n);
        timed("add_2k_by_1", add_2k_by_1, 1056, 128, 2 * K, n);
        timed("specialised", specialised, 132, 288, 32 * K, n);
        timed("copy_tiles", copy_tiles, 132, 32, 32 * K, n);
    }
    OK(cudaDeviceSynchronize());
}
