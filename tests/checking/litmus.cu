// Litmus tests of the PTX memory model: the rows of the table in docs/checking.md. `x` holds data, `flag`
// flags, `out` what was read; two blocks of 64 threads, of which thread 0 of each takes part.

#define FIRST (blockIdx.x == 0 && threadIdx.x == 0)
#define SECOND (blockIdx.x == 1 && threadIdx.x == 0)
#define OTHER_WARP (blockIdx.x == 0 && threadIdx.x == 32)
#define LD(order, value, from) \
    asm volatile("ld." order ".s32 %0, [%1];" : "=r"(value) : "l"(from) : "memory")
#define ST(order, to, value) asm volatile("st." order ".s32 [%0], %1;" ::"l"(to), "r"(value) : "memory")
#define PASS(name, reader, write, read)                            \
    __global__ void name(int *x, int *flag, int *out) {            \
        int seen = 0;                                              \
        if (FIRST) { x[0] = 5; write; }                            \
        else if (reader) { while (seen != 1) { read; } out[0] = x[0]; } \
    }
#define PASS_FENCED(name, reader, before, after)                   \
    __global__ void name(int *x, int *flag, int *out) {            \
        if (FIRST) { x[0] = 5; before; atomicExch(flag, 1); }      \
        else if (reader) { while (atomicAdd(flag, 0) != 1) {} after; out[0] = x[0]; } \
    }

// Message passing.
PASS_FENCED(mp_fences, SECOND, __threadfence(), __threadfence())
PASS_FENCED(mp_no_release, SECOND, , __threadfence())
PASS_FENCED(mp_no_acquire, SECOND, __threadfence(), )
PASS_FENCED(mp_release_of_block, SECOND, __threadfence_block(), __threadfence())
PASS_FENCED(mp_acquire_of_block, SECOND, __threadfence(), __threadfence_block())
PASS_FENCED(mp_fences_of_block_within_it, OTHER_WARP, __threadfence_block(), __threadfence_block())
PASS(mp_release_acquire, SECOND, ST("release.gpu", flag, 1), LD("acquire.gpu", seen, flag))
PASS(mp_relaxed, SECOND, ST("relaxed.gpu", flag, 1), LD("relaxed.gpu", seen, flag))
PASS(mp_release_relaxed, SECOND, ST("release.gpu", flag, 1), LD("relaxed.gpu", seen, flag))
PASS(mp_release_acquire_of_block_within_it, OTHER_WARP, ST("release.cta", flag, 1), LD("acquire.cta", seen, flag))
PASS(mp_release_acquire_of_block, SECOND, ST("release.cta", flag, 1), LD("acquire.cta", seen, flag))

__global__ void mp_strong_data(int *x, int *flag, int *out) {
    if (FIRST) {
        *(volatile int *)x = 5;
        __threadfence();
        atomicExch(flag, 1);
    } else if (SECOND) {
        while (atomicAdd(flag, 0) != 1) {}
        out[0] = *(volatile int *)x;
    }
}

// Through a third thread, and through a barrier.
__global__ void mp_of_three(int *x, int *flag, int *out) {
    if (FIRST) {
        x[0] = 5;
        __threadfence_block();
        atomicExch(flag, 1);
    } else if (OTHER_WARP) {
        while (atomicAdd(flag, 0) != 1) {}
        __threadfence();
        atomicExch(flag + 1, 1);
    } else if (SECOND) {
        while (atomicAdd(flag + 1, 0) != 1) {}
        __threadfence();
        out[0] = x[0];
    }
}
__global__ void mp_of_three_without_cumulativity(int *x, int *flag, int *out) {
    if (FIRST) {
        x[0] = 5;
        __threadfence_block();
        atomicExch(flag, 1);
    } else if (OTHER_WARP) {
        while (atomicAdd(flag, 0) != 1) {}
        atomicExch(flag + 1, 1);
    } else if (SECOND) {
        while (atomicAdd(flag + 1, 0) != 1) {}
        __threadfence();
        out[0] = x[0];
    }
}
__global__ void mp_behind_a_barrier(int *x, int *flag, int *out) {
    int t = threadIdx.x;
    if (blockIdx.x == 0) {
        x[t] = t;
        __syncthreads();
        if (t == 0) {
            __threadfence();
            atomicExch(flag, 1);
        }
    } else {
        if (t == 0) {
            while (atomicAdd(flag, 0) != 1) {}
            __threadfence();
        }
        __syncthreads();
        out[t] = x[t];
    }
}

// Store buffering, and independent reads of independent writes: of relaxed accesses every outcome is
// one of the model's, of weak ones none is.
__global__ void sb_relaxed(int *x, int *flag, int *out) {
    int a = 0;
    if (FIRST) {
        ST("relaxed.gpu", x, 1);
        LD("relaxed.gpu", a, x + 1);
        out[0] = a;
    } else if (SECOND) {
        ST("relaxed.gpu", x + 1, 1);
        LD("relaxed.gpu", a, x);
        out[1] = a;
    }
}
__global__ void sb_weak(int *x, int *flag, int *out) {
    if (FIRST) {
        x[0] = 1;
        __threadfence();
        out[0] = x[1];
    } else if (SECOND) {
        x[1] = 1;
        __threadfence();
        out[1] = x[0];
    }
}
__global__ void iriw_relaxed(int *x, int *flag, int *out) {
    int a = 0, b = 0;
    if (FIRST) ST("relaxed.gpu", x, 1);
    else if (OTHER_WARP) ST("relaxed.gpu", x + 1, 1);
    else if (SECOND) {
        LD("acquire.gpu", a, x);
        LD("acquire.gpu", b, x + 1);
        out[0] = a + 2 * b;
    } else if (threadIdx.x == 32) {
        LD("acquire.gpu", b, x + 1);
        LD("acquire.gpu", a, x);
        out[1] = a + 2 * b;
    }
}
__global__ void iriw_of_block(int *x, int *flag, int *out) {
    int a = 0;
    if (FIRST) ST("relaxed.cta", x, 1);
    else if (SECOND) {
        LD("acquire.gpu", a, x);
        out[0] = a;
    }
}

// Locks.
#define LOCK(name, swap, after, before, exchange)                  \
    __global__ void name(int *x, int *flag, int *out) {            \
        if (threadIdx.x) return;                                   \
        while (swap(flag, 0, 1) != 0) {}                           \
        after;                                                     \
        x[0] += 1;                                                 \
        before;                                                    \
        exchange(flag, 0);                                         \
    }
LOCK(lock_fences, atomicCAS, __threadfence(), __threadfence(), atomicExch)
LOCK(lock_no_acquire, atomicCAS, , __threadfence(), atomicExch)
LOCK(lock_no_release, atomicCAS, __threadfence(), , atomicExch)
LOCK(lock_acquire_of_block, atomicCAS, __threadfence_block(), __threadfence(), atomicExch)
LOCK(lock_of_block, atomicCAS_block, __threadfence(), __threadfence(), atomicExch_block)

// Two accesses to one word.
__global__ void atomics(int *x, int *flag, int *out) {
    if (threadIdx.x == 0) atomicAdd(x, 1);
}
__global__ void atomics_of_block(int *x, int *flag, int *out) {
    if (threadIdx.x == 0) atomicAdd_block(x, 1);
}
__global__ void atomic_and_store(int *x, int *flag, int *out) {
    if (FIRST) x[0] = 3;
    else if (SECOND) atomicAdd(x, 1);
}
__global__ void atomic_and_volatile_store(int *x, int *flag, int *out) {
    if (FIRST) *(volatile int *)x = 3;
    else if (SECOND) atomicAdd(x, 1);
}
__global__ void atomic_and_relaxed_store(int *x, int *flag, int *out) {
    if (FIRST) ST("relaxed.gpu", x, 3);
    else if (SECOND) atomicAdd(x, 1);
}
__global__ void atomic_and_load(int *x, int *flag, int *out) {
    if (FIRST) out[0] = x[0];
    else if (SECOND) atomicAdd(x, 1);
}
__global__ void atomic_and_volatile_load(int *x, int *flag, int *out) {
    if (FIRST) out[0] = *(volatile int *)x;
    else if (SECOND) atomicAdd(x, 1);
}

// Look-back: each block adds to the sum of the one before it.
#define LOOK_BACK(name, before, after)                             \
    __global__ void name(int *x, int *flag, int *out) {            \
        if (threadIdx.x) return;                                   \
        int b = blockIdx.x, sum = 1;                               \
        if (b > 0) {                                               \
            while (((volatile int *)flag)[b - 1] == 0) {}          \
            after;                                                 \
            sum += x[b - 1];                                       \
        }                                                          \
        x[b] = sum;                                                \
        before;                                                    \
        ((volatile int *)flag)[b] = 1;                             \
    }
LOOK_BACK(look_back_fences, __threadfence(), __threadfence())
LOOK_BACK(look_back_no_release, , __threadfence())
LOOK_BACK(look_back_no_acquire, __threadfence(), )
