// Barriers with a number: kernels with one planted bug each, in the lines that end in <-, and with
// FIXED the same kernels corrected. Blocks have 128 threads.

#define SYNC(number, threads) asm volatile("bar.sync %0, %1;" ::"n"(number), "n"(threads) : "memory")
#define ARRIVE(number, threads) \
    asm volatile("bar.arrive %0, %1;" ::"n"(number), "n"(threads) : "memory")
#ifdef FIXED
#define CORRECTED(is, was) is
#else
#define CORRECTED(is, was) was
#endif

__global__ void halves_that_meet_apart(const int *x, int *out) {
    __shared__ int s[128];
    int t = threadIdx.x;
    s[t] = x[t];  // <-
    if (t < 64) SYNC(1, 64);
    else SYNC(2, 64);
    out[t] = s[CORRECTED(t ^ 63, 127 - t)];  // <-
}

__global__ void consumer_that_does_not_give_back(const int *x, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    if (t < 64) {
        for (int i = 0; i < 4; i++) {
            SYNC(1, 128);
            out[i * 64 + t] = s[63 - t];  // <-
            CORRECTED(SYNC(2, 128), );
        }
    } else {
        for (int i = 0; i < 4; i++) {
            s[t - 64] = x[t];  // <-
            SYNC(1, 128);
            CORRECTED(SYNC(2, 128), );
        }
    }
}

__global__ void read_behind_an_arrival(const int *x, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    if (t >= 64) {
        CORRECTED(SYNC(1, 128), ARRIVE(1, 128));
        out[t] = s[t - 64];  // <-
    } else {
        s[t] = x[t];  // <-
        SYNC(1, 128);
    }
}

__global__ void store_behind_an_arrival(const int *x, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    if (t >= 64) {
        CORRECTED(s[t - 64] = x[t], );
        ARRIVE(3, 128);
        CORRECTED(, s[t - 64] = x[t]);  // <-
    } else {
        SYNC(3, 128);
        out[t] = s[63 - t];  // <-
    }
}

// Warp 0 stores for warp 1, which meets warp 2 afterwards, or before.
__global__ void chain_of_pairs(const int *x, int *out) {
    __shared__ int s[32];
    int t = threadIdx.x;
    if (t < 32) {
        s[t] = x[t];  // <-
        SYNC(1, 64);
    } else if (t < 64) {
        CORRECTED(SYNC(1, 64); SYNC(2, 64), SYNC(2, 64); SYNC(1, 64));
    } else if (t < 96) {
        SYNC(2, 64);
        out[t] = s[95 - t];  // <-
    }
}

// Two groups of producers and consumers, each with a barrier of its own, then one for all.
__global__ void number_of_another_group(const int *x, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x, group = t >> 6, first = CORRECTED(group, 1 - group);
    if ((t & 32) == 0) {
        s[group * 32 + (t & 31)] = x[t];  // <-
        asm volatile("bar.arrive %0, 64;" ::"r"(group + 1) : "memory");
    } else {
        asm volatile("bar.sync %0, 64;" ::"r"(first + 1) : "memory");
        out[t] = s[group * 32 + 31 - (t & 31)];  // <-
    }
    asm volatile("bar.sync 3;" ::: "memory");
    out[t] += s[63 - (t & 63)];
}

__global__ void warp_that_has_left(const int *x, int *out) {
    __shared__ int s[128];
    int t = threadIdx.x;
    s[t] = x[t];  // <-
    CORRECTED(__syncthreads(), );
    if (t >= 96) return;
    SYNC(1, 96);
    out[t] = s[127 - t];  // <-
}

__global__ void lanes_that_come_apart(const int *x, int *out) {
    __shared__ int s[128];
    int t = threadIdx.x;
    s[t] = x[t];
    if (CORRECTED(t < 64, (t & 16) == 0)) SYNC(1, 64);  // <-
    out[t] = s[t];
}

// A release at device scope behind a barrier of some warps carries what they all did.
__global__ void flag_behind_a_barrier_of_some(int *x, int *out) {
    int t = threadIdx.x;
    int *mine = out + 32 * (t >> 5);
    if (blockIdx.x == 0) {
        if (t >= 64) return;
        mine[t & 31] = x[t];  // <-
        CORRECTED(SYNC(1, 64), __syncwarp());
        if (t == 0) {
            __threadfence();
            atomicExch(x + 255, 1);
        }
    } else if (t < 32) {
        while (atomicAdd(x + 255, 0) != 1) {}
        __threadfence();
        out[128 + t] = out[63 - t];  // <-
    }
}
