// Measurements of the land and of instruments: distances, heights, tracks, cells, tables, detectors, channels.

// The nearest of some depots to each place on the globe, and the way there in km.
__global__ void nearest_depot(const float2 *__restrict__ places, const float2 *__restrict__ depots,
                              int *__restrict__ nearest, float *__restrict__ way, int count, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float2 p = places[i];
    float cosine = cosf(p.x), best = 4.0f;
    int chosen = 0;
    for (int k = 0; k < count; k++) {
        float2 d = depots[k];
        float a = sinf(0.5f * (p.x - d.x)), b = sinf(0.5f * (p.y - d.y));
        float h = a * a + cosine * cosf(d.x) * b * b;
        if (h < best) {
            best = h;
            chosen = k;
        }
    }
    nearest[i] = chosen;
    way[i] = 12742.0f * asinf(sqrtf(fminf(best, 1.0f)));
}

// The largest of the 33 numbers around each.
__global__ void sliding_max(const float *__restrict__ x, float *__restrict__ y, int n) {
    __shared__ float held[256 + 32];
    int t = threadIdx.x, begin = blockIdx.x * 256 - 16;
    for (int k = t; k < 256 + 32; k += 256) {
        int at = begin + k;
        held[k] = at >= 0 && at < n ? x[at] : -1e30f;
    }
    __syncthreads();
    float most = held[t];
    for (int k = 1; k <= 32; k++) most = fmaxf(most, held[t + k]);
    y[blockIdx.x * 256 + t] = most;
}

// How steep a terrain of 16-bit heights is, by Horn's differences.
__global__ void slopes(const short *__restrict__ heights, float *__restrict__ slope, int width) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    if (x < 1 || y < 1 || x >= width - 1 || y >= width - 1) return;
    const short *h = heights + y * width + x;
    int above = -width, below = width;
    float dx = (h[above + 1] + 2 * h[1] + h[below + 1]) - (h[above - 1] + 2 * h[-1] + h[below - 1]);
    float dy = (h[below - 1] + 2 * h[below] + h[below + 1]) - (h[above - 1] + 2 * h[above] + h[above + 1]);
    slope[y * width + x] = atanf(sqrtf(dx * dx + dy * dy) * (1.0f / 240.0f));
}

// The length of each track of points; a warp a track.
__global__ void track_lengths(const int *__restrict__ begins, const float2 *__restrict__ points,
                              float *__restrict__ lengths, int n) {
    int track = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, lane = threadIdx.x & 31;
    if (track >= n) return;
    int begin = begins[track], end = begins[track + 1];
    float sum = 0;
    for (int k = begin + lane; k < end - 1; k += 32) {
        float2 a = points[k], b = points[k + 1];
        float dx = b.x - a.x, dy = b.y - a.y;
        sum += sqrtf(dx * dx + dy * dy);
    }
    for (int offset = 16; offset; offset >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, offset);
    if (lane == 0) lengths[track] = sum;
}

// Points into cells of a grid: how many each has, and which place a point takes among them.
__global__ void into_cells(const float2 *__restrict__ points, int *counts, int *__restrict__ cells, int side, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float2 p = points[i];
    int cell = (int)(p.y * side) * side + (int)(p.x * side);
    atomicAdd(&counts[cell], 1);
    cells[i] = cell;
}

// Readings through an instrument's table of 4096 steps, interpolated.
__global__ void through_table(const float *__restrict__ x, const float *__restrict__ table, float *__restrict__ y,
                              int n) {
    int step = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
        float place = x[i] * 4095.0f;
        int k = (int)place;
        float part = place - k, low = table[k];
        y[i] = low + part * (table[k + 1] - low);
    }
}

// Sixteen steps along chains that lie anywhere.
__global__ void follow_chains(const int *__restrict__ next, int *__restrict__ reached, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int at = i;
    for (int k = 0; k < 16; k++) at = next[at];
    reached[i] = at;
}

// A detector's counts without the dark ones, times each pixel's gain, four at a time.
__global__ void correct_counts(const ushort4 *__restrict__ raw, const ushort4 *__restrict__ dark,
                               const float4 *__restrict__ gain, ushort4 *__restrict__ out, int pixels, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int pixel = i % pixels;
    ushort4 r = raw[i], d = dark[pixel], made;
    float4 g = gain[pixel];
    made.x = (unsigned short)fminf(fmaxf(((int)r.x - d.x) * g.x, 0.0f), 65535.0f);
    made.y = (unsigned short)fminf(fmaxf(((int)r.y - d.y) * g.y, 0.0f), 65535.0f);
    made.z = (unsigned short)fminf(fmaxf(((int)r.z - d.z) * g.z, 0.0f), 65535.0f);
    made.w = (unsigned short)fminf(fmaxf(((int)r.w - d.w) * g.w, 0.0f), 65535.0f);
    out[i] = made;
}

// Sums of products of two signals at 256 lags; a block a window of 1024.
__global__ void lags(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ out) {
    __shared__ float first[1024], second[1024 + 256];
    int t = threadIdx.x;
    const float *from = a + blockIdx.x * 1024, *other = b + blockIdx.x * 1024;
    for (int k = t; k < 1024; k += 256) first[k] = from[k];
    for (int k = t; k < 1280; k += 256) second[k] = other[k];
    __syncthreads();
    float sum = 0;
#pragma unroll 8
    for (int k = 0; k < 1024; k++) sum += first[k] * second[k + t];
    out[blockIdx.x * 256 + t] = sum;
}

// A filter of second order along each channel; channels lie side by side.
__global__ void filter_channels(const float *__restrict__ x, float *__restrict__ y, int samples, int channels) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= channels) return;
    float x1 = 0, x2 = 0, y1 = 0, y2 = 0;
    for (int k = 0; k < samples; k++) {
        float now = x[k * channels + c];
        float made = 0.2f * now + 0.4f * x1 + 0.2f * x2 + 0.3f * y1 - 0.1f * y2;
        x2 = x1;
        x1 = now;
        y2 = y1;
        y1 = made;
        y[k * channels + c] = made;
    }
}

// Mean and variance around each pixel, seven by seven, from a tile in shared memory.
__global__ void local_variance(const float *__restrict__ in, float *__restrict__ out, int width) {
    __shared__ float tile[22][38];
    int x = blockIdx.x * 32, y = blockIdx.y * 16, t = threadIdx.y * 32 + threadIdx.x;
    for (int k = t; k < 22 * 38; k += 512) {
        int row = min(max(y + k / 38 - 3, 0), width - 1), column = min(max(x + k % 38 - 3, 0), width - 1);
        tile[k / 38][k % 38] = in[row * width + column];
    }
    __syncthreads();
    float sum = 0, squares = 0;
#pragma unroll
    for (int j = 0; j < 7; j++)
#pragma unroll
        for (int k = 0; k < 7; k++) {
            float v = tile[threadIdx.y + j][threadIdx.x + k];
            sum += v;
            squares += v * v;
        }
    float mean = sum / 49.0f;
    out[(y + threadIdx.y) * width + x + threadIdx.x] = squares / 49.0f - mean * mean;
}

// The integral of sin(x) / x from 0 to a limit, one for each limit, by 2048 trapezoids; a block a limit.
__global__ void sine_integrals(const double *__restrict__ limits, double *__restrict__ out) {
    __shared__ double parts[8];
    double limit = limits[blockIdx.x], width = limit / 2048, sum = 0;
    for (int k = threadIdx.x; k < 2048; k += 256) {
        double a = k * width, b = a + width;
        double left = a == 0 ? 1 : sin(a) / a;
        sum += 0.5 * width * (left + sin(b) / b);
    }
    for (int offset = 16; offset; offset >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, offset);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        double whole = 0;
        for (int k = 0; k < 8; k++) whole += parts[k];
        out[blockIdx.x] = whole;
    }
}
