// What one block waits for another: fences behind stores, and words passed from SM to SM.

enum Sent { STORE, RED };

// Each warp sends `count` requests to lines of its own, then a fence: the cycles of the fence, and
// of an atomic behind it whose result is waited for, summed over `rounds`.
template <Sent SENT>
__global__ void fenced(long long *told, char *memory, int count, int rounds) {
    unsigned warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    char *mine = memory + warp * (count + 1ull) * 128 + threadIdx.x % 32 * 4;
    long long fence = 0, atomic = 0;
    for (int r = 0; r < rounds; ++r) {
        for (int i = 0; i < count; ++i) {
            char *word = mine + i * 128ull;
            if (SENT == RED)
                asm volatile("red.global.add.u32 [%0], %1;" ::"l"(word), "r"(1) : "memory");
            else
                asm volatile("st.global.u32 [%0], %1;" ::"l"(word), "r"(r) : "memory");
        }
        long long begin = clock64();
        __threadfence();
        long long middle = clock64();
        unsigned was = r;
        asm volatile("atom.global.add.u32 %0, [%1], %0;" : "+r"(was) : "l"(mine) : "memory");
        if (was == 0x5eed5eed) *told = was;
        long long end = clock64();
        fence += middle - begin;
        atomic += end - middle;
        while (clock64() - end < 2000) {
        }
    }
    if (threadIdx.x % 32 == 0) {
        told[2 * warp] = fence;
        told[2 * warp + 1] = atomic;
    }
}

// Each warp stores a line and fences, again and again: the cycles of all turns.
__global__ void fenced_in_turn(long long *told, char *memory, int turns) {
    unsigned warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    char *mine = memory + warp * (turns + 1ull) * 128 + threadIdx.x % 32 * 4;
    __syncthreads();
    long long begin = clock64();
    for (int r = 0; r < turns; ++r) {
        *(volatile int *)(mine + r * 128ull) = r;
        __threadfence();
    }
    long long end = clock64();
    if (threadIdx.x % 32 == 0) {
        told[2 * warp] = begin;
        told[2 * warp + 1] = end;
    }
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
