// Copies, stencils, sums, sorts and products of matrices, as they are first written.

__global__ void copy(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}

__global__ void saxpy(float a, const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

__global__ void saxpy_stride(float a, const float *x, float *y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = a * x[i] + y[i];
}

__global__ void add4(const float4 *x, const float4 *y, float4 *z) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 a = x[i], b = y[i];
    z[i] = make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

__global__ void stencil(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n - 1) y[i] = x[i - 1] + x[i] + x[i + 1];
}

__global__ void stencil2d(const float *x, float *y, int n) {
    int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 8 + threadIdx.y;
    if (c > 0 && c < n - 1 && r > 0 && r < n - 1)
        y[r * n + c] = 0.2f * (x[r * n + c] + x[r * n + c - 1] + x[r * n + c + 1] +
                               x[(r - 1) * n + c] + x[(r + 1) * n + c]);
}

__global__ void convolution(const float *x, const float *weights, float *y, int n) {
    __shared__ float tile[264];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    tile[t + 4] = x[i];
    if (t < 4) {
        tile[t] = i >= 4 ? x[i - 4] : 0.f;
        tile[t + 260] = i + 256 < n ? x[i + 256] : 0.f;
    }
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < 9; k++) sum += weights[k] * tile[t + k];
    y[i] = sum;
}

__global__ void polynomial(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float v = x[i], s = 0.5f;
        for (int k = 0; k < 64; k++) s = fmaf(s, v, v);
        y[i] = s;
    }
}

__global__ void gather(const float *x, const int *places, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[places[i]];
}

__global__ void transpose(const float *x, float *y, int n) {
    int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) y[c * n + r + j] = x[(r + j) * n + c];
}

template <int WIDTH>
__global__ void transpose_tile(const float *x, float *y, int n) {
    __shared__ float tile[32 * WIDTH];
    int tx = threadIdx.x, ty = threadIdx.y;
    int c = blockIdx.x * 32 + tx, r = blockIdx.y * 32 + ty;
    for (int j = 0; j < 32; j += 8) tile[(ty + j) * WIDTH + tx] = x[(r + j) * n + c];
    __syncthreads();
    c = blockIdx.y * 32 + tx;
    r = blockIdx.x * 32 + ty;
    for (int j = 0; j < 32; j += 8) y[(r + j) * n + c] = tile[tx * WIDTH + ty + j];
}

template __global__ void transpose_tile<32>(const float *, float *, int);
template __global__ void transpose_tile<33>(const float *, float *, int);

__global__ void matrix_product(const float *a, const float *b, float *c, int n) {
    __shared__ float rows[256], columns[256];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * 16 + ty, column = blockIdx.x * 16 + tx;
    float sum = 0;
    for (int t = 0; t < n; t += 16) {
        rows[ty * 16 + tx] = a[row * n + t + tx];
        columns[ty * 16 + tx] = b[(t + ty) * n + column];
        __syncthreads();
        for (int k = 0; k < 16; k++) sum = fmaf(rows[ty * 16 + k], columns[k * 16 + tx], sum);
        __syncthreads();
    }
    c[row * n + column] = sum;
}

__global__ void matrix_product_plain(const float *a, const float *b, float *c, int n) {
    int column = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
    float sum = 0;
    for (int k = 0; k < n; k++) sum = fmaf(a[row * n + k], b[k * n + column], sum);
    c[row * n + column] = sum;
}

__global__ void row_sums(const float *x, float *y, int n) {
    int row = blockIdx.x * 8 + threadIdx.y, lane = threadIdx.x;
    float sum = 0;
    for (int k = lane; k < n; k += 32) sum += x[row * n + k];
    for (int o = 16; o > 0; o >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, o);
    if (lane == 0) y[row] = sum;
}

__global__ void column_sums(const float *x, float *y, int n) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int r = 0; r < n; r++) sum += x[r * n + c];
    y[c] = sum;
}

__global__ void dot(const float *x, const float *y, float *out, int n) {
    __shared__ float sums[256];
    int t = threadIdx.x;
    float sum = 0;
    for (int i = blockIdx.x * 256 + t; i < n; i += gridDim.x * 256) sum = fmaf(x[i], y[i], sum);
    sums[t] = sum;
    __syncthreads();
    for (int o = 128; o > 0; o >>= 1) {
        if (t < o) sums[t] += sums[t + o];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = sums[0];
}

__global__ void softmax(const float *x, float *y, int n) {
    __shared__ float part[256];
    int t = threadIdx.x, row = blockIdx.x;
    float most = -1e30f, sum = 0;
    for (int k = t; k < n; k += 256) most = fmaxf(most, x[row * n + k]);
    part[t] = most;
    __syncthreads();
    for (int o = 128; o > 0; o >>= 1) {
        if (t < o) part[t] = fmaxf(part[t], part[t + o]);
        __syncthreads();
    }
    most = part[0];
    __syncthreads();
    for (int k = t; k < n; k += 256) sum += expf(x[row * n + k] - most);
    part[t] = sum;
    __syncthreads();
    for (int o = 128; o > 0; o >>= 1) {
        if (t < o) part[t] += part[t + o];
        __syncthreads();
    }
    sum = part[0];
    for (int k = t; k < n; k += 256) y[row * n + k] = expf(x[row * n + k] - most) / sum;
}

__global__ void histogram(const int *x, int *counts, int n) {
    __shared__ int own[256];
    int t = threadIdx.x;
    own[t] = 0;
    __syncthreads();
    for (int i = blockIdx.x * 256 + t; i < n; i += gridDim.x * 256) atomicAdd(&own[x[i]], 1);
    __syncthreads();
    atomicAdd(&counts[t], own[t]);
}

__global__ void sum_by_atomics(const float *x, float *out, int n) {
    float v = x[blockIdx.x * blockDim.x + threadIdx.x];
    for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffffu, v, o);
    if (threadIdx.x % 32 == 0) atomicAdd(out, v);
}

__global__ void bitonic_sort(float *x) {
    __shared__ float s[512];
    int t = threadIdx.x;
    s[t] = x[blockIdx.x * 512 + t];
    __syncthreads();
    for (int k = 2; k <= 512; k *= 2)
        for (int j = k / 2; j > 0; j /= 2) {
            int o = t ^ j;
            if (o > t) {
                float a = s[t], b = s[o];
                if ((a > b) == ((t & k) == 0)) {
                    s[t] = b;
                    s[o] = a;
                }
            }
            __syncthreads();
        }
    x[blockIdx.x * 512 + t] = s[t];
}

__global__ void bodies(const float *px, const float *py, const float *pz, float *ax, int n) {
    __shared__ float sx[256], sy[256], sz[256];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    float x = px[i], y = py[i], z = pz[i], sum = 0;
    for (int j = 0; j < n; j += 256) {
        sx[t] = px[j + t];
        sy[t] = py[j + t];
        sz[t] = pz[j + t];
        __syncthreads();
        for (int k = 0; k < 256; k++) {
            float dx = sx[k] - x, dy = sy[k] - y, dz = sz[k] - z;
            sum = fmaf(dx, fmaf(dx, dx, fmaf(dy, dy, dz * dz)) + 0.01f, sum);
        }
        __syncthreads();
    }
    ax[i] = sum;
}

__global__ void mandelbrot(int *out, int width, int limit) {
    int px = blockIdx.x * 16 + threadIdx.x, py = blockIdx.y * 16 + threadIdx.y;
    float cx = px * (3.f / width) - 2.f, cy = py * (3.f / width) - 1.5f, x = 0, y = 0;
    int k = 0;
    while (k < limit && fmaf(x, x, y * y) < 4.f) {
        float next = fmaf(x, x, -(y * y)) + cx;
        y = fmaf(2.f * x, y, cy);
        x = next;
        k++;
    }
    out[py * width + px] = k;
}
