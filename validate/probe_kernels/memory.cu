// Global memory: latencies by following pointers, bandwidths by reading, stores, atomics.

enum Where { L1, L2 };

template <Where WHERE>
__device__ unsigned long long next(unsigned long long at) {
    if (WHERE == L1)
        asm volatile("ld.global.ca.u64 %0, [%0];" : "+l"(at));
    else
        asm volatile("ld.global.cg.u64 %0, [%0];" : "+l"(at));
    return at;
}

// Follow pointers: `before` of them, then `steps` that are timed.
template <Where WHERE>
__global__ void pursue(long long *stamps, unsigned long long at, int before, int steps) {
    for (int i = 0; i < before; ++i) at = next<WHERE>(at);
    if (at == 0) stamps[0] = 0;
    long long begin = clock64();
    for (int i = 0; i < steps; ++i) at = next<WHERE>(at);
    if (at == 0) stamps[0] = 0;
    long long end = clock64();
    stamps[0] = begin;
    stamps[1] = end;
}

__device__ int sum_of(int4 v) { return v.x ^ v.y ^ v.z ^ v.w; }

__device__ int4 load_from_l2(const int4 *word) {
    int4 v;
    asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(word));
    return v;
}

// Read `count` words of 16 bytes, `iterations` times over, AHEAD loads at a time, past the L1.
template <int AHEAD>
__global__ void stream(const int4 *words, unsigned long long count, int iterations, int *never) {
    unsigned long long step = gridDim.x * (unsigned long long)blockDim.x;
    int sum = 0;
    for (int r = 0; r < iterations; ++r) {
        unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
        for (; i + (AHEAD - 1) * step < count; i += AHEAD * step) {
            int4 v[AHEAD];
#pragma unroll
            for (int k = 0; k < AHEAD; ++k) v[k] = load_from_l2(&words[i + k * step]);
#pragma unroll
            for (int k = 0; k < AHEAD; ++k) sum += sum_of(v[k]);
        }
    }
    if (sum == 0x5eed) *never = sum;
}

// Each thread reads one word of 4 bytes; threads lie STRIDE words apart.
template <int STRIDE>
__global__ void sparse(const int *words, unsigned long long threads, int *never) {
    unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    unsigned long long step = gridDim.x * (unsigned long long)blockDim.x;
    int sum = 0;
    for (; i + 3 * step < threads; i += 4 * step) {
        int v[4];
#pragma unroll
        for (int k = 0; k < 4; ++k)
            asm volatile("ld.global.cg.u32 %0, [%1];"
                         : "=r"(v[k]) : "l"(&words[(i + k * step) * STRIDE]));
        sum += v[0] ^ v[1] ^ v[2] ^ v[3];
    }
    if (sum == 0x5eed) *never = sum;
}

// Follow pointers in block 0 while the warps of the other blocks access 8 times 512 bytes and then
// pause: the last STORES of them store, behind what is read. Each of those warps tells its accesses
// and its cycles, from told[1] on; told[0] ends them.
template <int LIMIT, int STORES>
__global__ void loaded(long long *stamps, unsigned long long at, int steps, int4 *words,
                       unsigned long long count, int pause, long long *told, int *never) {
    volatile long long *stop = told;
    if (blockIdx.x == 0) {
        if (threadIdx.x) return;
        long long wait = clock64();
        while (clock64() - wait < 100000) {
        }
        long long begin = clock64();
        for (int i = 0; i < steps; ++i) at = next<L2>(at);
        if (at == 0) stamps[0] = 0;
        long long end = clock64();
        stamps[0] = begin;
        stamps[1] = end;
        *stop = 1;
        return;
    }
    unsigned long long thread = (blockIdx.x - 1) * (unsigned long long)blockDim.x + threadIdx.x;
    unsigned long long step = (gridDim.x - 1) * (unsigned long long)blockDim.x;
    unsigned long long i = thread;
    int sum = 0;
    long long accesses = 0, begin = clock64();
    for (int r = 0; r < LIMIT; ++r) {
        if (r % 8 == 0 && *stop) break;
        int4 v[8] = {};
        if (i + 8 * step >= count) i = thread;
#pragma unroll
        for (int k = 0; k < 8 - STORES; ++k) v[k] = load_from_l2(&words[i + k * step]);
#pragma unroll
        for (int k = 8 - STORES; k < 8; ++k) words[count + i + k * step] = v[k];
        i += 8 * step;
#pragma unroll
        for (int k = 0; k < 8 - STORES; ++k) sum += sum_of(v[k]);
        accesses += 8;
        long long now = clock64();
        while (clock64() - now < pause) {
        }
    }
    long long end = clock64();
    if (threadIdx.x % 32 == 0) {
        told[1 + thread / 32 * 2] = accesses;
        told[2 + thread / 32 * 2] = end - begin;
    }
    if (sum == 0x5eed) *never = sum;
}

// Each warp loads lines at random places, one after the other, and tells the cycles of each. There
// are `mask` lines and one more, a power of two.
template <int STEPS>
__global__ void scattered(int *told, const int *words, unsigned mask) {
    unsigned place = (blockIdx.x * blockDim.x + threadIdx.x) / 32 * 2654435761u + 1, sum = 0;
    for (int i = 0; i < STEPS; ++i) {
        place = place * 1664525u + 1013904223u;
        const int *from = words + (place >> 4 & mask) * 32ull + threadIdx.x % 32;
        long long begin = clock64();
        int v;
        asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(v) : "l"(from));
        sum += v;
        asm volatile("" ::"r"(sum) : "memory");
        if (sum == 0x5eed) told[1] = sum;
        long long end = clock64();
        if (threadIdx.x % 32 == 0)
            told[(blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32) * STEPS + i] = end - begin;
    }
}

// The warps of a grid load line after line in order, each when it has the one before, and tell their
// cycles for all of them.
template <int STEPS>
__global__ void in_order(long long *told, const int *words) {
    unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    unsigned long long step = gridDim.x * (unsigned long long)blockDim.x;
    int sum = 0;
    long long begin = clock64();
#pragma unroll 1
    for (int k = 0; k < STEPS; ++k, i += step) {
        int v;
        asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(v) : "l"(words + i) : "memory");
        sum += v;
        if (sum == 0x5eed) break;
    }
    long long end = clock64();
    if (threadIdx.x % 32 == 0)
        told[blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32] = end - begin;
}

// Each lane reads one word of a sector at a random place, AHEAD loads at a time, past the L1. There
// are `mask` sectors and one more, a power of two.
template <int AHEAD>
__global__ void gather(const int *words, unsigned mask, int iterations, int *never) {
    unsigned place = (blockIdx.x * blockDim.x + threadIdx.x) * 2654435761u + 7;
    int sum = 0;
    for (int r = 0; r < iterations; ++r) {
        int v[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; ++k) {
            place = place * 1664525u + 1013904223u;
            asm volatile("ld.global.cg.u32 %0, [%1];"
                         : "=r"(v[k]) : "l"(words + (place >> 4 & mask) * 8ull));
        }
#pragma unroll
        for (int k = 0; k < AHEAD; ++k) sum ^= v[k];
    }
    if (sum == 0x5eed) *never = sum;
}

// All SMs store 8 bytes a lane, 16 bytes apart, over and over into the same part of the memory.
template <int STEPS>
__global__ void spread(long long *words, int iterations) {
    unsigned long long threads = gridDim.x * (unsigned long long)blockDim.x;
    unsigned long long mine = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
#pragma unroll 1
    for (int r = 0; r < iterations; ++r) {
#pragma unroll
        for (int i = 0; i < STEPS; ++i)
            asm volatile("st.global.u64 [%0], %1;" ::"l"(words + 2 * (mine + i * threads)),
                         "l"((long long)r));
    }
}

// One block writes whole lines, or one word a line, `iterations` times over the same lines.
template <int STRIDE>
__global__ void write(long long *stamps, int *words, int iterations) {
    int *mine = words + threadIdx.x * STRIDE;
    __syncthreads();
    long long begin = clock64();
#pragma unroll 1
    for (int r = 0; r < iterations; ++r) {
#pragma unroll
        for (int i = 0; i < 8; ++i)
            asm volatile("st.global.u32 [%0], %1;" ::"l"(mine + i * 1024 * STRIDE), "r"(r));
    }
    long long end = clock64();
    if (threadIdx.x % 32 == 0) {
        stamps[threadIdx.x / 32 * 2] = begin;
        stamps[threadIdx.x / 32 * 2 + 1] = end;
    }
}

// Loads of one line each that hit the L1, WIDTH words of 4 bytes a lane, by the warps of a block.
template <int WIDTH>
__global__ void hits(long long *stamps, const int *words, int iterations) {
    const int *mine = words + threadIdx.x % 32 * WIDTH;
    int sum = 0;
    long long begin = 0;
#pragma unroll 1
    for (int r = -1; r < iterations; ++r) {
        if (r == 0) {
            __syncthreads();
            begin = clock64();
        }
        int v[8][4] = {};
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const int *from = mine + i * 32 * WIDTH;
            if (WIDTH == 1)
                asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(v[i][0]) : "l"(from));
            else
                asm volatile("ld.global.ca.v4.u32 {%0, %1, %2, %3}, [%4];"
                             : "=r"(v[i][0]), "=r"(v[i][1]), "=r"(v[i][2]), "=r"(v[i][3])
                             : "l"(from));
        }
#pragma unroll
        for (int i = 0; i < 8; ++i) sum ^= v[i][0] ^ v[i][1] ^ v[i][2] ^ v[i][3];
    }
    long long end = clock64();
    if (threadIdx.x % 32 == 0) {
        stamps[threadIdx.x / 32 * 2] = begin;
        stamps[threadIdx.x / 32 * 2 + 1] = end;
    }
    if (sum == 0x5eed) stamps[0] = sum;
}

// One thread adds to one word and waits for what was there. `zero` keeps the compiler from
// seeing that all lanes would have one address: it would add up a warp's lanes itself.
template <typename T>
__global__ void atomic_chain(long long *stamps, T *word, int iterations, int zero) {
    T *mine = word + (threadIdx.x & zero);
    T x = 1;
    long long begin = clock64();
    for (int r = 0; r < iterations; ++r)
        asm volatile("atom.global.add.u32 %0, [%1], %0;" : "+r"(x) : "l"(mine));
    if (x == T(12345)) stamps[0] = 0;
    long long end = clock64();
    stamps[0] = begin;
    stamps[1] = end;
}

// Every warp of the GPU adds to one word: one lane of it, or all.
template <typename T, int LANES>
__global__ void atomic_flood(T *word, int iterations, int zero) {
    T *mine = word + (threadIdx.x & zero);
    if (threadIdx.x % 32 >= LANES) return;
    for (int r = 0; r < iterations; ++r) {
        if (T(0.5f) == T(0))
            asm volatile("red.global.add.u32 [%0], %1;" ::"l"(mine), "r"(1));
        else
            asm volatile("red.global.add.f32 [%0], %1;" ::"l"(mine), "f"(1.0f));
    }
}
