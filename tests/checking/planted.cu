// The planted kernels in CUDA C++, for compute-sanitizer. With FIXED they are the corrected twins.
//
//     nvcc -O1 -lineinfo -arch=sm_90 [-DFIXED] planted.cu -o planted && ./planted NAME
//
// Kernels bear the names of the Python ones. B() stands in the bug alone, F() in the twin alone.

#include <cstdio>
#include <cstring>

#ifdef FIXED
#define B(...)
#define F(...) __VA_ARGS__
#else
#define B(...) __VA_ARGS__
#define F(...)
#endif
#define KERNEL(name) __global__ void name(int *x, int *out, int *more, int n)
#define ALL 0xFFFFFFFFu
#define GRID1 (blockIdx.x * blockDim.x + threadIdx.x)

// ---- races in shared memory between warps

KERNEL(read_of_the_neighbour_before_the_barrier) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = x[GRID1];
    F(__syncthreads();)
    out[GRID1] = s[(t + 1) % 64];
}

KERNEL(reversal_without_barrier) {
    __shared__ int s[128];
    int t = threadIdx.x;
    s[t] = x[t];
    F(__syncthreads();)
    out[t] = s[127 - t];
}

KERNEL(broadcast_of_thread_0_without_barrier) {
    __shared__ int s[1];
    if (threadIdx.x == 0) s[0] = x[blockIdx.x];
    F(__syncthreads();)
    out[GRID1] = s[0];
}

KERNEL(transposition_without_barrier) {
    __shared__ int tile[16][17];
    int column = threadIdx.x, row = threadIdx.y;
    tile[row][column] = x[(blockIdx.y * 16 + row) * 32 + blockIdx.x * 16 + column];
    F(__syncthreads();)
    out[(blockIdx.x * 16 + row) * 32 + blockIdx.y * 16 + column] = tile[column][row];
}

KERNEL(tree_without_barrier_in_its_loop) {
    __shared__ int s[256];
    int t = threadIdx.x;
    s[t] = x[GRID1];
    __syncthreads();
    for (int o = 128; o > 0; o /= 2) {
        if (t < o) s[t] += s[t + o];
        F(__syncthreads();)
    }
    if (t == 0) out[blockIdx.x] = s[0];
}

KERNEL(tree_without_barrier_before_its_loop) {
    __shared__ int s[256];
    int t = threadIdx.x;
    s[t] = x[GRID1];
    F(__syncthreads();)
    for (int o = 128; o > 0; o /= 2) {
        if (t < o) s[t] += s[t + o];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = s[0];
}

KERNEL(race_in_dynamic_memory) {
    extern __shared__ int s[];
    int t = threadIdx.x;
    s[t] = x[GRID1];
    F(__syncthreads();)
    out[GRID1] = s[t ^ 32];
}

KERNEL(race_of_wide_elements) {
    __shared__ double s[96];
    int t = threadIdx.x;
    s[t] = x[t];
    F(__syncthreads();)
    out[t] = (int)s[(t + 40) % 96];
}

KERNEL(race_of_bytes) {
    __shared__ signed char s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    B(out[t] = s[(t + 1) % 64];)
    F(out[t] = s[t];)
}

KERNEL(vector_load_of_what_others_store) {
    __shared__ __align__(16) int s[128];
    int t = threadIdx.x;
    s[t] = x[t];
    F(__syncthreads();)
    if (t < 32) ((int4 *)out)[t] = ((int4 *)s)[t];
}

KERNEL(warp_barrier_where_the_block_must_meet) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = x[GRID1];
    __syncwarp();
    B(out[GRID1] = s[63 - t];)
    F(out[GRID1] = s[t ^ 31];)
}

KERNEL(fence_where_a_barrier_must_stand) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = x[GRID1];
    __threadfence_block();
    F(__syncthreads();)
    out[GRID1] = s[63 - t];
}

KERNEL(histogram_read_before_all_have_counted) {
    __shared__ int own[16];
    int t = threadIdx.x;
    if (t < 16) own[t] = 0;
    __syncthreads();
    atomicAdd(&own[x[GRID1] % 16], 1);
    F(__syncthreads();)
    if (t < 16) atomicAdd(&out[t], own[t]);
}

KERNEL(histogram_counted_before_it_is_cleared) {
    __shared__ int own[16];
    int t = threadIdx.x;
    if (t < 16) own[t] = 0;
    F(__syncthreads();)
    atomicAdd(&own[x[GRID1] % 16], 1);
    __syncthreads();
    if (t < 16) atomicAdd(&out[t], own[t]);
}

KERNEL(scan_with_one_buffer_and_one_barrier) {
    __shared__ int s[128];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    for (int o = 1; o < 128; o *= 2) {
        B(if (t >= o) s[t] += s[t - o];)
        F(int before = t >= o ? s[t - o] : 0; __syncthreads(); s[t] += before;)
        __syncthreads();
    }
    out[t] = s[t];
}

KERNEL(sums_of_warps_read_before_the_barrier) {
    __shared__ int sums[8];
    int t = threadIdx.x, v = x[GRID1];
    for (int o = 16; o > 0; o /= 2) v += __shfl_down_sync(ALL, v, o);
    if (t % 32 == 0) sums[t / 32] = v;
    F(__syncthreads();)
    if (t == 0) {
        int total = 0;
        for (int w = 0; w < 8; w++) total += sums[w];
        out[blockIdx.x] = total;
    }
}

KERNEL(overwrite_before_all_have_read) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    int v = s[63 - t];
    F(__syncthreads();)
    s[t] = v + 1;
    __syncthreads();
    out[t] = s[t];
}

KERNEL(tile_refilled_before_all_have_read) {
    __shared__ int tile[64];
    int t = threadIdx.x, total = 0;
    for (int k = 0; k < 4; k++) {
        tile[t] = x[64 * k + t];
        __syncthreads();
        for (int j = 0; j < 64; j++) total += tile[j];
        F(__syncthreads();)
    }
    out[GRID1] = total;
}

KERNEL(scratch_used_again_too_early) {
    __shared__ int part[128];
    int t = threadIdx.x;
    part[t] = x[t];
    __syncthreads();
    for (int o = 64; o > 0; o /= 2) {
        if (t < o) part[t] = max(part[t], part[t + o]);
        __syncthreads();
    }
    int most = part[0];
    F(__syncthreads();)
    part[t] = most - x[t];
    __syncthreads();
    out[t] = part[127 - t];
}

KERNEL(two_buffers_that_do_not_change_roles) {
    __shared__ int s[2][128];
    int t = threadIdx.x, source = 0;
    s[0][t] = x[t];
    __syncthreads();
    for (int k = 0; k < 3; k++) {
        B(s[source][t] = s[source][(t + 32) % 128] + 1;)
        F(s[1 - source][t] = s[source][(t + 32) % 128] + 1; source = 1 - source;)
        __syncthreads();
    }
    out[t] = s[source][t];
}

KERNEL(thread_0_overwrites_what_others_still_read) {
    __shared__ int s[1];
    int t = threadIdx.x, total = 0;
    for (int k = 0; k < 3; k++) {
        if (t == 0) s[0] = x[blockIdx.x] + k;
        __syncthreads();
        total += s[0];
        F(__syncthreads();)
    }
    out[GRID1] = total;
}

KERNEL(two_warps_store_to_the_same_elements) {
    __shared__ int s[64];
    int t = threadIdx.x;
    B(s[t % 32] = x[t];)
    F(s[t] = x[t];)
    __syncthreads();
    if (t < 32) out[t] = s[t];
}

KERNEL(two_threads_initialise_one_element) {
    __shared__ int s[2];
    int t = threadIdx.x;
    if (t == 0) s[0] = x[0];
    B(if (t == 32) s[0] = x[32];)
    F(if (t == 32) s[1] = x[32];)
    __syncthreads();
    out[t] = s[0];
}

KERNEL(barrier_that_comes_before_the_store) {
    __shared__ int s[96];
    int t = threadIdx.x, v = x[t] * 2;
    B(__syncthreads();)
    s[t] = v;
    F(__syncthreads();)
    out[t] = s[95 - t];
}

// ---- races between lanes of a warp

KERNEL(warp_tail_in_plain_memory) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = x[GRID1];
    s[t + 32] = 0;
    __syncthreads();
    for (int o = 16; o > 4; o /= 2) {
        int v = s[t + o];
        F(__syncwarp();)
        s[t] += v;
        F(__syncwarp();)
    }
    if (t == 0) out[blockIdx.x] = s[0];
}

KERNEL(guarded_warp_tail_without_barriers) {
    __shared__ int s[32];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncwarp();
    if (t < 16) s[t] += s[t + 16];
    F(__syncwarp();)
    if (t < 8) s[t] += s[t + 8];
    F(__syncwarp();)
    if (t == 0) out[0] = s[0];
}

KERNEL(exchange_between_lanes_without_warp_barrier) {
    __shared__ int s[32];
    int t = threadIdx.x;
    s[t] = x[t];
    F(__syncwarp();)
    out[t] = s[t ^ 1];
}

KERNEL(one_side_of_a_branch_reads_what_the_other_stores) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = 0;
    __syncthreads();
    if (t % 32 < 16) s[t] = x[GRID1];
    F(__syncwarp();)
    if (t % 32 >= 16) out[GRID1] = s[t - 16];
}

KERNEL(warp_barrier_of_half_the_lanes) {
    __shared__ int s[32];
    int t = threadIdx.x;
    s[t] = x[t];
    if (t < 16) {
        __syncwarp(0xFFFF);
        B(out[t] = s[t + 16];)
        F(out[t] = s[15 - t];)
    }
}

KERNEL(lane_0_stores_for_all_without_warp_barrier) {
    __shared__ int s[1];
    if (threadIdx.x == 0) s[0] = x[blockIdx.x];
    F(__syncwarp();)
    out[GRID1] = s[0];
}

KERNEL(two_lanes_store_to_one_element_at_once) {
    int t = threadIdx.x;
    B(out[t / 2] = x[t];)
    F(if (t % 2 == 0) out[t / 2] = x[t] + x[t + 1];)
}

KERNEL(shared_element_stored_by_all_lanes_at_once) {
    __shared__ int s[1];
    int t = threadIdx.x;
    B(s[0] = x[t];)
    F(if (t == 0) s[0] = 7;)
    __syncwarp();
    out[t] = s[0];
}

KERNEL(warp_tail_in_volatile_memory) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    s[t + 32] = 0;
    __syncthreads();
    B(volatile int *tail = s; tail[t] += tail[t + 16]; tail[t] += tail[t + 8];)
    F(int v = s[t]; v += __shfl_down_sync(ALL, v, 16); v += __shfl_down_sync(ALL, v, 8);)
    if (t == 0) out[0] = B(s[0]) F(v);
}

// ---- races in global memory

KERNEL(result_of_another_thread_read_without_barrier) {
    int t = threadIdx.x;
    out[t] = x[t] * 2;
    F(__syncthreads();)
    x[t] = out[127 - t];
}

KERNEL(tree_in_global_memory_without_barrier) {
    int t = threadIdx.x;
    for (int o = 128; o > 0; o /= 2) {
        if (t < o) x[t] += x[t + o];
        F(__syncthreads();)
    }
}

KERNEL(sum_of_a_block_without_atomics) {
    B(out[blockIdx.x] += x[GRID1];)
    F(atomicAdd(&out[blockIdx.x], x[GRID1]);)
}

KERNEL(one_counter_for_all_blocks) {
    B(out[0] += 1;)
    F(atomicAdd(&out[0], 1);)
}

KERNEL(every_block_stores_its_sum_to_one_element) {
    if (threadIdx.x == 0) {
        B(out[0] = x[GRID1];)
        F(atomicAdd(&out[0], x[GRID1]);)
    }
}

KERNEL(histogram_without_atomics) {
    int place = x[GRID1] % 16;
    B(out[place] = out[place] + 1;)
    F(atomicAdd(&out[place], 1);)
}

KERNEL(stencil_in_place_across_blocks) {
    int i = GRID1 + 1, v = x[i - 1] + x[i + 1];
    __syncthreads();
    B(x[i] = v;)
    F(out[i] = v;)
}

KERNEL(last_block_without_fence) {
    __shared__ int last;
    int b = blockIdx.x;
    if (threadIdx.x == 0) {
        out[b + 1] = x[b * 64];
        F(__threadfence();)
        last = atomicAdd(more, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        int total = 0;
        for (int k = 0; k < 8; k++) total += out[k + 1];
        out[0] = total;
    }
}

KERNEL(flag_without_fence) {
    volatile int *flag = more;
    if (threadIdx.x == 0) {
        if (blockIdx.x == 0) {
            out[0] = x[5];
            F(__threadfence();)
            flag[0] = 1;
        } else {
            while (flag[0] == 0) {}
            F(__threadfence();)
            out[1] = out[0];
        }
    }
}

KERNEL(lock_given_back_without_fence) {
    if (threadIdx.x == 0) {
        while (atomicCAS(more, 0, 1) != 0) {}
        F(__threadfence();)
        out[0] = out[0] + x[GRID1];
        F(__threadfence();)
        atomicExch(more, 0);
    }
}

KERNEL(tiles_of_blocks_overlap) {
    int t = threadIdx.x, start = blockIdx.x * (B(63) F(64));
    out[start + t] = x[GRID1];
}

KERNEL(maximum_by_comparing_and_storing) {
    int v = x[GRID1];
    if (threadIdx.x == 63) {
        B(if (v > out[0]) out[0] = v;)
        F(atomicMax(&out[0], v);)
    }
}

// ---- barriers and masks

KERNEL(barrier_in_a_branch_of_one_warp) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    F(__syncthreads();)
    if (t < 32) {
        B(__syncthreads();)
        out[t] = s[t];
    }
}

KERNEL(barrier_in_a_branch_of_some_lanes) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = x[GRID1];
    if (x[B(t) F(0)] % 2 == 0) __syncthreads();
    out[GRID1] = s[t];
}

KERNEL(barriers_on_both_sides_of_a_branch) {
    __shared__ int s[64];
    int t = threadIdx.x;
    if (t < 32) {
        s[t] = x[t];
        B(__syncthreads();)
    } else {
        s[t] = x[t] + 1;
        B(__syncthreads();)
    }
    F(__syncthreads();)
    out[t] = s[63 - t];
}

KERNEL(barrier_in_a_loop_that_warps_leave_at_different_times) {
    int t = threadIdx.x, total = 0;
    for (int k = 0; k < (B(t / 32 + 1) F(3)); k++) {
        if (k <= t / 32) total += x[(t + k) % 96];
        __syncthreads();
    }
    out[t] = total;
}

KERNEL(barrier_inside_the_guard) {
    __shared__ int s[64];
    int i = GRID1;
    if (i < n) {
        s[threadIdx.x] = x[i];
        B(__syncthreads();)
    }
    F(__syncthreads();)
    if (i < n) out[i] = s[threadIdx.x];
}

KERNEL(barrier_after_threads_have_returned) {
    __shared__ int s[64];
    int i = GRID1;
    B(if (i >= n) return;)
    s[threadIdx.x] = i < n ? x[i] : 0;
    __syncthreads();
    if (i < n) out[i] = s[threadIdx.x ^ 1];
}

KERNEL(loop_left_before_its_barrier) {
    int t = threadIdx.x, total = 0;
    for (int k = 0; k < 4; k++) {
        B(total += x[(t + k) % 64]; if (total > 60) break;)
        F(if (total <= 60) total += x[(t + k) % 64];)
        __syncthreads();
    }
    out[t] = total;
}

KERNEL(shuffle_of_all_lanes_in_a_branch) {
    int t = threadIdx.x, v = x[t];
    F(int other = __shfl_down_sync(ALL, v, 8);)
    if (t < 16) v += B(__shfl_down_sync(ALL, v, 8)) F(other);
    out[t] = v;
}

KERNEL(mask_without_its_caller) {
    int t = threadIdx.x;
    out[t] = __shfl_xor_sync(B(0xFFFFu) F(ALL), x[t], 1);
}

KERNEL(shuffle_after_some_lanes_have_returned) {
    int t = threadIdx.x;
    B(if (t >= 20) return;)
    int v = __shfl_down_sync(ALL, x[t], 1);
    if (t < 20) out[t] = v;
}

KERNEL(ballot_of_all_lanes_in_a_branch) {
    int t = threadIdx.x;
    F(int said = __ballot_sync(ALL, x[t] > 10);)
    if (x[t] % 2 == 0) out[t] = B(__ballot_sync(ALL, x[t] > 10)) F(said);
}

KERNEL(warp_barrier_that_waits_for_lanes_at_the_block_barrier) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    if (t % 32 < 16) __syncwarp(B(ALL) F(0xFFFFu));
    __syncthreads();
    out[t] = s[63 - t];
}

// ---- memory never written, bounds, alignment

KERNEL(halo_of_a_tile_not_loaded) {
    __shared__ int tile[66];
    int t = threadIdx.x;
    tile[t + 1] = x[t];
    F(if (t == 0) tile[0] = tile[65] = 0;)
    __syncthreads();
    out[t] = tile[t] + tile[t + 1] + tile[t + 2];
}

KERNEL(elements_behind_the_guard_never_stored) {
    __shared__ int s[64];
    int t = threadIdx.x;
    if (GRID1 < n) s[t] = x[GRID1];
    F(else s[t] = 0;)
    __syncthreads();
    if (t == 0) {
        int total = 0;
        for (int k = 0; k < 64; k++) total += s[k];
        out[blockIdx.x] = total;
    }
}

KERNEL(shared_counter_not_cleared) {
    __shared__ int count;
    int t = threadIdx.x;
    F(if (t == 0) count = 0; __syncthreads();)
    if (x[t] > 4) atomicAdd(&count, 1);
    __syncthreads();
    out[t] = count;
}

// In Python all global memory has values; only here may it have none.
KERNEL(global_memory_never_written) {
    int t = threadIdx.x;
    F(more[t] = 1;)
    out[t] = x[t] + more[t];
}

KERNEL(guard_that_lets_one_too_many_through) {
    int i = GRID1;
    if (i < n + (B(1) F(0))) out[i] = x[i];
}

KERNEL(no_guard_at_all) {
    int i = GRID1;
    F(if (i < n)) out[i] = 2 * i;
}

KERNEL(neighbour_before_the_first_element) {
    int t = threadIdx.x;
    out[t] = B(x[t - 1]) F(t > 0 ? x[t - 1] : 0);
}

KERNEL(shared_array_too_short) {
    __shared__ int s[B(32) F(64)];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    out[t] = s[t];
}

KERNEL(atomic_outside_the_histogram) {
    atomicAdd(&out[x[threadIdx.x] F(% 16)], 1);
}

KERNEL(vector_load_one_element_off) {
    int t = threadIdx.x;
    ((int4 *)out)[t] = *(int4 *)&x[4 * t + (B(1) F(4))];
}

KERNEL(column_beyond_the_row) {  // of 4 rows of 16: inside the array all the same
    int row = threadIdx.y, column = threadIdx.x;
    if (row < 2 F(&& column < 16)) out[row * 16 + column] = row;
}

struct Case {
    const char *name;
    void (*kernel)(int *, int *, int *, int);
    dim3 grid, block;
    int x, out, more, shared, n;
};

#define CASE(name, ...) {#name, name, __VA_ARGS__}
static const Case CASES[] = {
    CASE(read_of_the_neighbour_before_the_barrier, 2, 64, 128, 128),
    CASE(reversal_without_barrier, 1, 128, 128, 128),
    CASE(broadcast_of_thread_0_without_barrier, 3, 96, 300, 300),
    CASE(transposition_without_barrier, dim3(2, 2), dim3(16, 16), 1024, 1024),
    CASE(tree_without_barrier_in_its_loop, 2, 256, 512, 2),
    CASE(tree_without_barrier_before_its_loop, 2, 256, 512, 2),
    CASE(race_in_dynamic_memory, 2, 64, 128, 128, 1, 256),
    CASE(race_of_wide_elements, 1, 96, 96, 96),
    CASE(race_of_bytes, 1, 64, 64, 64),
    CASE(vector_load_of_what_others_store, 1, 128, 128, 128),
    CASE(warp_barrier_where_the_block_must_meet, 2, 64, 128, 128),
    CASE(fence_where_a_barrier_must_stand, 2, 64, 128, 128),
    CASE(histogram_read_before_all_have_counted, 2, 128, 256, 16),
    CASE(histogram_counted_before_it_is_cleared, 2, 128, 256, 16),
    CASE(scan_with_one_buffer_and_one_barrier, 1, 128, 128, 128),
    CASE(sums_of_warps_read_before_the_barrier, 2, 256, 512, 2),
    CASE(overwrite_before_all_have_read, 1, 64, 64, 64),
    CASE(tile_refilled_before_all_have_read, 2, 64, 512, 128),
    CASE(scratch_used_again_too_early, 1, 128, 128, 128),
    CASE(two_buffers_that_do_not_change_roles, 1, 128, 128, 128),
    CASE(thread_0_overwrites_what_others_still_read, 4, 64, 256, 256),
    CASE(two_warps_store_to_the_same_elements, 1, 64, 64, 32),
    CASE(two_threads_initialise_one_element, 1, 64, 64, 64),
    CASE(barrier_that_comes_before_the_store, 1, 96, 96, 96),
    CASE(warp_tail_in_plain_memory, 2, 32, 64, 2),
    CASE(guarded_warp_tail_without_barriers, 1, 32, 32, 1),
    CASE(exchange_between_lanes_without_warp_barrier, 1, 32, 32, 32),
    CASE(one_side_of_a_branch_reads_what_the_other_stores, 2, 64, 128, 128),
    CASE(warp_barrier_of_half_the_lanes, 1, 32, 32, 32),
    CASE(lane_0_stores_for_all_without_warp_barrier, 3, 32, 96, 96),
    CASE(two_lanes_store_to_one_element_at_once, 1, 32, 32, 16),
    CASE(shared_element_stored_by_all_lanes_at_once, 1, 32, 32, 32),
    CASE(warp_tail_in_volatile_memory, 1, 32, 32, 1),
    CASE(result_of_another_thread_read_without_barrier, 1, 128, 128, 128),
    CASE(tree_in_global_memory_without_barrier, 1, 256, 256, 1),
    CASE(sum_of_a_block_without_atomics, 2, 64, 128, 2),
    CASE(one_counter_for_all_blocks, 4, 1, 1, 1),
    CASE(every_block_stores_its_sum_to_one_element, 8, 64, 512, 1),
    CASE(histogram_without_atomics, 8, 32, 256, 16),
    CASE(stencil_in_place_across_blocks, 4, 64, 258, 258),
    CASE(last_block_without_fence, 8, 64, 512, 9, 1),
    CASE(flag_without_fence, 2, 32, 64, 2, 1),
    CASE(lock_given_back_without_fence, 4, 32, 128, 1, 1),
    CASE(tiles_of_blocks_overlap, 4, 64, 256, 260),
    CASE(maximum_by_comparing_and_storing, 4, 64, 256, 1),
    CASE(barrier_in_a_branch_of_one_warp, 1, 64, 64, 64),
    CASE(barrier_in_a_branch_of_some_lanes, 2, 64, 128, 128),
    CASE(barriers_on_both_sides_of_a_branch, 1, 64, 64, 64),
    CASE(barrier_in_a_loop_that_warps_leave_at_different_times, 1, 96, 96, 96),
    CASE(barrier_inside_the_guard, 2, 64, 100, 100, 1, 0, 100),
    CASE(barrier_after_threads_have_returned, 2, 64, 100, 100, 1, 0, 100),
    CASE(loop_left_before_its_barrier, 1, 64, 64, 64),
    CASE(shuffle_of_all_lanes_in_a_branch, 1, 32, 32, 32),
    CASE(mask_without_its_caller, 1, 32, 32, 32),
    CASE(shuffle_after_some_lanes_have_returned, 1, 32, 32, 32),
    CASE(ballot_of_all_lanes_in_a_branch, 1, 32, 32, 32),
    CASE(warp_barrier_that_waits_for_lanes_at_the_block_barrier, 1, 64, 64, 64),
    CASE(halo_of_a_tile_not_loaded, 1, 64, 64, 64),
    CASE(elements_behind_the_guard_never_stored, 2, 64, 100, 2, 1, 0, 100),
    CASE(shared_counter_not_cleared, 1, 32, 32, 32),
    CASE(global_memory_never_written, 1, 32, 32, 32, 32),
    CASE(guard_that_lets_one_too_many_through, 2, 64, 100, 100, 1, 0, 100),
    CASE(no_guard_at_all, 2, 64, 100, 100, 1, 0, 100),
    CASE(neighbour_before_the_first_element, 1, 64, 64, 64),
    CASE(shared_array_too_short, 1, 64, 64, 64),
    CASE(atomic_outside_the_histogram, 1, 64, 64, 16),
    CASE(vector_load_one_element_off, 1, 16, 80, 64),
    CASE(column_beyond_the_row, 1, dim3(32, 4), 1, 64),
};

// Arrays are as long as said, so that memcheck sees what lies beyond; x holds 0, 1, 2, ...
static int run(const Case &c) {
    int *x, *out, *more, host[1024];
    for (int i = 0; i < 1024; i++) host[i] = i;
    cudaMalloc(&x, c.x * sizeof(int));
    cudaMalloc(&out, c.out * sizeof(int));
    cudaMalloc(&more, (c.more ? c.more : 1) * sizeof(int));
    cudaMemcpy(x, host, c.x * sizeof(int), cudaMemcpyHostToDevice);
    cudaMemset(out, 0, c.out * sizeof(int));
    if (strcmp(c.name, "global_memory_never_written")) cudaMemset(more, 0, sizeof(int));
    c.kernel<<<c.grid, c.block, c.shared>>>(x, out, more, c.n);
    cudaError_t error = cudaDeviceSynchronize();
    printf("%s: %s\n", c.name, cudaGetErrorString(error));
    return error != cudaSuccess;
}

int main(int count, char **words) {
    for (const Case &c : CASES) {
        if (count < 2) printf("%s\n", c.name);
        else if (!strcmp(c.name, words[1])) return run(c);
    }
    return count < 2 ? 0 : 2;
}
