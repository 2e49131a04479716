// Twins of gpusim/kernels/scan.py: exclusive scans.
#include "combine.cuh"

template <typename T, typename Op, unsigned BLOCK, unsigned COARSE>
__global__ void naive_scan(const T *__restrict__ values, T *__restrict__ sums, const int length) {
    const unsigned index = blockIdx.x * blockDim.x + threadIdx.x;
    T total = 0;
    for (unsigned i = 0; i < index; i++) total += values[i];
    sums[index] = total;
}

// Sums of 2, 4, 8 neighbours in place, two barriers a step.
template <typename T>
__device__ void in_place(T *shared, T *sums, const int length) {
    const unsigned tid = threadIdx.x;
    for (unsigned stride = 1; stride < length; stride *= 2) {
        __syncthreads();
        T total;
        if (tid >= stride) total = shared[tid] + shared[tid - stride];
        __syncthreads();
        if (tid >= stride) shared[tid] = total;
    }
    sums[tid] = shared[tid];
}

template <typename T, typename Op, unsigned BLOCK, unsigned COARSE>
__global__ void kogge_stone_scan(const T *__restrict__ values, T *__restrict__ sums,
                                 const int length) {
    __shared__ T shared[BLOCK];
    const unsigned tid = threadIdx.x;
    shared[tid] = values[tid - 1];
    in_place(shared, sums, length);
}

template <typename T, typename Op, unsigned BLOCK, unsigned COARSE>
__global__ void kogge_stone_scan_fixed(const T *__restrict__ values, T *__restrict__ sums,
                                       const int length) {
    __shared__ T shared[BLOCK];
    const unsigned tid = threadIdx.x;
    shared[tid] = tid > 0 ? values[tid - 1] : T(0);
    in_place(shared, sums, length);
}

// Sums of 2, 4, 8 neighbours from one buffer into the other, one barrier a step.
template <typename T>
__device__ void between_buffers(T *shared, T first, T *sums, const int length) {
    const unsigned tid = threadIdx.x;
    unsigned target = 0, source = 1;
    shared[tid] = first;
    shared[length + tid] = shared[tid];
    __syncthreads();

    for (unsigned stride = 1; stride < length; stride *= 2) {
        target = 1 - target;
        source = 1 - source;
        if (tid >= stride)
            shared[target * length + tid] =
                shared[source * length + tid] + shared[source * length + tid - stride];
        else
            shared[target * length + tid] = shared[source * length + tid];
        __syncthreads();
    }
    sums[tid] = shared[target * length + tid];
}

template <typename T, typename Op, unsigned BLOCK, unsigned COARSE>
__global__ void kogge_stone_scan_double(const T *__restrict__ values, T *__restrict__ sums,
                                        const int length) {
    __shared__ T shared[2 * BLOCK];
    between_buffers(shared, values[threadIdx.x], sums, length);
}

template <typename T, typename Op, unsigned BLOCK, unsigned COARSE>
__global__ void kogge_stone_scan_double_fixed(const T *__restrict__ values, T *__restrict__ sums,
                                              const int length) {
    __shared__ T shared[2 * BLOCK];
    const unsigned tid = threadIdx.x;
    between_buffers(shared, tid > 0 ? values[tid - 1] : T(0), sums, length);
}
