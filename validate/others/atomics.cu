// Atomics: on one word, words of a sector, of a line, of many; with and without what was there.

__global__ void count_above(const float *x, float limit, int *count, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] > limit) atomicAdd(count, 1);
}

// Every lane adds a float of its own to one word.
__global__ void float_to_one_word(const float *x, float *sum, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(sum, x[i]);
}

// A place in the output for each element that is kept, in the order in which threads come.
__global__ void keep_by_tickets(const float *x, float limit, float *y, int *count, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] > limit) y[atomicAdd(count, 1)] = x[i];
}

// The same, a ticket for the whole warp.
__global__ void keep_by_warps(const float *x, float limit, float *y, int *count, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32, first = 0;
    bool kept = i < n && x[i] > limit;
    unsigned votes = __ballot_sync(0xffffffffu, kept);
    if (lane == 0 && votes) first = atomicAdd(count, __popc(votes));
    first = __shfl_sync(0xffffffffu, first, 0);
    if (kept) y[first + __popc(votes & ((1u << lane) - 1))] = x[i];
}

__global__ void histogram_global(const int *x, int *counts, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&counts[x[i]], 1);
}

// As many bins as do not fit into shared memory.
__global__ void histogram_of_many(const int *x, int *counts, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&counts[x[i]], 1);
}

// A histogram in shared memory, whose data are mostly of one bin.
__global__ void histogram_skewed(const int *x, int *counts, int n) {
    __shared__ int own[256];
    own[threadIdx.x] = 0;
    __syncthreads();
    int step = gridDim.x * 256;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += step) atomicAdd(&own[x[i]], 1);
    __syncthreads();
    if (own[threadIdx.x]) atomicAdd(&counts[threadIdx.x], own[threadIdx.x]);
}

// The words of one sector, one for every eighth thread.
__global__ void float_to_sector(const float *x, float *sums, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&sums[i % 8], x[i]);
}

// The words of one line, a word a lane.
__global__ void float_to_line(const float *x, float *sums, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&sums[i % 32], x[i]);
}

__global__ void scatter_add(const float *x, const int *places, float *sums, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&sums[places[i]], x[i]);
}

// The largest of each block goes to one word.
__global__ void largest(const int *x, int *most, int n) {
    __shared__ int parts[8];
    int step = gridDim.x * 256, best = 0;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += step) best = max(best, x[i]);
    for (int o = 16; o > 0; o >>= 1) best = max(best, __shfl_xor_sync(0xffffffffu, best, o));
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = best;
    __syncthreads();
    if (threadIdx.x) return;
    for (int k = 1; k < 8; k++) best = max(best, parts[k]);
    atomicMax(most, best);
}

// All threads of a block count in one word of shared memory, floats, which nobody adds up before.
__global__ void shared_float_sum(const float *x, float *y, int n) {
    __shared__ float sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    atomicAdd(&sum, x[blockIdx.x * 256 + threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}

// Digits of four bits, counted by block in shared memory; each block writes sixteen sums.
__global__ void radix_count(const unsigned *x, int *counts, int shift, int n) {
    __shared__ int own[16];
    if (threadIdx.x < 16) own[threadIdx.x] = 0;
    __syncthreads();
    for (int k = 0; k < 8; k++)
        atomicAdd(&own[x[blockIdx.x * 2048 + k * 256 + threadIdx.x] >> shift & 15], 1);
    __syncthreads();
    if (threadIdx.x < 16) counts[threadIdx.x * gridDim.x + blockIdx.x] = own[threadIdx.x];
}

// Exchanges of words that many threads use; what was there is handed on.
__global__ void exchange(int *slots, const int *places, int *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = atomicExch(&slots[places[i]], i);
}
