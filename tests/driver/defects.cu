// Programs with one defect each, and without it: defects NAME 1, defects NAME 0.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

constexpr int N = 1000, BYTES = N * sizeof(int);

__global__ void fill(int *x, int value) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) x[i] = value;
}
__global__ void fill_some(int *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = i;
}
__global__ void add_one(int *y, const int *x) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) y[i] = x[i] + 1;
}
__global__ void tally(int *count) { atomicAdd(count, 1); }

static int *take() {
  int *x;
  cudaMalloc(&x, BYTES);
  return x;
}

int main(int, char **words) {
  const char *name = words[1];
  bool is_bad = atoi(words[2]);
  auto is = [&](const char *other) { return !strcmp(name, other); };
  std::vector<int> h(2 * N, 1);
  int *x = take(), *y = take();
  cudaStream_t one, two;
  cudaStreamCreate(&one);
  cudaStreamCreate(&two);
  cudaEvent_t event;
  cudaEventCreate(&event);
  cudaMemset(x, 0, BYTES);
  cudaMemset(y, 0, BYTES);
  cudaDeviceSynchronize();
  int sum = 0;
  if (is("use-after-free")) {
    int *z = take();
    if (is_bad) cudaFree(z);
    fill<<<8, 128>>>(z, 1);
    cudaDeviceSynchronize();
    if (!is_bad) cudaFree(z);
  } else if (is("free")) {
    int *z = take();
    cudaFree(z);
    if (is_bad) cudaFree(z);
  } else if (is("leak")) {
    int *z = take();
    cudaMemset(z, 0, BYTES);
    if (!is_bad) cudaFree(z);
  } else if (is("copy-bounds")) {
    cudaMemcpy(x, h.data(), is_bad ? BYTES + 4 : BYTES, cudaMemcpyHostToDevice);
  } else if (is("uninitialised-copy")) {
    int *z = take();
    fill_some<<<8, 128>>>(z, is_bad ? N - 1 : N);
    cudaMemcpy(h.data(), z, BYTES, cudaMemcpyDeviceToHost);
    cudaFree(z);
  } else if (is("uninitialised")) {
    int *z = take();
    if (!is_bad) cudaMemcpy(z, x, BYTES, cudaMemcpyDeviceToDevice);
    add_one<<<8, 128>>>(y, z);
    cudaDeviceSynchronize();
    cudaFree(z);
  } else if (is("unasked-error")) {
    fill<<<1, 2048>>>(x, 1);
    if (!is_bad) printf("%s\n", cudaGetErrorString(cudaGetLastError()));
  } else if (is("stream-race")) {
    fill<<<8, 128, 0, one>>>(x, 1);
    cudaEventRecord(event, one);
    if (!is_bad) cudaStreamWaitEvent(two, event);
    add_one<<<8, 128, 0, two>>>(y, x);
  } else if (is("copy-race")) {
    fill<<<8, 128, 0, one>>>(x, 1);
    if (!is_bad) cudaStreamSynchronize(one);
    cudaMemcpyAsync(h.data(), x, BYTES, cudaMemcpyDeviceToHost, two);
    tally<<<1, 32, 0, one>>>(y);
    tally<<<1, 32, 0, two>>>(y);
  } else if (is("host-race")) {
    int *m;
    cudaMallocManaged(&m, BYTES);
    fill<<<8, 128>>>(m, 1);
    if (!is_bad) cudaDeviceSynchronize();
    for (int i = 0; i < N; i++) sum += m[i];
    cudaFree(m);
  } else if (is("pinned-race")) {
    int *p;
    cudaMallocHost(&p, BYTES);
    for (int i = 0; i < N; i++) p[i] = i;
    cudaMemcpyAsync(x, p, BYTES, cudaMemcpyHostToDevice, one);
    sum = p[1];  // both only read
    if (!is_bad) cudaStreamSynchronize(one);
    p[0] = 7;
    cudaStreamSynchronize(one);
    cudaFreeHost(p);
  }
  cudaDeviceSynchronize();
  cudaStreamDestroy(one);
  cudaStreamDestroy(two);
  cudaFree(x);
  cudaFree(y);
  printf("%d\n", sum);
}
