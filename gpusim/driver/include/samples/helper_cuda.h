// Of the helpers of CUDA's samples what programs call most, for those that come without them.
#pragma once
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

#include "helper_string.h"

template <typename Status> void gpusim_checked(Status status, const char *call, const char *file, int line) {
  if (!status) return;
  const char *name = cudaGetErrorName((cudaError_t)status);
  fprintf(stderr, "CUDA error at %s:%d code=%d(%s) \"%s\" \n", file, line, (int)status, name, call);
  exit(EXIT_FAILURE);
}
#define checkCudaErrors(call) gpusim_checked((call), #call, __FILE__, __LINE__)
#define getLastCudaError(text) gpusim_checked(cudaGetLastError(), text, __FILE__, __LINE__)
#ifndef MAX
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#endif
#ifndef MIN
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#endif
inline const char *_cudaGetErrorEnum(cudaError_t status) { return cudaGetErrorName(status); }
inline int _ConvertSMVer2Cores(int major, int minor) {  // CUDA C++ Programming Guide, "Compute Capabilities"
  return major == 7 || (major == 8 && minor == 0) ? 64 : 128;
}
inline int gpuGetMaxGflopsDeviceId() { return 0; }
inline int gpuDeviceInit(int device) {
  checkCudaErrors(cudaSetDevice(device));
  return device;
}
inline int findCudaDevice(int count, const char **words) {
  int device = checkCmdLineFlag(count, words, "device") ? getCmdLineArgumentInt(count, words, "device") : 0;
  cudaDeviceProp found;
  checkCudaErrors(cudaSetDevice(device));
  checkCudaErrors(cudaGetDeviceProperties(&found, device));
  printf("GPU Device %d: \"%s\" with compute capability %d.%d\n\n", device, found.name, found.major, found.minor);
  return device;
}
inline bool checkCudaCapabilities(int major, int minor) {
  cudaDeviceProp found;
  checkCudaErrors(cudaGetDeviceProperties(&found, 0));
  return found.major > major || (found.major == major && found.minor >= minor);
}
