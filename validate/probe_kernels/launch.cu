// What launching costs: blocks, kernels.

template <typename T>
__global__ void nothing(T *) {}

__device__ unsigned this_sm() {
    unsigned sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    return sm;
}

// Blocks that do nothing but COUNT multiply-adds, each of which needs the one before.
template <int COUNT>
__global__ void works(int *never, float x) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) x = x * x + x;
    if (x == 123.0f) *never = 1;
}

// Each block tells its SM, its first and its last cycle, and stays for a while. `told` holds
// four numbers a block; the third is the cycle in which a parameter was there.
template <typename T>
__global__ void stay(T *told, T cycles) {
    T begin = clock64();
    T wanted = cycles;
    asm volatile("" : "+l"(wanted));
    T known = wanted < 0 ? 0 : clock64();
    while (clock64() - begin < wanted) {
    }
    __syncthreads();
    T *mine = told + 4 * (T)blockIdx.x;
    if (threadIdx.x == 0) {
        mine[0] = this_sm();
        mine[1] = begin;
        mine[2] = known;
        mine[3] = clock64();
    }
}

// Barriers of several blocks on one SM, without work between them.
template <typename T>
__global__ void meet(T *told, int iterations) {
    __syncthreads();
    T begin = clock64();
#pragma unroll 1
    for (int r = 0; r < iterations; ++r) {
#pragma unroll
        for (int i = 0; i < 32; ++i) __syncthreads();
    }
    T end = clock64();
    T *mine = told + 4 * (T)blockIdx.x;
    if (threadIdx.x == 0) {
        mine[0] = this_sm();
        mine[1] = begin;
        mine[2] = begin;
        mine[3] = end;
    }
}

// Each warp tells its SM and its first cycle, and the block stays for a while.
template <typename T>
__global__ void begin(T *told, T cycles) {
    T first = clock64();
    T *mine = told + 2 * ((T)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32);
    if (threadIdx.x % 32 == 0) {
        mine[0] = this_sm();
        mine[1] = first;
    }
    while (clock64() - first < cycles) {
    }
}

// A short block that begins as most do: each warp works out an address from its numbers and the
// arguments, and tells its first cycle and the one in which it has sent a load.
template <typename T>
__global__ void brief(T *told, const int *words, int count, int *never) {
    T first = clock64();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int value = 0;
    T sent = 0;
    if (i < count) {
        asm volatile("ld.global.u32 %0, [%1];" : "=r"(value) : "l"(words + i) : "memory");
        sent = clock64();
    }
    T *mine = told + 2 * ((T)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32);
    if (threadIdx.x % 32 == 0) {
        mine[0] = first;
        mine[1] = sent;
    }
    if (value == 0x5eed) *never = value;
}

// Each block tells the time on the GPU's clock, in nanoseconds.
template <typename T>
__global__ void when(T *told) {
    T now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    if (threadIdx.x == 0) told[blockIdx.x] = now;
}

// The same of blocks that copy a word a thread.
template <typename T>
__global__ void when_copying(const int *words, int *copied, T *told) {
    T now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    copied[i] = words[i] + 1;
    if (threadIdx.x == 0) told[blockIdx.x] = now;
}

// A launch that waits for the end of the one before, and does its work then. With TRIGGERS it lets
// the next one start at its own start.
template <bool TRIGGERS>
__global__ void depends(long long *told, long long cycles) {
    if (TRIGGERS) asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    asm volatile("griddepcontrol.wait;" ::: "memory");
    long long begin = clock64();
    while (clock64() - begin < cycles) {
    }
    if (cycles < 0) *told = begin;
}
