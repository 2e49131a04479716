// Matrix products of a warpgroup (wgmma), all of one sum, in LENGTH groups that are awaited.

#define TWO(i) "+r"(d[i]), "+r"(d[i + 1])
#define EIGHT(i) TWO(i), TWO(i + 2), TWO(i + 4), TWO(i + 6)
#define REGISTERS EIGHT(0), EIGHT(8), EIGHT(16), EIGHT(24)
#define NAMES                                                                          \
    "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"                          \
    "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, %32, %32"

// Of 64 columns: 16-bit floating-point numbers with sums in single precision.
struct Columns64 {
    static __device__ void step(unsigned *d, unsigned long long factors) {
        asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " NAMES ", 1, 1, 1, 0, 0;"
                     : REGISTERS
                     : "l"(factors));
    }
};

// Of 128 columns, with sums in half precision.
struct Columns128 {
    static __device__ void step(unsigned *d, unsigned long long factors) {
        asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f16.f16.f16 " NAMES ", 1, 1, 1, 0, 0;"
                     : REGISTERS
                     : "l"(factors));
    }
};

// Both factors lie in the same zeros, with the pattern of 128 bytes.
template <typename Columns, int PRODUCTS, int LENGTH>
__global__ void products(long long *stamps, int iterations) {
    __shared__ __align__(1024) unsigned zeros[128 * 32];
    for (int i = threadIdx.x; i < 128 * 32; i += blockDim.x) zeros[i] = 0;
    unsigned long long factors = 1ull << 62 | 64ull << 32 | 1ull << 16;
    factors |= (unsigned)__cvta_generic_to_shared(zeros) >> 4;
    unsigned d[32] = {}, any = 0;
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    long long begin = clock64();
#pragma unroll 1
    for (int r = 0; r < iterations; ++r) {
#pragma unroll
        for (int group = 0; group < LENGTH; ++group) {
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
            for (int i = 0; i < PRODUCTS; ++i) Columns::step(d, factors);
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
            asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        }
    }
    long long end = clock64();
    for (int i = 0; i < 32; ++i) any |= d[i];
    if (threadIdx.x % 32 == 0) {
        stamps[threadIdx.x / 32 * 2] = begin;
        stamps[threadIdx.x / 32 * 2 + 1] = end;
    }
    if (any) stamps[0] = 0;
}
