// Asynchronous copies: kernels with one planted bug each, in the lines that end in <-, and with
// FIXED the same kernels corrected. Blocks have 128 threads.

#include <cuda_pipeline.h>

#define COPY(to, from) \
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(unsigned(__cvta_generic_to_shared(to))), "l"(from) : "memory")
#define COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(groups) asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory")
#define WAIT_ALL() asm volatile("cp.async.wait_all;" ::: "memory")
#ifdef FIXED
#define CORRECTED(is, was) is
#else
#define CORRECTED(is, was) was
#endif

__global__ void copy_read_without_a_wait(int *x, int *out) {
    __shared__ int s[128];
    int t = threadIdx.x;
    COPY(s + t, x + t);  // <-
    COMMIT();
    CORRECTED(WAIT(0), );
    __syncthreads();
    out[t] = s[127 - t];  // <-
}

__global__ void own_copy_read_without_a_wait(int *x, int *out) {
    __shared__ int s[128];
    int t = threadIdx.x;
    COPY(s + t, x + t);  // <-
    CORRECTED(WAIT_ALL(), COMMIT());
    out[t] = s[t];  // <-
}

__global__ void group_that_was_not_committed(int *x, int *out) {
    __shared__ int s[128];
    int t = threadIdx.x;
    COPY(s + t, x + t);  // <-
    CORRECTED(COMMIT(), );
    WAIT(0);
    out[t] = s[t];  // <-
}

__global__ void newest_group_read(int *x, int *out) {
    __shared__ int s[2][128];
    int t = threadIdx.x;
    COPY(s[0] + t, x + t);
    COMMIT();
    COPY(s[1] + t, x + 128 + t);  // <-
    COMMIT();
    WAIT(1);
    out[t] = s[0][t];
    CORRECTED(WAIT(0), );
    out[t] += s[1][t];  // <-
}

__global__ void buffer_filled_before_it_is_read(int *x, int *out) {
    __shared__ int s[2][128];
    int t = threadIdx.x, sum = 0;
    COPY(s[0] + t, x + t);
    COMMIT();
    for (int i = 0; i < 4; i++) {
        COPY(s[(i + 1) & 1] + t, x + (i + 1) % 2 * 128 + t);  // <-
        COMMIT();
        WAIT(1);
        __syncthreads();
        sum += s[i & 1][127 - t];  // <-
        CORRECTED(__syncthreads(), );
    }
    out[t] = sum;
}

__global__ void wait_without_a_barrier(int *x, int *out) {
    __shared__ int s[128];
    int t = threadIdx.x;
    COPY(s + t, x + t);  // <-
    COMMIT();
    WAIT(0);
    CORRECTED(__syncthreads(), );
    out[t] = s[t ^ 64];  // <-
}

__global__ void barrier_before_the_wait(int *x, int *out) {
    __shared__ int s[128];
    int t = threadIdx.x;
    COPY(s + t, x + t);  // <-
    COMMIT();
    CORRECTED(WAIT(0); __syncthreads(), __syncthreads(); WAIT(0));
    out[t] = s[t ^ 64];  // <-
}

__global__ void source_overwritten(int *x, int *out) {
    __shared__ int s[128];
    int t = threadIdx.x;
    COPY(s + t, x + t);  // <-
    CORRECTED(WAIT_ALL(), COMMIT());
    x[t] = t;  // <-
    CORRECTED(, WAIT(0));
    out[t] = s[t];
}

__global__ void source_overwritten_by_another_warp(int *x, int *out) {
    __shared__ int s[128];
    int t = threadIdx.x;
    COPY(s + t, x + t);  // <-
    CORRECTED(WAIT_ALL(), COMMIT());
    __syncthreads();
    x[t ^ 64] = t;  // <-
    CORRECTED(, WAIT(0));
    out[t] = s[t];
}

__global__ void two_copies_to_one_element(int *x, int *out) {
    __shared__ int s[128];
    int t = threadIdx.x;
    COPY(s + t, x + t);  // <-
    CORRECTED(WAIT_ALL(), COMMIT());
    COPY(s + t, x + 128 + t);  // <-
    WAIT_ALL();
    out[t] = s[t];
}

__global__ void store_before_the_copy_has_ended(int *x, int *out) {
    __shared__ int s[128];
    int t = threadIdx.x;
    COPY(s + t, x + t);  // <-
    COMMIT();
    if (t > 99) {
        CORRECTED(WAIT(0), );
        s[t] = 0;  // <-
    }
    WAIT(0);
    out[t] = s[t];
}

__global__ void sixteen_bytes_by_the_pipeline(int *x, int *out) {
    __shared__ __align__(16) int s[4][128];
    int t = threadIdx.x;
    if (t < 32) __pipeline_memcpy_async(s[0] + 4 * t, x + 4 * t, 16);  // <-
    __pipeline_commit();
    if (t < 32) __pipeline_memcpy_async(s[1] + 4 * t, x + 128 + 4 * t, 16);
    __pipeline_commit();
    __pipeline_wait_prior(CORRECTED(1, 2));
    __syncthreads();
    out[t] = s[0][127 - t];  // <-
    __pipeline_wait_prior(0);
    __syncthreads();
    out[t] += s[1][127 - t];
}

__global__ void barrier_of_another_warp_behind_the_wait(int *x, int *out) {
    __shared__ int s[32];
    int t = threadIdx.x;
    if (t < 32) {
        COPY(s + t, x + t);  // <-
        WAIT_ALL();
        asm volatile("bar.arrive 1, 64;" ::: "memory");
    } else if (t < 64) {
        asm volatile("bar.sync 1, 64;" ::: "memory");
        CORRECTED(out[t] = s[63 - t], );
    } else if (t < 96) {
        CORRECTED(, out[t] = s[95 - t]);  // <-
    }
}

__global__ void source_of_all_warps_overwritten(int *x, int *out) {
    __shared__ int s[128];
    int t = threadIdx.x;
    COPY(s + t, x + (t & 31));  // <-
    WAIT_ALL();
    CORRECTED(__syncthreads(), __syncwarp());
    if (t >= 96) x[t & 31] = t;  // <-
    out[t] = s[t];
}

__global__ void lanes_that_copy_to_one_element(int *x, int *out) {
    __shared__ int s[128];
    int t = threadIdx.x;
    COPY(s + CORRECTED(t, (t & ~1)), x + t);  // <-
    WAIT_ALL();
    __syncwarp();
    if (CORRECTED(1, ~t & 1)) out[t] = s[t];
}
