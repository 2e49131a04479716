// One law of the machine each: contention, polling, gathers, fences, constants, short blocks.

// All threads of a block add to some words of shared memory, 16 times.
template <int WORDS>
__global__ void shared_adds(float *__restrict__ out) {
    __shared__ float sums[WORDS];
    for (int i = threadIdx.x; i < WORDS; i += blockDim.x) sums[i] = 0;
    __syncthreads();
    for (int k = 0; k < 16; k++) atomicAdd(&sums[threadIdx.x % WORDS], 1.0f);
    __syncthreads();
    for (int i = threadIdx.x; i < WORDS; i += blockDim.x) out[blockIdx.x * WORDS + i] = sums[i];
}

// The same by all blocks of a grid, bins by data.
__global__ void shared_bins(const unsigned *__restrict__ x, float *__restrict__ out, int n) {
    __shared__ float sums[64];
    if (threadIdx.x < 64) sums[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&sums[x[i] & 63], 1.0f);
    __syncthreads();
    if (threadIdx.x < 64) atomicAdd(&out[threadIdx.x], sums[threadIdx.x]);
}

// Warps ask for the words of the 32 blocks before theirs, by atomics that change nothing.
template <int POLLS>
__global__ void polls(int *__restrict__ states, int *__restrict__ out) {
    int lane = threadIdx.x & 31, found = 0;
    int at = max((int)blockIdx.x - lane, 0);
    for (int k = 0; k < POLLS; k++) found += atomicOr(&states[at], 0);
    if (found == 12345) out[blockIdx.x] = found;
}

// Rows of 32 floats that a table names, added up by a warp each; each row is named READS times.
template <int UNROLLED>
__global__ void row_sums(const float *__restrict__ rows, const int *__restrict__ named, float *__restrict__ out, int n) {
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    float sum = 0;
#pragma unroll UNROLLED
    for (int k = 0; k < 16; k++) sum += rows[(size_t)named[warp * 16 + k] * 32 + lane];
    out[warp * 32 + lane] = sum;
}

// Sums of blocks added to 64 words of global memory, a fence behind each.
__global__ void fenced_adds(const float *__restrict__ x, float *__restrict__ sums) {
    float mine = x[blockIdx.x * blockDim.x + threadIdx.x];
    for (int k = 16; k; k >>= 1) mine += __shfl_xor_sync(~0u, mine, k);
    if (threadIdx.x % 32 == 0) {
        atomicAdd(&sums[blockIdx.x % 64], mine);
        __threadfence();
    }
}

__constant__ double coefficients[64];

// A polynomial whose coefficients are 64-bit constants.
__global__ void double_polynomial(const double *__restrict__ x, double *__restrict__ y, int terms) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    double value = x[i], sum = 0;
    for (int k = 0; k < terms; k++) sum = sum * value + coefficients[k];
    y[i] = sum;
}

// Whole numbers of 64 bits divided by each other.
__global__ void quotients(const long long *__restrict__ x, const long long *__restrict__ y, long long *__restrict__ z) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    long long a = x[i], b = y[i] | 1;
    for (int k = 0; k < 8; k++) a = a * 7 + a / b;
    z[i] = a;
}

// Sums over bytes, four to a word.
__global__ void byte_sums(const unsigned char *__restrict__ x, unsigned char *__restrict__ y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned char a = x[4 * i], b = x[4 * i + 1], c = x[4 * i + 2], d = x[4 * i + 3];
    for (int k = 0; k < 16; k++) {
        a = a * 5 + b; b = b * 3 + c; c = c * 7 + d; d = d + (a >> 3);
    }
    y[4 * i] = a; y[4 * i + 1] = b; y[4 * i + 2] = c; y[4 * i + 3] = d;
}

// A segment of 64 to 191 numbers summed by each block of 128 threads.
__global__ void short_segments(const float *__restrict__ x, const int *__restrict__ begins, float *__restrict__ sums) {
    __shared__ float part[4];
    float sum = 0;
    for (int i = begins[blockIdx.x] + threadIdx.x; i < begins[blockIdx.x + 1]; i += 128) sum += x[i];
    for (int k = 16; k; k >>= 1) sum += __shfl_down_sync(~0u, sum, k);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) sums[blockIdx.x] = part[0] + part[1] + part[2] + part[3];
}

// Counts of digits in an array of each thread.
__global__ void own_counts(const unsigned char *__restrict__ x, int *__restrict__ y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int counts[64];
    for (int k = 0; k < 64; k++) counts[k] = 0;
    for (int k = 0; k < 64; k++) counts[x[(size_t)k * n + i] & 63]++;
    int most = 0;
    for (int k = 0; k < 64; k++) most = max(most, counts[k]);
    y[i] = most;
}

// Every thread multiplies with all of the same 64 KB of weights.
__global__ void all_weights(const float *__restrict__ weights, const float *__restrict__ x, float *__restrict__ y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0, value = x[i];
    for (int k = threadIdx.x; k < 16384; k += 256) sum += weights[k] * value;
    y[i] = sum;
}

// Numbers added to places anywhere in a table.
__global__ void random_adds(const unsigned *__restrict__ places, int *__restrict__ table, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&table[places[i]], 1);
}

// A warp stores 32 neighbours in each of 32 rows, 8 KB apart and more.
__global__ void far_rows(const float *__restrict__ x, float *__restrict__ y, int width) {
    int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8) y[(size_t)(row + k) * width + column] = x[(size_t)(row + k) * width + column] + 1;
}

// All threads of a block add to one word of shared memory, some times; a loop or written out.
template <int TIMES>
__global__ void shared_adds_times(float *__restrict__ out) {
    __shared__ float sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    for (int k = 0; k < TIMES; k++) atomicAdd(&sum, 1.0f);
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
__global__ void shared_adds_looped(float *__restrict__ out) {
    __shared__ float sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
#pragma unroll 1
    for (int k = 0; k < 16; k++) atomicAdd(&sum, 1.0f);
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

// One lane of each warp adds to a word of its block's: WORDS words, STRIDE words apart.
template <int PLACES>
__global__ void global_adds(float *__restrict__ sums) {
    constexpr int words = PLACES / 1000, stride = PLACES % 1000;
    if (threadIdx.x % 32 == 0)
        for (int k = 0; k < 8; k++) atomicAdd(&sums[(blockIdx.x + k) % words * stride], 1.0f);
}
template <int PLACES>
__global__ void global_adds_fenced(float *__restrict__ sums) {
    constexpr int words = PLACES / 1000, stride = PLACES % 1000;
    if (threadIdx.x % 32 == 0)
        for (int k = 0; k < 8; k++) {
            atomicAdd(&sums[(blockIdx.x + k) % words * stride], 1.0f);
            __threadfence();
        }
}
template <int PLACES>
__global__ void global_counts(int *__restrict__ sums) {
    constexpr int words = PLACES / 1000, stride = PLACES % 1000;
    if (threadIdx.x % 32 == 0)
        for (int k = 0; k < 8; k++) atomicAdd(&sums[(blockIdx.x + k) % words * stride], 1);
}

// Each lane stores some words of a sector of its own, 16 times over 8 MB.
template <int WORDS>
__global__ void part_stores(float *__restrict__ y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < 16; k++)
        for (int w = 0; w < WORDS; w++) y[(size_t)((i + k * 8192) & 0x3ffff) * 8 + w] = k;
}

// The number of a place at random.
__device__ unsigned mixed(unsigned x) {
    x ^= x >> 16;
    x *= 0x85ebca6bu;
    x ^= x >> 13;
    x *= 0xc2b2ae35u;
    return x ^ x >> 16;
}

// WORDS lanes side by side store as many words at random places, eight times.
template <int WORDS>
__global__ void scattered_stores(float *__restrict__ x, unsigned mask) {
    int t = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
#pragma unroll
    for (int k = 0; k < 8; k++)
        x[(size_t)(mixed((t + k * threads) / WORDS) & mask) * WORDS + t % WORDS] = t;
}

// The same, of words that are there.
template <int WORDS>
__global__ void scattered_updates(float *__restrict__ x, unsigned mask) {
    int t = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
#pragma unroll
    for (int k = 0; k < 8; k++)
        x[(size_t)(mixed((t + k * threads) / WORDS) & mask) * WORDS + t % WORDS] += 1;
}

// Each lane stores a word of a sector at a random place, eight times.
__global__ void scattered_words(float *__restrict__ x, unsigned mask) {
    int t = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
#pragma unroll
    for (int k = 0; k < 8; k++) x[(size_t)(mixed(t + k * threads) & mask) * 8] = t;
}

// The same by atomic additions.
__global__ void scattered_adds(int *__restrict__ x, unsigned mask) {
    int t = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
#pragma unroll
    for (int k = 0; k < 8; k++) atomicAdd(&x[(size_t)(mixed(t + k * threads) & mask) * 8], 1);
}

// Block b changes part b % PARTS of each of its lines in place: that many neighbours share them.
template <int PARTS>
__global__ void changed_parts(unsigned *x) {
    const int words = 32 / PARTS, group = blockIdx.x / PARTS, part = blockIdx.x % PARTS;
    int line = group * 8 * PARTS + threadIdx.x / words;
    size_t i = (size_t)line * 32 + part * words + threadIdx.x % words;
    x[i] = x[i] * 5 + 1;
}

template __global__ void shared_adds<1>(float *);
template __global__ void shared_adds<2>(float *);
template __global__ void shared_adds<8>(float *);
template __global__ void shared_adds<32>(float *);
template __global__ void polls<1>(int *, int *);
template __global__ void polls<4>(int *, int *);
template __global__ void polls<16>(int *, int *);
template __global__ void row_sums<1>(const float *, const int *, float *, int);
template __global__ void row_sums<4>(const float *, const int *, float *, int);
template __global__ void row_sums<16>(const float *, const int *, float *, int);
template __global__ void shared_adds_times<1>(float *);
template __global__ void shared_adds_times<4>(float *);
template __global__ void global_adds<1001>(float *);
template __global__ void global_adds_fenced<1001>(float *);
template __global__ void global_counts<1001>(int *);
template __global__ void global_adds<2001>(float *);
template __global__ void global_adds_fenced<2001>(float *);
template __global__ void global_counts<2001>(int *);
template __global__ void global_adds<8001>(float *);
template __global__ void global_adds_fenced<8001>(float *);
template __global__ void global_counts<8001>(int *);
template __global__ void global_adds<64001>(float *);
template __global__ void global_adds_fenced<64001>(float *);
template __global__ void global_counts<64001>(int *);
template __global__ void global_adds<2008>(float *);
template __global__ void global_adds_fenced<2008>(float *);
template __global__ void global_counts<2008>(int *);
template __global__ void global_adds<8008>(float *);
template __global__ void global_adds_fenced<8008>(float *);
template __global__ void global_counts<8008>(int *);
template __global__ void global_adds<2032>(float *);
template __global__ void global_adds_fenced<2032>(float *);
template __global__ void global_counts<2032>(int *);
template __global__ void global_adds<8032>(float *);
template __global__ void global_adds_fenced<8032>(float *);
template __global__ void global_counts<8032>(int *);
template __global__ void global_adds<8064>(float *);
template __global__ void global_adds_fenced<8064>(float *);
template __global__ void global_counts<8064>(int *);
template __global__ void global_adds<8256>(float *);
template __global__ void global_adds_fenced<8256>(float *);
template __global__ void global_counts<8256>(int *);
template __global__ void part_stores<1>(float *);
template __global__ void part_stores<2>(float *);
template __global__ void part_stores<4>(float *);
template __global__ void part_stores<8>(float *);

// Warps add to, or ask for, the 32 words of a line: PLACES lines, 256 bytes apart.
template <int PLACES>
__global__ void line_adds(int *__restrict__ sums) {
    int lane = threadIdx.x % 32, warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    for (int k = 0; k < 8; k++) atomicAdd(&sums[(warp + k) % PLACES * 64 + lane], 1);
}
template <int PLACES>
__global__ void line_asks(int *__restrict__ sums, int *__restrict__ out) {
    int lane = threadIdx.x % 32, warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, found = 0;
    for (int k = 0; k < 8; k++) found += atomicOr(&sums[(warp + k) % PLACES * 64 + lane], 0);
    if (found == 12345) out[warp] = found;
}
// The same, one lane asks.
template <int PLACES>
__global__ void word_asks(int *__restrict__ sums, int *__restrict__ out) {
    int lane = threadIdx.x % 32, warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, found = 0;
    if (lane) return;
    for (int k = 0; k < 8; k++) found += atomicOr(&sums[(warp + k) % PLACES * 64 + lane], 0);
    if (found == 12345) out[warp] = found;
}
// Threads add to one of two words of one array and to any of WORDS of another, in turn.
template <int WORDS>
__global__ void two_sums(float *__restrict__ ends, float *__restrict__ bins) {
    unsigned state = (blockIdx.x * blockDim.x + threadIdx.x) * 2654435761u + 7;
#pragma unroll 1
    for (int k = 0; k < 16; k++) {
        state = state * 1664525u + 1013904223u;
        atomicAdd(&bins[(state >> 8) % WORDS], 1.0f);
        atomicAdd(&ends[state >> 31], 1.0f);
    }
}

__constant__ float4 quads[1024];

// Each thread goes through all constants, with WORK additions for each.
template <int WORK>
__global__ void quad_sums(const float *__restrict__ x, float *__restrict__ y, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = x[i], sum = 0;
    for (int k = 0; k < count; k++) {
        float4 q = quads[k];
        float a = q.x * v + q.y, b = q.z * v + q.w;
#pragma unroll
        for (int w = 0; w < WORK / 2; w++) {
            a = a * v + b;
            b = b * v + a;
        }
        sum += a + b;
    }
    y[i] = sum;
}

template __global__ void line_adds<1>(int *);
template __global__ void line_asks<1>(int *, int *);
template __global__ void word_asks<1>(int *, int *);
template __global__ void line_adds<2>(int *);
template __global__ void line_asks<2>(int *, int *);
template __global__ void word_asks<2>(int *, int *);
template __global__ void line_adds<4>(int *);
template __global__ void line_asks<4>(int *, int *);
template __global__ void word_asks<4>(int *, int *);
template __global__ void line_adds<16>(int *);
template __global__ void line_asks<16>(int *, int *);
template __global__ void word_asks<16>(int *, int *);
template __global__ void line_adds<64>(int *);
template __global__ void line_asks<64>(int *, int *);
template __global__ void word_asks<64>(int *, int *);
template __global__ void line_adds<256>(int *);
template __global__ void line_asks<256>(int *, int *);
template __global__ void word_asks<256>(int *, int *);
template __global__ void scattered_stores<8>(float *, unsigned);
template __global__ void scattered_updates<8>(float *, unsigned);
template __global__ void scattered_stores<16>(float *, unsigned);
template __global__ void scattered_updates<16>(float *, unsigned);
template __global__ void scattered_stores<32>(float *, unsigned);
template __global__ void scattered_updates<32>(float *, unsigned);
template __global__ void two_sums<1>(float *, float *);
template __global__ void two_sums<100>(float *, float *);
template __global__ void two_sums<65536>(float *, float *);
template __global__ void quad_sums<0>(const float *, float *, int);
template __global__ void quad_sums<32>(const float *, float *, int);
template __global__ void quad_sums<128>(const float *, float *, int);
template __global__ void changed_parts<1>(unsigned *);
template __global__ void changed_parts<4>(unsigned *);
