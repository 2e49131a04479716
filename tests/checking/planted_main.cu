// Runs one of the planted kernels, or names them all; which variant it is, FIXED says.

#include "planted.cu"

#include <cstdio>
#include <cstring>

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
