// What an SM fetches besides data: constants, parameters, code.

__constant__ unsigned table[16384];

// A thread reads constants `apart` words apart, each when it has the one before, `rounds` times:
// the cycles of each. All constants are zero, and so is `zero`, which makes an index that the
// compiler takes for another in each lane.
template <bool UNIFORM>
__global__ void constants(long long *told, int count, int apart, int rounds, unsigned zero) {
    unsigned x = UNIFORM ? 0 : threadIdx.x & zero;
    for (int r = 0; r < rounds; ++r)
        for (int i = 0; i < count; ++i) {
            long long begin = clock64();
            x = table[i * apart + x];
            asm volatile("" : "+r"(x)::"memory");
            if (x) told[0] = x;
            told[r * count + i] = clock64() - begin;
        }
}

// A warp reads `lanes` different constants at a time, `apart` words apart, each time when it has
// those before; they lie in their cache from the first time on.
template <typename T>
__global__ void looked_up(T *told, int lanes, int apart, int rounds) {
    unsigned place = threadIdx.x % lanes * apart, x = 0;
    long long begin = clock64();
#pragma unroll 1
    for (int r = 0; r < rounds; ++r) {
        x = table[place + x];
        asm volatile("" : "+r"(x)::"memory");
    }
    long long end = clock64();
    if (x) told[0] = x;
    if (threadIdx.x == 0) {
        told[0] = begin;
        told[1] = end;
    }
}

// Each warp goes around `mask` + 1 words of constants, a power of two, `apart` words from one to the
// next and `by_warp` from its first one to that of the next warp. `zero` makes an index that the
// compiler takes for another in each lane.
template <typename T>
__global__ void constants_of_warps(unsigned mask, unsigned apart, unsigned by_warp, int loads,
                                   unsigned zero, T *never) {
    unsigned place = (blockIdx.x * blockDim.x + threadIdx.x) / 32 * by_warp, sum = 0;
    place += threadIdx.x & zero;
#pragma unroll 4
    for (int k = 0; k < loads; ++k, place += apart) sum += table[place & mask];
    if (sum == 0x5eed5eed) *never = sum;
}

struct Parameters {
    unsigned words[1000];
};

// The same with the kernel's own parameters, all zero.
template <bool UNIFORM>
__global__ void parameters(long long *told, int count, int apart, int rounds, unsigned zero,
                           Parameters all) {
    unsigned x = UNIFORM ? 0 : threadIdx.x & zero;
    for (int r = 0; r < rounds; ++r)
        for (int i = 0; i < count; ++i) {
            long long begin = clock64();
            x = all.words[i * apart + x];
            asm volatile("" : "+r"(x)::"memory");
            if (x) told[0] = x;
            told[r * count + i] = clock64() - begin;
        }
}

// Straight code of COUNT instructions that wait for little, `rounds` times: the cycles of each
// round, of every warp.
template <int COUNT>
__global__ void code(long long *told, int rounds, float a, float b) {
    float x[4] = {a, b, a + 1, b + 1};
    unsigned warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
#pragma unroll 1
    for (int r = 0; r < rounds; ++r) {
        long long begin = clock64();
#pragma unroll
        for (int i = 0; i < COUNT; ++i)
            asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+f"(x[i % 4]) : "f"(a), "f"(b));
        long long end = clock64();
        if (threadIdx.x % 32 == 0) told[warp * rounds + r] = end - begin;
    }
    if (x[0] + x[1] + x[2] + x[3] == 123.0f) told[0] = 0;
}
