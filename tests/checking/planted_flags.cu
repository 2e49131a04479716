// Flags and locks, their fences and orders: kernels with one planted bug each, in the lines that end
// in <- (a second pair in <+), and with FIXED the same kernels corrected. Two blocks of 128 threads.

#ifdef FIXED
#define CORRECTED(is, was) is
#else
#define CORRECTED(is, was) was
#endif
#define BLOCK0 (blockIdx.x == 0 && threadIdx.x == 0)
#define BLOCK1 (blockIdx.x == 1 && threadIdx.x == 0)

__global__ void shared_flag_without_fences(int *x, int *out) {
    __shared__ int data;
    __shared__ volatile int flag;
    int t = threadIdx.x;
    if (t == 0) flag = 0;
    __syncthreads();
    if (t == 0) {
        data = x[5];  // <-
        CORRECTED(__threadfence_block(), );
        flag = 1;
    } else if (t == 64) {
        while (flag == 0) {}
        CORRECTED(__threadfence_block(), );
        out[blockIdx.x] = data;  // <-
    }
}

__global__ void shared_flag_without_the_readers_fence(int *x, int *out) {
    __shared__ int data;
    __shared__ volatile int flag;
    int t = threadIdx.x;
    if (t == 0) flag = 0;
    __syncthreads();
    if (t == 0) { data = x[5]; __threadfence_block(); flag = 1; }  // <-
    if (t == 64) { while (flag == 0) {} CORRECTED(__threadfence_block(), ); out[blockIdx.x] = data; }  // <-
}

__global__ void volatile_data_behind_a_shared_flag(int *x, int *out) {
    __shared__ volatile int data, flag;
    int t = threadIdx.x;
    if (t == 0) flag = 0;
    __syncthreads();
    if (t == 0) {
        data = x[5];  // <-
        CORRECTED(__threadfence_block(), );
        flag = 1;
    } else if (t == 64) {
        while (flag == 0) {}
        out[blockIdx.x] = data;  // <-
    }
}

__global__ void slot_that_is_refilled_too_early(int *x, int *out) {
    __shared__ int slot;
    __shared__ volatile int full;
    int t = threadIdx.x, *mine = out + 4 * blockIdx.x;
    if (t == 0) full = 0;
    __syncthreads();
    if (t == 0) {
        for (int i = 0; i < 4; i++) {
            while (full) {}
            __threadfence_block();
            slot = x[i];  // <-
            __threadfence_block();
            full = 1;
        }
    } else if (t == 64) {
        for (int i = 0; i < 4; i++) {
            while (!full) {}
            __threadfence_block();
            mine[i] = slot;  // <-
            CORRECTED(__threadfence_block(), );
            full = 0;
        }
    }
}

__global__ void lock_without_a_fence_behind_it(int *x, volatile int *out) {
    if (threadIdx.x) return;
    while (atomicCAS(x, 0, 1) != 0) {}
    CORRECTED(__threadfence(), );
    out[0] += 1;  // <-
    __threadfence();
    atomicExch(x, 0);
}

__global__ void lock_with_a_fence_of_the_block(int *x, int *out) {
    if (threadIdx.x) return;
    while (atomicCAS(x, 0, 1) != 0) {}
    CORRECTED(__threadfence(), __threadfence_block());
    out[0] += 1;  // <-
    __threadfence();
    atomicExch(x, 0);
}

__global__ void lock_of_one_side_without_a_fence(int *x, int *out) {
    if (BLOCK0) {
        while (atomicCAS(x, 0, 1) != 0) {}
        CORRECTED(__threadfence(), );
        out[0] = 1;  // <-
        __threadfence();
        atomicExch(x, 0);
    } else if (BLOCK1) {
        while (atomicCAS(x, 0, 1) != 0) {}
        __threadfence();
        out[0] = 2;  // <-
        __threadfence();
        atomicExch(x, 0);
    }
}

__global__ void lock_given_back_before_the_fence(int *x, int *out) {
    if (threadIdx.x) return;
    while (atomicCAS(x, 0, 1) != 0) {}
    __threadfence();
    out[0] += 1;  // <-
    CORRECTED(__threadfence(), );
    atomicExch(x, 0);
}

__global__ void volatile_store_against_an_atomic(int *x, int *out) {
    if (BLOCK0) CORRECTED(atomicExch(x, 5), *(volatile int *)x = 5);  // <-
    else if (BLOCK1) out[0] = atomicAdd(x, 1);  // <-
}

__global__ void relaxed_in_place_of_acquire(int *x, int *out) {
    if (BLOCK0) {
        out[0] = 5;  // <-
        asm volatile("st.release.gpu.s32 [%0], 1;" ::"l"(x) : "memory");
    } else if (BLOCK1) {
        int seen = 9;
        while (seen != 1)
            asm volatile(CORRECTED("ld.acquire.gpu.s32", "ld.relaxed.gpu.s32") " %0, [%1];" : "=r"(seen) : "l"(x) : "memory");
        out[1] = out[0];  // <-
    }
}

__global__ void relaxed_in_place_of_release(int *x, int *out) {
    if (BLOCK0) {
        out[0] = 5;  // <-
        asm volatile(CORRECTED("st.release.gpu.s32", "st.relaxed.gpu.s32") " [%0], 1;" ::"l"(x) : "memory");
    } else if (BLOCK1) {
        int seen = 9;
        while (seen != 1) asm volatile("ld.acquire.gpu.s32 %0, [%1];" : "=r"(seen) : "l"(x) : "memory");
        out[1] = out[0];  // <-
    }
}

__global__ void relaxed_in_place_of_acquire_within_the_block(int *x, int *out) {
    int t = threadIdx.x, *flag = x + blockIdx.x, *mine = out + 4 * blockIdx.x;
    if (blockIdx.x) flag = x + 200;
    if (t == 0) {
        mine[0] = 5;  // <-
        asm volatile("st.release.cta.s32 [%0], -1;" ::"l"(flag) : "memory");
    } else if (t == 64) {
        int seen = 0;
        while (seen != -1)
            asm volatile(CORRECTED("ld.acquire.cta.s32", "ld.relaxed.cta.s32") " %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
        mine[1] = mine[0];  // <-
    }
}

__global__ void swap_that_does_not_acquire(int *x, int *out) {
    if (threadIdx.x) return;
    int old = 1;
    while (old != 0)
        asm volatile(CORRECTED("atom.acquire.gpu.cas.b32", "atom.relaxed.gpu.cas.b32") " %0, [%1], 0, 1;" : "=r"(old) : "l"(x) : "memory");
    out[0] += 1;  // <-
    asm volatile("st.release.gpu.s32 [%0], 0;" ::"l"(x) : "memory");
}

__global__ void last_block_without_a_fence_of_its_own(int *x, int *out) {
    __shared__ bool last;
    int t = threadIdx.x;
    out[128 * blockIdx.x + t] = x[t];  // <-
    __threadfence();
    __syncthreads();
    if (t == 0) {
        last = atomicAdd(x + 255, 1) == 255 + gridDim.x - 1;
        CORRECTED(__threadfence(), );
    }
    __syncthreads();
    if (last) x[t] = out[t] + out[128 + t];  // <-
}

// nvcc lets the lanes of a warp make one atomic operation together: that orders none of them.
__global__ void guard_read_beside_joined_atomics(int *x, int *out) {
    int t = threadIdx.x;
    if (blockIdx.x || t >= 32) return;
    if (CORRECTED(*(volatile int *)out, out[0]) < x[t])  // <-
        atomicMax(out, x[t]);  // <-
}
