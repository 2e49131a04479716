// Times itself by events, as benchmarks do: benchmark N prints GB/s of a launch and of a copy.
#include <cstdio>
#include <cstdlib>

__global__ void saxpy(float a, const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}

int main(int, char **words) {
  int n = atoi(words[1]);
  float *x, *y, *h, ms;
  cudaMalloc(&x, n * 4);
  cudaMalloc(&y, n * 4);
  cudaMallocHost(&h, n * 4);
  cudaEvent_t begin, end;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  cudaEventRecord(begin);
  saxpy<<<n / 256, 256>>>(2, x, y, n);
  cudaEventRecord(end);
  cudaEventSynchronize(end);
  cudaEventElapsedTime(&ms, begin, end);
  printf("%.2f\n", 12.0 * n / ms / 1e6);
  cudaEventRecord(begin);
  cudaMemcpyAsync(x, h, n * 4, cudaMemcpyHostToDevice);
  cudaEventRecord(end);
  cudaEventSynchronize(end);
  cudaEventElapsedTime(&ms, begin, end);
  printf("%.2f\n", 4.0 * n / ms / 1e6);
}
