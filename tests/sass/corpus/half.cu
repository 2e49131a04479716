#include <cuda_fp16.h>
__global__ void half_axpy(__half a, const __half2 *x, __half2 *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = __hfma2(__half2half2(a), x[i], y[i]);
}
__global__ void half_sum(const __half *x, float *y, int n) {
    float s = 0; for (int i = threadIdx.x; i < n; i += blockDim.x) s += __half2float(x[i]);
    y[threadIdx.x] = s;
}
__global__ void half_max(const __half *x, __half *y, int n) {
    __half m = x[threadIdx.x]; for (int i = threadIdx.x; i < n; i += blockDim.x) m = __hmax(m, __hadd(x[i], __float2half(1.5f)));
    y[threadIdx.x] = m;
}
__global__ void half_compare(const __half *x, int *y) { int i = threadIdx.x; y[i] = __hgt(x[i], x[i+1]) ? 1 : 2; }
