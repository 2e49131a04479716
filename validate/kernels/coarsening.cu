// Twins of gpusim/kernels/coarsening.py: a reduction in global memory, and one whose threads
// each take several elements first.
#include "combine.cuh"

template <typename T, typename Op, unsigned BLOCK, unsigned COARSE>
__global__ void reduce_gpu(T *__restrict__ values, T *__restrict__ result) {
    const unsigned i = 2 * threadIdx.x;
    values += blockDim.x * blockIdx.x * 2;
    result += blockIdx.x;

    for (unsigned stride = 1; stride <= blockDim.x; stride *= 2) {
        if (threadIdx.x % stride == 0) Op::onto(values[i]) += values[i + stride];
        __syncthreads();
    }

    if (threadIdx.x == 0) *result = values[0];
}

template <typename T, typename Op, unsigned BLOCK, unsigned COARSE>
__global__ void reduce_coarsening_gpu(const T *__restrict__ values, T *__restrict__ result) {
    __shared__ T shared[BLOCK];
    const unsigned tid = threadIdx.x;
    values += blockDim.x * blockIdx.x * COARSE;
    result += blockIdx.x;

    T total = values[tid];
    for (unsigned tile = 1; tile < COARSE; ++tile) {
        Op::onto(total) += values[tid + tile * BLOCK];
    }
    shared[tid] = total;

    for (unsigned stride = blockDim.x / 2; stride >= 1; stride /= 2) {
        __syncthreads();
        if (tid < stride) Op::onto(shared[tid]) += shared[tid + stride];
    }

    if (threadIdx.x == 0) *result = shared[0];
}
