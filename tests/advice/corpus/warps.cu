// Warps, barriers, atomics: each pair is a defect and its cure. A line marked `<-` is to be named.

__global__ void by_parity(const float *x, float *y, int n, int k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = x[i];
    if (i % 2 == 0) // <- divergence
        for (int step = 0; step < k; ++step)
            value = value * 1.5f + 0.5f;
    else
        for (int step = 0; step < k; ++step)
            value = 0.25f - value * value;
    y[i] = value;
}

__global__ void by_warp(const float *x, float *y, int n, int k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = x[i];
    if (i / 32 % 2 == 0)
        for (int step = 0; step < k; ++step)
            value = value * 1.5f + 0.5f;
    else
        for (int step = 0; step < k; ++step)
            value = 0.25f - value * value;
    y[i] = value;
}

__global__ void tree_by_mask(const float *x, float *y, int n, int k)
{
    __shared__ float sums[256];
    int t = threadIdx.x;
    sums[t] = x[blockIdx.x * 256 + t];
    __syncthreads();
    for (int stride = 1; stride < blockDim.x; stride *= 2) {
        if ((t & (2 * stride - 1)) == 0) // <- divergence
            sums[t] += sums[t + stride];
        __syncthreads();
    }
    if (t == 0)
        y[blockIdx.x] = sums[0];
}

__global__ void tree_by_half(const float *x, float *y, int n, int k)
{
    __shared__ float sums[256];
    int t = threadIdx.x;
    sums[t] = x[blockIdx.x * 256 + t];
    __syncthreads();
    for (int stride = blockDim.x / 2; stride > 0; stride /= 2) {
        if (t < stride)
            sums[t] += sums[t + stride];
        __syncthreads();
    }
    if (t == 0)
        y[blockIdx.x] = sums[0];
}

__global__ void length_by_lane(const float *x, float *y, int n, int k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = x[i];
    int length = threadIdx.x % 32 * k;
    for (int step = 0; step < length; ++step) // <- divergence
        value = value * 1.5f + 0.5f;
    y[i] = value;
}

__global__ void length_by_warp(const float *x, float *y, int n, int k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = x[i];
    int length = threadIdx.x / 32 * k;
    for (int step = 0; step < length; ++step)
        value = value * 1.5f + 0.5f;
    y[i] = value;
}

__global__ void tree_of_all_warps(const float *x, float *y, int n, int k)
{
    __shared__ float sums[512];
    int t = threadIdx.x;
    sums[t] = x[blockIdx.x * 512 + t];
    __syncthreads();
    for (int stride = blockDim.x / 2; stride > 0; stride /= 2) {
        if (t < stride) // <- idle-lanes
            sums[t] += sums[t + stride];
        __syncthreads();
    }
    if (t == 0)
        y[blockIdx.x] = sums[0];
}

__global__ void tree_of_shuffles(const float *x, float *y, int n, int k)
{
    __shared__ float sums[16];
    int t = threadIdx.x;
    float sum = x[blockIdx.x * 512 + t];
    for (int stride = 16; stride > 0; stride /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, stride);
    if (t % 32 == 0)
        sums[t / 32] = sum;
    __syncthreads();
    if (t >= 32)
        return;
    sum = t < 16 ? sums[t] : 0;
    for (int stride = 8; stride > 0; stride /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, stride);
    if (t == 0)
        y[blockIdx.x] = sum;
}

__global__ void first_warp_works(const float *x, float *y, int n, int k)
{
    __shared__ float values[256];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    values[t] = x[i];
    __syncthreads();
    for (int step = 0; step < k; ++step) {
        if (t < 32) // <- idle-lanes
            for (int part = t; part < 256; part += 32)
                values[part] = values[part] * 1.5f + 0.5f;
        __syncthreads();
    }
    y[i] = values[t];
}

__global__ void every_warp_works(const float *x, float *y, int n, int k)
{
    __shared__ float values[256];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    values[t] = x[i];
    __syncthreads();
    for (int step = 0; step < k; ++step) {
        values[t] = values[t] * 1.5f + 0.5f;
        __syncthreads();
    }
    y[i] = values[t];
}

__global__ void barrier_of_the_block(const float *x, float *y, int n, int k)
{
    __shared__ float values[2][512];
    int t = threadIdx.x, i = blockIdx.x * 512 + t, next = (t & ~31) | ((t + 1) & 31);
    values[0][t] = x[i];
    __syncthreads();
    for (int step = 0; step < k; ++step) {
        int from = step & 1;
        values[1 - from][t] = values[from][t] + values[from][next];
        __syncthreads(); // <- barrier
    }
    y[i] = values[k & 1][t];
}

__global__ void barrier_of_the_warp(const float *x, float *y, int n, int k)
{
    __shared__ float values[2][512];
    int t = threadIdx.x, i = blockIdx.x * 512 + t, next = (t & ~31) | ((t + 1) & 31);
    values[0][t] = x[i];
    __syncthreads();
    for (int step = 0; step < k; ++step) {
        int from = step & 1;
        values[1 - from][t] = values[from][t] + values[from][next];
        __syncwarp();
    }
    y[i] = values[k & 1][t];
}

__global__ void one_total(const float *x, float *y, int n, int k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(y, x[i]); // <- atomics
}

__global__ void total_of_blocks(const float *x, float *y, int n, int k)
{
    __shared__ float sums[8];
    int t = threadIdx.x;
    float sum = x[blockIdx.x * blockDim.x + t];
    for (int stride = 16; stride > 0; stride /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, stride);
    if (t % 32 == 0)
        sums[t / 32] = sum;
    __syncthreads();
    if (t == 0)
        y[blockIdx.x] = sums[0] + sums[1] + sums[2] + sums[3] + sums[4] + sums[5] + sums[6] + sums[7];
}

__global__ void shared_bins(const int *x, int *y, int n, int k)
{
    __shared__ int bins[256];
    int t = threadIdx.x;
    bins[t] = 0;
    __syncthreads();
    for (int step = 0; step < k; ++step)
        atomicAdd(&bins[(t * 9 + step) & 7], t + step); // <- atomics
    __syncthreads();
    y[blockIdx.x * blockDim.x + t] = bins[t];
}

__global__ void bins_by_lane(const int *x, int *y, int n, int k)
{
    __shared__ int bins[256];
    int t = threadIdx.x;
    bins[t] = 0;
    __syncthreads();
    for (int step = 0; step < k; ++step)
        atomicAdd(&bins[((t * 9 + step) & 7) * 32 + t % 32], t + step);
    __syncthreads();
    y[blockIdx.x * blockDim.x + t] = bins[t];
}

__global__ void global_bins(const int *x, int *y, int n, int k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int step = 0; step < k; ++step)
        atomicAdd(&y[(i * 9 + step) & 7], i + step); // <- atomics
}

__global__ void spread_bins(const int *x, int *y, int n, int k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int step = 0; step < k; ++step)
        atomicAdd(&y[((i * 9 + step) & 7) * n + i], i + step);
}
