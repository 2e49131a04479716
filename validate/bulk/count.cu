// Launches each kernel of counted.cuh a few times, for Nsight Compute. To build and run, with a GPU of
// compute capability 9.0: nvcc -O3 -std=c++17 -arch=sm_90a -o count count.cu && python3 count.py
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include "counted.cuh"
#define OK(x) do { cudaError_t e = (x); if (e) { printf("# %s: %s\n", #x, cudaGetErrorString(e)); exit(1); } } while (0)
static char *x;
typedef CUresult (*Encode)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *, const cuuint64_t *,
    const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
static Encode encode;
// An array of 100 rows and 40 words a row, of which boxes take `columns` and `rows`.
static CUtensorMap map_of(unsigned columns, unsigned rows) {
    CUtensorMap m; cuuint64_t extents[2] = {40, 100}, strides[1] = {160};
    cuuint32_t box[2] = {columns, rows}, ones[2] = {1, 1};
    if (encode(&m, CU_TENSOR_MAP_DATA_TYPE_UINT32, 2, x, extents, strides, box, ones, CU_TENSOR_MAP_INTERLEAVE_NONE,
               CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)) { printf("# encode\n"); exit(1); }
    return m;
}
#define SHARED 65536
#define RUN(k, grid, block, offset, ...) do { \
    OK(cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED)); \
    k<<<grid, block, SHARED>>>(x + offset, __VA_ARGS__); OK(cudaDeviceSynchronize()); \
    printf(#k ",%d,%d,%d,%s\n", grid, block, offset, #__VA_ARGS__); } while (0)
#define BOX(k, grid, columns, rows, count, apart, shift) do { \
    OK(cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED)); \
    k<<<grid, 64, SHARED>>>(map_of(columns, rows), x, 4 * columns * rows, count, apart, shift); OK(cudaDeviceSynchronize()); \
    printf(#k ",%d,64,0,%dx%d,%d,%d,%d\n", grid, columns, rows, count, apart, shift); } while (0)
#define PIECES(k) RUN(k, 6, 64, 0, 4096, 3, 4096, 0); RUN(k, 6, 64, 16, 2000, 5, 2064, 0); RUN(k, 12, 64, 0, 16, 7, 16, 0); \
    RUN(k, 4, 64, 48, 1456, 4, 1536, 80)
#define CLUSTER(k) RUN(k, 8, 64, 0, 4096, 3, 4096, 0); RUN(k, 8, 64, 16, 2000, 5, 2064, 0); RUN(k, 4, 64, 48, 1456, 4, 1536, 80)
#define PEERS(k) RUN(k, 8, 64, 0, 4, 3, 4, 0); RUN(k, 8, 64, 0, 4, 5, 32, 0); RUN(k, 8, 48, 0, 4, 2, 8, 0)
#define BOXES(k) BOX(k, 4, 32, 8, 2, 8, 0); BOX(k, 4, 4, 16, 3, 9, 0); BOX(k, 2, 64, 12, 4, 20, 0); BOX(k, 2, 12, 8, 3, 8, 16)
int main() {
    OK(cudaMalloc(&x, 1 << 24)); OK(cudaMemset(x, 0, 1 << 24));
    void *f; cudaDriverEntryPointQueryResult q;
    OK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &f, 12000, cudaEnableDefault, &q));
    encode = (Encode)f;
    PIECES(bulk_load); PIECES(bulk_store); PIECES(bulk_add); PIECES(bulk_prefetch);
    CLUSTER(multicast); CLUSTER(peer_copy); PEERS(peer_store); PEERS(peer_load); PEERS(peer_add); PEERS(peer_send);
    BOXES(box_load); BOXES(box_store); BOXES(box_add);
    RUN(plain_copy, 8, 128, 0, 4, 3, 4, 0);
}
