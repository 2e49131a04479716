// Times of the kernels of pipelines.cuh. To build and run, with a GPU of compute capability 9.0:
// nvcc -O3 -std=c++17 -gencode arch=compute_90a,code=sm_90a -o pipelines measure_pipelines.cu && ./pipelines
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>
#include "pipelines.cuh"
#ifndef TIMES
#define TIMES 9
#endif
#define OK(e) do { cudaError_t r = (e); if (r) { printf("# %s: %s\n", #e, cudaGetErrorString(r)); exit(1); } } while (0)
__global__ void empty(const uint4 *x, size_t n, uint4 *y) {
    uint4 s = {};
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        uint4 v = x[i]; s.x ^= v.x; s.y ^= v.y; s.z ^= v.z; s.w ^= v.w;
    }
    if (s.x == 0x12345678 && s.y == 77) *y = s;
}
static float *x, *y; static uint4 *big; static cudaEvent_t e0, e1;
static size_t bigs = (size_t)512 << 20;
template <class F> void row(const char *name, int grid, int a, int b, int c, int d, F f) {
    for (int warm = 0; warm < 2; warm++) {
        std::vector<float> r;
        for (int i = 0; i < TIMES; i++) {
            if (warm) f(); else empty<<<1056, 256>>>(big, bigs / 16, (uint4 *)y);
            OK(cudaEventRecord(e0)); f(); OK(cudaEventRecord(e1)); OK(cudaDeviceSynchronize());
            float ms; OK(cudaEventElapsedTime(&ms, e0, e1));
            r.push_back(1000 * ms);
        }
        std::sort(r.begin(), r.end());
        printf("%s,%s,%d,%d,%d,%d,%d,%.2f\n", name, warm ? "warm" : "cold", grid, a, b, c, d, r[TIMES / 2]);
        fflush(stdout);
    }
}
template <class K> void shared(const char *name, K k, int grid, int rounds, int common, int own) {
    int bytes = 16 * (common + own);
    OK(cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    row(name, grid, rounds, common, own, bytes, [&] { k<<<grid, 288, bytes>>>(x, y, rounds, common, own); });
}
#define SIZE(C, grid) \
    shared("plain_" #C, plain_##C, grid, rounds, common, own); shared("for_all_" #C, for_all_##C, grid, rounds, common, own); \
    shared("released_" #C, released_##C, grid, rounds, common, own)
int main() {
    size_t most = (size_t)1 << 28;
    OK(cudaMalloc(&x, most)); OK(cudaMalloc(&y, 1 << 20)); OK(cudaMalloc(&big, bigs));
    OK(cudaMemset(x, 0, most)); OK(cudaMemset(big, 1, bigs)); OK(cudaEventCreate(&e0)); OK(cudaEventCreate(&e1));
    for (int i = 0; i < 100; i++) empty<<<1056, 256>>>(big, bigs / 16, (uint4 *)y);
    printf("kernel,l2,grid,stages,words,work,n,us\n");
    OK(cudaFuncSetAttribute(by_depth, cudaFuncAttributeMaxDynamicSharedMemorySize, 128 << 10));
    int n = 1 << 23;
    for (int work : {0, 16})
        for (int words : {64, 128, 256, 512, 1024, 2048, 4096})
            for (int stages : {1, 2, 3, 4, 6, 8})
                row("by_depth", 132, stages, words, work, n,
                    [&] { by_depth<<<132, 288, 4 * stages * words>>>(x, y, n, stages, words, work); });
    printf("kernel,l2,grid,rounds,common,own,shared,us\n");
    for (int common : {512, 1024, 2048, 3072}) {
        int own = 3072 - common, rounds = 64;
        SIZE(2, 132); SIZE(4, 120); SIZE(8, 120);
    }
    printf("# done\n");
}
