// Times of the kernels beside it. To build and run, with a GPU of compute capability 9.0:
// nvcc -O3 -std=c++17 -gencode arch=compute_90a,code=sm_90a -o clusters measure_clusters.cu
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>
#include "clusters.cu"
#define OK(x) do { cudaError_t e = (x); if (e) { printf("# %s: %s\n", #x, cudaGetErrorString(e)); exit(1); } } while (0)
__global__ void empty(const uint4 *x, size_t n, uint4 *y) {
    uint4 s = {};
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        uint4 v = x[i]; s.x ^= v.x; s.y ^= v.y; s.z ^= v.z; s.w ^= v.w;
    }
    if (s.x == 0x12345678 && s.y == 77) *y = s;
}
static float *x, *y; static uint4 *big; static cudaEvent_t e0, e1;
static size_t bigs = (size_t)512 << 20;
template <class F> void timed(const char *name, dim3 grid, int block, int shared, int n, F f) {
    for (int warm = 0; warm < 2; warm++) {
        std::vector<float> r;
        for (int i = 0; i < TIMES; i++) {
            OK(cudaMemsetAsync(y, 0, 1 << 20));
            if (warm) f(); else empty<<<1056, 256>>>(big, bigs / 16, (uint4 *)y);
            OK(cudaEventRecord(e0));
            f();
            OK(cudaEventRecord(e1));
            OK(cudaDeviceSynchronize());
            float ms; OK(cudaEventElapsedTime(&ms, e0, e1));
            r.push_back(1000 * ms);
        }
        std::sort(r.begin(), r.end());
        printf("%s,%s,%d,%d,%d,%d,%d,%.2f\n", name, warm ? "warm" : "cold", grid.x, grid.y, block, shared, n, r[TIMES / 2]);
        fflush(stdout);
    }
}
typedef CUresult (*Encode)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *, const cuuint64_t *,
    const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
static Encode encode;
static CUtensorMap map_of(float *data, int n, unsigned columns, unsigned rows, CUtensorMapSwizzle swizzle) {
    CUtensorMap m; cuuint64_t extents[2] = {(cuuint64_t)n, (cuuint64_t)n}, strides[1] = {(cuuint64_t)n * 4};
    cuuint32_t box[2] = {columns, rows}, ones[2] = {1, 1};
    if (encode(&m, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, data, extents, strides, box, ones, CU_TENSOR_MAP_INTERLEAVE_NONE,
               swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)) { printf("# encode\n"); exit(1); }
    return m;
}
#define PLAIN(k, grid, block, shared, n) do { \
    OK(cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, shared)); \
    timed(#k, grid, block, shared, n, [&] { k<<<grid, block, shared>>>(x, y, n); }); } while (0)
int main() {
    size_t most = (size_t)1 << 28;
    OK(cudaMalloc(&x, most)); OK(cudaMalloc(&y, most)); OK(cudaMalloc(&big, bigs));
    std::vector<float> h(most / 4);
    for (size_t i = 0; i < h.size(); i++) h[i] = (unsigned)(i * 2654435761u) / 4294967296.0f;
    OK(cudaMemcpy(x, h.data(), most, cudaMemcpyHostToDevice)); OK(cudaMemset(big, 1, bigs));
    OK(cudaEventCreate(&e0)); OK(cudaEventCreate(&e1));
    void *f; cudaDriverEntryPointQueryResult q;
    OK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &f, 12000, cudaEnableDefault, &q));
    encode = (Encode)f;
    for (int i = 0; i < TIMES * 10; i++) empty<<<1056, 256>>>(big, bigs / 16, (uint4 *)y);
    for (int rows : {64, 1024}) PLAIN(softmax_4, rows * 4, 256, 16384, rows * 16384);
    PLAIN(softmax_2, 1024, 256, 16384, 1024 * 4096);
    PLAIN(softmax_8, 1024, 256, 16384, 1024 * 4096);
    for (int rows : {66, 1024}) PLAIN(rms_norm, rows * 2, 512, 0, rows * 16384);
    for (int n : {1 << 20, 1 << 24}) PLAIN(histogram, 496, 256, 4096, n);
    for (int n : {1 << 20, 1 << 23}) PLAIN(multicast_2, 132, 288, 32768, n);
    PLAIN(multicast_4, 124, 288, 32768, 1 << 22);
    PLAIN(multicast_one, 132, 288, 32768, 1 << 22);
    for (int n : {16, 64}) PLAIN(exchange, 120, 128, 0, n);
    for (int n : {16, 64}) PLAIN(hand_round, 124, 128, 8192, n);
    for (int n : {1024, 4096}) {
        CUtensorMap in = map_of(x, n, 32, 32, CU_TENSOR_MAP_SWIZZLE_128B), out = map_of(y, n, 32, 32, CU_TENSOR_MAP_SWIZZLE_128B);
        dim3 grid(n / 32, n / 32);
        timed("transpose_box", grid, 256, 8192, n, [&] { transpose_box<<<grid, 256, 8192>>>(in, out, n); });
        in = map_of(x, n, 32, 64, CU_TENSOR_MAP_SWIZZLE_NONE), out = map_of(y, n, 32, 64, CU_TENSOR_MAP_SWIZZLE_NONE);
        timed("scale_boxes", 528, 128, 32768, n, [&] { scale_boxes<<<528, 128, 32768>>>(in, out, n); });
        in = map_of(x, n, 32, 128, CU_TENSOR_MAP_SWIZZLE_NONE);
        OK(cudaFuncSetAttribute(add_boxes, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536));
        timed("add_boxes", 264, 256, 65536, n, [&] { add_boxes<<<264, 256, 65536>>>(in, y, n); });
    }
    printf("# done\n");
}
