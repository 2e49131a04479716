#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/warp/warp_reduce.cuh>

__global__ void block_reduce(const int *x, int *y) {
    using Reduce = cub::BlockReduce<int, 128>;
    __shared__ typename Reduce::TempStorage storage;
    int sum = Reduce(storage).Sum(x[blockIdx.x * 128 + threadIdx.x]);
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
__global__ void block_scan(const int *x, int *y) {
    using Scan = cub::BlockScan<int, 128>;
    __shared__ typename Scan::TempStorage storage;
    int value = x[blockIdx.x * 128 + threadIdx.x];
    Scan(storage).InclusiveSum(value, value);
    y[blockIdx.x * 128 + threadIdx.x] = value;
}
__global__ void warp_reduce(const float *x, float *y) {
    using Reduce = cub::WarpReduce<float>;
    __shared__ typename Reduce::TempStorage storage[4];
    int warp = threadIdx.x / 32;
    float sum = Reduce(storage[warp]).Sum(x[blockIdx.x * 128 + threadIdx.x]);
    if (threadIdx.x % 32 == 0) y[blockIdx.x * 4 + warp] = sum;
}
__global__ void radix_sort(int *x) {
    using Sort = cub::BlockRadixSort<int, 128, 4>;
    __shared__ typename Sort::TempStorage storage;
    int keys[4];
    for (int k = 0; k < 4; k++) keys[k] = x[(blockIdx.x * 128 + threadIdx.x) * 4 + k];
    Sort(storage).Sort(keys);
    for (int k = 0; k < 4; k++) x[(blockIdx.x * 128 + threadIdx.x) * 4 + k] = keys[k];
}
