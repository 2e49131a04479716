// A data centre's work: columns, strings, sketches, ticks, indices, features, sound, video.

#include <cuda_fp16.h>

// Runs of a column to its values, 1024 of them a block; `ends` says where each run is over.
__global__ void expand_runs(const int *__restrict__ ends, const int *__restrict__ values, int4 *__restrict__ out,
                            int runs) {
    __shared__ int bounds[2];
    int t = threadIdx.x, begin = blockIdx.x * 1024;
    if (t < 2) {
        int wanted = begin + t * 1023, low = 0, high = runs - 1;
        while (low < high) {
            int middle = (low + high) >> 1;
            if (ends[middle] > wanted) high = middle;
            else low = middle + 1;
        }
        bounds[t] = low;
    }
    __syncthreads();
    int at = begin + 4 * t, low = bounds[0], high = bounds[1];
    while (low < high) {
        int middle = (low + high) >> 1;
        if (ends[middle] > at) high = middle;
        else low = middle + 1;
    }
    int made[4], run = low, end = ends[run];
#pragma unroll
    for (int k = 0; k < 4; k++) {
        while (at + k >= end) end = ends[++run];
        made[k] = values[run];
    }
    out[begin / 4 + t] = make_int4(made[0], made[1], made[2], made[3]);
}

// Pages of 64 numbers as differences of as many bytes as they need (zigzag, LEB128); a thread a page.
__global__ void decode_varints(const unsigned char *bytes, const int *begins, const long long *firsts, long long *out,
                               int pages) {
    int page = blockIdx.x * blockDim.x + threadIdx.x;
    if (page >= pages) return;
    const unsigned char *p = bytes + begins[page];
    long long value = firsts[page];
    for (int k = 0; k < 64; k++) {
        unsigned long long number = 0;
        int shift = 0;
        unsigned char byte;
        do {
            byte = *p++;
            number |= (unsigned long long)(byte & 127) << shift;
            shift += 7;
        } while (byte & 128);
        value += (long long)(number >> 1) ^ -(long long)(number & 1);
        out[page * 64LL + k] = value;
    }
}

__device__ bool same_text(const unsigned char *a, const unsigned char *b, int length) {
    for (int k = 0; k < length; k++)
        if (a[k] != b[k]) return false;
    return true;
}

// How often each text occurs: a hash table of the first row that has it (FNV-1a, linear probing).
__global__ void group_strings(const unsigned char *text, const int *begins, int *owners, int *counts, int *groups,
                              int mask, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n) return;
    int begin = begins[row], length = begins[row + 1] - begin;
    unsigned hash = 2166136261u;
    for (int k = 0; k < length; k++) hash = (hash ^ text[begin + k]) * 16777619u;
    int slot = hash & mask;
    while (true) {
        int owner = owners[slot];
        if (owner < 0) {
            owner = atomicCAS(&owners[slot], -1, row);
            if (owner < 0) {
                atomicAdd(groups, 1);
                break;
            }
        }
        int other = begins[owner];
        if (begins[owner + 1] - other == length && same_text(text + other, text + begin, length)) break;
        slot = (slot + 1) & mask;
    }
    atomicAdd(&counts[slot], 1);
}

__device__ unsigned ordered(float x) {
    unsigned bits = __float_as_uint(x);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

// The k-th largest of each row of 8192, eight bits at a time from the top; a block a row, which it keeps in registers.
__global__ void __launch_bounds__(512) select_kth(const float4 *__restrict__ rows, float *__restrict__ found, int k) {
    __shared__ int counts[256];
    __shared__ int chosen, left;
    int t = threadIdx.x;
    const float4 *row = rows + (size_t)blockIdx.x * 2048;
    unsigned keys[16];
#pragma unroll
    for (int j = 0; j < 4; j++) {
        float4 v = row[j * 512 + t];
        keys[4 * j] = ordered(v.x);
        keys[4 * j + 1] = ordered(v.y);
        keys[4 * j + 2] = ordered(v.z);
        keys[4 * j + 3] = ordered(v.w);
    }
    unsigned prefix = 0, known = 0;
    for (int shift = 24; shift >= 0; shift -= 8) {
        if (t < 256) counts[t] = 0;
        __syncthreads();
#pragma unroll
        for (int j = 0; j < 16; j++)
            if ((keys[j] & known) == prefix) atomicAdd(&counts[keys[j] >> shift & 255], 1);
        __syncthreads();
        if (t < 32) {
            int own[8], sum = 0;
#pragma unroll
            for (int j = 0; j < 8; j++) {
                own[j] = counts[255 - (t * 8 + j)];
                sum += own[j];
            }
            int before = sum;
            for (int offset = 1; offset < 32; offset <<= 1) {
                int other = __shfl_up_sync(0xffffffffu, before, offset);
                if (t >= offset) before += other;
            }
            before -= sum;
            if (before < k && k <= before + sum) {
                int j = 0;
                while (before + own[j] < k) before += own[j++];
                chosen = 255 - (t * 8 + j);
                left = k - before;
            }
        }
        __syncthreads();
        prefix |= (unsigned)chosen << shift;
        known |= 255u << shift;
        k = left;
    }
    if (t == 0) found[blockIdx.x] = __uint_as_float(prefix & 0x80000000u ? prefix ^ 0x80000000u : ~prefix);
}

// First, highest, lowest and last price of each bar of a chart, and what was traded; a warp a bar.
__global__ void candles(const float *prices, const int *volumes, const int *begins, float4 *bars, long long *traded,
                        int count) {
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (warp >= count) return;
    int begin = begins[warp], end = begins[warp + 1];
    float high = -1e30f, low = 1e30f;
    long long sum = 0;
    for (int k = begin + lane; k < end; k += 32) {
        float price = prices[k];
        high = fmaxf(high, price);
        low = fminf(low, price);
        sum += volumes[k];
    }
    for (int offset = 16; offset > 0; offset /= 2) {
        high = fmaxf(high, __shfl_down_sync(0xffffffffu, high, offset));
        low = fminf(low, __shfl_down_sync(0xffffffffu, low, offset));
        sum += __shfl_down_sync(0xffffffffu, sum, offset);
    }
    if (lane == 0) {
        bars[warp] = begin < end ? make_float4(prices[begin], high, low, prices[end - 1]) : make_float4(0, 0, 0, 0);
        traded[warp] = sum;
    }
}

const int ORDER = 64;

// Sums of values whose keys lie in a range: a block of 64 goes down a tree of 64 ways for both ends (Rodinia's b+tree).
__global__ void range_sums(const int *nodes, const float *values, const int *lows, const int *highs, float *sums,
                           int levels) {
    __shared__ int begin, end;
    __shared__ float parts[ORDER];
    int t = threadIdx.x, low = lows[blockIdx.x], high = highs[blockIdx.x];
    if (t == 0) begin = end = 0;
    __syncthreads();
    int width = ORDER, level = 0;
    for (int depth = 0; depth < levels; depth++) {
        int from = begin, to = end;
        const int *first = nodes + level + from * ORDER;
        bool is_first = first[t] <= low && (t == ORDER - 1 || first[t + 1] > low);
        const int *last = nodes + level + to * ORDER;
        bool is_last = last[t] <= high && (t == ORDER - 1 || last[t + 1] > high);
        __syncthreads();
        if (is_first) begin = from * ORDER + t;
        if (is_last) end = to * ORDER + t;
        __syncthreads();
        level += width;
        width *= ORDER;
    }
    float sum = 0;
    for (int k = begin + t; k <= end; k += ORDER) sum += values[k];
    parts[t] = sum;
    __syncthreads();
    for (int s = ORDER / 2; s > 0; s >>= 1) {
        if (t < s) parts[t] += parts[t + s];
        __syncthreads();
    }
    if (t == 0) sums[blockIdx.x] = parts[0];
}

// Products of the rows of 64 that each edge of a graph joins; sixteen lanes an edge (SDDMM).
__global__ void sampled_product(const int *__restrict__ sources, const int *__restrict__ targets,
                                const float4 *__restrict__ a, const float4 *__restrict__ b,
                                const float *__restrict__ weights, float *__restrict__ out, int edges) {
    int lane = threadIdx.x % 16;
    int edge = (blockIdx.x * blockDim.x + threadIdx.x) / 16;
    if (edge >= edges) return;
    float4 u = a[(size_t)sources[edge] * 16 + lane], v = b[(size_t)targets[edge] * 16 + lane];
    float dot = u.x * v.x + u.y * v.y + u.z * v.z + u.w * v.w;
#pragma unroll
    for (int mask = 8; mask > 0; mask >>= 1) dot += __shfl_xor_sync(0xffffffffu, dot, mask, 16);
    if (lane == 0) out[edge] = weights[edge] * dot;
}

const int FEATURES = 27, WIDTH = 64, PAIRS = FEATURES * (FEATURES - 1) / 2;

// Products of all pairs of a sample's 27 vectors, behind the first of them (DLRM); a block a sample.
__global__ void interact_features(const __half2 *__restrict__ vectors, __half *__restrict__ out) {
    __shared__ __half2 rows[FEATURES][WIDTH / 2 + 1];
    int t = threadIdx.x;
    const __half2 *own = vectors + (size_t)blockIdx.x * FEATURES * (WIDTH / 2);
    for (int k = t; k < FEATURES * (WIDTH / 2); k += blockDim.x) rows[k / (WIDTH / 2)][k % (WIDTH / 2)] = own[k];
    __syncthreads();
    __half *to = out + (size_t)blockIdx.x * (WIDTH + PAIRS);
    if (t < WIDTH / 2) {
        to[2 * t] = __low2half(rows[0][t]);
        to[2 * t + 1] = __high2half(rows[0][t]);
    }
    for (int pair = t; pair < PAIRS; pair += blockDim.x) {
        int i = (int)((1.0f + sqrtf(8.0f * pair + 1.0f)) * 0.5f);
        int j = pair - i * (i - 1) / 2;
        float sum = 0;
        for (int k = 0; k < WIDTH / 2; k++) {
            float2 a = __half22float2(rows[i][k]), b = __half22float2(rows[j][k]);
            sum += a.x * b.x + a.y * b.y;
        }
        to[WIDTH + pair] = __float2half(sum);
    }
}

// Energies of sound in 40 overlapping bands, as logarithms; each block takes one frame of 257 powers after the other.
__global__ void mel_energies(const float *spectra, const float *weights, const int *starts, const int *offsets,
                             float *out, int frames) {
    __shared__ float powers[257];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int frame = blockIdx.x; frame < frames; frame += gridDim.x) {
        for (int k = threadIdx.x; k < 257; k += blockDim.x) powers[k] = spectra[frame * 257 + k];
        __syncthreads();
        for (int band = warp; band < 40; band += blockDim.x / 32) {
            int offset = offsets[band], length = offsets[band + 1] - offset, start = starts[band];
            float sum = 0;
            for (int k = lane; k < length; k += 32) sum += weights[offset + k] * powers[start + k];
            for (int mask = 16; mask > 0; mask >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, mask);
            if (lane == 0) out[frame * 40 + band] = logf(sum + 1e-6f);
        }
        __syncthreads();
    }
}

// Where in the last frame each 16 x 16 pixels come from, up to 8 away: one of 256 moves a thread (video encoders).
__global__ void __launch_bounds__(256) motion_search(const unsigned char *__restrict__ now,
                                                     const unsigned char *__restrict__ last,
                                                     unsigned *__restrict__ moves, int width, int height) {
    __shared__ unsigned block[16][4];
    __shared__ unsigned window[32][9];
    __shared__ unsigned best[8];
    int t = threadIdx.x, x0 = blockIdx.x * 16, y0 = blockIdx.y * 16;
    if (t < 64) block[t / 4][t % 4] = *(const unsigned *)(now + (size_t)(y0 + t / 4) * width + x0 + t % 4 * 4);
    int row = min(max(y0 - 8 + t / 8, 0), height - 1);
    unsigned word = 0;
    for (int k = 0; k < 4; k++) {
        int column = min(max(x0 - 8 + t % 8 * 4 + k, 0), width - 1);
        word |= (unsigned)last[(size_t)row * width + column] << (8 * k);
    }
    window[t / 8][t % 8] = word;
    __syncthreads();

    int dx = t % 16, dy = t / 16, at = dx / 4, shift = dx % 4 * 8;
    unsigned difference = 0;
    for (int y = 0; y < 16; y++) {
        unsigned left = window[dy + y][at];
#pragma unroll
        for (int k = 0; k < 4; k++) {
            unsigned right = window[dy + y][at + k + 1];
            difference += __vsadu4(block[y][k], __funnelshift_r(left, right, shift));
            left = right;
        }
    }
    unsigned least = __reduce_min_sync(0xffffffffu, difference << 8 | t);
    if (t % 32 == 0) best[t / 32] = least;
    __syncthreads();
    if (t == 0) {
        for (int w = 1; w < 8; w++) least = min(least, best[w]);
        moves[blockIdx.y * gridDim.x + blockIdx.x] = least;
    }
}

// Blocks that LZ4 has packed: literals and copies of what came before; a warp a block.
__global__ void decompress_blocks(const unsigned char *packed, const int *begins, unsigned char *out, int size,
                                  int blocks) {
    int block = blockIdx.x * blockDim.y + threadIdx.y, lane = threadIdx.x;
    if (block >= blocks) return;
    const unsigned char *p = packed + begins[block], *end = packed + begins[block + 1];
    unsigned char *q = out + (size_t)block * size;
    while (p < end) {
        int token = *p++;
        int literals = token >> 4;
        if (literals == 15) {
            int more;
            do {
                more = *p++;
                literals += more;
            } while (more == 255);
        }
        for (int k = lane; k < literals; k += 32) q[k] = p[k];
        p += literals;
        q += literals;
        __syncwarp();
        if (p >= end) break;
        int distance = p[0] | p[1] << 8;
        p += 2;
        int length = (token & 15) + 4;
        if (length == 19) {
            int more;
            do {
                more = *p++;
                length += more;
            } while (more == 255);
        }
        const unsigned char *from = q - distance;
        if (distance >= length)
            for (int k = lane; k < length; k += 32) q[k] = from[k];
        else
            for (int k = lane; k < length; k += 32) q[k] = from[k % distance];
        q += length;
        __syncwarp();
    }
}

const int REGISTERS = 4096;

// How many different keys there are, about (HyperLogLog): blocks that stay, registers in shared memory.
__global__ void hyperloglog(const unsigned long long *__restrict__ keys, int *registers, int n) {
    __shared__ int own[REGISTERS];
    for (int k = threadIdx.x; k < REGISTERS; k += blockDim.x) own[k] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        unsigned long long h = keys[i] * 0x9e3779b97f4a7c15ULL;
        h ^= h >> 32;
        h *= 0xd6e8feb86659fd93ULL;
        h ^= h >> 32;
        int bucket = (int)(h >> 52);
        int rank = __clzll((long long)(h << 12 | 2048)) + 1;
        if (own[bucket] < rank) atomicMax(&own[bucket], rank);
    }
    __syncthreads();
    for (int k = threadIdx.x; k < REGISTERS; k += blockDim.x)
        if (own[k] > registers[k]) atomicMax(&registers[k], own[k]);
}
