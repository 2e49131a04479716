// Layers, losses, boxes, clusters and transforms of tensors.

#include <cuda_fp16.h>

// A convolution of 3 x 3 over 32 channels: a block makes 16 x 16 pixels of so many filters.
template <int FILTERS>
__global__ void direct_conv(const float *__restrict__ x, const float *__restrict__ weights,
                            const float *__restrict__ bias, float *__restrict__ y, int n) {
    __shared__ float tile[18][18];
    __shared__ float w[FILTERS][9];
    const int channels = 32;
    int tx = threadIdx.x, ty = threadIdx.y, tid = ty * 16 + tx;
    int x0 = blockIdx.x * 16, y0 = blockIdx.y * 16, f0 = blockIdx.z * FILTERS;
    float acc[FILTERS];
#pragma unroll
    for (int f = 0; f < FILTERS; f++) acc[f] = bias[f0 + f];
    for (int c = 0; c < channels; c++) {
        for (int k = tid; k < 18 * 18; k += 256) {
            int py = y0 + k / 18 - 1, px = x0 + k % 18 - 1;
            bool inside = py >= 0 && py < n && px >= 0 && px < n;
            tile[k / 18][k % 18] = inside ? x[(c * n + py) * n + px] : 0.0f;
        }
        if (tid < FILTERS * 9) w[tid / 9][tid % 9] = weights[((f0 + tid / 9) * channels + c) * 9 + tid % 9];
        __syncthreads();
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++) {
                float v = tile[ty + i][tx + j];
#pragma unroll
                for (int f = 0; f < FILTERS; f++) acc[f] += v * w[f][i * 3 + j];
            }
        __syncthreads();
    }
#pragma unroll
    for (int f = 0; f < FILTERS; f++) y[((f0 + f) * n + y0 + ty) * n + x0 + tx] = fmaxf(acc[f], 0.0f);
}

template __global__ void direct_conv<8>(const float *, const float *, const float *, float *, int);

// A matrix of bytes times a vector of bytes, a warp a row.
__global__ void gemv_int8(const int4 *weights, const int4 *x, const float *scales, float scale, float *y,
                          int pieces) {
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    const int4 *w = weights + (size_t)row * pieces;
    int sum = 0;
    for (int k = threadIdx.x; k < pieces; k += 32) {
        int4 a = w[k], b = x[k];
        sum = __dp4a(a.x, b.x, sum);
        sum = __dp4a(a.y, b.y, sum);
        sum = __dp4a(a.z, b.z, sum);
        sum = __dp4a(a.w, b.w, sum);
    }
    for (int mask = 16; mask > 0; mask >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, mask);
    if (threadIdx.x == 0) y[row] = sum * scales[row] * scale;
}

__device__ float sample(const float *plane, int size, float y, float x) {
    y = fminf(fmaxf(y, 0.0f), size - 1.0f);
    x = fminf(fmaxf(x, 0.0f), size - 1.0f);
    int y0 = (int)y, x0 = (int)x;
    int y1 = min(y0 + 1, size - 1), x1 = min(x0 + 1, size - 1);
    float fy = y - y0, fx = x - x0;
    return (1 - fy) * ((1 - fx) * plane[y0 * size + x0] + fx * plane[y0 * size + x1]) +
           fy * ((1 - fx) * plane[y1 * size + x0] + fx * plane[y1 * size + x1]);
}

// Regions of a map of features as 7 x 7 bins, each the mean of four samples.
__global__ void roi_align(const float *features, const float4 *rois, float *out, int channels, int size,
                          int total) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < total; i += blockDim.x * gridDim.x) {
        int bx = i % 7, by = i / 7 % 7, c = i / 49 % channels, r = i / 49 / channels;
        float4 roi = rois[r];
        float bin_w = fmaxf(roi.z - roi.x, 1.0f) / 7, bin_h = fmaxf(roi.w - roi.y, 1.0f) / 7;
        const float *plane = features + c * size * size;
        float sum = 0;
        for (int sy = 0; sy < 2; sy++)
            for (int sx = 0; sx < 2; sx++)
                sum += sample(plane, size, roi.y + (by + (sy + 0.5f) / 2) * bin_h,
                              roi.x + (bx + (sx + 0.5f) / 2) * bin_w);
        out[i] = sum / 4;
    }
}

__device__ float overlap(float4 a, float4 b) {
    float w = fmaxf(fminf(a.z, b.z) - fmaxf(a.x, b.x), 0.0f);
    float h = fmaxf(fminf(a.w, b.w) - fmaxf(a.y, b.y), 0.0f);
    float both = w * h;
    return both / ((a.z - a.x) * (a.w - a.y) + (b.z - b.x) * (b.w - b.y) - both);
}

// Which boxes overlap those after them too much, 64 to a word.
__global__ void nms_mask(const float4 *boxes, float threshold, unsigned long long *masks, int n) {
    __shared__ float4 column[64];
    if (blockIdx.y > blockIdx.x) return;
    int t = threadIdx.x, words = n / 64;
    column[t] = boxes[blockIdx.x * 64 + t];
    __syncthreads();
    int own = blockIdx.y * 64 + t;
    float4 box = boxes[own];
    unsigned long long bits = 0;
    for (int k = blockIdx.x == blockIdx.y ? t + 1 : 0; k < 64; k++)
        if (overlap(box, column[k]) > threshold) bits |= 1ULL << k;
    masks[(size_t)own * words + blockIdx.x] = bits;
}

// How near points of 64 dimensions are to each other (radial basis functions), by tiles.
__global__ void rbf_matrix(const float *x, const float *y, float *out, float gamma, int n) {
    __shared__ float xs[16][17], ys[16][17];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * 16 + ty, column = blockIdx.x * 16 + tx;
    float sum = 0;
    for (int d = 0; d < 64; d += 16) {
        xs[ty][tx] = x[row * 64 + d + tx];
        ys[ty][tx] = y[(blockIdx.x * 16 + ty) * 64 + d + tx];
        __syncthreads();
        for (int k = 0; k < 16; k++) {
            float diff = xs[ty][k] - ys[tx][k];
            sum += diff * diff;
        }
        __syncthreads();
    }
    out[(size_t)row * n + column] = expf(-gamma * sum);
}

// Sums and counts of the points of 16 clusters, for their next centres.
__global__ void kmeans_update(const float4 *points, const float4 *centres, float *sums, int *counts, int n) {
    __shared__ float4 centre[16];
    __shared__ float own[16][4];
    __shared__ int count[16];
    int t = threadIdx.x;
    if (t < 16) {
        centre[t] = centres[t];
        count[t] = 0;
    }
    if (t < 64) own[t / 4][t % 4] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += blockDim.x * gridDim.x) {
        float4 p = points[i];
        int best = 0;
        float least = 1e30f;
        for (int k = 0; k < 16; k++) {
            float4 c = centre[k];
            float dx = p.x - c.x, dy = p.y - c.y, dz = p.z - c.z, dw = p.w - c.w;
            float d = dx * dx + dy * dy + dz * dz + dw * dw;
            if (d < least) {
                least = d;
                best = k;
            }
        }
        atomicAdd(&own[best][0], p.x);
        atomicAdd(&own[best][1], p.y);
        atomicAdd(&own[best][2], p.z);
        atomicAdd(&own[best][3], p.w);
        atomicAdd(&count[best], 1);
    }
    __syncthreads();
    if (t < 64) atomicAdd(&sums[t], own[t / 4][t % 4]);
    if (t < 16) atomicAdd(&counts[t], count[t]);
}

// A state space model of 16 states a channel, step by step (Mamba's scan).
__global__ void selective_scan(const float *u, const float *delta, const float *a, const float *b,
                               const float *c, float *y, int steps, int channels) {
    int d = blockIdx.x * blockDim.x + threadIdx.x;
    if (d >= channels) return;
    float rate[16], state[16];
#pragma unroll
    for (int s = 0; s < 16; s++) {
        rate[s] = a[d * 16 + s];
        state[s] = 0;
    }
    for (int t = 0; t < steps; t++) {
        float dt = delta[t * channels + d], in = u[t * channels + d] * dt, out = 0;
#pragma unroll
        for (int s = 0; s < 16; s++) {
            state[s] = state[s] * __expf(dt * rate[s]) + in * b[t * 16 + s];
            out += state[s] * c[t * 16 + s];
        }
        y[t * channels + d] = out;
    }
}

// The sum of Huber's loss, in double precision.
__global__ void huber_loss(const float *__restrict__ predicted, const float *__restrict__ wanted, float delta,
                           double *loss, int n) {
    __shared__ double parts[256];
    double sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
        float off = fabsf(predicted[i] - wanted[i]);
        sum += off <= delta ? 0.5f * off * off : delta * (off - 0.5f * delta);
    }
    parts[threadIdx.x] = sum;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half >>= 1) {
        if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(loss, parts[0]);
}

// Adds a layer's output to the residual stream and normalises it; a block a row of 1024 halves.
__global__ void residual_norm(const __half2 *x, __half2 *residual, const __half2 *gamma, __half2 *out) {
    __shared__ float parts[4];
    int t = threadIdx.x;
    size_t row = (size_t)blockIdx.x * 512;
    float2 v[4];
    float sum = 0;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        __half2 h = __hadd2(x[row + k * 128 + t], residual[row + k * 128 + t]);
        residual[row + k * 128 + t] = h;
        v[k] = __half22float2(h);
        sum += v[k].x * v[k].x + v[k].y * v[k].y;
    }
#pragma unroll
    for (int mask = 16; mask > 0; mask >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, mask);
    if ((t & 31) == 0) parts[t >> 5] = sum;
    __syncthreads();
    float scale = rsqrtf((parts[0] + parts[1] + parts[2] + parts[3]) / 1024 + 1e-6f);
#pragma unroll
    for (int k = 0; k < 4; k++) {
        __half2 normal = __floats2half2_rn(v[k].x * scale, v[k].y * scale);
        out[row + k * 128 + t] = __hmul2(normal, gamma[k * 128 + t]);
    }
}

// Eigenvalues of symmetric 3 x 3 matrices (diffusion tensors), the largest first.
__global__ void eigen3x3(const double *m, double *values, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double xx = m[i], xy = m[n + i], xz = m[2 * n + i], yy = m[3 * n + i], yz = m[4 * n + i], zz = m[5 * n + i];
    double q = (xx + yy + zz) / 3;
    double p1 = xy * xy + xz * xz + yz * yz;
    double p2 = (xx - q) * (xx - q) + (yy - q) * (yy - q) + (zz - q) * (zz - q) + 2 * p1;
    double p = sqrt(p2 / 6);
    double bxx = (xx - q) / p, byy = (yy - q) / p, bzz = (zz - q) / p;
    double bxy = xy / p, bxz = xz / p, byz = yz / p;
    double det = bxx * (byy * bzz - byz * byz) - bxy * (bxy * bzz - byz * bxz) + bxz * (bxy * byz - byy * bxz);
    double phi = acos(fmin(fmax(det / 2, -1.0), 1.0)) / 3;
    double first = q + 2 * p * cos(phi), last = q + 2 * p * cos(phi + 2.0943951023931953);
    values[i] = first;
    values[n + i] = 3 * q - first - last;
    values[2 * n + i] = last;
}

// Walsh and Hadamard's transform of rows of 1024, in place.
__global__ void hadamard(float *x) {
    __shared__ float s[1024];
    float *row = x + (size_t)blockIdx.x * 1024;
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) s[i] = row[i];
    for (int h = 1; h < 1024; h *= 2) {
        __syncthreads();
        for (int k = threadIdx.x; k < 512; k += blockDim.x) {
            int i = k / h * 2 * h + k % h;
            float a = s[i], b = s[i + h];
            s[i] = a + b;
            s[i + h] = a - b;
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) row[i] = s[i] / 32;
}

// A step of descent with momentum: gradients and the copy to compute with are halves.
__global__ void master_update(float2 *weights, float2 *momentum, const __half2 *gradient, __half2 *copy,
                              float rate, float beta, float decay, float unscale, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n / 2) return;
    float2 w = weights[i], m = momentum[i], g = __half22float2(gradient[i]);
    g.x = g.x * unscale + decay * w.x;
    g.y = g.y * unscale + decay * w.y;
    m.x = beta * m.x + g.x;
    m.y = beta * m.y + g.y;
    w.x -= rate * m.x;
    w.y -= rate * m.y;
    weights[i] = w;
    momentum[i] = m;
    copy[i] = __floats2half2_rn(w.x, w.y);
}
