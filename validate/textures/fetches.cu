// Fetches from textures and accesses to surfaces in each mode; prints the bits of every result.
// Run on a GPU and by `gpusim run validate/textures/fetches.cu`, its lines should be the same.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define CHECK(call)                                                       \
  do {                                                                    \
    cudaError_t status = (call);                                          \
    if (status) printf("%s: %s\n", #call, cudaGetErrorName(status)), exit(1); \
  } while (0)

const int W = 40, H = 24, D = 6;

template <typename T> struct Texel { __device__ static unsigned bits(T v) { return (unsigned)(int)v; } };
template <> struct Texel<float> { __device__ static unsigned bits(float v) { return __float_as_uint(v); } };

template <typename T> __global__ void along(cudaTextureObject_t t, unsigned *out, int n, float first, float step) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = Texel<T>::bits(tex1D<T>(t, first + i * step));
}
template <typename T> __global__ void plane(cudaTextureObject_t t, unsigned *out, int n, float x, float y, float dx, float dy) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y;
  if (i < n) out[j * n + i] = Texel<T>::bits(tex2D<T>(t, x + i * dx, y + j * dy));
}
__global__ void space(cudaTextureObject_t t, unsigned *out, int n) {
  int i = threadIdx.x, j = blockIdx.x, k = blockIdx.y;
  out[(k * gridDim.x + j) * n + i] = __float_as_uint(tex3D<float>(t, i * 0.37f - 1, j * 0.61f - 1, k * 0.83f - 1));
}
__global__ void layers(cudaTextureObject_t t, unsigned *out, int n) {
  int i = threadIdx.x, k = blockIdx.x;
  out[k * n + i] = __float_as_uint(tex2DLayered<float>(t, i * 0.7f, 3.3f, k - 1));
}
__global__ void fetched(cudaTextureObject_t t, unsigned *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = __float_as_uint(tex1Dfetch<float>(t, i - 32));
}
__global__ void four(cudaTextureObject_t t, unsigned *out) {
  float4 v = tex2D<float4>(t, threadIdx.x * 0.3f, threadIdx.y * 0.4f);
  unsigned *own = out + 4 * (threadIdx.y * blockDim.x + threadIdx.x);
  own[0] = __float_as_uint(v.x), own[1] = __float_as_uint(v.y), own[2] = __float_as_uint(v.z), own[3] = __float_as_uint(v.w);
}
__global__ void surfaces(cudaSurfaceObject_t in, cudaSurfaceObject_t out) {
  int x = (int)threadIdx.x - 2, y = (int)threadIdx.y - 2;
  float clamped, zero;
  surf2Dread(&clamped, in, x * 4, y, cudaBoundaryModeClamp);
  surf2Dread(&zero, in, x * 4, y, cudaBoundaryModeZero);
  surf2Dwrite(clamped * 3 + zero, out, (x + 1) * 4, y, cudaBoundaryModeZero);
}

static unsigned *results;
static void show(const char *name, int count) {
  std::vector<unsigned> held(count);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(held.data(), results, count * 4, cudaMemcpyDeviceToHost));
  printf("%s", name);
  for (unsigned one : held) printf(" %08x", one);
  printf("\n");
  CHECK(cudaMemset(results, 0, 1 << 20));
}
template <typename T> static cudaArray_t array_of(int width, int height, int depth, unsigned flags, int channels = 1) {
  unsigned state = 12345;
  int rows = (height ? height : 1) * (depth ? depth : 1);
  std::vector<T> held(width * rows * channels);
  for (T &one : held) state = state * 1664525u + 1013904223u, one = (T)((int)(state >> 8) % 20000 / 16.0f);
  cudaArray_t made;
  cudaChannelFormatDesc format = cudaCreateChannelDesc<T>();
  if (channels == 4) format.y = format.z = format.w = format.x;
  CHECK(cudaMalloc3DArray(&made, &format, make_cudaExtent(width, height, depth), flags));
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = make_cudaPitchedPtr(held.data(), width * channels * sizeof(T), width, height ? height : 1);
  copy.dstArray = made;
  copy.extent = make_cudaExtent(width, height ? height : 1, depth ? depth : 1);
  copy.kind = cudaMemcpyHostToDevice;
  CHECK(cudaMemcpy3D(&copy));
  return made;
}
static cudaTextureObject_t texture_of(cudaArray_t array, int mode, int filter, int normalized, int fractions) {
  cudaResourceDesc from = {};
  from.res.array.array = array;
  cudaTextureDesc how = {};
  for (int k = 0; k < 3; k++) how.addressMode[k] = (cudaTextureAddressMode)mode;
  how.filterMode = (cudaTextureFilterMode)filter;
  how.readMode = (cudaTextureReadMode)fractions;
  how.normalizedCoords = normalized;
  how.borderColor[0] = 7.5f;
  cudaTextureObject_t made;
  CHECK(cudaCreateTextureObject(&made, &from, &how, nullptr));
  return made;
}
template <typename T> static void whole_numbers(const char *name) {
  char text[80];
  cudaArray_t line = array_of<T>(W, 0, 0, 0);
  for (int mode = 1; mode < 4; mode += 2) {
    sprintf(text, "%s mode %d", name, mode);
    along<T><<<1, 64>>>(texture_of(line, mode, 0, 0, 0), results, 64, -5.25f, 0.83f), show(text, 64);
  }
  if (sizeof(T) == 4) return;
  sprintf(text, "%s fractions", name);
  along<float><<<1, 64>>>(texture_of(line, 1, 1, 0, 1), results, 64, -5.25f, 0.83f), show(text, 64);
}

int main() {
  char text[80];
  CHECK(cudaMalloc(&results, 1 << 20));
  CHECK(cudaMemset(results, 0, 1 << 20));
  cudaArray_t line = array_of<float>(W, 0, 0, 0), flat = array_of<float>(W, H, 0, 0);
  for (int filter = 0; filter < 2; filter++)
    for (int normalized = 0; normalized < 2; normalized++)
      for (int mode = 0; mode < 4; mode++) {
        float scale = normalized ? 1.0f / 32 : 1;
        sprintf(text, "line filter %d normalized %d mode %d", filter, normalized, mode);
        along<float><<<2, 128>>>(texture_of(line, mode, filter, normalized, 0), results, 256, -7.31f * scale, 0.2173f * scale), show(text, 256);
        sprintf(text, "plane filter %d normalized %d mode %d", filter, normalized, mode);
        plane<float><<<dim3(1, 16), 64>>>(texture_of(flat, mode, filter, normalized, 0), results, 64, -7.31f * scale, -5.77f * scale, 0.917f * scale, 2.273f * scale), show(text, 1024);
      }
  // Weights between two elements in steps finer than a weight's.
  along<float><<<8, 256>>>(texture_of(line, 1, 1, 0, 0), results, 2048, 3.5f, 1.0f / 2048), show("weights", 2048);
  cudaArray_t volume = array_of<float>(8, 8, D, 0), stack = array_of<float>(8, 8, D, cudaArrayLayered);
  for (int filter = 0; filter < 2; filter++) {
    space<<<dim3(8, 8), 32>>>(texture_of(volume, 1, filter, 0, 0), results, 32), show(filter ? "space linear" : "space", 2048);
    layers<<<D + 2, 16>>>(texture_of(stack, 1, filter, 0, 0), results, 16), show(filter ? "layers linear" : "layers", (D + 2) * 16);
  }
  whole_numbers<unsigned char>("unsigned char");
  whole_numbers<signed char>("signed char");
  whole_numbers<unsigned short>("unsigned short");
  whole_numbers<short>("short");
  whole_numbers<int>("int");
  cudaArray_t colours = array_of<float>(W, H, 0, 0, 4);
  four<<<1, dim3(16, 16)>>>(texture_of(colours, 1, 1, 0, 0), results), show("four channels", 1024);
  float *memory;
  CHECK(cudaMalloc(&memory, 256 * 4));
  std::vector<float> numbers(256);
  for (int k = 0; k < 256; k++) numbers[k] = k * 0.75f;
  CHECK(cudaMemcpy(memory, numbers.data(), 1024, cudaMemcpyHostToDevice));
  cudaResourceDesc from = {};
  from.resType = cudaResourceTypeLinear;
  from.res.linear.devPtr = memory;
  from.res.linear.desc = cudaCreateChannelDesc<float>();
  from.res.linear.sizeInBytes = 1024;
  cudaTextureDesc how = {};
  cudaTextureObject_t linear;
  CHECK(cudaCreateTextureObject(&linear, &from, &how, nullptr));
  fetched<<<3, 128>>>(linear, results, 384), show("fetched", 384);
  cudaArray_t in = array_of<float>(8, 8, 0, cudaArraySurfaceLoadStore), out = array_of<float>(8, 8, 0, cudaArraySurfaceLoadStore);
  cudaSurfaceObject_t surface_in, surface_out;
  from = {};
  from.res.array.array = in;
  CHECK(cudaCreateSurfaceObject(&surface_in, &from));
  from.res.array.array = out;
  CHECK(cudaCreateSurfaceObject(&surface_out, &from));
  surfaces<<<1, dim3(12, 12)>>>(surface_in, surface_out);
  CHECK(cudaMemcpy2DFromArray(results, 32, out, 0, 0, 32, 8, cudaMemcpyDeviceToDevice));
  show("surface", 64);
}
