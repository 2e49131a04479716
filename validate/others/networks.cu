// Layers of neural networks: elementwise, windows over channels, one query's attention, an optimiser.

__device__ float leaky(float v) { return v > 0 ? v : 0.01f * v; }

__global__ void leaky_relu4(const float4 *x, float4 *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n / 4) return;
    float4 v = x[i];
    y[i] = make_float4(leaky(v.x), leaky(v.y), leaky(v.z), leaky(v.w));
}

// Channels of n x n pictures; a block row of z is a channel.
__global__ void max_pool(const float *x, float *y, int n) {
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    int half = n / 2, channel = blockIdx.z;
    if (column >= half || row >= half) return;
    const float *top = x + ((size_t)channel * n + 2 * row) * n + 2 * column;
    y[((size_t)channel * half + row) * half + column] =
        fmaxf(fmaxf(top[0], top[1]), fmaxf(top[n], top[n + 1]));
}

__global__ void depthwise3x3(const float *x, const float *weights, float *y, int n) {
    int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
    int channel = blockIdx.z;
    const float *picture = x + (size_t)channel * n * n, *w = weights + 9 * channel;
    float sum = 0;
    for (int i = -1; i <= 1; i++)
        for (int j = -1; j <= 1; j++) {
            int r = row + i, c = column + j;
            if (r >= 0 && r < n && c >= 0 && c < n)
                sum = fmaf(picture[r * n + c], w[3 * i + j + 4], sum);
        }
    y[((size_t)channel * n + row) * n + column] = sum;
}

// Batch normalisation as it is used after training: four numbers for each channel of `plane` values.
__global__ void batch_norm(const float *x, const float *mean, const float *variance,
                           const float *scale, const float *shift, float *y, int plane, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        int channel = i / plane % 64;
        y[i] = (x[i] - mean[channel]) * rsqrtf(variance[channel] + 1e-5f) * scale[channel] +
               shift[channel];
    }
}

__global__ void adam(float *weights, const float *gradient, float *first, float *second,
                     float rate, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float g = gradient[i];
    float m = first[i] = 0.9f * first[i] + 0.1f * g;
    float v = second[i] = 0.999f * second[i] + 0.001f * g * g;
    weights[i] -= rate * m / (sqrtf(v) + 1e-8f);
}

// A row's largest magnitude becomes 127; a block a row of 1024.
__global__ void quantize_rows(const float4 *x, char4 *y, float *scales) {
    __shared__ float parts[8];
    int t = threadIdx.x;
    float4 v = x[(size_t)blockIdx.x * 256 + t];
    float most = fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w)));
    for (int o = 16; o > 0; o /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, o));
    if (t % 32 == 0) parts[t / 32] = most;
    __syncthreads();
    for (int k = 0; k < 8; k++) most = fmaxf(most, parts[k]);
    float factor = 127 / most;
    y[(size_t)blockIdx.x * 256 + t] =
        make_char4(rintf(v.x * factor), rintf(v.y * factor), rintf(v.z * factor), rintf(v.w * factor));
    if (t == 0) scales[blockIdx.x] = most / 127;
}

// One query against the keys and values of a head of 64; a block a head.
__global__ void attend(const float *query, const float *keys, const float *values, float *y, int n) {
    __shared__ float scores[4096];
    __shared__ float q[64], parts[8], rows[4][64];
    int head = blockIdx.x, t = threadIdx.x, lane = t % 32, warp = t / 32;
    if (t < 64) q[t] = query[head * 64 + t];
    __syncthreads();
    float most = -1e30f;
    for (int k = warp; k < n; k += 8) {
        const float *key = keys + ((size_t)head * n + k) * 64;
        float dot = key[lane] * q[lane] + key[lane + 32] * q[lane + 32];
        for (int o = 16; o > 0; o /= 2) dot += __shfl_xor_sync(0xffffffffu, dot, o);
        if (lane == 0) scores[k] = dot / 8;
        most = fmaxf(most, dot / 8);
    }
    if (lane == 0) parts[warp] = most;
    __syncthreads();
    for (int k = 0; k < 8; k++) most = fmaxf(most, parts[k]);
    __syncthreads();
    float sum = 0;
    for (int k = t; k < n; k += 256) sum += scores[k] = expf(scores[k] - most);
    for (int o = 16; o > 0; o /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, o);
    if (lane == 0) parts[warp] = sum;
    __syncthreads();
    sum = 0;
    for (int k = 0; k < 8; k++) sum += parts[k];
    float made = 0;
    for (int k = t / 64; k < n; k += 4)
        made += scores[k] * values[((size_t)head * n + k) * 64 + t % 64];
    rows[t / 64][t % 64] = made;
    __syncthreads();
    if (t < 64) y[head * 64 + t] = (rows[0][t] + rows[1][t] + rows[2][t] + rows[3][t]) / sum;
}

// 3 x 3 windows of an n x n picture as columns of a matrix, for a product to follow.
__global__ void windows(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n * n) return;
    int row = i / n, column = i % n;
    for (int k = 0; k < 9; k++) {
        int r = row + k / 3 - 1, c = column + k % 3 - 1;
        bool inside = r >= 0 && r < n && c >= 0 && c < n;
        y[(size_t)k * n * n + i] = inside ? x[r * n + c] : 0;
    }
}

// An n x n picture twice as large, between four pixels.
__global__ void enlarge(const float *x, float *y, int n) {
    int column = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
    float u = fmaxf(0.5f * column - 0.25f, 0), v = fmaxf(0.5f * row - 0.25f, 0);
    int left = (int)u, top = (int)v;
    int right = min(left + 1, n - 1), bottom = min(top + 1, n - 1);
    float a = u - left, b = v - top;
    float upper = x[top * n + left] * (1 - a) + x[top * n + right] * a;
    float lower = x[bottom * n + left] * (1 - a) + x[bottom * n + right] * a;
    y[(size_t)row * 2 * n + column] = upper * (1 - b) + lower * b;
}

// A product of n x n matrices, 64 x 64 of it a block, 4 x 4 a thread, tiles of 16 held as read.
__global__ void product_of_tiles(const float4 *a, const float4 *b, float4 *c, int n) {
    __shared__ float at[16][68], bt[16][64];
    int t = threadIdx.x, tx = t % 16, ty = t / 16, quads = n / 4;
    float sum[4][4] = {};
    for (int k = 0; k < n; k += 16) {
        float4 u = a[(size_t)(blockIdx.y * 64 + t / 4) * quads + k / 4 + t % 4];
        at[4 * (t % 4)][t / 4] = u.x, at[4 * (t % 4) + 1][t / 4] = u.y;
        at[4 * (t % 4) + 2][t / 4] = u.z, at[4 * (t % 4) + 3][t / 4] = u.w;
        *(float4 *)&bt[t / 16][4 * tx] = b[(size_t)(k + t / 16) * quads + blockIdx.x * 16 + tx];
        __syncthreads();
#pragma unroll
        for (int j = 0; j < 16; j++) {
            float4 l = *(float4 *)&at[j][4 * ty], r = *(float4 *)&bt[j][4 * tx];
            float left[4] = {l.x, l.y, l.z, l.w}, right[4] = {r.x, r.y, r.z, r.w};
            for (int p = 0; p < 4; p++)
                for (int q = 0; q < 4; q++) sum[p][q] = fmaf(left[p], right[q], sum[p][q]);
        }
        __syncthreads();
    }
    for (int p = 0; p < 4; p++)
        c[(size_t)(blockIdx.y * 64 + 4 * ty + p) * quads + blockIdx.x * 16 + tx] =
            make_float4(sum[p][0], sum[p][1], sum[p][2], sum[p][3]);
}
