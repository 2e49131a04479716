// Twins of gpusim/kernels/reduce.py: Harris' seven reductions as a lecture teaches them.
#include "combine.cuh"

template <typename T, typename Op, unsigned BLOCK, unsigned COARSE>
__global__ void reduce1(const T *numbers, T *partials, unsigned n) {
    T *shared = dynamic_shared<T>();
    unsigned tid = threadIdx.x;
    unsigned i = blockIdx.x * blockDim.x + tid;
    shared[tid] = i < n ? numbers[i] : Op::identity();
    __syncthreads();

    for (unsigned stride = 1; stride < blockDim.x; stride *= 2) {
        if (tid % (2 * stride) == 0) Op::onto(shared[tid]) += shared[tid + stride];
        __syncthreads();
    }

    if (tid == 0) partials[blockIdx.x] = shared[0];
}

template <typename T, typename Op, unsigned BLOCK, unsigned COARSE>
__global__ void reduce2(const T *numbers, T *partials, unsigned n) {
    T *shared = dynamic_shared<T>();
    unsigned tid = threadIdx.x;
    unsigned i = blockIdx.x * blockDim.x + tid;
    shared[tid] = i < n ? numbers[i] : Op::identity();
    __syncthreads();

    for (unsigned stride = 1; stride < blockDim.x; stride *= 2) {
        int index = 2 * stride * tid;
        if (index < blockDim.x) Op::onto(shared[index]) += shared[index + stride];
        __syncthreads();
    }

    if (tid == 0) partials[blockIdx.x] = shared[0];
}

template <typename T, typename Op, unsigned BLOCK, unsigned COARSE>
__global__ void reduce3(const T *numbers, T *partials, unsigned n) {
    T *shared = dynamic_shared<T>();
    unsigned tid = threadIdx.x;
    unsigned i = blockIdx.x * blockDim.x + tid;
    shared[tid] = i < n ? numbers[i] : Op::identity();
    __syncthreads();

    for (unsigned stride = blockDim.x / 2; stride > 0; stride = stride / 2) {
        if (tid < stride) Op::onto(shared[tid]) += shared[tid + stride];
        __syncthreads();
    }

    if (tid == 0) partials[blockIdx.x] = shared[0];
}

template <typename T, typename Op, unsigned BLOCK, unsigned COARSE>
__global__ void reduce4(const T *numbers, T *partials, unsigned n) {
    T *shared = dynamic_shared<T>();
    unsigned tid = threadIdx.x;
    unsigned i = blockIdx.x * (blockDim.x * 2) + tid;
    shared[tid] = Op::of(numbers[i], numbers[i + blockDim.x]);
    __syncthreads();

    for (unsigned stride = blockDim.x / 2; stride > 0; stride >>= 1) {
        if (tid < stride) Op::onto(shared[tid]) += shared[tid + stride];
        __syncthreads();
    }

    if (tid == 0) partials[blockIdx.x] = shared[0];
}

// The steps of the last warp. `Shared` is T* where they are left to the compiler, or
// volatile T* where every access is made.
template <typename T, typename Op, typename Shared>
__device__ void last_warp(Shared shared, unsigned tid) {
    Op::onto(shared[tid]) += shared[tid + 32];
    Op::onto(shared[tid]) += shared[tid + 16];
    Op::onto(shared[tid]) += shared[tid + 8];
    Op::onto(shared[tid]) += shared[tid + 4];
    Op::onto(shared[tid]) += shared[tid + 2];
    Op::onto(shared[tid]) += shared[tid + 1];
}

template <typename T, typename Op, typename Tail>
__device__ void reduce5_with(const T *numbers, T *partials) {
    T *shared = dynamic_shared<T>();
    unsigned tid = threadIdx.x;
    unsigned i = blockIdx.x * (blockDim.x * 2) + tid;
    shared[tid] = Op::of(numbers[i], numbers[i + blockDim.x]);
    __syncthreads();

    for (unsigned stride = blockDim.x / 2; stride > 32; stride >>= 1) {
        if (tid < stride) Op::onto(shared[tid]) += shared[tid + stride];
        __syncthreads();
    }

    if (tid < 32) last_warp<T, Op, Tail>(shared, tid);

    if (tid == 0) partials[blockIdx.x] = shared[0];
}

template <typename T, typename Op, unsigned BLOCK, unsigned COARSE>
__global__ void reduce5(const T *numbers, T *partials, unsigned n) {
    reduce5_with<T, Op, T *>(numbers, partials);
}

template <typename T, typename Op, unsigned BLOCK, unsigned COARSE>
__global__ void reduce5_fixed(const T *numbers, T *partials, unsigned n) {
    reduce5_with<T, Op, volatile T *>(numbers, partials);
}

// The steps of a block whose size the compiler knows, from that of `FIRST` threads on.
template <typename T, typename Op, unsigned BLOCK, unsigned FIRST>
__device__ void unrolled(T *shared, unsigned tid) {
    if (BLOCK >= 1024 && FIRST >= 512) {
        if (tid < 512) Op::onto(shared[tid]) += shared[tid + 512];
        __syncthreads();
    }
    if (BLOCK >= 512) {
        if (tid < 256) Op::onto(shared[tid]) += shared[tid + 256];
        __syncthreads();
    }
    if (BLOCK >= 256) {
        if (tid < 128) Op::onto(shared[tid]) += shared[tid + 128];
        __syncthreads();
    }
    if (BLOCK >= 128) {
        if (tid < 64) Op::onto(shared[tid]) += shared[tid + 64];
        __syncthreads();
    }

    if (tid < 32) last_warp<T, Op, volatile T *>(shared, tid);
}

template <typename T, typename Op, unsigned BLOCK, unsigned FIRST>
__device__ void reduce6_from(const T *numbers, T *partials) {
    T *shared = dynamic_shared<T>();
    unsigned tid = threadIdx.x;
    unsigned i = blockIdx.x * (blockDim.x * 2) + tid;
    shared[tid] = Op::of(numbers[i], numbers[i + blockDim.x]);
    __syncthreads();

    unrolled<T, Op, BLOCK, FIRST>(shared, tid);

    if (tid == 0) partials[blockIdx.x] = shared[0];
}

template <typename T, typename Op, unsigned BLOCK, unsigned COARSE>
__global__ void reduce6(const T *numbers, T *partials, unsigned n) {
    reduce6_from<T, Op, BLOCK, 512>(numbers, partials);
}

template <typename T, typename Op, unsigned BLOCK, unsigned COARSE>
__global__ void reduce6_published(const T *numbers, T *partials, unsigned n) {
    reduce6_from<T, Op, BLOCK, 256>(numbers, partials);
}

template <typename T, typename Op, unsigned BLOCK, unsigned COARSE>
__global__ void reduce7(const T *numbers, T *partials, unsigned n) {
    T *shared = dynamic_shared<T>();
    unsigned tid = threadIdx.x;
    unsigned i = blockIdx.x * (blockDim.x * 2) + tid;
    unsigned whole_grid = BLOCK * 2 * gridDim.x;
    shared[tid] = Op::identity();
    while (i < n) {
        Op::onto(shared[tid]) += Op::of(numbers[i], numbers[i + BLOCK]);
        i += whole_grid;
    }
    __syncthreads();

    unrolled<T, Op, BLOCK, 512>(shared, tid);

    if (tid == 0) partials[blockIdx.x] = shared[0];
}
