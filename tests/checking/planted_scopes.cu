// Flags, atomic operations and their scopes: kernels with one planted bug each, in the lines that end
// in <- (a second pair in <+), and with FIXED the same kernels corrected. Two blocks of 128 threads.

#ifdef FIXED
#define CORRECTED(is, was) is
#else
#define CORRECTED(is, was) was
#endif

__global__ void plain_store_against_an_atomic(int *x, int *out) {
    if (threadIdx.x == 0) {
        if (blockIdx.x == 0) CORRECTED(atomicExch(x, 5), x[0] = 5);  // <-
        else atomicAdd(x, 1);  // <-
    }
}

__global__ void atomic_of_the_block_against_another_block(int *x, int *out) {
    if (threadIdx.x == 0) CORRECTED(atomicAdd(x, 1), atomicAdd_block(x, 1));  // <-
}

__global__ void old_value_of_an_atomic_of_the_block(int *x, int *out) {
    if (threadIdx.x == 0)
        out[blockIdx.x] = CORRECTED(atomicAdd(x, 1), atomicAdd_block(x, 1));  // <-
}

__global__ void atomics_of_two_scopes(int *x, int *out) {
    if (threadIdx.x == 0) {
        if (blockIdx.x == 0) CORRECTED(atomicAdd, atomicAdd_block)(x, 1);  // <-
        else atomicAdd(x, 1);  // <-
    }
}

__global__ void atomics_of_one_block_each(int *x, int *out) {
    int t = threadIdx.x;
    atomicAdd_block(x + CORRECTED(blockIdx.x, 0), t);  // <-
}

__global__ void fence_of_the_block_behind_another(int *x, int *out) {
    if (threadIdx.x != 0) return;
    if (blockIdx.x == 0) {
        out[0] = 5;  // <-
        CORRECTED(__threadfence(), __threadfence_block());
        atomicExch(x + 9, 1);
    } else {
        while (atomicAdd(x + 9, 0) != 1) {}
        __threadfence();
        out[1] = out[0];  // <-
    }
}

__global__ void release_to_the_block_alone(int *x, int *out) {
    if (threadIdx.x != 0) return;
    if (blockIdx.x == 0) {
        out[0] = 5;  // <-
        asm volatile(CORRECTED("st.release.gpu.s32", "st.release.cta.s32") " [%0], 1;" ::"l"(x + 9) : "memory");  // <+
    } else {
        int seen = 9;
        while (seen != 1) asm volatile("ld.acquire.gpu.s32 %0, [%1];" : "=r"(seen) : "l"(x + 9) : "memory");  // <+
        out[1] = out[0];  // <-
    }
}

__global__ void flag_within_the_block(int *x, int *out) {
    int t = threadIdx.x, *mine = out + 4 * blockIdx.x, *flag = x + 9 + blockIdx.x;
    if (blockIdx.x > 0) flag = x + 200;
    if (t == 0) {
        mine[0] = 5;  // <-
        CORRECTED(__threadfence_block(), );
        atomicExch_block(flag, 1);
    } else if (t == 32) {
        while (atomicAdd_block(flag, 0) != 1) {}
        __threadfence_block();
        mine[1] = mine[0];  // <-
    }
}

// The barrier of cooperative groups' tiles of two warps, by hand.
__device__ void meet(unsigned *bar, unsigned tile) {
    unsigned mine = 1u << (threadIdx.x >> 5);
    __syncwarp();
    if ((threadIdx.x & 31) == 0) {
        CORRECTED(__threadfence_block(), );
        if (((atomicOr_block(bar, mine) | mine) & tile) == tile) atomicAnd_block(bar, ~tile);
        else while (*(volatile unsigned *)bar & mine) {}
        __threadfence_block();
    }
    __syncwarp();
}

__global__ void tile_without_a_fence(int *x, int *out) {
    __shared__ int s[128];
    __shared__ unsigned bar;
    int t = threadIdx.x;
    if (t == 0) bar = 0;
    __syncthreads();
    s[t] = x[t];  // <-
    meet(&bar, t < 64 ? 3 : 12);
    out[128 * blockIdx.x + t] = s[t ^ 63];  // <-
}
