// Code longer than the instruction cache, and its cure. The line marked `<-` is to be named.

__global__ void long_code(const float *x, float *y, int n, int k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = x[i], factor = x[i + 1];
#pragma unroll
    for (int step = 0; step < 6144; ++step) {
        value = value * factor + 0.5f; // <- instruction-fetch
        factor = factor * value + 0.25f;
    }
    y[i] = value;
}

__global__ void short_code(const float *x, float *y, int n, int k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = x[i], factor = x[i + 1];
#pragma unroll 16
    for (int step = 0; step < 6144; ++step) {
        value = value * factor + 0.5f;
        factor = factor * value + 0.25f;
    }
    y[i] = value;
}
