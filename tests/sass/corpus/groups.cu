#define _CG_LIMIT_INCLUDED_DEPENDENCIES
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

__global__ void whole_grid(int *x, int *total, int rounds) {
  cg::grid_group grid = cg::this_grid();
  for (int round = 0; round < rounds; round++) {
    for (unsigned i = grid.thread_rank(); i < 512; i += grid.size()) x[i] = 2 * x[i] + 1;
    grid.sync();
    if (grid.thread_rank() == 0)
      for (int i = 0; i < 512; i++) *total += x[i];
    grid.sync();
  }
}

__global__ void labelled(const int *x, int *most) {
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  auto alike = cg::labeled_partition(warp, x[threadIdx.x] & 3);
  most[threadIdx.x] = cg::reduce(alike, x[threadIdx.x], cg::greater<int>());
}
