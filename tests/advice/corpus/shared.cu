// Shared memory: each pair is a defect and its cure. A line marked `<-` is the one to be named.

__global__ void transpose_conflicts(const float *x, float *y, int n, int k)
{
    __shared__ float tile[32][32];
    int column = 32 * blockIdx.x + threadIdx.x, row = 32 * blockIdx.y + threadIdx.y;
    for (int step = 0; step < 32; step += 8)
        tile[threadIdx.y + step][threadIdx.x] = x[(row + step) * n + column];
    __syncthreads();
    column = 32 * blockIdx.y + threadIdx.x, row = 32 * blockIdx.x + threadIdx.y;
    for (int step = 0; step < 32; step += 8)
        y[(row + step) * n + column] = tile[threadIdx.x][threadIdx.y + step]; // <- bank-conflict
}

__global__ void transpose_padded(const float *x, float *y, int n, int k)
{
    __shared__ float tile[32][33];
    int column = 32 * blockIdx.x + threadIdx.x, row = 32 * blockIdx.y + threadIdx.y;
    for (int step = 0; step < 32; step += 8)
        tile[threadIdx.y + step][threadIdx.x] = x[(row + step) * n + column];
    __syncthreads();
    column = 32 * blockIdx.y + threadIdx.x, row = 32 * blockIdx.x + threadIdx.y;
    for (int step = 0; step < 32; step += 8)
        y[(row + step) * n + column] = tile[threadIdx.x][threadIdx.y + step];
}

__global__ void strided_tree(const float *x, float *y, int n, int k)
{
    __shared__ float sums[256];
    int t = threadIdx.x;
    sums[t] = x[blockIdx.x * 256 + t];
    __syncthreads();
    for (int stride = 1; stride < blockDim.x; stride *= 2) {
        int index = 2 * stride * t;
        if (index < blockDim.x)
            sums[index] += sums[index + stride]; // <- bank-conflict
        __syncthreads();
    }
    if (t == 0)
        y[blockIdx.x] = sums[0];
}

__global__ void neighbouring_tree(const float *x, float *y, int n, int k)
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

__global__ void shared_records(const float *x, float *y, int n, int k)
{
    __shared__ float records[4 * 256];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    for (int field = 0; field < 4; ++field)
        records[t + 256 * field] = x[i];
    __syncthreads();
    float sum = 0;
    for (int step = 0; step < k; ++step)
        sum += records[4 * ((t + step) & 255)]; // <- bank-conflict
    y[i] = sum;
}

__global__ void shared_columns(const float *x, float *y, int n, int k)
{
    __shared__ float records[4 * 256];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    for (int field = 0; field < 4; ++field)
        records[t + 256 * field] = x[i];
    __syncthreads();
    float sum = 0;
    for (int step = 0; step < k; ++step)
        sum += records[(t + step) & 255];
    y[i] = sum;
}

__global__ void bins_by_thread(const float *x, float *y, int n, int k)
{
    __shared__ float bins[128 * 16];
    int t = threadIdx.x, i = blockIdx.x * 128 + t;
    for (int bin = 0; bin < 16; ++bin)
        bins[bin * 128 + t] = 0;
    __syncthreads();
    float value = x[i];
    for (int step = 0; step < k; ++step)
        bins[t * 16 + ((step * 5) & 15)] += value; // <- bank-conflict
    __syncthreads();
    y[i] = bins[t];
}

__global__ void bins_by_bin(const float *x, float *y, int n, int k)
{
    __shared__ float bins[128 * 16];
    int t = threadIdx.x, i = blockIdx.x * 128 + t;
    for (int bin = 0; bin < 16; ++bin)
        bins[bin * 128 + t] = 0;
    __syncthreads();
    float value = x[i];
    for (int step = 0; step < k; ++step)
        bins[((step * 5) & 15) * 128 + t] += value;
    __syncthreads();
    y[i] = bins[t];
}
