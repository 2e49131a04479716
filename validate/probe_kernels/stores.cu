// What storing costs: filling memory, a word here and there, reading and writing in turn, requests
// in a row, and the way out of a kernel that has just stored.

// Store WIDTH words of 4 bytes, each a.
template <int WIDTH>
__device__ void store(char *to, int a) {
    if (WIDTH == 1) asm volatile("st.global.u32 [%0], %1;" ::"l"(to), "r"(a) : "memory");
    if (WIDTH == 2) asm volatile("st.global.v2.u32 [%0], {%1, %1};" ::"l"(to), "r"(a) : "memory");
    if (WIDTH == 4)
        asm volatile("st.global.v4.u32 [%0], {%1, %1, %1, %1};" ::"l"(to), "r"(a) : "memory");
}

// Load WIDTH words of 4 bytes past the L1; return one of them.
template <int WIDTH>
__device__ int load(const char *from) {
    int a, b, c, d;
    if (WIDTH == 1) asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(a) : "l"(from) : "memory");
    if (WIDTH == 4) {
        asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(from) : "memory");
        a ^= b ^ c ^ d;
    }
    return a;
}

// All threads store WIDTH words, `stride` bytes from thread to thread, at `count` places,
// `iterations` times over.
template <int WIDTH>
__global__ void fill(char *memory, unsigned long long count, unsigned long long stride,
                     int iterations) {
    unsigned long long step = gridDim.x * (unsigned long long)blockDim.x;
#pragma unroll 1
    for (int r = 0; r < iterations; ++r) {
        unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
#pragma unroll 4
        for (; i < count; i += step) store<WIDTH>(memory + i * stride, r);
    }
}

// All SMs store whole sectors at random places, each by eight lanes.
template <int AHEAD>
__global__ void scatter(int *words, unsigned mask, int iterations, int *) {
    unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned place = thread / 8 * 2654435761u + 7;
#pragma unroll 1
    for (int r = 0; r < iterations; ++r) {
#pragma unroll
        for (int k = 0; k < AHEAD; ++k) {
            place = place * 1664525u + 1013904223u;
            words[(place >> 4 & mask) * 8ull + thread % 8] = r;
        }
    }
}

// Warps store half of 32 sectors, then the other half of them, or half of others, over and over. Each
// tells its first cycle and its last.
template <bool SAME>
__global__ void halves(long long *told, char *memory, int iterations) {
    unsigned warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    char *mine = memory + warp * 4096ull + lane * 32;
    __syncthreads();
    long long begin = clock64();
#pragma unroll 1
    for (int r = 0; r < iterations; ++r) {
        char *first = mine + r % 2 * 2048;
        store<4>(first, r);
        store<4>(first + (SAME ? 16 : 1024), r);
    }
    long long end = clock64();
    if (lane == 0) {
        told[2 * warp] = begin;
        told[2 * warp + 1] = end;
    }
}

// Warps read READS rows of WIDTH words a lane, of `from`, and write WRITES rows of `to`, and so on
// through `tiles` of such rows.
template <int READS, int WRITES, int WIDTH>
__global__ void turns(const char *from, char *to, unsigned long long tiles, int *never) {
    unsigned long long thread = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    unsigned long long warps = gridDim.x * (unsigned long long)blockDim.x / 32;
    unsigned lane = threadIdx.x % 32;
    int sum = 0;
#pragma unroll 1
    for (unsigned long long tile = thread / 32; tile < tiles; tile += warps) {
        int v[READS + 1] = {};
#pragma unroll
        for (int k = 0; k < READS; ++k)
            v[k] = load<WIDTH>(from + ((tile * READS + k) * 32 + lane) * 4 * WIDTH);
#pragma unroll
        for (int k = 0; k < READS; ++k) sum += v[k];
#pragma unroll
        for (int k = 0; k < WRITES; ++k)
            store<WIDTH>(to + ((tile * WRITES + k) * 32 + lane) * 4 * WIDTH, sum);
    }
    if (sum == 0x5eed5eed) *never = sum;
}

enum Sent { SEND_STORE, SEND_RED, SEND_RED_FLOAT };

// The cycle after each of COUNT requests, STEP bytes apart, that every warp sends in a row; a row for
// each warp. They lie close together until a queue is full.
template <Sent SENT, int STEP, int COUNT>
__global__ void burst(long long *told, char *memory, unsigned by_warp, unsigned by_lane,
                      int lanes) {
    unsigned warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    char *mine = memory + warp * (size_t)by_warp + lane * (size_t)by_lane;
    long long cycles[COUNT];
    __syncthreads();
    long long begin = clock64();
    if (lane >= lanes) return;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
        char *word = mine + i * STEP;
        if (SENT == SEND_RED)
            asm volatile("red.global.add.u32 [%0], %1;" ::"l"(word), "r"(1) : "memory");
        if (SENT == SEND_RED_FLOAT)
            asm volatile("red.global.add.f32 [%0], %1;" ::"l"(word), "f"(1.0f) : "memory");
        if (SENT == SEND_STORE)
            asm volatile("st.global.u32 [%0], %1;" ::"l"(word), "r"(lanes) : "memory");
        cycles[i] = clock64();
    }
    if (lane == 0)
        for (int i = 0; i < COUNT; ++i) told[warp * (size_t)COUNT + i] = cycles[i] - begin;
}

enum End { NOTHING, STORE, STORE_TWICE, RED, ATOM, LOAD, STORE_FENCE };

// Each block waits for some cycles; the end of it is what each thread does then.
template <End END>
__global__ void ended(char *memory, int cycles, int *never) {
    long long begin = clock64();
    char *mine = memory + (blockIdx.x * (size_t)blockDim.x + threadIdx.x) * 4;
    while (clock64() - begin < cycles) {
    }
    int was = 0;
    if (END == STORE || END == STORE_TWICE || END == STORE_FENCE) store<1>(mine, cycles);
    if (END == STORE_TWICE) store<1>(mine + 2 * gridDim.x * blockDim.x * 4, cycles);
    if (END == STORE_FENCE) __threadfence();
    if (END == RED) asm volatile("red.global.add.u32 [%0], %1;" ::"l"(mine), "r"(1) : "memory");
    if (END == ATOM)
        asm volatile("atom.global.add.u32 %0, [%1], %2;"
                     : "=r"(was) : "l"(mine), "r"(1) : "memory");
    if (END == LOAD) was = load<1>(mine);
    if (was == 0x5eed5eed) *never = was;
}
