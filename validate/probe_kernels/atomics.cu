// Atomics in the L2 and in shared memory: how many a cycle, by operation and by where they go.

enum Operation { ADD, ADD_FLOAT, MAX, SWAP, EXCHANGE, ADD_LONG, ADD_DOUBLE, SWAP_LONG };

// An atomic that gives nothing back.
template <Operation OPERATION>
__device__ void reduce(char *word) {
    if (OPERATION == ADD)
        asm volatile("red.global.add.u32 [%0], %1;" ::"l"(word), "r"(1) : "memory");
    if (OPERATION == ADD_FLOAT)
        asm volatile("red.global.add.f32 [%0], %1;" ::"l"(word), "f"(1.0f) : "memory");
    if (OPERATION == MAX)
        asm volatile("red.global.max.s32 [%0], %1;" ::"l"(word), "r"(1) : "memory");
    if (OPERATION == ADD_LONG)
        asm volatile("red.global.add.u64 [%0], %1;" ::"l"(word), "l"(1ll) : "memory");
    if (OPERATION == ADD_DOUBLE)
        asm volatile("red.global.add.f64 [%0], %1;" ::"l"(word), "d"(1.0) : "memory");
}

// An atomic that gives back what was there.
template <Operation OPERATION>
__device__ unsigned fetch(char *word) {
    unsigned was = 0;
    unsigned long long wide = 0;
    float real = 0;
    double precise = 0;
    if (OPERATION == ADD)
        asm volatile("atom.global.add.u32 %0, [%1], %2;"
                     : "=r"(was) : "l"(word), "r"(1) : "memory");
    if (OPERATION == MAX)
        asm volatile("atom.global.max.s32 %0, [%1], %2;"
                     : "=r"(was) : "l"(word), "r"(1) : "memory");
    if (OPERATION == EXCHANGE)
        asm volatile("atom.global.exch.b32 %0, [%1], %2;"
                     : "=r"(was) : "l"(word), "r"(1) : "memory");
    if (OPERATION == SWAP)
        asm volatile("atom.global.cas.b32 %0, [%1], %2, %3;"
                     : "=r"(was) : "l"(word), "r"(1), "r"(2) : "memory");
    if (OPERATION == ADD_FLOAT)
        asm volatile("atom.global.add.f32 %0, [%1], %2;"
                     : "=f"(real) : "l"(word), "f"(1.0f) : "memory");
    if (OPERATION == ADD_LONG)
        asm volatile("atom.global.add.u64 %0, [%1], %2;"
                     : "=l"(wide) : "l"(word), "l"(1ll) : "memory");
    if (OPERATION == SWAP_LONG)
        asm volatile("atom.global.cas.b64 %0, [%1], %2, %3;"
                     : "=l"(wide) : "l"(word), "l"(1ll), "l"(2ll) : "memory");
    if (OPERATION == ADD_DOUBLE)
        asm volatile("atom.global.add.f64 %0, [%1], %2;"
                     : "=d"(precise) : "l"(word), "d"(1.0) : "memory");
    return was + (unsigned)wide + __float_as_uint(real) + (unsigned)__double_as_longlong(precise);
}

// The first `lanes` lanes of each warp work on words `apart` bytes apart: which of `mask` + 1, a
// power of two, follows from numbers of warp, lane and iteration.
template <Operation OPERATION, bool RETURNS>
__global__ void spread(char *memory, unsigned mask, unsigned apart, unsigned by_warp,
                       unsigned by_lane, unsigned by_iteration, int lanes, int iterations,
                       unsigned *never) {
    unsigned warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (lane >= lanes) return;
    unsigned first = warp * by_warp + lane * by_lane, sum = 0;
#pragma unroll 1
    for (int r = 0; r < iterations; r += 4) {
        unsigned was[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            char *word = memory + (first + (r + k) * by_iteration & mask) * (size_t)apart;
            if (RETURNS)
                was[k] = fetch<OPERATION>(word);
            else
                reduce<OPERATION>(word);
        }
#pragma unroll
        for (int k = 0; k < 4; ++k) sum ^= RETURNS ? was[k] : 0;
    }
    if (sum == 0x5eed5eed) *never = sum;
}

// Each lane works on words at random places, `apart` bytes apart: `mask` of them and one more, a
// power of two.
template <Operation OPERATION, bool RETURNS>
__global__ void at_random(char *memory, unsigned mask, unsigned apart, int iterations,
                          unsigned *never) {
    unsigned place = (blockIdx.x * blockDim.x + threadIdx.x) * 2654435761u + 7, sum = 0;
#pragma unroll 4
    for (int r = 0; r < iterations; ++r) {
        place = place * 1664525u + 1013904223u;
        char *word = memory + (place >> 4 & mask) * (size_t)apart;
        if (RETURNS)
            sum ^= fetch<OPERATION>(word);
        else
            reduce<OPERATION>(word);
    }
    if (sum == 0x5eed5eed) *never = sum;
}

// The first `lanes` lanes of each warp work on a word of one array, at random of `mask` and one more,
// and then on one of another, `other_mask`: powers of two, the words side by side.
template <Operation OPERATION>
__global__ void two_arrays(char *memory, unsigned mask, char *other, unsigned other_mask, int lanes,
                           int iterations) {
    unsigned place = (blockIdx.x * blockDim.x + threadIdx.x) * 2654435761u + 7;
    if (threadIdx.x % 32 >= lanes) return;
#pragma unroll 4
    for (int r = 0; r < iterations; ++r) {
        place = place * 1664525u + 1013904223u;
        if (memory) reduce<OPERATION>(memory + (place >> 4 & mask) * 4ull);
        if (other) reduce<OPERATION>(other + (place >> 8 & other_mask) * 4ull);
    }
}

// The lanes of each warp add to words at random places, 128 bytes apart, of `mask` and one more, a
// power of two; each time the warp loads ROWS rows of 128 bytes of `rows` as well, one after the
// other.
template <int ROWS>
__global__ void among_loads(char *memory, unsigned mask, const char *rows, unsigned row_mask,
                            int iterations, unsigned *never) {
    unsigned thread = blockIdx.x * blockDim.x + threadIdx.x, warps = gridDim.x * blockDim.x / 32;
    unsigned place = thread * 2654435761u + 7, row = thread / 32, sum = 0;
#pragma unroll 4
    for (int r = 0; r < iterations; ++r) {
        place = place * 1664525u + 1013904223u;
        reduce<ADD>(memory + (place >> 4 & mask) * 128ull);
#pragma unroll
        for (int k = 0; k < ROWS; ++k, row += warps) {
            unsigned v;
            const char *from = rows + (row & row_mask) * 128ull + threadIdx.x % 32 * 4;
            asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(v) : "l"(from) : "memory");
            sum ^= v;
        }
    }
    if (sum == 0x5eed5eed) *never = sum;
}

// Atomics on shared memory by the first `lanes` lanes of every warp of a block; lanes lie `stride`
// words apart. Each warp tells its first cycle and its last.
template <Operation OPERATION, bool RETURNS>
__global__ void in_shared(long long *told, int iterations, int stride, int lanes) {
    __shared__ __align__(8) char words[32 * 32 * 8];
    for (int i = threadIdx.x; i < 32 * 32 * 2; i += blockDim.x) ((int *)words)[i] = 0;
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, sum = 0;
    constexpr int width = OPERATION >= ADD_LONG ? 8 : 4;
    char *word = words + lane * stride * width % sizeof(words);
    __syncthreads();
    if (lane >= lanes) return;
    long long begin = clock64();
#pragma unroll 1
    for (int r = 0; r < iterations; ++r) {
        unsigned was = 0;
        if (OPERATION == ADD) was = atomicAdd((unsigned *)word, lane);
        if (OPERATION == MAX) was = atomicMax((unsigned *)word, r);
        if (OPERATION == EXCHANGE) was = atomicExch((unsigned *)word, r);
        if (OPERATION == SWAP) was = atomicCAS((unsigned *)word, r, r + 1);
        if (OPERATION == ADD_FLOAT) was = __float_as_uint(atomicAdd((float *)word, 1.0f));
        if (OPERATION == ADD_LONG) was = (unsigned)atomicAdd((unsigned long long *)word, lane);
        if (OPERATION == ADD_DOUBLE) was = (unsigned)atomicAdd((double *)word, 1.0);
        if (OPERATION == SWAP_LONG) was = (unsigned)atomicCAS((unsigned long long *)word, r, r + 1);
        if (RETURNS) sum ^= was;
    }
    long long end = clock64();
    if (lane == 0) {
        told[2 * warp] = begin;
        told[2 * warp + 1] = end;
    }
    if (sum == 0x5eed5eed) told[0] = sum;
}
