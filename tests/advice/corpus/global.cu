// Global memory: each pair is a defect and its cure. A line marked `<-` is the one to be named.

__global__ void array_of_records(const float *x, float *y, int n, int k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = 2 * x[8 * i]; // <- uncoalesced
}

__global__ void record_of_arrays(const float *x, float *y, int n, int k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = 2 * x[i];
}

__global__ void row_each(const float *x, float *y, int n, int k)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int column = 0; column < k; ++column)
        sum += x[row * k + column]; // <- uncoalesced
    y[row] = sum;
}

__global__ void column_each(const float *x, float *y, int n, int k)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int column = 0; column < k; ++column)
        sum += x[column * n + row];
    y[row] = sum;
}

__global__ void transpose_directly(const float *x, float *y, int n, int k)
{
    int column = 32 * blockIdx.x + threadIdx.x, row = 32 * blockIdx.y + threadIdx.y;
    for (int step = 0; step < 32; step += 8)
        y[column * n + row + step] = x[(row + step) * n + column]; // <- uncoalesced
}

__global__ void transpose_by_tile(const float *x, float *y, int n, int k)
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

__global__ void chunk_each(const float *x, float *y, int n, int k)
{
    int first = (blockIdx.x * blockDim.x + threadIdx.x) * k;
    for (int i = first; i < first + k; ++i)
        y[i] = x[i] + 1; // <- uncoalesced
}

__global__ void grid_stride(const float *x, float *y, int n, int k)
{
    int all = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < all * k; i += all)
        y[i] = x[i] + 1;
}

__global__ void scattered_store(const float *x, float *y, int n, int k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[(i * 33) & (n - 1)] = x[i]; // <- uncoalesced
}

__global__ void gathered_store(const float *x, float *y, int n, int k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i];
}

__global__ void sum_in_memory(const float *x, float *y, int n, int k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = 0;
    for (int step = 0; step < k; ++step)
        y[i] += x[step * n + i]; // <- repeated-accesses
}

__global__ void sum_in_register(const float *x, float *y, int n, int k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int step = 0; step < k; ++step)
        sum += x[step * n + i];
    y[i] = sum;
}

__global__ void scale_in_memory(const float *x, float *y, int n, int k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int step = 0; step < k; ++step)
        y[step * n + i] = i * x[i & 31]; // <- repeated-accesses
}

__global__ void scale_in_register(const float *x, float *y, int n, int k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float scale = x[i & 31];
    for (int step = 0; step < k; ++step)
        y[step * n + i] = i * scale;
}

__global__ void stencil_from_global(const float *__restrict__ x, float *y, int n, int k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
#pragma unroll 8
    for (int step = 0; step < 64; ++step)
        sum += x[i + step]; // <- repeated-accesses
    y[i] = sum;
}

__global__ void stencil_from_shared(const float *__restrict__ x, float *y, int n, int k)
{
    __shared__ float tile[256 + 64];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    tile[t] = x[i];
    if (t < 64)
        tile[256 + t] = x[i + 256];
    __syncthreads();
    float sum = 0;
#pragma unroll 8
    for (int step = 0; step < 64; ++step)
        sum += tile[t + step];
    y[i] = sum;
}

__global__ void product_from_global(const float *x, float *y, int n, int k)
{
    int column = 16 * blockIdx.x + threadIdx.x, row = 16 * blockIdx.y + threadIdx.y;
    float sum = 0;
    for (int step = 0; step < n; ++step)
        sum += x[row * n + step] * x[step * n + column]; // <- repeated-accesses
    y[row * n + column] = sum;
}

__global__ void product_from_tiles(const float *x, float *y, int n, int k)
{
    __shared__ float left[16][16], right[16][16];
    int column = 16 * blockIdx.x + threadIdx.x, row = 16 * blockIdx.y + threadIdx.y;
    float sum = 0;
    for (int first = 0; first < n; first += 16) {
        left[threadIdx.y][threadIdx.x] = x[row * n + first + threadIdx.x];
        right[threadIdx.y][threadIdx.x] = x[(first + threadIdx.y) * n + column];
        __syncthreads();
        for (int step = 0; step < 16; ++step)
            sum += left[threadIdx.y][step] * right[step][threadIdx.x];
        __syncthreads();
    }
    y[row * n + column] = sum;
}

__global__ void four_words(const float *__restrict__ x, float *y, int n, int k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[4 * i] + x[4 * i + 1] + x[4 * i + 2] + x[4 * i + 3]; // <- narrow-loads
}

__global__ void one_vector(const float *__restrict__ x, float *y, int n, int k)
{
    struct alignas(16) Four { float a, b, c, d; };
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    Four four = ((const Four *)x)[i];
    y[i] = four.a + four.b + four.c + four.d;
}
