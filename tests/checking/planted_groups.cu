// Cooperative groups and masks: kernels with one planted bug each, in the lines that end in <-, and
// with FIXED the same kernels corrected. Blocks have 128 threads.

#define _CG_LIMIT_INCLUDED_DEPENDENCIES
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
namespace cg = cooperative_groups;
#ifdef FIXED
#define CORRECTED(is, was) is
#else
#define CORRECTED(is, was) was
#endif

__global__ void tile_of_two_warps_left(int *x, int *out) {
    __shared__ cg::block_tile_memory<128> kept;
    __shared__ int s[128];
    int t = threadIdx.x;
    auto tile = cg::tiled_partition<64>(cg::this_thread_block(kept));
    s[t] = x[t];  // <-
    tile.sync();
    out[t] = s[t ^ CORRECTED(63, 64)];  // <-
}

__global__ void tile_of_sixteen_left(int *x, int *out) {
    __shared__ int s[128];
    int t = threadIdx.x;
    auto tile = cg::tiled_partition<16>(cg::this_thread_block());
    s[t] = x[t];  // <-
    tile.sync();
    out[t] = s[t ^ CORRECTED(15, 16)];  // <-
}

__global__ void lanes_that_the_mask_does_not_name(int *x, int *out) {
    __shared__ int s[128];
    int t = threadIdx.x;
    s[t] = x[t];  // <-
    if (t & 16) __syncwarp(0xffff0000);
    else __syncwarp(0xffff);
    out[t] = s[t ^ CORRECTED(15, 16)];  // <-
}

__global__ void barrier_in_place_of_a_wait(int *x, int *out) {
    __shared__ int s[128];
    int t = threadIdx.x;
    auto block = cg::this_thread_block();
    cg::memcpy_async(block, s, x, sizeof(s));  // <-
    CORRECTED(cg::wait(block), block.sync());
    out[t] = s[127 - t];  // <-
    cg::wait(block);
}

__global__ void read_before_the_wait(int *x, int *out) {
    __shared__ int s[128];
    int t = threadIdx.x;
    auto block = cg::this_thread_block();
    s[t] = x[t];  // <-
    auto token = block.barrier_arrive();
    CORRECTED(block.barrier_wait(std::move(token)), );
    out[t] = s[127 - t];  // <-
    CORRECTED(, block.barrier_wait(std::move(token)));
}

__global__ void barrier_with_a_count(int *x, int *out) {
    __shared__ int s[128];
    int t = threadIdx.x;
    s[t] = x[t];
    int n = __syncthreads_count(x[t] > 5);
    out[t] = s[127 - t] + n;  // <-
    CORRECTED(n = __syncthreads_or(x[t] > 7), );
    s[t] = n;  // <-
}
