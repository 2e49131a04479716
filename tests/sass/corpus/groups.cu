#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
__global__ void group_reduce(const int *x, int *y) {
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<32> tile = cg::tiled_partition<32>(block);
    int sum = cg::reduce(tile, x[block.group_index().x * 128 + block.thread_rank()], cg::plus<int>());
    if (tile.thread_rank() == 0) atomicAdd(&y[blockIdx.x], sum);
}
__global__ void group_reduce_float(const float *x, float *y) {
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<16> tile = cg::tiled_partition<16>(block);
    float sum = cg::reduce(tile, x[blockIdx.x * 128 + threadIdx.x], cg::plus<float>());
    if (tile.thread_rank() == 0) y[(blockIdx.x * 128 + threadIdx.x) / 16] = sum;
}
__global__ void coalesced(const int *x, int *y, int n) {
    int i = blockIdx.x * 128 + threadIdx.x;
    if (x[i] > 50) { cg::coalesced_group g = cg::coalesced_threads(); if (g.thread_rank() == 0) atomicAdd(y, g.size()); }
}
