// What caches keep: loads by how long ago their line was touched, what lies in the L2 after a sweep,
// requests that come while a line is on its way.

enum Where { L1, L2 };

template <Where WHERE>
__device__ unsigned load(const char *from) {
    unsigned v;
    if (WHERE == L1)
        asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(v) : "l"(from) : "memory");
    else
        asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(v) : "l"(from) : "memory");
    return v;
}

// The cycles that a load takes, and a use of what it loads that never happens.
template <Where WHERE>
__device__ long long timed(const char *from, long long *never) {
    long long begin = clock64();
    unsigned v = load<WHERE>(from);
    if (v == 0x5eed5eed) *never = v;
    return clock64() - begin;
}

__device__ unsigned mixed(unsigned x) {
    x *= 2654435761u;
    x = (x ^ x >> 16) * 0x85ebca6bu;
    return x ^ x >> 13;
}

__device__ unsigned below(unsigned bound, unsigned x) {
    return (unsigned)(mixed(x) * (unsigned long long)bound >> 32);
}

enum Order { IN_TURN, AT_RANDOM };

// The warps of a block load lines at `lines` places `apart` bytes apart, `rounds` times. Each warp
// tells of the last round how many loads took less than `limit` cycles, their cycles, how many took
// more, and theirs.
template <Order ORDER>
__global__ void reuse(long long *told, const char *memory, unsigned lines, unsigned apart,
                      int rounds, unsigned limit) {
    unsigned warp = threadIdx.x / 32, warps = blockDim.x / 32;
    const char *mine = memory + threadIdx.x % 32 * 4;
    long long few = 0, few_cycles = 0, many = 0, many_cycles = 0;
    for (int r = 0; r < rounds; ++r) {
        few = few_cycles = many = many_cycles = 0;
        __syncthreads();
        for (unsigned i = warp; i < lines; i += warps) {
            unsigned line = ORDER == AT_RANDOM ? below(lines, i + r * lines) : i;
            long long cycles = timed<L1>(mine + (unsigned long long)line * apart, told);
            if (cycles < limit) {
                ++few;
                few_cycles += cycles;
            } else {
                ++many;
                many_cycles += cycles;
            }
        }
    }
    long long *row = told + 4 * warp;
    if (threadIdx.x % 32 == 0) {
        row[0] = few;
        row[1] = few_cycles;
        row[2] = many;
        row[3] = many_cycles;
    }
}

enum Action {
    NOTHING,
    STORE_LINE,
    STORE_WORD,
    STORE_OTHER_SECTOR,
    RED,
    ATOM,
    LOAD_PAST_L1,
    LOAD_VOLATILE,
    LOAD_ACQUIRE,
    FENCE,
    BARRIER,
    STORE_FIRST
};

// A warp loads the first sector of a line twice, then something happens, then it loads it again:
// the cycles of the second load and of the last one, summed over `lines`.
template <Action ACTION>
__global__ void after(long long *told, char *memory, int lines) {
    long long second = 0, last = 0;
    unsigned lane = threadIdx.x % 32;
    for (int i = 0; i < lines; ++i) {
        char *line = memory + i * 4096ull, *mine = line + lane % 8 * 4;
        unsigned v = i;
        if (ACTION != STORE_FIRST) {
            timed<L1>(mine, told);
            second += timed<L1>(mine, told);
        }
        if (ACTION == STORE_LINE || ACTION == STORE_FIRST)
            asm volatile("st.global.u32 [%0], %1;" ::"l"(line + lane * 4), "r"(i) : "memory");
        if (lane == 0) {
            if (ACTION == STORE_WORD)
                asm volatile("st.global.u32 [%0], %1;" ::"l"(line), "r"(i) : "memory");
            if (ACTION == STORE_OTHER_SECTOR)
                asm volatile("st.global.u32 [%0], %1;" ::"l"(line + 64), "r"(i) : "memory");
            if (ACTION == RED)
                asm volatile("red.global.add.u32 [%0], %1;" ::"l"(line), "r"(i) : "memory");
            if (ACTION == ATOM)
                asm volatile("atom.global.add.u32 %0, [%1], %0;" : "+r"(v) : "l"(line) : "memory");
            if (ACTION == LOAD_PAST_L1) v += load<L2>(line);
            if (ACTION == LOAD_VOLATILE) v += *(volatile unsigned *)line;
            if (ACTION == LOAD_ACQUIRE)
                asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(line) : "memory");
        }
        if (ACTION == FENCE) __threadfence();
        if (ACTION == BARRIER) __syncthreads();
        if (v == 0x5eed5eed) *told = v;
        long long begin = clock64();
        while (clock64() - begin < 3000) {
        }
        __syncwarp();
        last += timed<L1>(mine, told);
    }
    if (threadIdx.x == 0) {
        told[0] = second;
        told[1] = last;
    }
}

// Each warp loads a sector at random of `lines` places, `steps` times, and tells place and cycles.
template <typename T>
__global__ void sample(T *told, const char *memory, unsigned lines, unsigned long long apart,
                       unsigned offset, int steps) {
    unsigned warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    for (int s = 0; s < steps; ++s) {
        unsigned line = below(lines, warp * steps + s + 77);
        const char *from = memory + line * apart + offset + threadIdx.x % 8 * 4;
        long long cycles = timed<L2>(from, (long long *)told);
        if (threadIdx.x % 32 == 0) told[warp * steps + s] = ((T)line << 32) + cycles;
    }
}

// Each warp loads words of `count` lines at once, at random of `lines`, `steps` times: the cycles of
// each time.
template <Where WHERE>
__global__ void at_once(long long *told, const char *memory, unsigned lines, unsigned count,
                        int steps) {
    unsigned warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    for (int s = 0; s < steps; ++s) {
        unsigned line = below(lines, (warp * steps + s) * 32 + lane % count);
        long long cycles = timed<WHERE>(memory + line * 128ull + lane * 4, told);
        if (lane == 0) told[warp * steps + s] = cycles;
    }
}

// Each warp reads lines at random places, AHEAD at a time, past the L1.
template <int AHEAD>
__global__ void gather_lines(const char *memory, unsigned mask, int iterations, int *never) {
    unsigned warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, sum = 0;
    for (int r = 0; r < iterations; ++r) {
        unsigned v[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; ++k) {
            unsigned line = mixed((warp * iterations + r) * AHEAD + k) & mask;
            v[k] = load<L2>(memory + line * 128ull + threadIdx.x % 32 * 4);
        }
#pragma unroll
        for (int k = 0; k < AHEAD; ++k) sum ^= v[k];
    }
    if (sum == 0x5eed5eed) *never = sum;
}

// Each warp reads lines at random places, AHEAD at a time, past the L1, and waits for them.
template <int AHEAD>
__global__ void lines_in_turns(const char *memory, unsigned mask, int turns, int *never) {
    unsigned warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, sum = 0;
#pragma unroll 1
    for (int r = 0; r < turns; ++r) {
        unsigned v[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; ++k) {
            unsigned line = mixed((warp * turns + r) * AHEAD + k) & mask;
            v[k] = load<L2>(memory + line * 128ull + threadIdx.x % 32 * 4);
        }
#pragma unroll
        for (int k = 0; k < AHEAD; ++k) sum ^= v[k];
    }
    if (sum == 0x5eed5eed) *never = sum;
}

// The lanes of a block's warps load words of `lines` at random, each lane a line of its own, but for
// those of the first warp, which load the same one: it tells how many of its loads took less than
// `limit` cycles, and how many there were, of the last half of `steps`.
template <Where WHERE>
__global__ void among_lanes(long long *told, const char *memory, unsigned lines, int steps,
                            unsigned limit) {
    unsigned warp = threadIdx.x / 32;
    long long few = 0;
    for (int s = 0; s < steps; ++s) {
        unsigned lane = warp ? threadIdx.x : 0;
        unsigned line = below(lines, s * blockDim.x + lane);
        long long cycles = timed<WHERE>(memory + line * 128ull, told);
        if (2 * s >= steps) few += cycles < limit;
    }
    if (threadIdx.x == 0) {
        told[0] = few;
        told[1] = steps - steps / 2;
    }
}

// All threads read a word of 4 bytes every `stride` bytes, AHEAD at a time, `sweeps` times, each
// sweep `step` bytes further on.
template <int AHEAD>
__global__ void strided(const char *memory, unsigned long long count, unsigned long long stride,
                        int sweeps, unsigned step, int *never) {
    unsigned long long threads = gridDim.x * (unsigned long long)blockDim.x;
    unsigned sum = 0;
    for (int sweep = 0; sweep < sweeps; ++sweep) {
        unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
        const char *from = memory + sweep * step;
        for (; i + (AHEAD - 1) * threads < count; i += AHEAD * threads) {
            unsigned v[AHEAD];
#pragma unroll
            for (int k = 0; k < AHEAD; ++k) v[k] = load<L2>(from + (i + k * threads) * stride);
#pragma unroll
            for (int k = 0; k < AHEAD; ++k) sum ^= v[k];
        }
        for (; i < count; i += threads) sum ^= load<L2>(from + i * stride);
    }
    if (sum == 0x5eed5eed) *never = sum;
}

// A thread goes around `nodes` places `apart` bytes apart, a power of two, each when it has what
// lies in the one before; `zero` is the part of it that counts.
template <Where WHERE>
__global__ void tour(long long *told, const char *memory, unsigned nodes, unsigned long long apart,
                     int before, int steps, unsigned zero) {
    unsigned node = 0;
    long long begin = clock64();
    for (int i = -before; i < steps; ++i) {
        if (i == 0) begin = clock64();
        unsigned v = load<WHERE>(memory + node * apart);
        node = node * 5 + 1 + (v & zero) & nodes - 1;
    }
    if (node == nodes) *told = node;
    long long end = clock64();
    told[0] = begin;
    told[1] = end;
}

// All warps load the same lines one after the other: the cycles of all of a warp's loads.
template <Where WHERE>
__global__ void together(long long *told, const char *memory, int lines, unsigned apart) {
    unsigned warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    long long sum = 0;
    for (int i = 0; i < lines; ++i)
        sum += timed<WHERE>(memory + i * (unsigned long long)apart + threadIdx.x % 32 * 4, told);
    if (threadIdx.x % 32 == 0) told[warp] = sum;
}

// Each warp loads COUNT times in a row from a line, waits for all of it, and goes on to another line,
// through `lines` of its own, then through those of other warps, `ways` times in all.
template <int COUNT>
__global__ void loads_in_a_row(const int *words, int lines, int ways, int *never) {
    unsigned warps = gridDim.x * blockDim.x / 32;
    unsigned first = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    int sum = 0;
#pragma unroll 1
    for (int way = 0; way < ways; ++way) {
        const int *mine = words + (first + way * 320) % warps * 32 + threadIdx.x % 8;
#pragma unroll 1
        for (int line = 0; line < lines; ++line, mine += warps * 32) {
            int loaded[COUNT];
#pragma unroll
            for (int i = 0; i < COUNT; ++i)
                asm volatile("ld.global.u32 %0, [%1];" : "=r"(loaded[i]) : "l"(mine + i));
#pragma unroll
            for (int i = 0; i < COUNT; ++i) sum ^= loaded[i];
        }
    }
    if (sum == 0x5eed) *never = sum;
}
