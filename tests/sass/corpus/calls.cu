// Calls, jumps through tables, barriers with numbers, structures by value.

__device__ __noinline__ int fibonacci(int n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
__global__ void recursion(int *out) { out[threadIdx.x] = fibonacci(threadIdx.x % 12); }

typedef float (*Operation)(float, float);
__device__ float sum(float a, float b) { return a + b; }
__device__ float product(float a, float b) { return a * b; }
__device__ float difference(float a, float b) { return a - b; }
__device__ Operation operations[3] = {sum, product, difference};
__global__ void pointers(const float *a, const float *b, float *c, const int *which) {
  int i = threadIdx.x;
  c[i] = operations[which[i]](a[i], b[i]);
}

struct Shape {
  __device__ virtual float area() const = 0;
};
struct Square : Shape {
  float side;
  __device__ Square(float side) : side(side) {}
  __device__ float area() const override { return side * side; }
};
struct Triangle : Shape {
  float side;
  __device__ Triangle(float side) : side(side) {}
  __device__ float area() const override { return side * side / 2; }
};
__global__ void virtuals(float *out) {
  Square square(threadIdx.x);
  Triangle triangle(threadIdx.x);
  const Shape *shape = threadIdx.x % 2 ? (const Shape *)&square : (const Shape *)&triangle;
  out[threadIdx.x] = shape->area();
}

__global__ void interpreter(const unsigned char *code, int length, int *out) {
  int a = threadIdx.x, b = 1;
  for (int pc = 0; pc < length; pc++) {
    switch (code[pc]) {
      case 0: a += b; break;
      case 1: a -= 3; break;
      case 2: a *= 3; break;
      case 3: a ^= 0x55; break;
      case 4: b = a & 7; break;
      case 5: a = a > 1000 ? a / 7 : a; break;
      case 6: a = ~a; break;
      case 7: a |= b << 4; break;
    }
  }
  out[threadIdx.x] = a;
}

__global__ void by_data(const int *which, const float *x, float *y) {
  float v = x[threadIdx.x];
  switch (which[threadIdx.x]) {
    case 0: v = sinf(v); break;
    case 1: v = v * v + 1; break;
    case 2: v = sqrtf(fabsf(v)); break;
    case 3: v = expf(v); break;
    case 4: v = -v; break;
    case 5: v = v / 3.f; break;
    case 6: v = floorf(v); break;
    case 7: v += 100; break;
  }
  y[threadIdx.x] = v;
}

// One warp fills two buffers in turn, the other one adds them up.
__global__ void producer(const int *in, int *out, int rounds) {
  __shared__ int buffer[2][32];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (warp == 0) {
    for (int r = 0; r < rounds; r++) {
      asm volatile("bar.sync %0, 64;" ::"r"(1 + (r & 1)) : "memory");
      buffer[r & 1][lane] = in[r * 32 + lane];
      __threadfence_block();
      asm volatile("bar.arrive %0, 64;" ::"r"(3 + (r & 1)) : "memory");
    }
  } else {
    asm volatile("bar.arrive 1, 64;" ::: "memory");
    asm volatile("bar.arrive 2, 64;" ::: "memory");
    int total = 0;
    for (int r = 0; r < rounds; r++) {
      asm volatile("bar.sync %0, 64;" ::"r"(3 + (r & 1)) : "memory");
      total += buffer[r & 1][lane];
      if (r + 2 < rounds) asm volatile("bar.arrive %0, 64;" ::"r"(1 + (r & 1)) : "memory");
    }
    out[lane] = total;
  }
}

// Two warps turn round what two warps stored, on either side of the block.
__global__ void halves(int *x) {
  __shared__ int s[128];
  int t = threadIdx.x;
  s[t] = x[t];
  if (t < 64) {
    asm volatile("bar.sync 1, 64;" ::: "memory");
    x[t] = s[63 - t];
  } else {
    asm volatile("bar.sync 2, 64;" ::: "memory");
    x[t] = s[64 + 127 - t];
  }
}

__global__ void never_met(int *x) {
  if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;" ::: "memory");
  x[threadIdx.x] = 1;
}

struct Weights {
  double bias;
  float scale[2];
};
struct Layer {
  const float *x;
  float *y;
  int n;
  Weights weights;
};
__global__ void layer(Layer layer, float3 added) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  const Weights &w = layer.weights;
  if (i < layer.n)
    layer.y[i] = w.scale[i % 2] * layer.x[i] + (float)w.bias + added.x + 10 * added.y + 100 * added.z;
}

__global__ void clocks(long long *taken, float *x) {
  long long begin = clock64();
  float v = x[threadIdx.x];
  for (int i = 0; i < 10; i++) v = v * 1.5f + 1;
  x[threadIdx.x] = v;
  taken[threadIdx.x] = clock64() - begin;
}

__global__ void traps(const int *x, int *y) {
  if (x[threadIdx.x] < 0) __trap();
  y[threadIdx.x] = x[threadIdx.x];
}
