// The planted kernels in CUDA C++, for compute-sanitizer. With FIXED they are the corrected twins.
//
// What it says of them on an H200, lines included, is kept in sanitizer_h200.json (made by
// sanitize.py); what gpusim says is tested on the Python kernels of the same names.
//
//     nvcc -O1 -lineinfo -arch=sm_90 [-DFIXED] planted_main.cu -o planted && ./planted NAME
//
// B() stands in the bug alone, F() in the twin alone. x holds 0, 1, 2, ...; out and more hold 0.

#ifdef FIXED
#define B(...)
#define F(...) __VA_ARGS__
#else
#define B(...) __VA_ARGS__
#define F(...)
#endif
#define ALL 0xFFFFFFFFu
#define GRID1 (blockIdx.x * blockDim.x + threadIdx.x)


// ---- races in shared memory between warps

__global__ void read_of_the_neighbour_before_the_barrier(int *x, int *out, int *more, int n) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = x[GRID1];
    F(__syncthreads();)
    out[GRID1] = s[(t + 1) % 64];
}

__global__ void reversal_without_barrier(int *x, int *out, int *more, int n) {
    __shared__ int s[128];
    int t = threadIdx.x;
    s[t] = x[t];
    F(__syncthreads();)
    out[t] = s[127 - t];
}

__global__ void broadcast_of_thread_0_without_barrier(int *x, int *out, int *more, int n) {
    __shared__ int s[1];
    if (threadIdx.x == 0) s[0] = x[blockIdx.x];
    F(__syncthreads();)
    out[GRID1] = s[0];
}

__global__ void transposition_without_barrier(int *x, int *out, int *more, int n) {
    __shared__ int tile[16][17];
    int column = threadIdx.x, row = threadIdx.y;
    tile[row][column] = x[(blockIdx.y * 16 + row) * 32 + blockIdx.x * 16 + column];
    F(__syncthreads();)
    out[(blockIdx.x * 16 + row) * 32 + blockIdx.y * 16 + column] = tile[column][row];
}

__global__ void tree_without_barrier_in_its_loop(int *x, int *out, int *more, int n) {
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

__global__ void tree_without_barrier_before_its_loop(int *x, int *out, int *more, int n) {
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

__global__ void race_in_dynamic_memory(int *x, int *out, int *more, int n) {
    extern __shared__ int s[];
    int t = threadIdx.x;
    s[t] = x[GRID1];
    F(__syncthreads();)
    out[GRID1] = s[t ^ 32];
}

__global__ void race_of_wide_elements(int *x, int *out, int *more, int n) {
    __shared__ double s[96];
    int t = threadIdx.x;
    s[t] = x[t];
    F(__syncthreads();)
    out[t] = (int)s[(t + 40) % 96];
}

__global__ void race_of_bytes(int *x, int *out, int *more, int n) {
    __shared__ signed char s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    B(out[t] = s[(t + 1) % 64];)
    F(out[t] = s[t];)
}

__global__ void vector_load_of_what_others_store(int *x, int *out, int *more, int n) {
    __shared__ __align__(16) int s[128];
    int t = threadIdx.x;
    s[t] = x[t];
    F(__syncthreads();)
    if (t < 32) ((int4 *)out)[t] = ((int4 *)s)[t];
}

__global__ void warp_barrier_where_the_block_must_meet(int *x, int *out, int *more, int n) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = x[GRID1];
    __syncwarp();
    B(out[GRID1] = s[63 - t];)
    F(out[GRID1] = s[t ^ 31];)
}

__global__ void fence_where_a_barrier_must_stand(int *x, int *out, int *more, int n) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = x[GRID1];
    __threadfence_block();
    F(__syncthreads();)
    out[GRID1] = s[63 - t];
}

__global__ void histogram_read_before_all_have_counted(int *x, int *out, int *more, int n) {
    __shared__ int own[16];
    int t = threadIdx.x;
    if (t < 16) own[t] = 0;
    __syncthreads();
    atomicAdd(&own[x[GRID1] % 16], 1);
    F(__syncthreads();)
    if (t < 16) atomicAdd(&out[t], own[t]);
}

__global__ void histogram_counted_before_it_is_cleared(int *x, int *out, int *more, int n) {
    __shared__ int own[16];
    int t = threadIdx.x;
    if (t < 16) own[t] = 0;
    F(__syncthreads();)
    atomicAdd(&own[x[GRID1] % 16], 1);
    __syncthreads();
    if (t < 16) atomicAdd(&out[t], own[t]);
}

__global__ void scan_with_one_buffer_and_one_barrier(int *x, int *out, int *more, int n) {
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

__global__ void sums_of_warps_read_before_the_barrier(int *x, int *out, int *more, int n) {
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

__global__ void overwrite_before_all_have_read(int *x, int *out, int *more, int n) {
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

__global__ void tile_refilled_before_all_have_read(int *x, int *out, int *more, int n) {
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

__global__ void scratch_used_again_too_early(int *x, int *out, int *more, int n) {
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

__global__ void two_buffers_that_do_not_change_roles(int *x, int *out, int *more, int n) {
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

__global__ void thread_0_overwrites_what_others_still_read(int *x, int *out, int *more, int n) {
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

__global__ void two_warps_store_to_the_same_elements(int *x, int *out, int *more, int n) {
    __shared__ int s[64];
    int t = threadIdx.x;
    B(s[t % 32] = x[t];)
    F(s[t] = x[t];)
    __syncthreads();
    if (t < 32) out[t] = s[t];
}

__global__ void two_threads_initialise_one_element(int *x, int *out, int *more, int n) {
    __shared__ int s[2];
    int t = threadIdx.x;
    if (t == 0) s[0] = x[0];
    B(if (t == 32) s[0] = x[32];)
    F(if (t == 32) s[1] = x[32];)
    __syncthreads();
    out[t] = s[0];
}

__global__ void barrier_that_comes_before_the_store(int *x, int *out, int *more, int n) {
    __shared__ int s[96];
    int t = threadIdx.x, v = x[t] * 2;
    B(__syncthreads();)
    s[t] = v;
    F(__syncthreads();)
    out[t] = s[95 - t];
}

// ---- races between lanes of a warp

__global__ void warp_tail_in_plain_memory(int *x, int *out, int *more, int n) {
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

__global__ void guarded_warp_tail_without_barriers(int *x, int *out, int *more, int n) {
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

__global__ void exchange_between_lanes_without_warp_barrier(int *x, int *out, int *more, int n) {
    __shared__ int s[32];
    int t = threadIdx.x;
    s[t] = x[t];
    F(__syncwarp();)
    out[t] = s[t ^ 1];
}

__global__ void one_side_of_a_branch_reads_what_the_other_stores(int *x, int *out, int *more, int n) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = 0;
    __syncthreads();
    if (t % 32 < 16) s[t] = x[GRID1];
    F(__syncwarp();)
    if (t % 32 >= 16) out[GRID1] = s[t - 16];
}

__global__ void warp_barrier_of_half_the_lanes(int *x, int *out, int *more, int n) {
    __shared__ int s[32];
    int t = threadIdx.x;
    s[t] = x[t];
    if (t < 16) {
        __syncwarp(0xFFFF);
        B(out[t] = s[t + 16];)
        F(out[t] = s[15 - t];)
    }
}

__global__ void lane_0_stores_for_all_without_warp_barrier(int *x, int *out, int *more, int n) {
    __shared__ int s[1];
    if (threadIdx.x == 0) s[0] = x[blockIdx.x];
    F(__syncwarp();)
    out[GRID1] = s[0];
}

__global__ void two_lanes_store_to_one_element_at_once(int *x, int *out, int *more, int n) {
    int t = threadIdx.x;
    B(out[t / 2] = x[t];)
    F(if (t % 2 == 0) out[t / 2] = x[t] + x[t + 1];)
}

__global__ void shared_element_stored_by_all_lanes_at_once(int *x, int *out, int *more, int n) {
    __shared__ int s[1];
    int t = threadIdx.x;
    B(s[0] = x[t];)
    F(if (t == 0) s[0] = 7;)
    __syncwarp();
    out[t] = s[0];
}

__global__ void warp_tail_in_volatile_memory(int *x, int *out, int *more, int n) {
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

__global__ void result_of_another_thread_read_without_barrier(int *x, int *out, int *more, int n) {
    int t = threadIdx.x;
    out[t] = x[t] * 2;
    F(__syncthreads();)
    x[t] = out[127 - t];
}

__global__ void tree_in_global_memory_without_barrier(int *x, int *out, int *more, int n) {
    int t = threadIdx.x;
    for (int o = 128; o > 0; o /= 2) {
        if (t < o) x[t] += x[t + o];
        F(__syncthreads();)
    }
}

__global__ void sum_of_a_block_without_atomics(int *x, int *out, int *more, int n) {
    B(out[blockIdx.x] += x[GRID1];)
    F(atomicAdd(&out[blockIdx.x], x[GRID1]);)
}

__global__ void one_counter_for_all_blocks(int *x, int *out, int *more, int n) {
    B(out[0] += 1;)
    F(atomicAdd(&out[0], 1);)
}

__global__ void every_block_stores_its_sum_to_one_element(int *x, int *out, int *more, int n) {
    if (threadIdx.x == 0) {
        B(out[0] = x[GRID1];)
        F(atomicAdd(&out[0], x[GRID1]);)
    }
}

__global__ void histogram_without_atomics(int *x, int *out, int *more, int n) {
    int place = x[GRID1] % 16;
    B(out[place] = out[place] + 1;)
    F(atomicAdd(&out[place], 1);)
}

__global__ void stencil_in_place_across_blocks(int *x, int *out, int *more, int n) {
    int i = GRID1 + 1, v = x[i - 1] + x[i + 1];
    __syncthreads();
    B(x[i] = v;)
    F(out[i] = v;)
}

__global__ void last_block_without_fence(int *x, int *out, int *more, int n) {
    __shared__ int last;
    int b = blockIdx.x;
    if (threadIdx.x == 0) {
        out[b + 1] = x[b * 64];
        F(__threadfence();)
        last = atomicAdd(more, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        F(__threadfence();)
        int total = 0;
        for (int k = 0; k < 8; k++) total += out[k + 1];
        out[0] = total;
    }
}

__global__ void flag_without_fence(int *x, int *out, int *more, int n) {
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

__global__ void lock_given_back_without_fence(int *x, int *out, int *more, int n) {
    if (threadIdx.x == 0) {
        while (atomicCAS(more, 0, 1) != 0) {}
        F(__threadfence();)
        out[0] = out[0] + x[GRID1];
        F(__threadfence();)
        atomicExch(more, 0);
    }
}

__global__ void tiles_of_blocks_overlap(int *x, int *out, int *more, int n) {
    int t = threadIdx.x, start = blockIdx.x * (B(63) F(64));
    out[start + t] = x[GRID1];
}

__global__ void maximum_by_comparing_and_storing(int *x, int *out, int *more, int n) {
    int v = x[GRID1];
    if (threadIdx.x == 63) {
        B(if (v > out[0]) out[0] = v;)
        F(atomicMax(&out[0], v);)
    }
}

// ---- barriers and masks

__global__ void barrier_in_a_branch_of_one_warp(int *x, int *out, int *more, int n) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    F(__syncthreads();)
    if (t < 32) {
        B(__syncthreads();)
        out[t] = s[t];
    }
}

__global__ void barrier_in_a_branch_of_some_lanes(int *x, int *out, int *more, int n) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = x[GRID1];
    if (x[B(t) F(0)] % 2 == 0) __syncthreads();
    out[GRID1] = s[t];
}

__global__ void barriers_on_both_sides_of_a_branch(int *x, int *out, int *more, int n) {
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

__global__ void barrier_in_a_loop_that_warps_leave_at_different_times(int *x, int *out, int *more, int n) {
    int t = threadIdx.x, total = 0;
    for (int k = 0; k < (B(t / 32 + 1) F(3)); k++) {
        if (k <= t / 32) total += x[(t + k) % 96];
        __syncthreads();
    }
    out[t] = total;
}

__global__ void barrier_inside_the_guard(int *x, int *out, int *more, int n) {
    __shared__ int s[64];
    int i = GRID1;
    if (i < n) {
        s[threadIdx.x] = x[i];
        B(__syncthreads();)
    }
    F(__syncthreads();)
    if (i < n) out[i] = s[threadIdx.x];
}

__global__ void barrier_after_threads_have_returned(int *x, int *out, int *more, int n) {
    __shared__ int s[64];
    int i = GRID1;
    B(if (i >= n) return;)
    s[threadIdx.x] = i < n ? x[i] : 0;
    __syncthreads();
    if (i < n) out[i] = s[threadIdx.x ^ 1];
}

__global__ void loop_left_before_its_barrier(int *x, int *out, int *more, int n) {
    int t = threadIdx.x, total = 0;
    for (int k = 0; k < 4; k++) {
        B(total += x[(t + k) % 64]; if (total > 60) break;)
        F(if (total <= 60) total += x[(t + k) % 64];)
        __syncthreads();
    }
    out[t] = total;
}

__global__ void shuffle_of_all_lanes_in_a_branch(int *x, int *out, int *more, int n) {
    int t = threadIdx.x, v = x[t];
    F(int other = __shfl_down_sync(ALL, v, 8);)
    if (t < 16) v += B(__shfl_down_sync(ALL, v, 8)) F(other);
    out[t] = v;
}

__global__ void mask_without_its_caller(int *x, int *out, int *more, int n) {
    int t = threadIdx.x;
    out[t] = __shfl_xor_sync(B(0xFFFFu) F(ALL), x[t], 1);
}

__global__ void shuffle_after_some_lanes_have_returned(int *x, int *out, int *more, int n) {
    int t = threadIdx.x;
    B(if (t >= 20) return;)
    int v = __shfl_down_sync(ALL, x[t], 1);
    if (t < 20) out[t] = v;
}

__global__ void ballot_of_all_lanes_in_a_branch(int *x, int *out, int *more, int n) {
    int t = threadIdx.x;
    F(int said = __ballot_sync(ALL, x[t] > 10);)
    if (x[t] % 2 == 0) out[t] = B(__ballot_sync(ALL, x[t] > 10)) F(said);
}

__global__ void warp_barrier_that_waits_for_lanes_at_the_block_barrier(int *x, int *out, int *more, int n) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    if (t % 32 < 16) __syncwarp(B(ALL) F(0xFFFFu));
    __syncthreads();
    out[t] = s[63 - t];
}

// ---- memory never written, bounds, alignment

__global__ void halo_of_a_tile_not_loaded(int *x, int *out, int *more, int n) {
    __shared__ int tile[66];
    int t = threadIdx.x;
    tile[t + 1] = x[t];
    F(if (t == 0) tile[0] = tile[65] = 0;)
    __syncthreads();
    out[t] = tile[t] + tile[t + 1] + tile[t + 2];
}

__global__ void elements_behind_the_guard_never_stored(int *x, int *out, int *more, int n) {
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

__global__ void shared_counter_not_cleared(int *x, int *out, int *more, int n) {
    __shared__ int count;
    int t = threadIdx.x;
    F(if (t == 0) count = 0; __syncthreads();)
    if (x[t] > 4) atomicAdd(&count, 1);
    __syncthreads();
    out[t] = count;
}

// In Python the array is said to hold nothing.
__global__ void global_memory_never_written(int *x, int *out, int *more, int n) {
    int t = threadIdx.x;
    F(more[t] = 1;)
    out[t] = x[t] + more[t];
}

__global__ void guard_that_lets_one_too_many_through(int *x, int *out, int *more, int n) {
    int i = GRID1;
    if (i < n + (B(1) F(0))) out[i] = x[i];
}

__global__ void no_guard_at_all(int *x, int *out, int *more, int n) {
    int i = GRID1;
    F(if (i < n)) out[i] = 2 * i;
}

__global__ void neighbour_before_the_first_element(int *x, int *out, int *more, int n) {
    int t = threadIdx.x;
    out[t] = B(x[t - 1]) F(t > 0 ? x[t - 1] : 0);
}

__global__ void shared_array_too_short(int *x, int *out, int *more, int n) {
    __shared__ int s[B(32) F(64)];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    out[t] = s[t];
}

__global__ void atomic_outside_the_histogram(int *x, int *out, int *more, int n) {
    atomicAdd(&out[x[threadIdx.x] F(% 16)], 1);
}

__global__ void vector_load_one_element_off(int *x, int *out, int *more, int n) {
    int t = threadIdx.x;
    ((int4 *)out)[t] = *(int4 *)&x[4 * t + (B(1) F(4))];
}

// Of 4 rows of 16: inside the array all the same.
__global__ void column_beyond_the_row(int *x, int *out, int *more, int n) {
    int row = threadIdx.y, column = threadIdx.x;
    if (row < 2 F(&& column < 16)) out[row * 16 + column] = row;
}
