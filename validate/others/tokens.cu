// Pieces of language models as they are served and trained today: experts, pages, samplers, adapters.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

// The two best of 64 experts for each token, what each weighs, and how many tokens each has; a warp a token.
__global__ void route_tokens(const float *__restrict__ logits, int2 *__restrict__ experts,
                             float2 *__restrict__ weights, int *__restrict__ counts, int tokens) {
    int token = blockIdx.x * blockDim.y + threadIdx.y, lane = threadIdx.x;
    if (token >= tokens) return;
    float low = logits[token * 64 + lane], high = logits[token * 64 + 32 + lane];
    float best[2];
    int which[2];
#pragma unroll
    for (int k = 0; k < 2; k++) {
        float most = fmaxf(low, high);
        int at = low >= high ? lane : lane + 32;
#pragma unroll
        for (int mask = 16; mask > 0; mask >>= 1) {
            float other = __shfl_xor_sync(0xffffffffu, most, mask);
            int place = __shfl_xor_sync(0xffffffffu, at, mask);
            if (other > most || (other == most && place < at)) {
                most = other;
                at = place;
            }
        }
        best[k] = most;
        which[k] = at;
        if (at == lane) low = -1e30f;
        if (at == lane + 32) high = -1e30f;
    }
    if (lane == 0) {
        float second = __expf(best[1] - best[0]);
        experts[token] = make_int2(which[0], which[1]);
        weights[token] = make_float2(1.0f / (1.0f + second), second / (1.0f + second));
        atomicAdd(&counts[which[0]], 1);
        atomicAdd(&counts[which[1]], 1);
    }
}

// Rows of 1024 halves to where their experts find them; what finds no room is dropped.
__global__ void dispatch_rows(const uint4 *__restrict__ x, const int *__restrict__ slots, uint4 *__restrict__ y) {
    int token = blockIdx.x, choice = blockIdx.y;
    int slot = slots[token * gridDim.y + choice];
    if (slot < 0) return;
    y[(size_t)slot * blockDim.x + threadIdx.x] = x[(size_t)token * blockDim.x + threadIdx.x];
}

const int PAGE = 16, MOST = 512;

// Attention of one query a sequence to keys and values of 64 halves that lie in pages (vLLM).
__global__ void paged_attention(const float2 *__restrict__ queries, const __half2 *__restrict__ key_pages,
                                const __half2 *__restrict__ value_pages, const int *__restrict__ tables,
                                const int *__restrict__ lengths, float2 *__restrict__ out, float scale) {
    __shared__ float scores[MOST];
    __shared__ float parts[4];
    __shared__ float2 sums[4][32];
    int head = blockIdx.x, heads = gridDim.x, sequence = blockIdx.y;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int length = lengths[sequence];
    const int *table = tables + sequence * (MOST / PAGE);
    float2 q = queries[(sequence * heads + head) * 32 + lane];

    float most = -1e30f;
    for (int page = warp; page * PAGE < length; page += 4) {
        const __half2 *keys = key_pages + ((size_t)table[page] * heads + head) * PAGE * 32;
        int count = min(PAGE, length - page * PAGE);
        for (int k = 0; k < count; k++) {
            float2 key = __half22float2(keys[k * 32 + lane]);
            float dot = q.x * key.x + q.y * key.y;
            for (int mask = 16; mask > 0; mask >>= 1) dot += __shfl_xor_sync(0xffffffffu, dot, mask);
            dot *= scale;
            if (lane == 0) scores[page * PAGE + k] = dot;
            most = fmaxf(most, dot);
        }
    }
    if (lane == 0) parts[warp] = most;
    __syncthreads();
    most = fmaxf(fmaxf(parts[0], parts[1]), fmaxf(parts[2], parts[3]));
    __syncthreads();

    float sum = 0;
    for (int k = threadIdx.x; k < length; k += blockDim.x) {
        float e = __expf(scores[k] - most);
        scores[k] = e;
        sum += e;
    }
    for (int mask = 16; mask > 0; mask >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, mask);
    if (lane == 0) parts[warp] = sum;
    __syncthreads();
    sum = parts[0] + parts[1] + parts[2] + parts[3];

    float2 made = make_float2(0, 0);
    for (int page = warp; page * PAGE < length; page += 4) {
        const __half2 *values = value_pages + ((size_t)table[page] * heads + head) * PAGE * 32;
        int count = min(PAGE, length - page * PAGE);
        for (int k = 0; k < count; k++) {
            float2 value = __half22float2(values[k * 32 + lane]);
            float e = scores[page * PAGE + k];
            made.x += e * value.x;
            made.y += e * value.y;
        }
    }
    sums[warp][lane] = made;
    __syncthreads();
    if (warp == 0) {
        for (int w = 1; w < 4; w++) {
            made.x += sums[w][lane].x;
            made.y += sums[w][lane].y;
        }
        out[(sequence * heads + head) * 32 + lane] = make_float2(made.x / sum, made.y / sum);
    }
}

// A matrix of four bits an element, scaled in groups of 128, times a vector; a warp a row (AWQ).
__global__ void gemv_int4(const uint4 *__restrict__ weights, const __half *__restrict__ scales,
                          const float4 *__restrict__ x, float *__restrict__ y, int columns) {
    int row = blockIdx.x * blockDim.y + threadIdx.y, lane = threadIdx.x;
    int pieces = columns / 32;
    float sum = 0;
    for (int k = lane; k < pieces; k += 32) {
        uint4 packed = weights[(size_t)row * pieces + k];
        unsigned words[4] = {packed.x, packed.y, packed.z, packed.w};
        float part = 0;
#pragma unroll
        for (int w = 0; w < 4; w++) {
            float4 a = x[k * 8 + w * 2], b = x[k * 8 + w * 2 + 1];
            part += ((int)(words[w] & 15) - 8) * a.x + ((int)(words[w] >> 4 & 15) - 8) * a.y;
            part += ((int)(words[w] >> 8 & 15) - 8) * a.z + ((int)(words[w] >> 12 & 15) - 8) * a.w;
            part += ((int)(words[w] >> 16 & 15) - 8) * b.x + ((int)(words[w] >> 20 & 15) - 8) * b.y;
            part += ((int)(words[w] >> 24 & 15) - 8) * b.z + ((int)(words[w] >> 28) - 8) * b.w;
        }
        sum += part * __half2float(scales[(size_t)row * (columns / 128) + k / 4]);
    }
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffffu, sum, offset);
    if (lane == 0) y[row] = sum;
}

// A token of each row by its probability: softmax, then sums from the left until a random number is passed.
__global__ void sample_token(const float *logits, const float *uniforms, int *tokens, float temperature,
                             int vocabulary) {
    __shared__ float parts[8];
    __shared__ int found;
    const float *row = logits + (size_t)blockIdx.x * vocabulary;
    int t = threadIdx.x, lane = t & 31, warp = t >> 5;
    if (t == 0) found = vocabulary;

    float most = -1e30f;
    for (int i = t; i < vocabulary; i += 256) most = fmaxf(most, row[i]);
    for (int mask = 16; mask > 0; mask >>= 1) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, mask));
    if (lane == 0) parts[warp] = most;
    __syncthreads();
    for (int w = 0; w < 8; w++) most = fmaxf(most, parts[w]);
    __syncthreads();

    float sum = 0;
    for (int i = t; i < vocabulary; i += 256) sum += expf((row[i] - most) / temperature);
    for (int mask = 16; mask > 0; mask >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, mask);
    if (lane == 0) parts[warp] = sum;
    __syncthreads();
    sum = 0;
    for (int w = 0; w < 8; w++) sum += parts[w];

    float target = uniforms[blockIdx.x] * sum, before = 0;
    for (int begin = 0; begin < vocabulary; begin += 256) {
        int i = begin + t;
        float scan = i < vocabulary ? expf((row[i] - most) / temperature) : 0.0f;
        for (int offset = 1; offset < 32; offset *= 2) {
            float other = __shfl_up_sync(0xffffffffu, scan, offset);
            if (lane >= offset) scan += other;
        }
        __syncthreads();
        if (lane == 31) parts[warp] = scan;
        __syncthreads();
        float total = 0;
        for (int w = 0; w < 8; w++) {
            if (w < warp) scan += parts[w];
            total += parts[w];
        }
        if (i < vocabulary && before + scan > target) atomicMin(&found, i);
        __syncthreads();
        if (found < vocabulary) break;
        before += total;
    }
    if (t == 0) tokens[blockIdx.x] = min(found, vocabulary - 1);
}

// Logits before a token is sampled: what a grammar forbids, penalties for what was said, the temperature.
__global__ void mask_logits(float *logits, const unsigned *allowed, const unsigned short *counts, float presence,
                            float frequency, float temperature, int vocabulary) {
    int v = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
    if (v >= vocabulary) return;
    size_t at = (size_t)row * vocabulary + v;
    unsigned word = allowed[row * ((vocabulary + 31) / 32) + v / 32];
    if (word >> (v % 32) & 1) {
        float x = logits[at];
        int count = counts[at];
        if (count > 0) x -= presence + frequency * count;
        logits[at] = x / temperature;
    } else {
        logits[at] = -10000.0f;
    }
}

// A step of AdamW whose two moments are bytes, scaled in blocks of 256 (bitsandbytes).
__global__ void adamw_8bit(float *weights, const __half *gradient, signed char *first, unsigned char *second,
                           float *first_scales, float *second_scales, float rate, float beta1, float beta2,
                           float epsilon, float decay) {
    __shared__ float parts[2][8];
    int t = threadIdx.x, lane = t & 31, warp = t >> 5;
    size_t i = (size_t)blockIdx.x * 256 + t;
    float g = __half2float(gradient[i]);
    float root = second[i] * second_scales[blockIdx.x];
    float m = beta1 * first[i] * first_scales[blockIdx.x] + (1 - beta1) * g;
    root = sqrtf(beta2 * root * root + (1 - beta2) * g * g);
    float w = weights[i];
    weights[i] = w - rate * (m / (root + epsilon) + decay * w);

    float most = fabsf(m), most_root = root;
#pragma unroll
    for (int mask = 16; mask > 0; mask >>= 1) {
        most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, mask));
        most_root = fmaxf(most_root, __shfl_xor_sync(0xffffffffu, most_root, mask));
    }
    if (lane == 0) {
        parts[0][warp] = most;
        parts[1][warp] = most_root;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 8; k++) {
        most = fmaxf(most, parts[0][k]);
        most_root = fmaxf(most_root, parts[1][k]);
    }
    if (t == 0) {
        first_scales[blockIdx.x] = most / 127;
        second_scales[blockIdx.x] = most_root / 255;
    }
    first[i] = (signed char)rintf(m / most * 127);
    second[i] = (unsigned char)rintf(root / most_root * 255);
}

// Queries, keys and values out of what one product gives, with their bias, by heads.
__global__ void split_heads(const float *qkv, const float *bias, float *q, float *k, float *v, int batch,
                            int positions, int heads, int dim) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int width = 3 * heads * dim;
    if (i >= batch * positions * width) return;
    int d = i % dim;
    int h = (i / dim) % heads;
    int which = (i / (dim * heads)) % 3;
    int s = (i / width) % positions;
    int b = i / (width * positions);
    float x = qkv[i] + bias[i % width];
    int to = ((b * heads + h) * positions + s) * dim + d;
    if (which == 0)
        q[to] = x;
    else if (which == 1)
        k[to] = x;
    else
        v[to] = x;
}

// Means of rows of a table, for bags of any number of them; a warp a bag, 128 floats a row.
__global__ void embedding_bag(const float4 *__restrict__ table, const int *__restrict__ rows,
                              const int *__restrict__ offsets, float4 *__restrict__ y, int bags) {
    int bag = blockIdx.x * blockDim.y + threadIdx.y, lane = threadIdx.x;
    if (bag >= bags) return;
    int begin = offsets[bag], end = offsets[bag + 1];
    float4 sum = make_float4(0, 0, 0, 0);
    for (int k = begin; k < end; k++) {
        float4 row = table[(size_t)rows[k] * 32 + lane];
        sum.x += row.x;
        sum.y += row.y;
        sum.z += row.z;
        sum.w += row.w;
    }
    float scale = end > begin ? 1.0f / (end - begin) : 0.0f;
    y[(size_t)bag * 32 + lane] = make_float4(sum.x * scale, sum.y * scale, sum.z * scale, sum.w * scale);
}

__device__ float dot8(uint4 a, uint4 b) {
    const __nv_bfloat162 *left = reinterpret_cast<const __nv_bfloat162 *>(&a);
    const __nv_bfloat162 *right = reinterpret_cast<const __nv_bfloat162 *>(&b);
    float sum = 0;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        float2 l = __bfloat1622float2(left[k]), r = __bfloat1622float2(right[k]);
        sum += l.x * r.x + l.y * r.y;
    }
    return sum;
}

// Tokens times the narrow matrix of the adapter that each has, of rank 16; a block a token (Punica).
__global__ void lora_shrink(const uint4 *__restrict__ x, const uint4 *__restrict__ adapters,
                            const int *__restrict__ which, float *__restrict__ y, int pieces) {
    int token = blockIdx.x, rank = threadIdx.y, lane = threadIdx.x;
    int adapter = which[token];
    if (adapter < 0) {
        if (lane == 0) y[token * 16 + rank] = 0;
        return;
    }
    const uint4 *row = x + (size_t)token * pieces;
    const uint4 *weights = adapters + ((size_t)adapter * 16 + rank) * pieces;
    float sum = 0;
    for (int k = lane; k < pieces; k += 32) sum += dot8(row[k], weights[k]);
    for (int mask = 16; mask > 0; mask >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, mask);
    if (lane == 0) y[token * 16 + rank] = sum;
}

// How many tokens of a draft the larger model accepts; a thread a sequence (speculative decoding).
__global__ void accept_drafts(const float *target, const float *draft, const int *tokens, const float *uniforms,
                              int *accepted, int steps, int vocabulary, int sequences) {
    int s = blockIdx.x * blockDim.x + threadIdx.x;
    if (s >= sequences) return;
    int count = 0;
    for (int k = 0; k < steps; k++) {
        int token = tokens[s * steps + k];
        size_t at = (size_t)(s * steps + k) * vocabulary + token;
        float p = target[at];
        float q = draft[at];
        if (uniforms[s * steps + k] * q > p) break;
        count++;
    }
    accepted[s] = count;
}

// Products of rows, sorted by expert, with the matrix of each expert: 64 x 64 tiles, the next one on its way.
__global__ void __launch_bounds__(256) grouped_product(const float *__restrict__ x, const float *__restrict__ weights,
                                                       const int *__restrict__ expert_of, float *__restrict__ y,
                                                       int inner, int width) {
    __shared__ __align__(16) float as[2][16][68];
    __shared__ __align__(16) float bs[2][16][64];
    int t = threadIdx.x, tx = t % 16, ty = t / 16;
    int row0 = blockIdx.y * 64, column0 = blockIdx.x * 64;
    const float *a = x + (size_t)(row0 + t / 4) * inner + t % 4 * 4;
    const float *b = weights + (size_t)expert_of[blockIdx.y] * inner * width + (t / 16) * width + column0 + t % 16 * 4;

    float acc[4][4] = {};
    float4 next_a = *(const float4 *)a, next_b = *(const float4 *)b;
    int buffer = 0;
    for (int k0 = 0; k0 < inner; k0 += 16) {
        as[buffer][t % 4 * 4 + 0][t / 4] = next_a.x;
        as[buffer][t % 4 * 4 + 1][t / 4] = next_a.y;
        as[buffer][t % 4 * 4 + 2][t / 4] = next_a.z;
        as[buffer][t % 4 * 4 + 3][t / 4] = next_a.w;
        *(float4 *)&bs[buffer][t / 16][t % 16 * 4] = next_b;
        __syncthreads();
        if (k0 + 16 < inner) {
            next_a = *(const float4 *)(a + k0 + 16);
            next_b = *(const float4 *)(b + (size_t)(k0 + 16) * width);
        }
#pragma unroll
        for (int k = 0; k < 16; k++) {
            float4 l = *(const float4 *)&as[buffer][k][ty * 4];
            float4 r = *(const float4 *)&bs[buffer][k][tx * 4];
            float left[4] = {l.x, l.y, l.z, l.w}, right[4] = {r.x, r.y, r.z, r.w};
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) acc[i][j] += left[i] * right[j];
        }
        buffer ^= 1;
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
        *(float4 *)&y[(size_t)(row0 + ty * 4 + i) * width + column0 + tx * 4] =
            make_float4(acc[i][0], acc[i][1], acc[i][2], acc[i][3]);
}
