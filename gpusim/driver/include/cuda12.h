// What CUDA 13's runtime has no more, for programs that were written for earlier ones.
#pragma once
#if defined(__cplusplus) && __has_include(<cuda_runtime.h>)
#include <cuda_runtime.h>

struct gpusim_device_properties : cudaDeviceProp {
  int clockRate, memoryClockRate, deviceOverlap, kernelExecTimeoutEnabled, computeMode;
  int singleToDoublePrecisionPerfRatio, cooperativeMultiDeviceLaunch, maxTexture1DLinear;
};
static inline cudaError_t cudaGetDeviceProperties(gpusim_device_properties *made, int device) {
  cudaError_t status = cudaGetDeviceProperties(static_cast<cudaDeviceProp *>(made), device);
  if (status != cudaSuccess) return status;
  cudaDeviceGetAttribute(&made->clockRate, cudaDevAttrClockRate, device);
  cudaDeviceGetAttribute(&made->memoryClockRate, cudaDevAttrMemoryClockRate, device);
  cudaDeviceGetAttribute(&made->deviceOverlap, cudaDevAttrGpuOverlap, device);
  cudaDeviceGetAttribute(&made->computeMode, cudaDevAttrComputeMode, device);
  cudaDeviceGetAttribute(&made->kernelExecTimeoutEnabled, cudaDevAttrKernelExecTimeout, device);
  cudaDeviceGetAttribute(&made->singleToDoublePrecisionPerfRatio, cudaDevAttrSingleToDoublePrecisionPerfRatio, device);
  made->cooperativeMultiDeviceLaunch = made->maxTexture1DLinear = 0;
  return status;
}
#define cudaDeviceProp gpusim_device_properties

static inline cudaError_t cudaThreadSynchronize() { return cudaDeviceSynchronize(); }
static inline cudaError_t cudaThreadExit() { return cudaDeviceReset(); }
static inline cudaError_t cudaThreadSetLimit(cudaLimit limit, size_t value) { return cudaDeviceSetLimit(limit, value); }
static inline cudaError_t cudaThreadGetLimit(size_t *value, cudaLimit limit) { return cudaDeviceGetLimit(value, limit); }
static inline cudaError_t cudaThreadSetCacheConfig(cudaFuncCache config) { return cudaDeviceSetCacheConfig(config); }

static inline cudaMemLocation gpusim_location_of(int device) {
  cudaMemLocation made = {};
  made.type = device == cudaCpuDeviceId ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice;
  made.id = device == cudaCpuDeviceId ? 0 : device;
  return made;
}
static inline cudaError_t cudaMemPrefetchAsync(const void *address, size_t size, int device, cudaStream_t stream = 0) {
  return cudaMemPrefetchAsync(address, size, gpusim_location_of(device), 0, stream);
}
static inline cudaError_t cudaMemAdvise(const void *address, size_t size, cudaMemoryAdvise advice, int device) {
  return cudaMemAdvise(address, size, advice, gpusim_location_of(device));
}
static inline cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to, size_t count) {
  return cudaGraphAddDependencies(graph, from, to, nullptr, count);
}

#ifdef __CUDACC__
// Functions of a warp without a mask: of the lanes that are together, as the compiler has them here.
#define GPUSIM_OF_A_WARP(name, lane_type)                                                          \
  template <class T> static __device__ __forceinline__ T name(T value, lane_type lane, int width = 32) { \
    return name##_sync(__activemask(), value, lane, width);                                        \
  }
GPUSIM_OF_A_WARP(__shfl, int)
GPUSIM_OF_A_WARP(__shfl_up, unsigned)
GPUSIM_OF_A_WARP(__shfl_down, unsigned)
GPUSIM_OF_A_WARP(__shfl_xor, int)
#undef GPUSIM_OF_A_WARP
#endif
#endif
