// Pipelines of bulk copies, measured on an H200 (h200.csv): validate/bulk/measure.cu launches them.
#include "bulk.cuh"
extern __shared__ __align__(128) float tile[];

// Tiles of N floats come by S stages; thread 0 asks for them, all threads add them up.
template <int N, int S> __device__ void add_tiles(const float *x, float *y, int n) {
    __shared__ u64 full[S];
    int t = threadIdx.x, tiles = n / N, stride = gridDim.x;
    int own = (tiles - blockIdx.x + stride - 1) / stride;
    const float *from = x + (size_t)blockIdx.x * N;
    if (t == 0)
        for (int s = 0; s < S; s++) init(&full[s], 1);
    __syncthreads();
    if (t == 0)
        for (int s = 0; s < S && s < own; s++) {
            expect(&full[s], 4 * N);
            load(tile + s * N, from + (size_t)s * stride * N, 4 * N, &full[s]);
        }
    float sum = 0;
    for (int k = 0; k < own; k++) {
        int s = k % S;
        wait(&full[s], k / S % 2);
        for (int i = t; i < N; i += blockDim.x) sum += tile[s * N + i];
        __syncthreads();
        if (t == 0 && k + S < own) {
            expect(&full[s], 4 * N);
            load(tile + s * N, from + (size_t)(k + S) * stride * N, 4 * N, &full[s]);
        }
    }
    for (int d = 16; d; d /= 2) sum += __shfl_down_sync(~0u, sum, d);
    if (t % 32 == 0) atomicAdd(&y[blockIdx.x], sum);
}
extern "C" __global__ void add_4k_by_4(const float *x, float *y, int n) {
    add_tiles<1024, 4>(x, y, n);
}
extern "C" __global__ void add_16k_by_2(const float *x, float *y, int n) {
    add_tiles<4096, 2>(x, y, n);
}
extern "C" __global__ void add_16k_by_4(const float *x, float *y, int n) {
    add_tiles<4096, 4>(x, y, n);
}
extern "C" __global__ void add_1k_by_8(const float *x, float *y, int n) {
    add_tiles<256, 8>(x, y, n);
}
extern "C" __global__ void add_2k_by_1(const float *x, float *y, int n) {
    add_tiles<512, 1>(x, y, n);
}
// One warp asks for tiles; the others hand back each stage by an mbarrier of its own.
extern "C" __global__ void specialised(const float *x, float *y, int n) {
    constexpr int N = 2048, S = 4;
    __shared__ u64 full[S], empty[S];
    int t = threadIdx.x, tiles = n / N, stride = gridDim.x, others = blockDim.x - 32;
    int own = (tiles - blockIdx.x + stride - 1) / stride;
    if (t == 0)
        for (int s = 0; s < S; s++) { init(&full[s], 1); init(&empty[s], others); }
    __syncthreads();
    if (t < 32) {
        if (t == 0)
            for (int k = 0; k < own; k++) {
                int s = k % S;
                if (k >= S) wait(&empty[s], (k / S - 1) % 2);
                expect(&full[s], 4 * N);
                load(tile + s * N, x + ((size_t)k * stride + blockIdx.x) * N, 4 * N, &full[s]);
            }
    } else {
        float sum = 0;
        for (int k = 0; k < own; k++) {
            int s = k % S;
            wait(&full[s], k / S % 2);
            for (int i = t - 32; i < N; i += others) sum += tile[s * N + i];
            arrive(&empty[s]);
        }
        for (int d = 16; d; d /= 2) sum += __shfl_down_sync(~0u, sum, d);
        if (t % 32 == 0) atomicAdd(&y[blockIdx.x], sum);
    }
}
// A block of one warp copies: each tile goes out of the stage that it came to.
extern "C" __global__ void copy_tiles(const float *x, float *y, int n) {
    constexpr int N = 2048, S = 4;
    __shared__ u64 full[S];
    int tiles = n / N, stride = gridDim.x, own = (tiles - blockIdx.x + stride - 1) / stride;
    if (threadIdx.x) return;
    for (int s = 0; s < S; s++) init(&full[s], 1);
    FENCE;
    for (int k = 0; k < own + S - 1; k++) {
        if (k < own) {
            if (k >= S) READ(0);
            expect(&full[k % S], 4 * N);
            load(tile + k % S * N, x + ((size_t)k * stride + blockIdx.x) * N, 4 * N, &full[k % S]);
        }
        int j = k - (S - 1);
        if (j >= 0) {
            wait(&full[j % S], j / S % 2);
            save(y + ((size_t)j * stride + blockIdx.x) * N, tile + j % S * N, 4 * N);
            COMMIT;
        }
    }
    AWAIT(0);
}
// A tile a block: loaded, changed in place, stored.
extern "C" __global__ void scale_tile(const float *x, float *y, int n) {
    constexpr int N = 2048;
    __shared__ __align__(128) float tile[N];
    __shared__ u64 full;
    int t = threadIdx.x;
    if (t == 0) {
        init(&full, 1);
        FENCE;
        expect(&full, 4 * N);
        load(tile, x + (size_t)blockIdx.x * N, 4 * N, &full);
    }
    __syncthreads();
    wait(&full, 0);
    for (int i = t; i < N; i += blockDim.x) tile[i] = 2 * tile[i] + 1;
    FENCE;
    __syncthreads();
    if (t == 0) {
        save(y + (size_t)blockIdx.x * N, tile, 4 * N);
        COMMIT;
        AWAIT(0);
    }
}
// Rows of 4,096 floats, one a block: softmax in shared memory.
extern "C" __global__ void softmax_row(const float *x, float *y, int n) {
    constexpr int N = 4096;
    __shared__ __align__(128) float row[N];
    __shared__ float part[32];
    __shared__ u64 full;
    int t = threadIdx.x, warps = blockDim.x / 32;
    if (t == 0) {
        init(&full, 1);
        FENCE;
        expect(&full, 4 * N);
        load(row, x + (size_t)blockIdx.x * N, 4 * N, &full);
    }
    __syncthreads();
    wait(&full, 0);
    float most = -1e30f, sum = 0;
    for (int i = t; i < N; i += blockDim.x) most = fmaxf(most, row[i]);
    for (int d = 16; d; d /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
    if (t % 32 == 0) part[t / 32] = most;
    __syncthreads();
    for (int w = 0; w < warps; w++) most = fmaxf(most, part[w]);
    for (int i = t; i < N; i += blockDim.x) {
        float e = __expf(row[i] - most);
        row[i] = e;
        sum += e;
    }
    __syncthreads();
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (t % 32 == 0) part[t / 32] = sum;
    __syncthreads();
    sum = 0;
    for (int w = 0; w < warps; w++) sum += part[w];
    for (int i = t; i < N; i += blockDim.x) row[i] /= sum;
    FENCE;
    __syncthreads();
    if (t == 0) {
        save(y + (size_t)blockIdx.x * N, row, 4 * N);
        COMMIT;
        AWAIT(0);
    }
}
