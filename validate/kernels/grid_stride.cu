// Twins of gpusim/kernels/grid_stride.py: reductions with a fixed grid.
#include "combine.cuh"

// Four elements that are loaded at once.
template <typename T>
struct FourOf;

template <>
struct FourOf<float> {
    using type = float4;
};

template <>
struct FourOf<int> {
    using type = int4;
};

template <>
struct FourOf<unsigned> {
    using type = uint4;
};

// What a thread of a grid makes of its elements, one at a time.
template <typename T, typename Op, int BLOCK>
__device__ T one_by_one(const T *values, int n) {
    int first = blockIdx.x * BLOCK + threadIdx.x;
    T mine = Op::identity();
    for (int i = first; i < n; i += gridDim.x * BLOCK) Op::onto(mine) += values[i];
    return mine;
}

// What a thread of a grid makes of its elements, four at a time.
template <typename T, typename Op, int BLOCK>
__device__ T four_at_once(const T *values, int n, int first) {
    T mine = Op::identity();
    for (int i = first; i < n; i += gridDim.x * BLOCK * 4) {
        if (i + 3 < n) {
            auto four = reinterpret_cast<const typename FourOf<T>::type *>(&values[i])[0];
            Op::onto(mine) += four.x;
            Op::onto(mine) += four.y;
            Op::onto(mine) += four.z;
            Op::onto(mine) += four.w;
        } else {
            for (int k = i; k < n; k++) Op::onto(mine) += values[k];
        }
    }
    return mine;
}

// The tree of a block: the lower threads add the upper ones'.
template <typename T, typename Op, int BLOCK>
__device__ void lower_half_adds(T *shared, T *partials, int tid) {
    for (int offset = BLOCK / 2; offset > 0; offset >>= 1) {
        if (tid < offset) Op::onto(shared[tid]) += shared[tid + offset];
        __syncthreads();
    }

    if (tid == 0) partials[blockIdx.x] = shared[0];
}

template <typename T, typename Op, int BLOCK, unsigned COARSE>
__global__ void kernel0(const T *values, int n, T *partials) {
    int tid = threadIdx.x;
    T mine = one_by_one<T, Op, BLOCK>(values, n);

    __shared__ T shared[BLOCK];
    shared[tid] = mine;
    __syncthreads();

    for (int offset = 1; offset < blockDim.x; offset *= 2) {
        if (tid % (2 * offset) == 0) Op::onto(shared[tid]) += shared[tid + offset];
        __syncthreads();
    }

    if (tid == 0) partials[blockIdx.x] = shared[0];
}

template <typename T, typename Op, int BLOCK, unsigned COARSE>
__global__ void kernel1(const T *values, int n, T *partials) {
    int tid = threadIdx.x;
    T mine = one_by_one<T, Op, BLOCK>(values, n);

    __shared__ T shared[BLOCK];
    shared[tid] = mine;
    __syncthreads();

    lower_half_adds<T, Op, BLOCK>(shared, partials, tid);
}

template <typename T, typename Op, int BLOCK, unsigned COARSE>
__global__ void kernel2(const T *values, int n, T *partials) {
    int first = 4 * (blockIdx.x * BLOCK + threadIdx.x);
    int tid = threadIdx.x;
    T mine = four_at_once<T, Op, BLOCK>(values, n, first);

    __shared__ T shared[BLOCK];
    shared[tid] = mine;
    __syncthreads();

    lower_half_adds<T, Op, BLOCK>(shared, partials, tid);
}

template <typename T, typename Op>
__device__ T of_warp(T mine) {
    for (int offset = 16; offset > 0; offset >>= 1) {
        Op::onto(mine) += __shfl_down_sync(0xffffffff, mine, offset);
    }
    return mine;
}

template <typename T, typename Op, int BLOCK, unsigned COARSE>
__global__ void kernel4(const T *values, int n, T *partials) {
    int first = (blockIdx.x * BLOCK + threadIdx.x) * 4;
    int tid = threadIdx.x;
    int warp = tid / 32;
    int lane = tid % 32;
    T mine = of_warp<T, Op>(four_at_once<T, Op, BLOCK>(values, n, first));

    __shared__ T shared[32];
    if (lane == 0) shared[warp] = mine;
    __syncthreads();

    if (warp == 0) {
        if (lane < BLOCK / 32)
            mine = shared[lane];
        else
            mine = Op::identity();
        mine = of_warp<T, Op>(mine);
        if (lane == 0) partials[blockIdx.x] = mine;
    }
}
