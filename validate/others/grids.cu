// Blocks that wait for each other, or see what others have done: fences, flags, the last block.

__device__ float sum_of_block(float v) {
    __shared__ float parts[8];
    for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffffu, v, o);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = v;
    __syncthreads();
    v = threadIdx.x < 8 ? parts[threadIdx.x] : 0;
    for (int o = 4; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffffu, v, o);
    return v;
}

// The block that comes last adds up what all have left.
__global__ void sum_by_last_block(const float *x, float *partials, unsigned *arrived, float *out,
                                  int n) {
    __shared__ bool is_last;
    float sum = 0;
    int step = gridDim.x * 256;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += step) sum += x[i];
    sum = sum_of_block(sum);
    if (threadIdx.x == 0) {
        partials[blockIdx.x] = sum;
        __threadfence();
        is_last = atomicAdd(arrived, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!is_last) return;
    sum = 0;
    for (int k = threadIdx.x; k < gridDim.x; k += 256)
        sum += *(volatile float *)&partials[k];
    sum = sum_of_block(sum);
    if (threadIdx.x == 0) *out = sum;
}

// Each block publishes a fence and a word of its own; nobody waits.
__global__ void fence_each(const float *x, float *y, volatile int *flags, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) flags[blockIdx.x] = 1;
}

__device__ int scanned_in_block(int v, int *parts) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int o = 1; o < 32; o *= 2) {
        int before = __shfl_up_sync(0xffffffffu, v, o);
        if (lane >= o) v += before;
    }
    if (lane == 31) parts[warp] = v;
    __syncthreads();
    for (int k = 0; k < warp; k++) v += parts[k];
    return v;
}

// A prefix sum in one pass: each block takes the sum that the one before has published.
__global__ void chained_scan(const int *x, int *y, volatile int *sums, volatile int *flags,
                             int *tickets, int n) {
    __shared__ int parts[8], ticket, before;
    if (threadIdx.x == 0) ticket = atomicAdd(tickets, 1);
    __syncthreads();
    int i = ticket * 256 + threadIdx.x;
    int v = scanned_in_block(i < n ? x[i] : 0, parts);
    if (threadIdx.x == 255) {
        int own = 0;
        if (ticket) {
            while (flags[ticket - 1] == 0) {
            }
            __threadfence();
            own = sums[ticket - 1];
        }
        before = own;
        sums[ticket] = own + v;
        __threadfence();
        flags[ticket] = 1;
    }
    __syncthreads();
    if (i < n) y[i] = before + v;
}

// Decoupled look-back (Merrill and Garland): a block adds up sums of blocks before it until it
// meets one that knows its prefix. State 1 is a block's own sum, 2 its prefix, in the upper bits.
__global__ void lookback_scan(const int *x, int *y, volatile unsigned long long *states,
                              int *tickets, int n) {
    __shared__ int parts[8], ticket, before;
    if (threadIdx.x == 0) ticket = atomicAdd(tickets, 1);
    __syncthreads();
    int base = ticket * 1024 + threadIdx.x * 4, sums[4], sum = 0;
    int4 four = *(const int4 *)&x[base];
    sums[0] = sum += four.x;
    sums[1] = sum += four.y;
    sums[2] = sum += four.z;
    sums[3] = sum += four.w;
    int inclusive = scanned_in_block(sum, parts), own = inclusive - sum;
    if (threadIdx.x == 255) {
        unsigned long long known = (ticket ? 1ull : 2ull) << 32;
        states[ticket] = known | (unsigned)inclusive;
        int prefix = 0;
        for (int other = ticket - 1; other >= 0; other--) {
            unsigned long long state;
            do state = states[other];
            while (state == 0);
            prefix += (int)(unsigned)state;
            if (state >> 32 == 2) break;
        }
        if (ticket) states[ticket] = 2ull << 32 | (unsigned)(prefix + inclusive);
        before = prefix;
    }
    __syncthreads();
    own += before;
    *(int4 *)&y[base] = make_int4(own + sums[0], own + sums[1], own + sums[2], own + sums[3]);
}

// As many blocks as fit at once meet at a counter after each round.
__global__ void rounds_of_grid(float *x, float *y, volatile int *arrived, int n, int rounds) {
    int step = gridDim.x * blockDim.x, first = blockIdx.x * blockDim.x + threadIdx.x;
    for (int round = 0; round < rounds; round++) {
        float *from = round % 2 ? y : x, *to = round % 2 ? x : y;
        for (int i = first; i < n; i += step)
            to[i] = 0.5f * from[i] + 0.25f * (from[i ? i - 1 : 0] + from[i < n - 1 ? i + 1 : i]);
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) {
            atomicAdd((int *)arrived, 1);
            while (*arrived < (round + 1) * (int)gridDim.x) {
            }
            __threadfence();
        }
        __syncthreads();
    }
}
