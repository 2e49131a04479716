// Shared memory: latency, wavefronts, queues, atomics.

__device__ unsigned address_of(const void *shared) {
    return (unsigned)__cvta_generic_to_shared(shared);
}

__device__ void stamp(long long *stamps, long long begin, long long end, unsigned x) {
    unsigned warp = threadIdx.x / 32;
    if (threadIdx.x % 32 == 0) {
        stamps[2 * warp] = begin;
        stamps[2 * warp + 1] = end;
    }
    if (end == 0) stamps[0] = x;
}

constexpr int WORDS = 32 * 32;

// Each word holds its own address: a load gives the address of the next load. Lanes lie `stride`
// words apart.
template <int LENGTH>
__global__ void load_chain(long long *stamps, int iterations, int stride) {
    __shared__ unsigned words[WORDS];
    for (int i = threadIdx.x; i < WORDS; i += blockDim.x) words[i] = address_of(&words[i]);
    __syncthreads();
    unsigned x = address_of(&words[threadIdx.x % 32 * stride]);
    long long begin = clock64();
#pragma unroll 1
    for (int r = 0; r < iterations; ++r) {
#pragma unroll
        for (int i = 0; i < LENGTH; ++i) asm volatile("ld.shared.u32 %0, [%0];" : "+r"(x));
    }
    long long end = clock64();
    stamp(stamps, begin, end, x);
}

// Loads that wait for none before them, by the warps of the first `schedulers` schedulers.
template <int LENGTH>
__global__ void load_flood(long long *stamps, int iterations, int stride, int schedulers) {
    __shared__ unsigned words[WORDS];
    for (int i = threadIdx.x; i < WORDS; i += blockDim.x) words[i] = i;
    __syncthreads();
    if (threadIdx.x / 32 % 4 >= schedulers) return;
    unsigned address = address_of(&words[threadIdx.x % 32 * stride]), x = 0;
    long long begin = clock64();
#pragma unroll 1
    for (int r = 0; r < iterations; ++r) {
#pragma unroll
        for (int i = 0; i < LENGTH; ++i) {
            unsigned v[8];
#pragma unroll
            for (int k = 0; k < 8; ++k)
                asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(v[k]) : "r"(address));
            // Results come in order: the last one stands for all, and costs one instruction.
            x ^= v[7];
        }
    }
    long long end = clock64();
    stamp(stamps, begin, end, x);
}

template <int LENGTH>
__global__ void store_flood(long long *stamps, int iterations, int stride, int schedulers) {
    __shared__ unsigned words[WORDS];
    if (threadIdx.x / 32 % 4 >= schedulers) return;
    unsigned address = address_of(&words[threadIdx.x % 32 * stride]);
    long long begin = clock64();
#pragma unroll 1
    for (int r = 0; r < iterations; ++r) {
#pragma unroll
        for (int i = 0; i < 8 * LENGTH; ++i)
            asm volatile("st.volatile.shared.u32 [%0], %1;" ::"r"(address), "r"(r));
    }
    long long end = clock64();
    stamp(stamps, begin, end, words[0]);
}

// A store and a load of the same word, turn and turn about.
template <int LENGTH>
__global__ void store_load_chain(long long *stamps, int iterations, int stride) {
    __shared__ unsigned words[WORDS];
    unsigned address = address_of(&words[threadIdx.x % 32 * stride]), x = address;
    long long begin = clock64();
#pragma unroll 1
    for (int r = 0; r < iterations; ++r) {
#pragma unroll
        for (int i = 0; i < LENGTH; ++i)
            asm volatile("st.volatile.shared.u32 [%1], %0; ld.volatile.shared.u32 %0, [%1];"
                         : "+r"(x) : "r"(address));
    }
    long long end = clock64();
    stamp(stamps, begin, end, x);
}

// The cycle after each of COUNT accesses of 32 wavefronts that every warp issues in a row: they
// lie close together until a queue is full. They stand behind the stamps, a row for each warp.
template <int COUNT, bool LOADS>
__global__ void queue(long long *stamps) {
    __shared__ unsigned words[WORDS];
    unsigned address = address_of(&words[threadIdx.x % 32 * 32]);
    unsigned loaded[COUNT];
    long long cycles[COUNT];
    __syncthreads();
    long long begin = clock64();
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
        if (LOADS)
            asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(loaded[i]) : "r"(address));
        else
            asm volatile("st.volatile.shared.u32 [%0], %1;" ::"r"(address), "r"(i));
        cycles[i] = clock64();
    }
    long long end = clock64();
    unsigned sum = 0;
    if (LOADS)
        for (int i = 0; i < COUNT; ++i) sum ^= loaded[i];
    long long *mine = stamps + blockDim.x / 32 * 2 + threadIdx.x / 32 * COUNT;
    if (threadIdx.x % 32 == 0)
        for (int i = 0; i < COUNT; ++i) mine[i] = cycles[i] - begin;
    stamp(stamps, begin, end, sum);
}

// Atomics of the first `lanes` lanes of a warp on one word. `zero` keeps the compiler from seeing
// that they have one address: it would add up the lanes itself.
template <int LENGTH>
__global__ void atomic_chain(long long *stamps, int iterations, int lanes, int zero) {
    __shared__ unsigned word;
    if (threadIdx.x == 0) word = 0;
    __syncthreads();
    if (threadIdx.x >= lanes) return;
    unsigned address = address_of(&word) + (threadIdx.x & zero), x = threadIdx.x;
    long long begin = clock64();
#pragma unroll 1
    for (int r = 0; r < iterations; ++r) {
#pragma unroll
        for (int i = 0; i < LENGTH; ++i)
            asm volatile("atom.shared.add.u32 %0, [%1], %0;" : "+r"(x) : "r"(address));
    }
    long long end = clock64();
    stamp(stamps, begin, end, x);
}

// Blocks load from shared memory LOADS times, store twice and then meet, or not, over and over. Each
// block tells its first cycle and its last.
template <int LOADS, bool MEETS>
__global__ void busy(long long *told, int iterations) {
    __shared__ unsigned words[WORDS];
    unsigned address = address_of(&words[threadIdx.x]), x = 0;
    __syncthreads();
    long long begin = clock64();
#pragma unroll 1
    for (int r = 0; r < iterations; ++r) {
        unsigned v[LOADS];
#pragma unroll
        for (int k = 0; k < LOADS; ++k)
            asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(v[k]) : "r"(address));
        x ^= v[LOADS - 1];
#pragma unroll
        for (int k = 0; k < 2; ++k)
            asm volatile("st.volatile.shared.u32 [%0], %1;" ::"r"(address), "r"(x));
        if (MEETS) asm volatile("bar.sync 0;" ::: "memory");
    }
    long long end = clock64();
    if (threadIdx.x == 0) {
        told[2 * blockIdx.x] = begin;
        told[2 * blockIdx.x + 1] = end;
    }
    if (end == 0) told[0] = x;
}
