// Twins of gpusim/kernels/reduction.py: five guarded reductions for any type.
#include "combine.cuh"

template <typename T, typename Op, unsigned BLOCK, unsigned COARSE>
__global__ void reduction1(const T *x, unsigned n, T *y) {
    T *partial_sum = dynamic_shared<T>();
    unsigned tx = threadIdx.x;
    unsigned i = blockIdx.x * blockDim.x + tx;
    partial_sum[tx] = i < n ? x[i] : Op::identity();
    __syncthreads();

    for (unsigned stride = 1; stride < blockDim.x; stride <<= 1) {
        if (tx % (2 * stride) == 0) {
            T other = tx + stride < n ? partial_sum[tx + stride] : Op::identity();
            Op::onto(partial_sum[tx]) += other;
        }
        __syncthreads();
    }

    if (tx == 0) y[blockIdx.x] = partial_sum[0];
}

template <typename T, typename Op, unsigned BLOCK, unsigned COARSE>
__global__ void reduction2(const T *x, unsigned n, T *y) {
    T *partial_sum = dynamic_shared<T>();
    unsigned tx = threadIdx.x;
    unsigned i = blockIdx.x * blockDim.x + tx;
    partial_sum[tx] = i < n ? x[i] : Op::identity();
    __syncthreads();

    for (unsigned stride = 1; stride < blockDim.x; stride <<= 1) {
        int index = 2 * stride * tx;
        if (index < blockDim.x) {
            T other = index + stride < n ? partial_sum[index + stride] : Op::identity();
            Op::onto(partial_sum[index]) += other;
        }
        __syncthreads();
    }

    if (tx == 0) y[blockIdx.x] = partial_sum[0];
}

template <typename T, typename Op, unsigned BLOCK, unsigned COARSE>
__global__ void reduction3(const T *x, unsigned n, T *y) {
    T *partial_sum = dynamic_shared<T>();
    unsigned tx = threadIdx.x;
    unsigned i = blockIdx.x * blockDim.x + tx;
    partial_sum[tx] = i < n ? x[i] : Op::identity();
    __syncthreads();

    for (unsigned stride = blockDim.x / 2; stride > 0; stride >>= 1) {
        if (tx < stride) Op::onto(partial_sum[tx]) += partial_sum[tx + stride];
        __syncthreads();
    }

    if (tx == 0) y[blockIdx.x] = partial_sum[0];
}

template <typename T, typename Op, unsigned BLOCK, unsigned COARSE>
__global__ void reduction4(const T *x, unsigned n, T *y) {
    T *partial_sum = dynamic_shared<T>();
    unsigned tx = threadIdx.x;
    unsigned i = blockIdx.x * (blockDim.x * 2) + tx;
    partial_sum[tx] = i < n ? x[i] : Op::identity();
    T second = i + blockDim.x < n ? x[i + blockDim.x] : Op::identity();
    Op::onto(partial_sum[tx]) += second;
    __syncthreads();

    for (unsigned stride = blockDim.x / 2; stride > 0; stride >>= 1) {
        if (tx < stride) Op::onto(partial_sum[tx]) += partial_sum[tx + stride];
        __syncthreads();
    }

    if (tx == 0) y[blockIdx.x] = partial_sum[0];
}

template <typename T, typename Op>
__device__ void last_warp(volatile T *partial_sum, unsigned tx) {
    Op::onto(partial_sum[tx]) += partial_sum[tx + 32];
    Op::onto(partial_sum[tx]) += partial_sum[tx + 16];
    Op::onto(partial_sum[tx]) += partial_sum[tx + 8];
    Op::onto(partial_sum[tx]) += partial_sum[tx + 4];
    Op::onto(partial_sum[tx]) += partial_sum[tx + 2];
    Op::onto(partial_sum[tx]) += partial_sum[tx + 1];
}

template <typename T, typename Op, bool WAITS>
__device__ void reduction5_with(const T *x, unsigned n, T *y) {
    T *partial_sum = dynamic_shared<T>();
    unsigned tx = threadIdx.x;
    unsigned i = blockIdx.x * (blockDim.x * 2) + tx;
    partial_sum[tx] = i < n ? x[i] : Op::identity();
    T second = i + blockDim.x < n ? x[i + blockDim.x] : Op::identity();
    Op::onto(partial_sum[tx]) += second;
    if (WAITS) __syncthreads();

    for (unsigned stride = blockDim.x / 2; stride > 32; stride >>= 1) {
        if (tx < stride) Op::onto(partial_sum[tx]) += partial_sum[tx + stride];
        __syncthreads();
    }

    if (tx < 32) last_warp<T, Op>(partial_sum, tx);

    if (tx == 0) y[blockIdx.x] = partial_sum[0];
}

template <typename T, typename Op, unsigned BLOCK, unsigned COARSE>
__global__ void reduction5(const T *x, unsigned n, T *y) {
    reduction5_with<T, Op, false>(x, n, y);
}

template <typename T, typename Op, unsigned BLOCK, unsigned COARSE>
__global__ void reduction5_fixed(const T *x, unsigned n, T *y) {
    reduction5_with<T, Op, true>(x, n, y);
}
