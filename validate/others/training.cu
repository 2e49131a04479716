// Networks while they are trained or asked: normalisation, gradients, quantised weights, gates.

#include <cuda_fp16.h>

__device__ float warp_total(float v) {
    for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
    return v;
}

// A block normalises a group of channels of one sample, read twice.
__global__ void __launch_bounds__(512)
    group_norm(const float4 *__restrict__ x, const float *__restrict__ gamma,
               const float *__restrict__ beta, float4 *__restrict__ y, int pixels, int channels,
               int groups) {
    __shared__ float sums[16], squares[16];
    __shared__ float mean, scale;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int quads = channels / groups * pixels / 4;
    const float4 *from = x + (size_t)blockIdx.x * quads;
    float4 *to = y + (size_t)blockIdx.x * quads;
    float sum = 0, square = 0;
    for (int i = threadIdx.x; i < quads; i += blockDim.x) {
        float4 v = from[i];
        sum += v.x + v.y + v.z + v.w;
        square += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
    }
    sum = warp_total(sum), square = warp_total(square);
    if (lane == 0) sums[warp] = sum, squares[warp] = square;
    __syncthreads();
    if (warp == 0) {
        sum = warp_total(lane < 16 ? sums[lane] : 0.0f);
        square = warp_total(lane < 16 ? squares[lane] : 0.0f);
        if (lane == 0) {
            mean = sum / (4 * quads);
            scale = rsqrtf(square / (4 * quads) - mean * mean + 1e-5f);
        }
    }
    __syncthreads();
    int first = blockIdx.x % groups * (channels / groups);
    for (int i = threadIdx.x; i < quads; i += blockDim.x) {
        int channel = first + 4 * i / pixels;
        float a = gamma[channel] * scale, b = beta[channel] - mean * a;
        float4 v = from[i];
        to[i] = make_float4(v.x * a + b, v.y * a + b, v.z * a + b, v.w * a + b);
    }
}

// Gradient of a normalised row of 768, which a warp keeps in registers.
__global__ void layernorm_backward(const float *dy, const float *x, const float *means,
                                   const float *scales, const float *gamma, float *dx, int rows) {
    int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    size_t base = (size_t)row * 768;
    float mean = means[row], scale = scales[row];
    float centred[24], grad[24], sum = 0, dot = 0;
#pragma unroll
    for (int k = 0; k < 24; k++) {
        int c = lane + 32 * k;
        centred[k] = (x[base + c] - mean) * scale;
        grad[k] = dy[base + c] * gamma[c];
        sum += grad[k];
        dot += grad[k] * centred[k];
    }
    sum = warp_total(sum) / 768, dot = warp_total(dot) / 768;
#pragma unroll
    for (int k = 0; k < 24; k++)
        dx[base + lane + 32 * k] = scale * (grad[k] - sum - centred[k] * dot);
}

// Gradient of a softmax: a warp a row of any length, four rows a block.
__global__ void softmax_backward(const float *y, const float *dy, float *dx, int columns, int rows) {
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    y += (size_t)row * columns, dy += (size_t)row * columns, dx += (size_t)row * columns;
    float dot = 0;
    for (int c = threadIdx.x; c < columns; c += 32) dot += y[c] * dy[c];
    dot = warp_total(dot);
    for (int c = threadIdx.x; c < columns; c += 32) dx[c] = y[c] * (dy[c] - dot);
}

// Scores of queries and keys of 64, of which those that come later do not count.
__global__ void causal_scores(const float *q, const float *k, float *scores, float factor, int n) {
    __shared__ float qs[16][17], ks[16][17];
    int tx = threadIdx.x, ty = threadIdx.y;
    int column = blockIdx.x * 16 + tx, row = blockIdx.y * 16 + ty;
    float *out = scores + ((size_t)blockIdx.z * n + row) * n + column;
    if (blockIdx.x > blockIdx.y) {
        *out = -1e9f;
        return;
    }
    const float *queries = q + ((size_t)blockIdx.z * n + row) * 64;
    const float *keys = k + ((size_t)blockIdx.z * n + blockIdx.x * 16 + ty) * 64;
    float sum = 0;
    for (int d = 0; d < 64; d += 16) {
        qs[ty][tx] = queries[d + tx];
        ks[ty][tx] = keys[d + tx];
        __syncthreads();
        for (int j = 0; j < 16; j++) sum += qs[ty][j] * ks[tx][j];
        __syncthreads();
    }
    *out = column <= row ? sum * factor : -1e9f;
}

// Weights of four bits, eight in a word; 128 of them share a scale.
__global__ void unpack_int4(const unsigned *packed, const float *scales, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (8 * i >= n) return;
    unsigned word = packed[i];
    float scale = scales[i / 16], v[8];
#pragma unroll
    for (int k = 0; k < 8; k++) v[k] = scale * ((int)(word >> 4 * k & 15) - 8);
    float4 *to = reinterpret_cast<float4 *>(y + 8 * (size_t)i);
    to[0] = make_float4(v[0], v[1], v[2], v[3]);
    to[1] = make_float4(v[4], v[5], v[6], v[7]);
}

// Gradients of tokens are added to their rows of 128; word 0 pads and is not learnt.
__global__ void embedding_backward(const int *tokens, const float *dy, float *table, int n) {
    int i = blockIdx.x * blockDim.y + threadIdx.y;
    if (i >= n) return;
    int token = tokens[i];
    if (token == 0) return;
    for (int c = threadIdx.x; c < 128; c += blockDim.x)
        atomicAdd(&table[(size_t)token * 128 + c], dy[(size_t)i * 128 + c]);
}

__device__ float sigmoid(float v) { return 1 / (1 + expf(-v)); }

// Gates i, f, g, o of 512 units lie side by side in a row.
__global__ void lstm_cell(const float *gates, float *cells, float *hidden, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float *row = gates + (size_t)(i / 512) * 2048 + i % 512;
    float cell = sigmoid(row[512]) * cells[i] + sigmoid(row[0]) * tanhf(row[1024]);
    cells[i] = cell;
    hidden[i] = sigmoid(row[1536]) * tanhf(cell);
}

// The largest of 3 x 3 every two pixels, and where it lies in its plane.
__global__ void pool_with_places(const float *x, float *y, int *places, int n, int total) {
    int half = n / 2;
    for (int index = blockIdx.x * blockDim.x + threadIdx.x; index < total;
         index += blockDim.x * gridDim.x) {
        int pw = index % half, ph = index / half % half, c = index / half / half;
        int top = max(2 * ph - 1, 0), left = max(2 * pw - 1, 0);
        int bottom = min(2 * ph + 2, n), right = min(2 * pw + 2, n);
        const float *plane = x + (size_t)c * n * n;
        float most = -3.4e38f;
        int place = -1;
        for (int h = top; h < bottom; ++h)
            for (int w = left; w < right; ++w)
                if (plane[h * n + w] > most) {
                    place = h * n + w;
                    most = plane[place];
                }
        y[index] = most;
        places[index] = place;
    }
}

// A channel's last four values, weighed, and their SiLU; a block row is a channel.
__global__ void causal_convolution(const float4 *x, const float4 *weights, const float *bias,
                                   float4 *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, channel = blockIdx.y;
    const float4 *from = x + (size_t)channel * (n / 4);
    float4 w = weights[channel], own = from[i], before = make_float4(0, 0, 0, 0);
    if (i > 0) before = from[i - 1];
    float v[7] = {before.y, before.z, before.w, own.x, own.y, own.z, own.w}, made[4];
#pragma unroll
    for (int k = 0; k < 4; k++) {
        float sum = bias[channel] + w.x * v[k] + w.y * v[k + 1] + w.z * v[k + 2] + w.w * v[k + 3];
        made[k] = sum / (1 + __expf(-sum));
    }
    y[(size_t)channel * (n / 4) + i] = make_float4(made[0], made[1], made[2], made[3]);
}

// A matrix of 48 x 48 and a vector for each block; a thread makes a row's product.
__global__ void batched_matvec(const float *matrices, const float *vectors, float *y) {
    __shared__ float v[48];
    int r = threadIdx.x;
    if (r < 48) v[r] = vectors[blockIdx.x * 48 + r];
    __syncthreads();
    if (r >= 48) return;
    const float *row = matrices + ((size_t)blockIdx.x * 48 + r) * 48;
    float sum = 0;
    for (int c = 0; c < 48; c++) sum += row[c] * v[c];
    y[blockIdx.x * 48 + r] = sum;
}

__global__ void swiglu_half(const __half2 *gate, const __half2 *up, __half2 *y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n / 2; i += gridDim.x * blockDim.x) {
        float2 g = __half22float2(gate[i]), u = __half22float2(up[i]);
        float a = g.x * sigmoid(g.x) * u.x, b = g.y * sigmoid(g.y) * u.y;
        y[i] = __floats2half2_rn(a, b);
    }
}

// Column sums of n rows of 512: a block adds 32 columns of 256 rows to what others find.
__global__ void bias_gradient(const float *dy, float *bias, int n) {
    __shared__ float parts[8][33];
    int column = blockIdx.x * 32 + threadIdx.x, first = blockIdx.y * 256 + threadIdx.y;
    float sum = 0;
    for (int r = first; r < min(n, (int)(blockIdx.y + 1) * 256); r += 8)
        sum += dy[(size_t)r * 512 + column];
    parts[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0) {
        for (int k = 1; k < 8; k++) sum += parts[k][threadIdx.x];
        atomicAdd(&bias[column], sum);
    }
}
