// Twins of gpusim/kernels/step.py: a reduction in five steps; nothing guards the loads.
#include "combine.cuh"

template <typename T, typename Op, unsigned BLOCK, unsigned COARSE>
__global__ void step1(const T *values, T *sums) {
    T *shared = dynamic_shared<T>();
    unsigned tid = threadIdx.x;
    unsigned i = blockIdx.x * blockDim.x + tid;
    shared[tid] = values[i];
    __syncthreads();

    for (unsigned distance = 1; distance < blockDim.x; distance *= 2) {
        if (tid % (2 * distance) == 0) Op::onto(shared[tid]) += shared[tid + distance];
        __syncthreads();
    }

    if (tid == 0) sums[blockIdx.x] = shared[0];
}

template <typename T, typename Op, unsigned BLOCK, unsigned COARSE>
__global__ void step2(const T *values, T *sums) {
    T *shared = dynamic_shared<T>();
    unsigned tid = threadIdx.x;
    unsigned i = blockIdx.x * blockDim.x + tid;
    shared[tid] = values[i];
    __syncthreads();

    for (unsigned distance = 1; distance < blockDim.x; distance *= 2) {
        int index = 2 * distance * tid;
        if (index < blockDim.x / distance)
            Op::onto(shared[index]) += shared[index + distance];
        __syncthreads();
    }

    if (tid == 0) sums[blockIdx.x] = shared[0];
}

template <typename T, typename Op, unsigned BLOCK, unsigned COARSE>
__global__ void step2_fixed(const T *values, T *sums) {
    T *shared = dynamic_shared<T>();
    unsigned tid = threadIdx.x;
    unsigned i = blockIdx.x * blockDim.x + tid;
    shared[tid] = values[i];
    __syncthreads();

    for (unsigned distance = 1; distance < blockDim.x; distance *= 2) {
        int index = 2 * distance * tid;
        if (index < blockDim.x) Op::onto(shared[index]) += shared[index + distance];
        __syncthreads();
    }

    if (tid == 0) sums[blockIdx.x] = shared[0];
}

template <typename T, typename Op, unsigned BLOCK, unsigned COARSE>
__global__ void step3(const T *values, T *sums) {
    T *shared = dynamic_shared<T>();
    unsigned tid = threadIdx.x;
    unsigned i = blockIdx.x * blockDim.x + tid;
    shared[tid] = values[i];
    __syncthreads();

    for (unsigned distance = blockDim.x / 2; distance > 0; distance /= 2) {
        if (tid < distance) Op::onto(shared[tid]) += shared[tid + distance];
        __syncthreads();
    }

    if (tid == 0) sums[blockIdx.x] = shared[0];
}

template <typename T, typename Op, unsigned BLOCK, unsigned COARSE>
__global__ void step4(const T *values, T *sums) {
    T *shared = dynamic_shared<T>();
    unsigned tid = threadIdx.x;
    unsigned i = blockIdx.x * blockDim.x * 2 + tid;
    shared[tid] = Op::of(values[i], values[i + blockDim.x]);
    __syncthreads();

    for (unsigned distance = blockDim.x / 2; distance > 0; distance /= 2) {
        if (tid < distance) Op::onto(shared[tid]) += shared[tid + distance];
        __syncthreads();
    }

    if (tid == 0) sums[blockIdx.x] = shared[0];
}

template <typename T, typename Op, unsigned BLOCK, unsigned COARSE>
__global__ void step5(const T *values, T *sums) {
    T *shared = dynamic_shared<T>();
    unsigned tid = threadIdx.x;
    unsigned i = blockIdx.x * blockDim.x * 2 + tid;
    shared[tid] = Op::of(values[i], values[i + blockDim.x]);
    __syncthreads();

    for (unsigned distance = blockDim.x / 2; distance > 32; distance /= 2) {
        if (tid < distance) Op::onto(shared[tid]) += shared[tid + distance];
        __syncthreads();
    }

    if (tid < 32) {
        Op::onto(shared[tid]) += shared[tid + 32];
        Op::onto(shared[tid]) += shared[tid + 16];
        Op::onto(shared[tid]) += shared[tid + 8];
        Op::onto(shared[tid]) += shared[tid + 4];
        Op::onto(shared[tid]) += shared[tid + 2];
        Op::onto(shared[tid]) += shared[tid + 1];
    }

    if (tid == 0) sums[blockIdx.x] = shared[0];
}

template <typename T, typename Op, unsigned BLOCK, unsigned COARSE>
__global__ void step5_fixed(const T *values, T *sums) {
    T *shared = dynamic_shared<T>();
    unsigned tid = threadIdx.x;
    unsigned i = blockIdx.x * blockDim.x * 2 + tid;
    shared[tid] = Op::of(values[i], values[i + blockDim.x]);
    __syncthreads();

    for (unsigned distance = blockDim.x / 2; distance > 32; distance /= 2) {
        if (tid < distance) Op::onto(shared[tid]) += shared[tid + distance];
        __syncthreads();
    }

    if (tid < 32) {
        T total = Op::of(shared[tid], shared[tid + 32]);
        __syncwarp();
        shared[tid] = total;
        __syncwarp();
        Op::onto(total) += shared[tid + 16];
        __syncwarp();
        shared[tid] = total;
        __syncwarp();
        Op::onto(total) += shared[tid + 8];
        __syncwarp();
        shared[tid] = total;
        __syncwarp();
        Op::onto(total) += shared[tid + 4];
        __syncwarp();
        shared[tid] = total;
        __syncwarp();
        Op::onto(total) += shared[tid + 2];
        __syncwarp();
        shared[tid] = total;
        __syncwarp();
        Op::onto(total) += shared[tid + 1];
        __syncwarp();
        shared[tid] = total;
    }

    if (tid == 0) sums[blockIdx.x] = shared[0];
}
