// Latency and the shape of launches: each pair is a defect and its cure, or one kernel that is
// launched in two ways. A line marked `<-` is the one to be named.

__global__ void load_by_load(const float *__restrict__ x, float *y, int n, int k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
#pragma unroll 1
    for (int step = 0; step < k; ++step)
        sum += x[step * n + i]; // <- latency
    y[i] = sum;
}

__global__ void loads_together(const float *__restrict__ x, float *y, int n, int k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
#pragma unroll 16
    for (int step = 0; step < k; ++step)
        sum += x[step * n + i];
    y[i] = sum;
}

__global__ void large_tiles(const float *x, float *y, int n, int k)
{
    __shared__ float tile[10240];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    tile[t * 37] = x[i];
    __syncthreads();
    float value = tile[(t ^ 1) * 37];
    for (int step = 0; step < k; ++step)
        value = value * 1.5f + 0.5f;
    y[i] = value;
}

__global__ void small_tiles(const float *x, float *y, int n, int k)
{
    __shared__ float tile[256];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    tile[t] = x[i];
    __syncthreads();
    float value = tile[t ^ 1];
    for (int step = 0; step < k; ++step)
        value = value * 1.5f + 0.5f;
    y[i] = value;
}

__global__ void fma_loop(const float *x, float *y, int n, int k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = x[i];
    for (int step = 0; step < k; ++step)
        value = value * 1.5f + 0.5f;
    y[i] = value;
}

__global__ void strided_sum(const float *x, float *y, int n, int k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, all = gridDim.x * blockDim.x;
    float sum = 0;
    for (int at = i; at < n; at += all)
        sum += x[at];
    y[i] = sum;
}

__global__ void one_chain(const float *x, float *y, int n, int k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = x[i];
#pragma unroll 8
    for (int step = 0; step < 4 * k; ++step)
        value = value * 1.5f + 0.5f; // <- dependent-instructions
    y[i] = value;
}

__global__ void four_chains(const float *x, float *y, int n, int k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float a = x[i], b = a + 1, c = a + 2, d = a + 3;
#pragma unroll 2
    for (int step = 0; step < k; ++step) {
        a = a * 1.5f + 0.5f, b = b * 1.5f + 0.5f;
        c = c * 1.5f + 0.5f, d = d * 1.5f + 0.5f;
    }
    y[i] = a + b + c + d;
}

__global__ void local_array(const float *x, float *y, int n, int k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float values[16];
    for (int place = 0; place < 16; ++place)
        values[place] = x[i] + place;
    for (int step = 0; step < k; ++step)
        values[(step * 5 + i) & 15] += 1.5f; // <- local-memory
    y[i] = values[i & 15] + values[0];
}

__global__ void shared_array(const float *x, float *y, int n, int k)
{
    __shared__ float values[16][128];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    for (int place = 0; place < 16; ++place)
        values[place][t] = x[i] + place;
    for (int step = 0; step < k; ++step)
        values[(step * 5 + i) & 15][t] += 1.5f;
    y[i] = values[i & 15][t] + values[0][t];
}

__global__ void sum_of_one(const float *x, float *y, int n, int k)
{
    __shared__ float sums[8];
    int t = threadIdx.x;
    float sum = x[blockIdx.x * 256 + t];
    for (int step = 16; step; step /= 2)
        sum += __shfl_down_sync(~0u, sum, step);
    if (t % 32 == 0)
        sums[t / 32] = sum;
    __syncthreads();
    if (t == 0) {
        for (int warp = 1; warp < 8; ++warp)
            sum += sums[warp];
        y[blockIdx.x] = sum;
    }
}

__global__ void sum_of_many(const float *x, float *y, int n, int k)
{
    __shared__ float sums[8];
    int t = threadIdx.x;
    float sum = 0;
#pragma unroll 8
    for (int i = 0; i < 16; ++i)
        sum += x[(blockIdx.x * 16 + i) * 256 + t];
    for (int step = 16; step; step /= 2)
        sum += __shfl_down_sync(~0u, sum, step);
    if (t % 32 == 0)
        sums[t / 32] = sum;
    __syncthreads();
    if (t == 0) {
        for (int warp = 1; warp < 8; ++warp)
            sum += sums[warp];
        y[blockIdx.x] = sum;
    }
}

__global__ void short_loop(const float *x, float *y, int n, int k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float a = x[i], b = a + 1, c = a + 2;
#pragma unroll 1
    for (int step = 0; step < 512; ++step) // <- loop-overhead
        a = a * 1.5f + 0.5f, b = b * 1.5f + 0.5f, c = c * 1.5f + 0.5f;
    y[i] = a + b + c;
}

__global__ void unrolled_loop(const float *x, float *y, int n, int k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float a = x[i], b = a + 1, c = a + 2;
#pragma unroll 64
    for (int step = 0; step < 512; ++step)
        a = a * 1.5f + 0.5f, b = b * 1.5f + 0.5f, c = c * 1.5f + 0.5f;
    y[i] = a + b + c;
}
