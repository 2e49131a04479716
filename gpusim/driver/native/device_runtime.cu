// The device runtime's functions for kernels that launch kernels: a launch is noted in memory of the
// module, and begins when the kernel that gave it has ended (gpusim/driver/device_launches.py).

enum { MOST_LAUNCHES = 1 << 14, MOST_PARAMETER_BYTES = 4096 };

struct gpusim_launch {
  unsigned long long function, stream;
  unsigned grid[3], block[3], shared, is_given;
  char parameters[MOST_PARAMETER_BYTES];
};
__device__ unsigned long long gpusim_device_launch_count;
__device__ gpusim_launch gpusim_device_launches[MOST_LAUNCHES];

static __device__ cudaError_t given(void *parameters, cudaStream_t stream) {
  gpusim_launch *made = (gpusim_launch *)((char *)parameters + MOST_PARAMETER_BYTES - sizeof(gpusim_launch));
  made->stream = (unsigned long long)stream, made->is_given = 1;
  return cudaSuccess;
}
__global__ void gpusim_copy(char *to, const char *from, size_t size) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < size; i += gridDim.x * (size_t)blockDim.x) to[i] = from[i];
}
__global__ void gpusim_set(char *to, char value, size_t size) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < size; i += gridDim.x * (size_t)blockDim.x) to[i] = value;
}
static __device__ unsigned blocks_for(size_t size) { return size > (1 << 20) ? 4096 : (unsigned)((size + 255) / 256); }

// CUDA's header declares these functions, and defines each name as a macro for nothing.
#define SERVED(name) extern "C" __device__ cudaError_t name
#undef __cudaCDP2GetParameterBufferV2
extern "C" __device__ void *__cudaCDP2GetParameterBufferV2(void *function, dim3 grid, dim3 block, unsigned shared) {
  unsigned long long place = atomicAdd(&gpusim_device_launch_count, 1ull);
  if (place >= MOST_LAUNCHES) __trap();
  gpusim_launch &made = gpusim_device_launches[place];
  made.function = (unsigned long long)function;
  made.grid[0] = grid.x, made.grid[1] = grid.y, made.grid[2] = grid.z;
  made.block[0] = block.x, made.block[1] = block.y, made.block[2] = block.z;
  made.shared = shared, made.is_given = 0;
  return made.parameters;
}
#undef __cudaCDP2LaunchDeviceV2
#undef __cudaCDP2LaunchDeviceV2_ptsz
SERVED(__cudaCDP2LaunchDeviceV2)(void *parameters, cudaStream_t stream) { return given(parameters, stream); }
SERVED(__cudaCDP2LaunchDeviceV2_ptsz)(void *parameters, cudaStream_t stream) { return given(parameters, stream); }
#undef __cudaCDP2MemcpyAsync
#undef __cudaCDP2MemsetAsync
SERVED(__cudaCDP2MemcpyAsync)(void *to, const void *from, size_t size, cudaMemcpyKind, cudaStream_t stream) {
  if (size) gpusim_copy<<<blocks_for(size), 256, 0, stream>>>((char *)to, (const char *)from, size);
  return cudaSuccess;
}
SERVED(__cudaCDP2MemsetAsync)(void *to, int value, size_t size, cudaStream_t stream) {
  if (size) gpusim_set<<<blocks_for(size), 256, 0, stream>>>((char *)to, (char)value, size);
  return cudaSuccess;
}
#undef __cudaCDP2Malloc
#undef __cudaCDP2Free
SERVED(__cudaCDP2Malloc)(void **made, size_t size) {
  *made = malloc(size);
  return *made ? cudaSuccess : cudaErrorMemoryAllocation;
}
SERVED(__cudaCDP2Free)(void *given) {
  free(given);
  return cudaSuccess;
}
// All launches are done in the order given: streams and events of a kernel have nothing to do.
#undef __cudaCDP2StreamCreateWithFlags
#undef __cudaCDP2StreamDestroy
#undef __cudaCDP2StreamWaitEvent
#undef __cudaCDP2EventCreateWithFlags
#undef __cudaCDP2EventRecord
#undef __cudaCDP2EventDestroy
SERVED(__cudaCDP2StreamCreateWithFlags)(cudaStream_t *made, unsigned) { *made = 0; return cudaSuccess; }
SERVED(__cudaCDP2StreamDestroy)(cudaStream_t) { return cudaSuccess; }
SERVED(__cudaCDP2StreamWaitEvent)(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
SERVED(__cudaCDP2EventCreateWithFlags)(cudaEvent_t *made, unsigned) { *made = 0; return cudaSuccess; }
SERVED(__cudaCDP2EventRecord)(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
SERVED(__cudaCDP2EventDestroy)(cudaEvent_t) { return cudaSuccess; }
#undef __cudaCDP2GetLastError
#undef __cudaCDP2PeekAtLastError
#undef __cudaCDP2GetErrorString
#undef __cudaCDP2GetErrorName
#undef __cudaCDP2GetDevice
#undef __cudaCDP2GetDeviceCount
SERVED(__cudaCDP2GetLastError)() { return cudaSuccess; }
SERVED(__cudaCDP2PeekAtLastError)() { return cudaSuccess; }
extern "C" __device__ const char *__cudaCDP2GetErrorString(cudaError_t status) { return status ? "a launch failed" : "no error"; }
extern "C" __device__ const char *__cudaCDP2GetErrorName(cudaError_t status) { return status ? "cudaErrorUnknown" : "cudaSuccess"; }
SERVED(__cudaCDP2GetDevice)(int *device) { *device = 0; return cudaSuccess; }
SERVED(__cudaCDP2GetDeviceCount)(int *count) { *count = 1; return cudaSuccess; }
