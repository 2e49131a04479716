// What blocks wait for: fences behind stores, and words passed from SM to SM.

// A word at random for each lane of a warp and round, all of them different from the last ones.
__device__ unsigned at_random(unsigned number) {
    number ^= number >> 16;
    number *= 0x7feb352du;
    number ^= number >> 15;
    number *= 0x846ca68bu;
    return number ^ number >> 16;
}

// Two warps of each block: some lanes store a word of 4 MB each, then their warp fences, the second
// warp some cycles after the first. The cycles of the fences, summed over `rounds`.
__global__ void fenced_apart(long long *told, char *memory, int lines, int apart, int rounds,
                             int cycles) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    long long sum = 0;
    for (int r = 0; r < rounds; ++r) {
        unsigned word = at_random((blockIdx.x * 2 + warp) * 4096 + r * 32 + lane) % (1 << 20);
        __syncthreads();
        long long begin = clock64();
        while (clock64() - begin < cycles / 8 + warp * apart) {
        }
        if (lane < lines)
            asm volatile("st.global.u32 [%0], %1;" ::"l"(memory + word * 4ull), "r"(r) : "memory");
        long long stored = clock64();
        __threadfence();
        sum += clock64() - stored;
        while (clock64() - begin < cycles) {
        }
    }
    if (lane == 0) told[blockIdx.x * 2 + warp] = sum;
}

enum Passing { VOLATILE, RELEASE, EXCHANGE, DATA_AND_FLAG };

template <Passing PASSING>
__device__ void tell(unsigned *flag, unsigned value) {
    if (PASSING == DATA_AND_FLAG) {
        asm volatile("st.global.u32 [%0], %1;" ::"l"(flag + 64), "r"(value) : "memory");
        __threadfence();
    }
    if (PASSING == VOLATILE || PASSING == DATA_AND_FLAG) *(volatile unsigned *)flag = value;
    if (PASSING == RELEASE)
        asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
    if (PASSING == EXCHANGE) atomicExch(flag, value);
}

template <Passing PASSING>
__device__ unsigned ask(unsigned *flag) {
    if (PASSING == EXCHANGE) return atomicAdd(flag, 0);
    unsigned value;
    if (PASSING == RELEASE)
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
    else
        value = *(volatile unsigned *)flag;
    return value;
}

// Block 0 and another pass a number to and fro, `rounds` times: cycles of all of it. The others
// leave. What is in the two flags before is zero.
template <Passing PASSING>
__global__ void passed(long long *told, unsigned *flags, int partner, int rounds) {
    if (threadIdx.x || blockIdx.x && blockIdx.x != partner) return;
    unsigned *mine = flags + (blockIdx.x ? 1024 : 0), *theirs = flags + (blockIdx.x ? 0 : 1024);
    long long begin = clock64();
    for (unsigned r = 1; r <= rounds; ++r) {
        if (!blockIdx.x) tell<PASSING>(mine, r);
        while (ask<PASSING>(theirs) != r) {
        }
        if (blockIdx.x) tell<PASSING>(mine, r);
    }
    long long end = clock64();
    if (!blockIdx.x) {
        told[0] = begin;
        told[1] = end;
    }
}
