// Kernels that copy boxes of tensor maps: tests run them, their bytes on an H200 are in tensors.csv.
#include <cuda.h>
#include "bulk.cuh"
#define PARAMETERS const __grid_constant__ CUtensorMap map, unsigned *x, int bytes, int c0, \
                   int c1, int c2, int c3, int c4
template<class F> __device__ void loaded(unsigned *x, int bytes, F load) {
    __shared__ alignas(1024) unsigned tile[8192];
    __shared__ u64 bar;
    if (threadIdx.x == 0) {
        init(&bar, 1);
        FENCE;
        expect(&bar, bytes);
        load(at(tile), at(&bar));
    }
    __syncthreads();
    wait(&bar, 0);
    for (int i = threadIdx.x; i < bytes / 4; i += blockDim.x) x[i] = tile[i];
}
template<class F> __device__ void stored(unsigned *x, int bytes, F store) {
    __shared__ alignas(1024) unsigned tile[8192];
    for (int i = threadIdx.x; i < bytes / 4; i += blockDim.x) tile[i] = x[i];
    FENCE;
    __syncthreads();
    if (threadIdx.x == 0) { store(at(tile)); COMMIT; AWAIT(0); }
}
#define LOAD(n, coordinates, ...) \
    loaded(x, bytes, [&](unsigned tile, unsigned bar) { \
        asm volatile("cp.async.bulk.tensor." n ".shared::cluster.global.tile" \
                     ".mbarrier::complete_tx::bytes [%0], [%1, {" coordinates "}], [%2];" \
                     :: "r"(tile), "l"(&map), "r"(bar), __VA_ARGS__ : "memory"); })
#define STORE(what, n, how, coordinates, ...) \
    stored(x, bytes, [&](unsigned tile) { \
        asm volatile("cp." what "async.bulk.tensor." n ".global.shared::cta." how "bulk_group" \
                     " [%0, {" coordinates "}], [%1];" \
                     :: "l"(&map), "r"(tile), __VA_ARGS__ : "memory"); })
extern "C" __global__ void load_1(PARAMETERS) { LOAD("1d", "%3", "r"(c0)); }
extern "C" __global__ void load_2(PARAMETERS) { LOAD("2d", "%3, %4", "r"(c0), "r"(c1)); }
extern "C" __global__ void load_3(PARAMETERS) {
    LOAD("3d", "%3, %4, %5", "r"(c0), "r"(c1), "r"(c2));
}
extern "C" __global__ void load_4(PARAMETERS) {
    LOAD("4d", "%3, %4, %5, %6", "r"(c0), "r"(c1), "r"(c2), "r"(c3));
}
extern "C" __global__ void load_5(PARAMETERS) {
    LOAD("5d", "%3, %4, %5, %6, %7", "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4));
}
extern "C" __global__ void store_2(PARAMETERS) {
    STORE("", "2d", "", "%2, %3", "r"(c0), "r"(c1));
}
extern "C" __global__ void add_2(PARAMETERS) {
    STORE("reduce.", "2d", "add.", "%2, %3", "r"(c0), "r"(c1));
}
