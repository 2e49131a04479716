// Rows of matrices: normalised, summed, searched; some are read two or three times.

__device__ float warp_sum(float v) {
    for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
    return v;
}

__device__ float warp_max(float v) {
    for (int o = 16; o > 0; o >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, o));
    return v;
}

// The sum over a block of 256, for all of its threads.
__device__ float block_sum(float v) {
    __shared__ float parts[8];
    v = warp_sum(v);
    __syncthreads();
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = v;
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < 8; k++) sum += parts[k];
    return sum;
}

// A block a row, which it reads three times.
__global__ void layernorm(const float *x, const float *scale, const float *shift, float *y, int n) {
    const float *row = x + (size_t)blockIdx.x * n;
    float sum = 0, squares = 0;
    for (int k = threadIdx.x; k < n; k += 256) sum += row[k];
    float mean = block_sum(sum) / n;
    for (int k = threadIdx.x; k < n; k += 256) squares += (row[k] - mean) * (row[k] - mean);
    float factor = rsqrtf(block_sum(squares) / n + 1e-5f);
    for (int k = threadIdx.x; k < n; k += 256)
        y[(size_t)blockIdx.x * n + k] = (row[k] - mean) * factor * scale[k] + shift[k];
}

// A warp a row, four elements at a time, which it reads twice.
__global__ void rmsnorm(const float4 *x, const float4 *scale, float4 *y, int n) {
    int row = blockIdx.x * 4 + threadIdx.y, lane = threadIdx.x, quads = n / 4;
    float squares = 0;
    for (int k = lane; k < quads; k += 32) {
        float4 v = x[(size_t)row * quads + k];
        squares += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
    }
    float factor = rsqrtf(warp_sum(squares) / n + 1e-5f);
    for (int k = lane; k < quads; k += 32) {
        float4 v = x[(size_t)row * quads + k], s = scale[k];
        y[(size_t)row * quads + k] = make_float4(v.x * factor * s.x, v.y * factor * s.y,
                                                 v.z * factor * s.z, v.w * factor * s.w);
    }
}

// A warp a row; largest and sum in one go, and the row once more.
__global__ void softmax_online(const float *x, float *y, int n) {
    int row = blockIdx.x * 8 + threadIdx.y, lane = threadIdx.x;
    float most = -1e30f, sum = 0;
    for (int k = lane; k < n; k += 32) {
        float v = x[(size_t)row * n + k], larger = fmaxf(most, v);
        sum = sum * expf(most - larger) + expf(v - larger);
        most = larger;
    }
    float all = warp_max(most);
    float factor = 1.f / warp_sum(sum * expf(most - all));
    for (int k = lane; k < n; k += 32)
        y[(size_t)row * n + k] = expf(x[(size_t)row * n + k] - all) * factor;
}

// Rows of 65,536, as long as vocabularies are: what is read twice lies far apart.
__global__ void cross_entropy(const float *x, const int *labels, float *loss, int n) {
    __shared__ float parts[8];
    const float *row = x + (size_t)blockIdx.x * n;
    float most = -1e30f, sum = 0;
    for (int k = threadIdx.x; k < n; k += 256) most = fmaxf(most, row[k]);
    most = warp_max(most);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = most;
    __syncthreads();
    for (int k = 0; k < 8; k++) most = fmaxf(most, parts[k]);
    for (int k = threadIdx.x; k < n; k += 256) sum += expf(row[k] - most);
    sum = block_sum(sum);
    if (threadIdx.x == 0) loss[blockIdx.x] = logf(sum) + most - row[labels[blockIdx.x]];
}

// Mean and variance of each row in one pass, as Welford does it.
__global__ void variance(const float *x, float *y, int n) {
    int row = blockIdx.x * 8 + threadIdx.y, lane = threadIdx.x;
    float mean = 0, squares = 0, count = 0;
    for (int k = lane; k < n; k += 32) {
        float v = x[(size_t)row * n + k], from = v - mean;
        count += 1;
        mean += from / count;
        squares += from * (v - mean);
    }
    for (int o = 16; o > 0; o >>= 1) {
        float other = __shfl_xor_sync(0xffffffffu, mean, o) - mean;
        squares += __shfl_xor_sync(0xffffffffu, squares, o) + other * other * count / 2;
        mean += other / 2;
        count *= 2;
    }
    if (lane == 0) y[row] = squares / n;
}

__global__ void argmax(const float *x, int *y, int n) {
    __shared__ float values[8];
    __shared__ int places[8];
    const float *row = x + (size_t)blockIdx.x * n;
    float best = -1e30f;
    int place = 0;
    for (int k = threadIdx.x; k < n; k += 256)
        if (row[k] > best) best = row[k], place = k;
    for (int o = 16; o > 0; o >>= 1) {
        float value = __shfl_down_sync(0xffffffffu, best, o);
        int other = __shfl_down_sync(0xffffffffu, place, o);
        if (value > best || (value == best && other < place)) best = value, place = other;
    }
    if (threadIdx.x % 32 == 0) values[threadIdx.x / 32] = best, places[threadIdx.x / 32] = place;
    __syncthreads();
    if (threadIdx.x) return;
    for (int k = 1; k < 8; k++)
        if (values[k] > best || (values[k] == best && places[k] < place))
            best = values[k], place = places[k];
    y[blockIdx.x] = place;
}

// The four largest of each row of 64, a row to a thread; columns lie side by side.
__global__ void top4(const float *x, float *y, int rows) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    float a = -1e30f, b = a, c = a, d = a;
    for (int k = 0; k < 64; k++) {
        float v = x[(size_t)k * rows + row];
        if (v <= d) continue;
        d = v;
        if (d > c) v = c, c = d, d = v;
        if (c > b) v = b, b = c, c = v;
        if (b > a) v = a, a = b, b = v;
    }
    y[row] = a;
    y[rows + row] = b;
    y[2 * rows + row] = c;
    y[3 * rows + row] = d;
}

// A warp a row of a matrix; the vector begins somewhere in a much larger array.
__global__ void gemv_rows(const float *a, const float *numbers, int begin, float *y, int n) {
    int row = blockIdx.x * 8 + threadIdx.y, lane = threadIdx.x;
    float sum = 0;
    for (int k = lane; k < n; k += 32) sum = fmaf(a[(size_t)row * n + k], numbers[begin + k], sum);
    sum = warp_sum(sum);
    if (lane == 0) y[row] = sum;
}

// A thread a column, 64 rows to a block; what blocks have in common is added up by atomics.
__global__ void gemv_columns(const float *a, const float *x, float *y, int n) {
    int c = blockIdx.x * 128 + threadIdx.x;
    float sum = 0;
    for (int r = blockIdx.y * 64; r < blockIdx.y * 64 + 64; r++)
        sum = fmaf(a[(size_t)r * n + c], x[r], sum);
    atomicAdd(&y[c], sum);
}

// A small vector that all blocks read, in an array that is far larger than what is read of it.
__global__ void bias_gelu(const float *x, const float *bias, float *y, int width) {
    int c = blockIdx.x * 256 + threadIdx.x;
    size_t i = (size_t)blockIdx.y * width + c;
    float v = x[i] + bias[c], inner = 0.7978845608f * (v + 0.044715f * v * v * v);
    y[i] = 0.5f * v * (1.f + tanhf(inner));
}

// Pairs of a row turn by angles that tables have for each position.
__global__ void rotary(float2 *x, const float *cosines, const float *sines, int positions) {
    int pair = threadIdx.x, row = blockIdx.x, place = row % positions * 64 + pair;
    float2 v = x[(size_t)row * 64 + pair];
    float c = cosines[place], s = sines[place];
    x[(size_t)row * 64 + pair] = make_float2(v.x * c - v.y * s, v.x * s + v.y * c);
}

// Many small problems: a matrix of four by four times a vector of four, to a thread.
__global__ void small_products(const float4 *a, const float4 *x, float4 *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 v = x[i], sums[4];
    for (int r = 0; r < 4; r++) {
        float4 row = a[4 * i + r];
        sums[r] = make_float4(row.x * v.x, row.y * v.y, row.z * v.z, row.w * v.w);
    }
    y[i] = make_float4(sums[0].x + sums[0].y + sums[0].z + sums[0].w,
                       sums[1].x + sums[1].y + sums[1].z + sums[1].w,
                       sums[2].x + sums[2].y + sums[2].z + sums[2].w,
                       sums[3].x + sums[3].y + sums[3].z + sums[3].w);
}

// A row is as long as its number: the last warps have the most to do.
__global__ void triangle(const float *a, const float *x, float *y, int n) {
    int row = blockIdx.x * 8 + threadIdx.y, lane = threadIdx.x;
    float sum = 0;
    for (int k = lane; k <= row; k += 32) sum = fmaf(a[(size_t)row * n + k], x[k], sum);
    sum = warp_sum(sum);
    if (lane == 0) y[row] = sum;
}
