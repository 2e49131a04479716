// Texture references, which CUDA 12 has removed, upon texture objects: a reference is a variable of the
// device that holds an object, and its host side holds how it is sampled. `texture` is a macro, and so
// only for programs that do not compile without.
#pragma once
#ifdef __CUDACC__
#include <cuda_runtime.h>

extern "C" int cuMemGetAddressRange_v2(unsigned long long *, size_t *, unsigned long long);
extern "C" void *gpusim_before_launches(void (*)());

template <class T> struct gpusim_channels;
#define GPUSIM_CHANNELS_OF(type, bits, count, kind)                                                        \
  template <> struct gpusim_channels<type> {                                                               \
    static constexpr __host__ __device__ cudaChannelFormatDesc made() {                                    \
      return {bits, count > 1 ? bits : 0, count > 2 ? bits : 0, count > 3 ? bits : 0, cudaChannelFormatKind##kind}; \
    }                                                                                                      \
  };
#define GPUSIM_CHANNELS(type, vector, bits, kind)                                                          \
  GPUSIM_CHANNELS_OF(type, bits, 1, kind)                                                                  \
  GPUSIM_CHANNELS_OF(vector##1, bits, 1, kind)                                                             \
  GPUSIM_CHANNELS_OF(vector##2, bits, 2, kind)                                                             \
  GPUSIM_CHANNELS_OF(vector##4, bits, 4, kind)
GPUSIM_CHANNELS(signed char, char, 8, Signed)
GPUSIM_CHANNELS(unsigned char, uchar, 8, Unsigned)
GPUSIM_CHANNELS(short, short, 16, Signed)
GPUSIM_CHANNELS(unsigned short, ushort, 16, Unsigned)
GPUSIM_CHANNELS(int, int, 32, Signed)
GPUSIM_CHANNELS(unsigned, uint, 32, Unsigned)
GPUSIM_CHANNELS(float, float, 32, Float)
GPUSIM_CHANNELS_OF(char, 8, 1, Signed)
#undef GPUSIM_CHANNELS
#undef GPUSIM_CHANNELS_OF

template <class T, int dimensions = 1, cudaTextureReadMode mode = cudaReadModeElementType> struct gpusim_texture {
  int normalized;
  cudaTextureFilterMode filterMode;
  cudaTextureAddressMode addressMode[3];
  cudaChannelFormatDesc channelDesc;
  cudaTextureObject_t object;
  __host__ __device__ constexpr gpusim_texture(int norm = 0, cudaTextureFilterMode filter = cudaFilterModePoint,
                                               cudaTextureAddressMode address = cudaAddressModeClamp)
      : normalized(norm), filterMode(filter), addressMode{address, address, address}, channelDesc(gpusim_channels<T>::made()), object(0) {}
};

template <class T, cudaTextureReadMode mode> struct gpusim_fetched { typedef T fetched; };
#define GPUSIM_NORMALIZED(type, vector)                                                                    \
  template <> struct gpusim_fetched<type, cudaReadModeNormalizedFloat> { typedef float fetched; };          \
  template <> struct gpusim_fetched<vector##1, cudaReadModeNormalizedFloat> { typedef float1 fetched; };    \
  template <> struct gpusim_fetched<vector##2, cudaReadModeNormalizedFloat> { typedef float2 fetched; };    \
  template <> struct gpusim_fetched<vector##4, cudaReadModeNormalizedFloat> { typedef float4 fetched; };
GPUSIM_NORMALIZED(signed char, char)
GPUSIM_NORMALIZED(unsigned char, uchar)
GPUSIM_NORMALIZED(short, short)
GPUSIM_NORMALIZED(unsigned short, ushort)
#undef GPUSIM_NORMALIZED

#define GPUSIM_FETCH(name, parameters, ...)                                                                \
  template <class T, int n, cudaTextureReadMode mode>                                                      \
  static __device__ __forceinline__ typename gpusim_fetched<T, mode>::fetched name parameters {               \
    return name<typename gpusim_fetched<T, mode>::fetched>(from.object, __VA_ARGS__);                         \
  }
#define GPUSIM_FROM const gpusim_texture<T, n, mode> &from
GPUSIM_FETCH(tex1Dfetch, (GPUSIM_FROM, int x), x)
GPUSIM_FETCH(tex1D, (GPUSIM_FROM, float x), x)
GPUSIM_FETCH(tex2D, (GPUSIM_FROM, float x, float y), x, y)
GPUSIM_FETCH(tex3D, (GPUSIM_FROM, float x, float y, float z), x, y, z)
GPUSIM_FETCH(tex1DLayered, (GPUSIM_FROM, float x, int layer), x, layer)
GPUSIM_FETCH(tex2DLayered, (GPUSIM_FROM, float x, float y, int layer), x, y, layer)
#undef GPUSIM_FETCH

#define GPUSIM_OF template <class T, int n, cudaTextureReadMode mode> static inline cudaError_t
#define GPUSIM_TO const gpusim_texture<T, n, mode> &to
// A bound reference with its object's resource and sampling, which is as it was at the last launch.
struct gpusim_bound {
  const void *reference;
  cudaResourceDesc resource;
  cudaTextureDesc sampling;
  cudaError_t (*refresh)(gpusim_bound *);
  gpusim_bound *next;
};
static gpusim_bound *gpusim_all_bound;
static void (*gpusim_earlier)();
static bool gpusim_is_told;
static void gpusim_refresh() {
  if (gpusim_earlier) gpusim_earlier();
  for (gpusim_bound *one = gpusim_all_bound; one; one = one->next) one->refresh(one);
}
static inline bool gpusim_is_same(const cudaTextureDesc &a, const cudaTextureDesc &b) {
  for (int k = 0; k < 3; k++)
    if (a.addressMode[k] != b.addressMode[k]) return false;
  return a.filterMode == b.filterMode && a.normalizedCoords == b.normalizedCoords;
}
GPUSIM_OF gpusim_renew(gpusim_bound *bound) {
  gpusim_texture<T, n, mode> &to = *(gpusim_texture<T, n, mode> *)bound->reference;
  cudaTextureDesc sampling = {};
  for (int k = 0; k < 3; k++) sampling.addressMode[k] = to.addressMode[k];
  sampling.filterMode = to.filterMode, sampling.readMode = mode, sampling.normalizedCoords = to.normalized;
  if (to.object && gpusim_is_same(sampling, bound->sampling)) return cudaSuccess;
  if (to.object) cudaDestroyTextureObject(to.object);
  to.object = 0, bound->sampling = sampling;
  cudaError_t status = cudaCreateTextureObject(&to.object, &bound->resource, &sampling, 0);
  return status ? status : cudaMemcpyToSymbol(to, &to, sizeof to);
}
GPUSIM_OF cudaUnbindTexture(GPUSIM_TO) {
  for (gpusim_bound **at = &gpusim_all_bound; *at; at = &(*at)->next) {
    gpusim_bound *one = *at;
    if (one->reference != &to) continue;
    cudaTextureObject_t &held = const_cast<cudaTextureObject_t &>(to.object);
    cudaDestroyTextureObject(held);
    held = 0, *at = one->next;
    delete one;
    break;
  }
  return cudaSuccess;
}
GPUSIM_OF gpusim_bind(GPUSIM_TO, const cudaResourceDesc &resource) {
  cudaUnbindTexture(to);
  gpusim_bound *made = new gpusim_bound{&to, resource, {}, gpusim_renew<T, n, mode>, gpusim_all_bound};
  if (!gpusim_is_told) gpusim_earlier = (void (*)())gpusim_before_launches(gpusim_refresh);
  gpusim_is_told = true, gpusim_all_bound = made;
  return made->refresh(made);
}
GPUSIM_OF cudaBindTextureToArray(GPUSIM_TO, cudaArray_const_t array) {
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray, resource.res.array.array = const_cast<cudaArray_t>(array);
  return gpusim_bind(to, resource);
}
GPUSIM_OF cudaBindTextureToArray(GPUSIM_TO, cudaArray_const_t array, const cudaChannelFormatDesc &) { return cudaBindTextureToArray(to, array); }
GPUSIM_OF cudaBindTexture(size_t *offset, GPUSIM_TO, const void *memory, const cudaChannelFormatDesc &of, size_t size = ~0u) {
  unsigned long long begin = 0, at = (unsigned long long)memory;
  size_t whole = 0;
  if (cuMemGetAddressRange_v2(&begin, &whole, at)) return cudaErrorInvalidValue;
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeLinear, resource.res.linear.devPtr = const_cast<void *>(memory);
  resource.res.linear.desc = of, resource.res.linear.sizeInBytes = size < begin + whole - at ? size : begin + whole - at;
  if (offset) *offset = 0;
  return gpusim_bind(to, resource);
}
GPUSIM_OF cudaBindTexture(size_t *offset, GPUSIM_TO, const void *memory, size_t size = ~0u) {
  return cudaBindTexture(offset, to, memory, cudaCreateChannelDesc<T>(), size);
}
GPUSIM_OF cudaBindTexture2D(size_t *offset, GPUSIM_TO, const void *memory, const cudaChannelFormatDesc &of, size_t width, size_t height, size_t pitch) {
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypePitch2D, resource.res.pitch2D.devPtr = const_cast<void *>(memory);
  resource.res.pitch2D.desc = of, resource.res.pitch2D.width = width;
  resource.res.pitch2D.height = height, resource.res.pitch2D.pitchInBytes = pitch;
  if (offset) *offset = 0;
  return gpusim_bind(to, resource);
}
GPUSIM_OF cudaBindTexture2D(size_t *offset, GPUSIM_TO, const void *memory, size_t width, size_t height, size_t pitch) {
  return cudaBindTexture2D(offset, to, memory, cudaCreateChannelDesc<T>(), width, height, pitch);
}
GPUSIM_OF cudaGetTextureAlignmentOffset(size_t *offset, GPUSIM_TO) {
  *offset = 0;
  return to.object ? cudaSuccess : cudaErrorInvalidValue;
}
#define texture __device__ gpusim_texture
#endif
