// Keys, texts, messages, tokens and trees: many small records at once.

#include <cuda_fp16.h>

// Running sums that begin anew at heads, and with each block of 512.
__global__ void segment_sums(const int *x, const unsigned char *heads, int *y, int n) {
    __shared__ int tails[16];
    __shared__ bool open[16];
    int i = blockIdx.x * 512 + threadIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int sum = i < n ? x[i] : 0;
    unsigned starts = __ballot_sync(0xffffffffu, i < n && heads[i]);
    unsigned before = starts & (0xffffffffu >> (31 - lane));
    int reach = before ? lane - (31 - __clz(before)) : lane;
    for (int o = 1; o < 32; o *= 2) {
        int other = __shfl_up_sync(0xffffffffu, sum, o);
        if (o <= reach) sum += other;
    }
    if (lane == 31) tails[warp] = sum, open[warp] = starts == 0;
    __syncthreads();
    if (before == 0)
        for (int w = warp - 1; w >= 0; w--) {
            sum += tails[w];
            if (!open[w]) break;
        }
    if (i < n) y[i] = sum;
}

// Runs of equal bytes, for each 1024 by themselves: what a run holds and where it begins.
__global__ void runs(const unsigned char *x, unsigned char *values, short *begins, int *counts) {
    __shared__ int of_warps[32];
    int t = threadIdx.x, lane = t % 32, warp = t / 32, first = blockIdx.x * 1024;
    unsigned char value = x[first + t];
    bool starts = t == 0 || value != x[first + t - 1];
    unsigned votes = __ballot_sync(0xffffffffu, starts);
    if (lane == 0) of_warps[warp] = __popc(votes);
    __syncthreads();
    int place = __popc(votes & ((1u << lane) - 1));
    for (int w = 0; w < warp; w++) place += of_warps[w];
    if (starts) values[first + place] = value, begins[first + place] = t;
    if (t == 1023) counts[blockIdx.x] = place + starts;
}

// A pass of a radix sort: a block's 256 keys go, in their order, where those of their four bits begin.
__global__ void radix_pass(const unsigned *keys, const int *begins, unsigned *y, int shift) {
    __shared__ int counts[8][16];
    int t = threadIdx.x, lane = t % 32, warp = t / 32;
    if (t < 128) counts[t / 16][t % 16] = 0;
    __syncthreads();
    unsigned key = keys[blockIdx.x * 256 + t];
    int digit = key >> shift & 15;
    unsigned same = __match_any_sync(0xffffffffu, digit);
    int rank = __popc(same & ((1u << lane) - 1));
    if (rank == 0) counts[warp][digit] = __popc(same);
    __syncthreads();
    for (int w = 0; w < warp; w++) rank += counts[w][digit];
    y[begins[digit * gridDim.x + blockIdx.x] + rank] = key;
}

// How many letters to change between two words of 64 (Levenshtein); a block a pair, a thread a row,
// one diagonal after the other.
__global__ void edit_distances(const unsigned char *a, const unsigned char *b, int *y) {
    __shared__ unsigned char word[64];
    __shared__ int diagonals[3][65];
    int t = threadIdx.x;
    unsigned char letter = a[blockIdx.x * 64 + t];
    word[t] = b[blockIdx.x * 64 + t];
    if (t == 0) diagonals[0][0] = 0, diagonals[1][0] = diagonals[1][1] = 1;
    __syncthreads();
    for (int d = 2; d <= 128; d++) {
        int *now = diagonals[d % 3], *last = diagonals[(d + 2) % 3], *older = diagonals[(d + 1) % 3];
        int column = d - t - 1;
        if (column >= 1 && column <= 64) {
            int changed = older[t] + (letter != word[column - 1]);
            now[t + 1] = min(changed, min(last[t], last[t + 1]) + 1);
        }
        if (column == 0) now[t + 1] = d;
        if (t == 0 && d <= 64) now[0] = d;
        __syncthreads();
    }
    if (t == 0) y[blockIdx.x] = diagonals[128 % 3][64];
}

// The best alignment (Smith and Waterman) of a query with parts of n texts, which lie letter by letter.
__global__ void align_locally(const unsigned char *query, int letters, const unsigned char *texts,
                              int length, int *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, best = 0, row[32];
    if (i >= n) return;
    for (int j = 0; j < letters; j++) row[j] = 0;
    for (int k = 0; k < length; k++) {
        unsigned char letter = texts[(size_t)k * n + i];
        int corner = 0, left = 0;
        for (int j = 0; j < letters; j++) {
            int both = corner + (letter == query[j] ? 2 : -1), above = row[j];
            left = max(max(both, 0), max(above, left) - 1);
            corner = above;
            row[j] = left;
            best = max(best, left);
        }
    }
    y[i] = best;
}

__device__ unsigned scrambled(unsigned v) {
    v ^= v >> 16, v *= 0x7feb352du;
    v ^= v >> 15, v *= 0x846ca68bu;
    return v ^ v >> 16;
}

// Four bits for each key in a Bloom filter.
__global__ void bloom_insert(const unsigned *keys, unsigned *bits, unsigned mask, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned place = scrambled(keys[i]), step = scrambled(place) | 1;
    for (int k = 0; k < 4; k++, place += step)
        atomicOr(&bits[(place & mask) >> 5], 1u << (place & 31));
}

__device__ unsigned turned(unsigned v, int by) { return v >> by | v << (32 - by); }

// SHA-256 of n messages of 32 bytes; words of the results lie in planes.
__global__ void sha256(const uint4 *messages, const unsigned *constants, unsigned *y, int n) {
    __shared__ unsigned round[64];
    if (threadIdx.x < 64) round[threadIdx.x] = constants[threadIdx.x];
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    uint4 low = messages[2 * i], high = messages[2 * i + 1];
    unsigned w[16] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w, 0x80000000u};
    w[15] = 256;
    const unsigned begin[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                               0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    unsigned a = begin[0], b = begin[1], c = begin[2], d = begin[3];
    unsigned e = begin[4], f = begin[5], g = begin[6], h = begin[7];
    for (int r = 0; r < 64; r += 16) {
#pragma unroll
        for (int j = 0; j < 16; j++) {
            if (r > 0) {
                unsigned old = w[(j + 1) % 16], young = w[(j + 14) % 16];
                unsigned s0 = turned(old, 7) ^ turned(old, 18) ^ old >> 3;
                unsigned s1 = turned(young, 17) ^ turned(young, 19) ^ young >> 10;
                w[j] += s0 + w[(j + 9) % 16] + s1;
            }
            unsigned s1 = turned(e, 6) ^ turned(e, 11) ^ turned(e, 25);
            unsigned t1 = h + s1 + (e & f ^ ~e & g) + round[r + j] + w[j];
            unsigned s0 = turned(a, 2) ^ turned(a, 13) ^ turned(a, 22);
            unsigned t2 = s0 + (a & b ^ a & c ^ b & c);
            h = g, g = f, f = e, e = d + t1;
            d = c, c = b, b = a, a = t1 + t2;
        }
    }
    unsigned made[8] = {a, b, c, d, e, f, g, h};
    for (int k = 0; k < 8; k++) y[(size_t)k * n + i] = begin[k] + made[k];
}

// A gated layer (SwiGLU): gates and what they let through lie in the halves of a row.
__global__ void swiglu(const __half2 *x, __half2 *y, int width) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    const __half2 *row = x + (size_t)blockIdx.y * 2 * width;
    float2 gate = __half22float2(row[column]), value = __half22float2(row[width + column]);
    float left = gate.x / (1 + expf(-gate.x)) * value.x, right = gate.y / (1 + expf(-gate.y)) * value.y;
    y[(size_t)blockIdx.y * width + column] = __floats2half2_rn(left, right);
}

// Keys and values of new tokens into caches of pages of 16 tokens. A token has `heads` times 16 pieces
// of eight halves; of keys a page holds the same piece of all its tokens side by side.
__global__ void append_to_pages(const uint4 *keys, const uint4 *values, const int *slots,
                                uint4 *key_pages, uint4 *value_pages, int heads) {
    int slot = slots[blockIdx.x];
    if (slot < 0) return;
    int pieces = heads * 16, page = slot / 16, place = slot % 16;
    for (int k = threadIdx.x; k < pieces; k += blockDim.x) {
        size_t from = (size_t)blockIdx.x * pieces + k;
        key_pages[((size_t)page * pieces + k) * 16 + place] = keys[from];
        value_pages[((size_t)page * 16 + place) * pieces + k] = values[from];
    }
}

// Attention of queries to the keys up to their own, with a running softmax; a warp a query of 64.
__global__ void causal_attention(const float2 *queries, const float2 *keys, const float2 *values,
                                 float2 *y, int n) {
    int query = blockIdx.x * blockDim.y + threadIdx.y, lane = threadIdx.x;
    size_t head = (size_t)blockIdx.y * n;
    float2 q = queries[(head + query) * 32 + lane], made = make_float2(0, 0);
    float most = -1e30f, sum = 0;
    for (int k = 0; k <= query; k++) {
        float2 key = keys[(head + k) * 32 + lane], value = values[(head + k) * 32 + lane];
        float score = q.x * key.x + q.y * key.y;
        for (int o = 16; o > 0; o /= 2) score += __shfl_xor_sync(0xffffffffu, score, o);
        score *= 0.125f;
        float larger = fmaxf(most, score);
        float before = expf(most - larger), now = expf(score - larger);
        sum = sum * before + now;
        made.x = made.x * before + now * value.x;
        made.y = made.y * before + now * value.y;
        most = larger;
    }
    y[(head + query) * 32 + lane] = make_float2(made.x / sum, made.y / sum);
}

// Dropout by numbers that follow from place and seed (Philox, 4 x 32 bits, ten rounds).
__global__ void dropout(const float4 *x, float4 *y, unsigned limit, float scale, unsigned seed, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n / 4) return;
    unsigned a = i, b = 0, c = 0, d = 0, key = seed, second = 0;
    for (int r = 0; r < 10; r++) {
        unsigned low = 0xd2511f53u * a, high = __umulhi(0xd2511f53u, a);
        a = __umulhi(0xcd9e8d57u, c) ^ b ^ key;
        b = 0xcd9e8d57u * c;
        c = high ^ d ^ second;
        d = low;
        key += 0x9e3779b9u, second += 0xbb67ae85u;
    }
    float4 v = x[i];
    y[i] = make_float4(a < limit ? v.x * scale : 0, b < limit ? v.y * scale : 0,
                       c < limit ? v.z * scale : 0, d < limit ? v.w * scale : 0);
}

// Spans of a tree's nodes from those of its n leaves: of two that come to a node the second goes on.
__global__ void refit(const int *parents, const int2 *children, volatile float *lows,
                      volatile float *highs, int *visits, int n) {
    int leaf = blockIdx.x * blockDim.x + threadIdx.x;
    if (leaf >= n) return;
    int node = parents[n - 1 + leaf];
    while (node >= 0) {
        __threadfence();
        if (atomicAdd(&visits[node], 1) == 0) return;
        __threadfence();
        int2 of = children[node];
        lows[node] = fminf(lows[of.x], lows[of.y]);
        highs[node] = fmaxf(highs[of.x], highs[of.y]);
        node = parents[node];
    }
}
