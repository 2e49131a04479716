// The CUDA runtime as its documentation has it, upon the driver beside it; kernels and variables
// come from the registration calls that nvcc's host code makes.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arrays.h"
#include "errors.h"

#define API __attribute__((visibility("default")))
typedef uint64_t u64;
typedef void *handle;
typedef struct { unsigned x, y, z; } dim3;

enum { INVALID_VALUE = 1, INVALID_SYMBOL = 13, INVALID_DIRECTION = 21, INVALID_CONFIGURATION = 9,
       INVALID_FUNCTION = 98, INVALID_DEVICE = 101, NO_IMAGE = 209, NOT_SUPPORTED = 801 };
enum { RUNTIME_VERSION = 13000 };

// ---- The driver's functions that are used here

extern int cuInit(unsigned), cuDriverGetVersion(int *), cuDeviceGetAttribute(int *, int, int);
extern int cuDeviceGetName(char *, int, int), cuDeviceTotalMem_v2(size_t *, int), cuDeviceGetUuid_v2(char *, int);
extern int cuDevicePrimaryCtxRetain(handle *, int), cuDevicePrimaryCtxReset_v2(int);
extern int cuCtxSetCurrent(handle), cuCtxGetCurrent(handle *), cuCtxSynchronize(void);
extern int cuCtxGetLimit(size_t *, int), cuCtxSetLimit(int, size_t);
extern int cuCtxGetStreamPriorityRange(int *, int *);
extern int cuMemGetInfo_v2(size_t *, size_t *), cuMemAlloc_v2(u64 *, size_t), cuMemFree_v2(u64);
extern int cuMemAllocPitch_v2(u64 *, size_t *, size_t, size_t, unsigned);
extern int cuMemAllocManaged(u64 *, size_t, unsigned), cuMemHostAlloc(void **, size_t, unsigned), cuMemFreeHost(void *);
extern int cuMemAllocAsync(u64 *, size_t, handle), cuMemFreeAsync(u64, handle);
extern int cuMemHostRegister_v2(void *, size_t, unsigned), cuMemHostUnregister(void *);
extern int cuMemHostGetDevicePointer_v2(u64 *, void *, unsigned), cuMemHostGetFlags(unsigned *, void *);
extern int cuMemcpyHtoD_v2(u64, const void *, size_t), cuMemcpyDtoH_v2(void *, u64, size_t);
extern int cuMemcpyDtoD_v2(u64, u64, size_t), cuMemcpy(u64, u64, size_t);
extern int cuMemcpyHtoDAsync_v2(u64, const void *, size_t, handle), cuMemcpyDtoHAsync_v2(void *, u64, size_t, handle);
extern int cuMemcpyDtoDAsync_v2(u64, u64, size_t, handle), cuMemcpyAsync(u64, u64, size_t, handle);
extern int cuMemcpy3D_v2(const void *), cuMemcpy3DAsync_v2(const void *, handle);
extern int cuArray3DCreate_v2(struct array **, const struct array_size *), cuArrayDestroy(struct array *);
extern int cuTexObjectCreate(u64 *, const struct resource *, const struct sampling *, const void *), cuTexObjectDestroy(u64);
extern int cuSurfObjectCreate(u64 *, const struct resource *), cuSurfObjectDestroy(u64);
extern int cuMemsetD8_v2(u64, unsigned char, size_t), cuMemsetD8Async(u64, unsigned char, size_t, handle);
extern int cuMemsetD2D8_v2(u64, size_t, unsigned char, size_t, size_t);
extern int cuMemsetD2D8Async(u64, size_t, unsigned char, size_t, size_t, handle);
extern int cuMemPrefetchAsync(u64, size_t, int, handle), cuPointerGetAttributes(unsigned, const int *, void **, u64);
extern int cuMemPoolCreate(u64 *, const void *), cuMemPoolDestroy(u64), cuMemPoolTrimTo(u64, size_t);
extern int cuMemPoolGetAttribute(u64, int, void *), cuMemPoolSetAttribute(u64, int, void *);
extern int cuDeviceGetDefaultMemPool(u64 *, int), cuMemAllocFromPoolAsync(u64 *, size_t, u64, handle);
extern int cuModuleLoadData(handle *, const void *), cuModuleGetFunction(handle *, handle, const char *);
extern int cuModuleGetGlobal_v2(u64 *, size_t *, handle, const char *), cuModuleUnload(handle);
extern int cuFuncGetAttribute(int *, int, handle), cuFuncSetAttribute(handle, int, int), cuFuncGetName(const char **, handle);
extern int cuLaunchKernel(handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, handle, void **, void **);
extern int cuLaunchCooperativeKernel(handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, handle, void **);
extern int cuLaunchKernelEx(const void *, handle, void **, void **);
extern int cuLaunchHostFunc(handle, void (*)(void *), void *), cuStreamAddCallback(handle, void *, void *, unsigned);
extern int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *, handle, int, size_t);
extern int cuOccupancyAvailableDynamicSMemPerBlock(size_t *, handle, int, int);
extern int cuStreamCreateWithPriority(handle *, unsigned, int), cuStreamDestroy_v2(handle), cuStreamSynchronize(handle);
extern int cuStreamQuery(handle), cuStreamWaitEvent(handle, handle, unsigned), cuStreamGetFlags(handle, unsigned *);
extern int cuStreamGetPriority(handle, int *), cuStreamGetId(handle, unsigned long long *);
extern int cuStreamBeginCapture_v2(handle, int), cuStreamEndCapture(handle, handle *), cuStreamIsCapturing(handle, int *);
extern int cuEventCreate(handle *, unsigned), cuEventDestroy_v2(handle), cuEventRecord(handle, handle);
extern int cuEventSynchronize(handle), cuEventQuery(handle), cuEventElapsedTime(float *, handle, handle);
extern int cuGraphCreate(handle *, unsigned), cuGraphDestroy(handle), cuGraphLaunch(handle, handle);
extern int cuGraphInstantiateWithFlags(handle *, handle, unsigned long long), cuGraphExecDestroy(handle);
extern int cuGraphAddKernelNode_v2(handle *, handle, const handle *, size_t, const void *);
extern int cuGraphAddMemcpyNode(handle *, handle, const handle *, size_t, const void *, handle);
extern int cuGraphAddMemsetNode(handle *, handle, const handle *, size_t, const void *, handle);
extern int cuGraphAddHostNode(handle *, handle, const handle *, size_t, const void *);
struct driver_kernel_node;
struct box;
extern int cuGraphKernelNodeSetParams_v2(handle, const struct driver_kernel_node *);
extern int cuGraphExecKernelNodeSetParams_v2(handle, handle, const struct driver_kernel_node *);
extern int cuGraphMemcpyNodeSetParams(handle, const struct box *), cuGraphExecMemcpyNodeSetParams(handle, handle, const struct box *, handle);
extern int cuGraphExecUpdate_v2(handle, handle, void *), cuGraphAddMemAllocNode(handle *, handle, const handle *, size_t, void *);
extern int cuGraphAddMemFreeNode(handle *, handle, const handle *, size_t, u64);
extern int cuGraphAddEventRecordNode(handle *, handle, const handle *, size_t, handle), cuGraphAddEventWaitNode(handle *, handle, const handle *, size_t, handle);
extern int cuGraphAddChildGraphNode(handle *, handle, const handle *, size_t, handle);
extern int cuGraphAddEmptyNode(handle *, handle, const handle *, size_t), cuGraphGetNodes(handle, handle *, size_t *);
extern int cuGraphAddDependencies(handle, const handle *, const handle *, size_t), cuGraphClone(handle *, handle);
extern int cuGraphNodeGetType(handle, int *);
extern int cuGraphMemsetNodeGetParams(handle, void *), cuGraphMemsetNodeSetParams(handle, const void *);
extern int cuGraphExecMemsetNodeSetParams(handle, handle, const void *, handle);
extern int cuGraphHostNodeGetParams(handle, void *), cuGraphHostNodeSetParams(handle, const void *);
extern int cuGraphExecHostNodeSetParams(handle, handle, const void *), cuGraphDestroyNode(handle);
extern int cuGraphNodeSetEnabled(handle, handle, unsigned), cuGraphNodeGetEnabled(handle, handle, unsigned *);
extern int cuGraphNodeFindInClone(handle *, handle, handle), cuGraphInstantiateWithParams(handle *, handle, void *);
extern int cuUserObjectCreate(handle *, void *, void (*)(void *), unsigned, unsigned);
extern int cuUserObjectRetain(handle, unsigned), cuUserObjectRelease(handle, unsigned);
extern int cuGraphRetainUserObject(handle, handle, unsigned, unsigned), cuGraphReleaseUserObject(handle, handle, unsigned);
extern int cuGraphAddNode(handle *, handle, const handle *, size_t, void *), cuGraphNodeSetParams(handle, const void *);
extern int cuGraphExecNodeSetParams(handle, handle, const void *), cuGraphConditionalHandleCreate(u64 *, handle, handle, unsigned, unsigned);
extern int cuStreamBeginCaptureToGraph(handle, handle, const handle *, const void *, size_t, int);
extern int cuStreamGetCaptureInfo_v3(handle, int *, u64 *, handle *, const handle **, const void **, size_t *);
extern int cuStreamUpdateCaptureDependencies_v2(handle, handle *, const void *, size_t, unsigned);
extern int cuDeviceGetGraphMemAttribute(int, int, void *), cuDeviceSetGraphMemAttribute(int, int, void *), cuDeviceGraphMemTrim(int);
extern int cuStreamSetAttribute(handle, int, const void *), cuStreamGetAttribute(handle, int, void *), cuStreamCopyAttributes(handle, handle);
extern int cuGetProcAddress_v2(const char *, void **, int, u64, int *), gpusim_refuse(const char *);
extern void gpusim_tell(const char *, const char *, size_t), gpusim_manage(u64, size_t);

// ---- Errors, and the context that the first call makes

static __thread int last;
static int note(int status) {
  if (status) last = status;
  return status;
}
static int ready(void) {
  static __thread int is_current;
  handle context;
  if (is_current) return 0;
  int status = cuInit(0);
  if (!status) status = cuCtxGetCurrent(&context);
  if (!status && !context) {
    status = cuDevicePrimaryCtxRetain(&context, 0);
    if (!status) status = cuCtxSetCurrent(context);
  }
  is_current = !status;
  if (is_current) gpusim_tell("runtime", NULL, 0);
  return status;
}
#define READY                        \
  do {                               \
    int begun = ready();             \
    if (begun) return note(begun);   \
  } while (0)
// Results go nowhere: the status of a GPU, in place of a fault of the program.
#define NEEDS(pointer)                              \
  do {                                              \
    if (!(pointer)) return note(INVALID_VALUE);     \
  } while (0)
#define CALL(call)       \
  do {                   \
    READY;               \
    return note(call);   \
  } while (0)

// A failed launch is known to cudaGetLastError alone: who never asks has missed it.
static __thread int is_unasked;
static int asked(void) {
  if (is_unasked) gpusim_tell("asked", NULL, 0);
  is_unasked = 0;
  return last;
}
API int cudaGetLastError(void) { int found = asked(); last = 0; return found; }
API int cudaPeekAtLastError(void) { return asked(); }
API const char *cudaGetErrorString(int status) {
  const struct status *found = gpusim_status(status);
  return found ? found->text : "unrecognized error code";
}
API const char *cudaGetErrorName(int status) {
  const struct status *found = gpusim_status(status);
  return found ? found->runtime_name : "unrecognized error code";
}

// ---- What nvcc's host code registers before main

struct wrapper { int magic, version; const void *data; void *other; };
struct binary { const void *image; handle module; struct variable *managed; };
struct kernel { const void *host; const char *name; struct binary *binary; handle function; struct kernel *next; };
struct variable { const void *host; const char *name; struct binary *binary; size_t size; void **pointer; struct variable *next, *next_managed; };
enum { BUCKETS = 1024 };
static struct kernel *kernels[BUCKETS];
static struct variable *variables[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static unsigned bucket(const void *host) { return (unsigned)((u64)host >> 4) % BUCKETS; }

static int load(struct binary *binary) {
  int status = 0;
  pthread_mutex_lock(&lock);
  if (!binary->module) {
    status = cuModuleLoadData(&binary->module, binary->image);
    for (struct variable *one = binary->managed; !status && one; one = one->next_managed) {
      u64 address;
      status = cuModuleGetGlobal_v2(&address, NULL, binary->module, one->name);
      if (!status) gpusim_manage(address, one->size), *one->pointer = (void *)address;
    }
  }
  pthread_mutex_unlock(&lock);
  return status;
}
static struct kernel *kernel_of(const void *host) {
  struct kernel *one = kernels[bucket(host)];
  while (one && one->host != host) one = one->next;
  return one;
}
static int function_of(const void *host, handle *function) {
  struct kernel *one = kernel_of(host);
  if (!one) return INVALID_FUNCTION;
  int status = one->function ? 0 : load(one->binary);
  if (!status && !one->function) status = cuModuleGetFunction(&one->function, one->binary->module, one->name);
  *function = one->function;
  return status == 500 ? INVALID_FUNCTION : status;
}
static int address_of(const void *symbol, u64 *address, size_t *size) {
  struct variable *one = variables[bucket(symbol)];
  while (one && one->host != symbol) one = one->next;
  if (!one) return INVALID_SYMBOL;
  int status = load(one->binary);
  if (!status) status = cuModuleGetGlobal_v2(address, size, one->binary->module, one->name);
  return status == 500 ? INVALID_SYMBOL : status;
}

API void **__cudaRegisterFatBinary(void *given) {
  struct binary *made = calloc(1, sizeof *made);
  made->image = ((struct wrapper *)given)->data;
  return (void **)made;
}
API void __cudaRegisterFatBinaryEnd(void **binary) { (void)binary; }
API void __cudaUnregisterFatBinary(void **binary) { (void)binary; }
API char __cudaInitModule(void **binary) {
  return (char)(!ready() && !load((struct binary *)binary));
}
API void __cudaRegisterFunction(void **binary, const char *host, char *device, const char *name, int limit, void *a, void *b, void *c, void *d, int *e) {
  (void)device, (void)limit, (void)a, (void)b, (void)c, (void)d, (void)e;
  struct kernel *made = calloc(1, sizeof *made);
  unsigned place = bucket(host);
  *made = (struct kernel){host, name, (struct binary *)binary, NULL, kernels[place]};
  kernels[place] = made;
}
static struct variable *add_variable(void **binary, const void *host, const char *name, size_t size) {
  struct variable *made = calloc(1, sizeof *made);
  unsigned place = bucket(host);
  *made = (struct variable){host, name, (struct binary *)binary, size, NULL, variables[place], NULL};
  return variables[place] = made;
}
API void __cudaRegisterVar(void **binary, char *host, char *device, const char *name, int external, size_t size, int constant, int global) {
  (void)device, (void)external, (void)constant, (void)global;
  add_variable(binary, host, name, size);
}
API void __cudaRegisterManagedVar(void **binary, void **pointer, char *device, const char *name, int external, size_t size, int constant, int global) {
  (void)device, (void)external, (void)constant, (void)global;
  struct variable *made = add_variable(binary, pointer, name, size);
  made->pointer = pointer, made->next_managed = made->binary->managed;
  made->binary->managed = made;
}
API void __cudaRegisterTexture(void **b, const void *h, const void **d, const char *n, int dim, int norm, int ext) { (void)b, (void)h, (void)d, (void)n, (void)dim, (void)norm, (void)ext; }
API void __cudaRegisterSurface(void **b, const void *h, const void **d, const char *n, int dim, int ext) { (void)b, (void)h, (void)d, (void)n, (void)dim, (void)ext; }

API int cudaGetSymbolAddress(void **address, const void *symbol) { size_t size; CALL(address_of(symbol, (u64 *)address, &size)); }
API int cudaGetSymbolSize(size_t *size, const void *symbol) { u64 address; CALL(address_of(symbol, &address, size)); }

// ---- Devices

API int cudaGetDeviceCount(int *count) {
  NEEDS(count);
  int status = ready();
  *count = !status;
  return note(status);
}
API int cudaGetDevice(int *device) { NEEDS(device); READY; *device = 0; return 0; }
API int cudaSetDevice(int device) { READY; return note(device ? INVALID_DEVICE : 0); }
API int cudaInitDevice(int device, unsigned flags, unsigned other) { (void)flags, (void)other; return cudaSetDevice(device); }
API int cudaSetValidDevices(int *devices, int count) { (void)devices, (void)count; return 0; }
API int cudaChooseDevice(int *device, const void *wanted) { (void)wanted; READY; *device = 0; return 0; }
API int cudaSetDeviceFlags(unsigned flags) { (void)flags; return 0; }
API int cudaGetDeviceFlags(unsigned *flags) { READY; *flags = 0; return 0; }
API int cudaDeviceSynchronize(void) { CALL(cuCtxSynchronize()); }
API int cudaThreadSynchronize(void) { return cudaDeviceSynchronize(); }
API int cudaDeviceReset(void) {
  READY;
  for (unsigned place = 0; place < BUCKETS; place++) {
    for (struct kernel *one = kernels[place]; one; one = one->next) one->function = NULL, one->binary->module = NULL;
    for (struct variable *one = variables[place]; one; one = one->next) one->binary->module = NULL;
  }
  last = 0;
  return cuDevicePrimaryCtxReset_v2(0);
}
API int cudaDriverGetVersion(int *version) { return cuDriverGetVersion(version); }
API int cudaRuntimeGetVersion(int *version) { NEEDS(version); *version = RUNTIME_VERSION; return 0; }
API int cudaDeviceGetAttribute(int *value, int attribute, int device) { NEEDS(value); CALL(cuDeviceGetAttribute(value, attribute, device)); }
API int cudaDeviceSetCacheConfig(int config) { (void)config; READY; return 0; }
API int cudaDeviceGetCacheConfig(int *config) { READY; *config = 0; return 0; }
API int cudaDeviceSetSharedMemConfig(int config) { (void)config; READY; return 0; }
API int cudaDeviceGetSharedMemConfig(int *config) { READY; *config = 1; return 0; }
API int cudaDeviceSetLimit(int limit, size_t value) { CALL(cuCtxSetLimit(limit, value)); }
API int cudaDeviceGetLimit(size_t *value, int limit) { CALL(cuCtxGetLimit(value, limit)); }
API int cudaDeviceGetStreamPriorityRange(int *least, int *greatest) { CALL(cuCtxGetStreamPriorityRange(least, greatest)); }
API int cudaDeviceCanAccessPeer(int *can, int one, int other) { (void)one, (void)other; READY; *can = 0; return 0; }
API int cudaDeviceEnablePeerAccess(int device, unsigned flags) { (void)device, (void)flags; READY; return note(INVALID_DEVICE); }
API int cudaDeviceDisablePeerAccess(int device) { (void)device; READY; return note(INVALID_DEVICE); }
API int cudaDeviceGetPCIBusId(char *text, int size, int device) { READY; snprintf(text, (size_t)size, "0000:00:00.0"); return note(device ? INVALID_DEVICE : 0); }
API int cudaDeviceGetByPCIBusId(int *device, const char *text) { (void)text; READY; *device = 0; return 0; }
API int cudaCtxResetPersistingL2Cache(void) { READY; return 0; }
API int cudaProfilerStart(void) { return 0; }
API int cudaProfilerStop(void) { return 0; }

struct properties {
  char name[256], uuid[16], luid[8];
  unsigned luid_mask;
  size_t memory, shared;
  int registers, warp;
  size_t pitch;
  int threads, block[3], grid[3];
  size_t constant;
  int major, minor;
  size_t texture_alignment, texture_pitch;
  int sms, integrated, maps_host, textures[39];
  size_t surface_alignment;
  int concurrent, ecc, bus_id, device_id, domain_id, tcc, engines, unified, bus_bits, l2, persisting_l2;
  int sm_threads, priorities, global_l1, local_l1;
  size_t sm_shared;
  int sm_registers, managed, multi_board, board_group, host_atomics, pageable, concurrent_managed;
  int preemption, registered_pointers, cooperative;
  size_t shared_optin;
  int page_tables, direct_managed, sm_blocks, access_window;
  size_t reserved_shared;
  int registers_host, sparse, read_only_register, semaphores, pools, rdma;
  unsigned rdma_flush;
  int rdma_order;
  unsigned pool_handles;
  int deferred, ipc, clusters, unified_functions, numa_config, numa_id, mps, host_numa;
  unsigned pci_device, pci_subsystem;
  int numa_ipc, reserved[56];
};
static int value_of(int attribute) {
  int value = 0;
  cuDeviceGetAttribute(&value, attribute, 0);
  return value;
}
API int cudaGetDeviceProperties(struct properties *p, int device) {
  NEEDS(p);
  READY;
  if (device) return note(INVALID_DEVICE);
  memset(p, 0, sizeof *p);
  cuDeviceGetName(p->name, sizeof p->name, 0);
  cuDeviceGetUuid_v2(p->uuid, 0);
  cuDeviceTotalMem_v2(&p->memory, 0);
  p->shared = (size_t)value_of(8), p->registers = value_of(12), p->warp = value_of(10);
  p->pitch = (size_t)value_of(11), p->threads = value_of(1);
  for (int k = 0; k < 3; k++) p->block[k] = value_of(2 + k), p->grid[k] = value_of(5 + k);
  p->constant = (size_t)value_of(9), p->major = value_of(75), p->minor = value_of(76);
  p->texture_alignment = (size_t)value_of(14), p->texture_pitch = (size_t)value_of(51);
  p->surface_alignment = (size_t)value_of(30);
  p->sms = value_of(16), p->maps_host = value_of(19), p->concurrent = value_of(31);
  p->engines = value_of(40), p->unified = value_of(41), p->bus_bits = value_of(37), p->l2 = value_of(38);
  p->sm_threads = value_of(39), p->priorities = value_of(78), p->global_l1 = value_of(79), p->local_l1 = value_of(80);
  p->sm_shared = (size_t)value_of(81), p->sm_registers = value_of(82), p->managed = value_of(83);
  p->concurrent_managed = value_of(89), p->preemption = value_of(90), p->registered_pointers = value_of(91);
  p->cooperative = value_of(95), p->shared_optin = (size_t)value_of(97), p->sm_blocks = value_of(106);
  p->reserved_shared = (size_t)value_of(111), p->registers_host = value_of(99), p->pools = value_of(115);
  p->deferred = 0, p->clusters = value_of(120), p->unified_functions = 0;
  return 0;
}
API int cudaGetDeviceProperties_v2(struct properties *p, int device) { return cudaGetDeviceProperties(p, device); }

// ---- Memory

API int cudaMalloc(void **address, size_t size) {
  READY;
  if (!address) return note(INVALID_VALUE);
  if (!size) {
    *address = NULL;
    return 0;
  }
  return note(cuMemAlloc_v2((u64 *)address, size));
}
API int cudaMallocPitch(void **address, size_t *pitch, size_t width, size_t height) { NEEDS(address && pitch); CALL(cuMemAllocPitch_v2((u64 *)address, pitch, width, height, 4)); }
struct pitched { void *pointer; size_t pitch, width, height; };
struct extent { size_t width, height, depth; };
API int cudaMalloc3D(struct pitched *made, struct extent extent) {
  NEEDS(made);
  READY;
  made->width = extent.width, made->height = extent.height;
  return note(cuMemAllocPitch_v2((u64 *)&made->pointer, &made->pitch, extent.width, extent.height * extent.depth, 4));
}
API int cudaMallocManaged(void **address, size_t size, unsigned flags) { CALL(cuMemAllocManaged((u64 *)address, size, flags)); }
API int cudaMallocHost(void **address, size_t size) { CALL(cuMemHostAlloc(address, size, 0)); }
API int cudaHostAlloc(void **address, size_t size, unsigned flags) { CALL(cuMemHostAlloc(address, size, flags)); }
API int cudaMallocAsync(void **address, size_t size, handle stream) { CALL(cuMemAllocAsync((u64 *)address, size, stream)); }
API int cudaMallocFromPoolAsync(void **address, size_t size, u64 pool, handle stream) { CALL(cuMemAllocFromPoolAsync((u64 *)address, size, pool, stream)); }
API int cudaFree(void *address) { CALL(cuMemFree_v2((u64)address)); }
API int cudaFreeHost(void *address) { CALL(cuMemFreeHost(address)); }
API int cudaFreeAsync(void *address, handle stream) { CALL(cuMemFreeAsync((u64)address, stream)); }
API int cudaHostRegister(void *address, size_t size, unsigned flags) { CALL(cuMemHostRegister_v2(address, size, flags)); }
API int cudaHostUnregister(void *address) { CALL(cuMemHostUnregister(address)); }
API int cudaHostGetDevicePointer(void **address, void *host, unsigned flags) { CALL(cuMemHostGetDevicePointer_v2((u64 *)address, host, flags)); }
API int cudaHostGetFlags(unsigned *flags, void *host) { CALL(cuMemHostGetFlags(flags, host)); }
API int cudaMemGetInfo(size_t *free_bytes, size_t *total) { NEEDS(free_bytes && total); CALL(cuMemGetInfo_v2(free_bytes, total)); }
API int cudaDeviceGetDefaultMemPool(u64 *pool, int device) { CALL(cuDeviceGetDefaultMemPool(pool, device)); }
API int cudaDeviceGetMemPool(u64 *pool, int device) { CALL(cuDeviceGetDefaultMemPool(pool, device)); }
API int cudaDeviceSetMemPool(int device, u64 pool) { (void)device, (void)pool; READY; return 0; }
API int cudaMemPoolCreate(u64 *pool, const void *properties) { CALL(cuMemPoolCreate(pool, properties)); }
API int cudaMemPoolDestroy(u64 pool) { CALL(cuMemPoolDestroy(pool)); }
API int cudaMemPoolTrimTo(u64 pool, size_t least) { CALL(cuMemPoolTrimTo(pool, least)); }
API int cudaMemPoolGetAttribute(u64 pool, int attribute, void *value) { CALL(cuMemPoolGetAttribute(pool, attribute, value)); }
API int cudaMemPoolSetAttribute(u64 pool, int attribute, void *value) { CALL(cuMemPoolSetAttribute(pool, attribute, value)); }
struct location { int kind, id; };
API int cudaMemAdvise(const void *address, size_t size, int advice, struct location where) { (void)address, (void)size, (void)advice, (void)where; READY; return 0; }
API int cudaMemPrefetchAsync(const void *address, size_t size, struct location where, unsigned flags, handle stream) {
  (void)where, (void)flags;
  CALL(cuMemPrefetchAsync((u64)address, size, 0, stream));
}
API int cudaMemAdvise_v2(const void *address, size_t size, int advice, struct location where) { return cudaMemAdvise(address, size, advice, where); }
API int cudaMemPrefetchAsync_v2(const void *address, size_t size, struct location where, unsigned flags, handle stream) { return cudaMemPrefetchAsync(address, size, where, flags, stream); }
struct pointer_attributes { int kind, device; void *on_device, *on_host; long reserved[8]; };
API int cudaPointerGetAttributes(struct pointer_attributes *made, const void *pointer) {
  enum { MEMORY_TYPE = 2, IS_MANAGED = 8, HOST = 1, DEVICE = 2, MANAGED = 3 };
  NEEDS(made);
  READY;
  unsigned kind = 0;
  char is_managed = 0;
  void *values[] = {&kind, &is_managed};
  const int attributes[] = {MEMORY_TYPE, IS_MANAGED};
  int status = cuPointerGetAttributes(2, attributes, values, (u64)pointer);
  memset(made, 0, sizeof *made);
  made->kind = kind == DEVICE ? (is_managed ? MANAGED : DEVICE) : kind == HOST ? HOST : 0;
  made->device = made->kind ? 0 : -2;
  if (made->kind) made->on_device = (void *)pointer;
  if (made->kind != DEVICE) made->on_host = (void *)pointer;
  return note(status);
}

enum { HOST_TO_HOST, HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE, BY_ADDRESS };
static int copy(void *to, const void *from, size_t size, int kind) {
  switch (kind) {
    case HOST_TO_DEVICE: return cuMemcpyHtoD_v2((u64)to, from, size);
    case DEVICE_TO_HOST: return cuMemcpyDtoH_v2(to, (u64)from, size);
    case DEVICE_TO_DEVICE: return cuMemcpyDtoD_v2((u64)to, (u64)from, size);
    case HOST_TO_HOST: case BY_ADDRESS: return cuMemcpy((u64)to, (u64)from, size);
    default: return INVALID_DIRECTION;
  }
}
static int copy_later(void *to, const void *from, size_t size, int kind, handle stream) {
  switch (kind) {
    case HOST_TO_DEVICE: return cuMemcpyHtoDAsync_v2((u64)to, from, size, stream);
    case DEVICE_TO_HOST: return cuMemcpyDtoHAsync_v2(to, (u64)from, size, stream);
    case DEVICE_TO_DEVICE: return cuMemcpyDtoDAsync_v2((u64)to, (u64)from, size, stream);
    case HOST_TO_HOST: case BY_ADDRESS: return cuMemcpyAsync((u64)to, (u64)from, size, stream);
    default: return INVALID_DIRECTION;
  }
}
API int cudaMemcpy(void *to, const void *from, size_t size, int kind) { CALL(copy(to, from, size, kind)); }
API int cudaMemcpyAsync(void *to, const void *from, size_t size, int kind, handle stream) { CALL(copy_later(to, from, size, kind, stream)); }
API int cudaMemcpyPeer(void *to, int a, const void *from, int b, size_t size) { (void)a, (void)b; CALL(copy(to, from, size, DEVICE_TO_DEVICE)); }
API int cudaMemcpyPeerAsync(void *to, int a, const void *from, int b, size_t size, handle stream) { (void)a, (void)b; CALL(copy_later(to, from, size, DEVICE_TO_DEVICE, stream)); }

static int to_symbol(const void *symbol, const void *from, size_t size, size_t offset, int kind, handle stream, int later) {
  u64 address;
  size_t whole;
  READY;
  int status = address_of(symbol, &address, &whole);
  if (status) return note(status);
  if (offset + size > whole) return note(INVALID_VALUE);
  kind = kind == BY_ADDRESS || kind == HOST_TO_DEVICE ? HOST_TO_DEVICE : kind;
  return note(later ? copy_later((void *)(address + offset), from, size, kind, stream) : copy((void *)(address + offset), from, size, kind));
}
static int from_symbol(void *to, const void *symbol, size_t size, size_t offset, int kind, handle stream, int later) {
  u64 address;
  size_t whole;
  READY;
  int status = address_of(symbol, &address, &whole);
  if (status) return note(status);
  if (offset + size > whole) return note(INVALID_VALUE);
  return note(later ? copy_later(to, (void *)(address + offset), size, kind, stream) : copy(to, (void *)(address + offset), size, kind));
}
API int cudaMemcpyToSymbol(const void *s, const void *from, size_t n, size_t offset, int kind) { return to_symbol(s, from, n, offset, kind, NULL, 0); }
API int cudaMemcpyFromSymbol(void *to, const void *s, size_t n, size_t offset, int kind) { return from_symbol(to, s, n, offset, kind, NULL, 0); }
API int cudaMemcpyToSymbolAsync(const void *s, const void *from, size_t n, size_t offset, int kind, handle stream) { return to_symbol(s, from, n, offset, kind, stream, 1); }
API int cudaMemcpyFromSymbolAsync(void *to, const void *s, size_t n, size_t offset, int kind, handle stream) { return from_symbol(to, s, n, offset, kind, stream, 1); }

struct box_side { size_t x, y, z, lod; int kind; const void *host; u64 device; void *array, *reserved; size_t pitch, height; };
struct box { struct box_side from, to; size_t width, height, depth; };
struct position { size_t x, y, z; };
struct copy_3d { const struct array *from_array; struct position from_place; struct pitched from; const struct array *to_array; struct position to_place; struct pitched to; struct extent extent; int kind; };

static struct box_side side(const struct pitched *memory, const struct array *array, struct position place, int is_host, int is_any) {
  enum { HOST = 1, DEVICE, ARRAY, UNIFIED };
  if (array) return (struct box_side){place.x * array->item, place.y, place.z, 0, ARRAY, NULL, 0, (void *)array, NULL, 0, 0};
  return (struct box_side){place.x, place.y, place.z, 0, is_any ? UNIFIED : is_host ? HOST : DEVICE, memory->pointer,
                           (u64)memory->pointer, NULL, NULL, memory->pitch, memory->height};
}
static struct box as_box(const struct copy_3d *given) {
  int kind = given->kind, is_any = kind == BY_ADDRESS;
  const struct array *array = given->from_array ? given->from_array : given->to_array;
  return (struct box){side(&given->from, given->from_array, given->from_place, kind == HOST_TO_DEVICE || kind == HOST_TO_HOST, is_any),
                      side(&given->to, given->to_array, given->to_place, kind == DEVICE_TO_HOST || kind == HOST_TO_HOST, is_any),
                      given->extent.width * (array ? array->item : 1), given->extent.height, given->extent.depth};
}
static int copy_box(const struct copy_3d *given, handle stream, int later) {
  NEEDS(given);
  READY;
  struct box box = as_box(given);
  return note(later ? cuMemcpy3DAsync_v2(&box, stream) : cuMemcpy3D_v2(&box));
}
static int copy_2d(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, int kind, handle stream, int later) {
  if (width > to_pitch || width > from_pitch) return note(12);
  struct copy_3d given = {.from = {(void *)from, from_pitch, width, height}, .to = {to, to_pitch, width, height},
                          .extent = {width, height, 1}, .kind = kind};
  return copy_box(&given, stream, later);
}
API int cudaMemcpy2D(void *to, size_t tp, const void *from, size_t fp, size_t w, size_t h, int kind) { return copy_2d(to, tp, from, fp, w, h, kind, NULL, 0); }
API int cudaMemcpy2DAsync(void *to, size_t tp, const void *from, size_t fp, size_t w, size_t h, int kind, handle stream) { return copy_2d(to, tp, from, fp, w, h, kind, stream, 1); }
API int cudaMemcpy3D(const struct copy_3d *given) { return copy_box(given, NULL, 0); }
API int cudaMemcpy3DAsync(const struct copy_3d *given, handle stream) { return copy_box(given, stream, 1); }

// ---- Arrays, textures and surfaces

struct channel { int x, y, z, w, f; };
static int format_of(const struct channel *given, unsigned *channels) {
  enum { SIGNED, UNSIGNED, REAL };
  int bits = given->x, is_even = (!given->y || given->y == bits) && (!given->z || given->z == bits) && (!given->w || given->w == bits);
  *channels = 1 + (given->y != 0) + (given->z != 0) + (given->w != 0);
  int number = bits == 8 ? 0 : bits == 16 ? 1 : bits == 32 ? 2 : -1;
  if (!is_even || number < 0) return 0;
  if (given->f == REAL) return bits == 16 ? HALF : bits == 32 ? FLOAT : 0;
  return given->f == SIGNED ? SIGNED_8 + number : given->f == UNSIGNED ? UNSIGNED_8 + number : 0;
}
API struct channel cudaCreateChannelDesc(int x, int y, int z, int w, int kind) { return (struct channel){x, y, z, w, kind}; }
API int cudaMalloc3DArray(struct array **array, const struct channel *given, struct extent size, unsigned flags) {
  READY;
  unsigned channels;
  int format = format_of(given, &channels);
  if (!format) return note(20);
  struct array_size wanted = {size.width, size.height, size.depth, format, channels, flags};
  return note(cuArray3DCreate_v2(array, &wanted));
}
API int cudaMallocArray(struct array **array, const struct channel *given, size_t width, size_t height, unsigned flags) {
  return cudaMalloc3DArray(array, given, (struct extent){width, height, 0}, flags);
}
API int cudaFreeArray(struct array *array) { READY; return array ? note(cuArrayDestroy(array)) : 0; }
static struct channel channels_of(int format, unsigned channels) {
  int is_real = format == HALF || format == FLOAT;
  int bits = format == HALF ? 16 : format == FLOAT ? 32 : 8 << (format >= SIGNED_8 ? format - SIGNED_8 : format - UNSIGNED_8);
  return (struct channel){bits, channels > 1 ? bits : 0, channels > 2 ? bits : 0, channels > 3 ? bits : 0,
                          is_real ? 2 : format < SIGNED_8};
}
API int cudaGetChannelDesc(struct channel *made, const struct array *array) { *made = channels_of(array->format, array->channels); return 0; }
API int cudaArrayGetInfo(struct channel *made, struct extent *size, unsigned *flags, const struct array *array) {
  if (made) *made = channels_of(array->format, array->channels);
  if (size) *size = (struct extent){array->width, array->height, array->depth};
  if (flags) *flags = array->flags;
  return 0;
}

// Offsets and widths are bytes here, elements in a copy of three dimensions.
static int to_array(const struct array *to, size_t x, size_t y, const void *from, size_t pitch, size_t width, size_t height, int kind, handle stream, int later) {
  if (!to || x % to->item || width % to->item) return note(INVALID_VALUE);
  struct copy_3d given = {.from = {(void *)from, pitch, width, height}, .to_array = to, .to_place = {x / to->item, y, 0},
                          .extent = {width / to->item, height, 1}, .kind = kind};
  return copy_box(&given, stream, later);
}
static int from_array(void *to, size_t pitch, const struct array *from, size_t x, size_t y, size_t width, size_t height, int kind, handle stream, int later) {
  if (!from || x % from->item || width % from->item) return note(INVALID_VALUE);
  struct copy_3d given = {.to = {to, pitch, width, height}, .from_array = from, .from_place = {x / from->item, y, 0},
                          .extent = {width / from->item, height, 1}, .kind = kind};
  return copy_box(&given, stream, later);
}
// Bytes that go on in the next row where one is full.
static int line_to_array(const struct array *to, size_t x, size_t y, const char *from, size_t size, int kind, handle stream, int later) {
  size_t row = to ? to->width * to->item : 0;
  if (!to || x >= row) return note(INVALID_VALUE);
  for (int status; size; x = 0, y++) {
    size_t part = size < row - x ? size : row - x;
    if ((status = to_array(to, x, y, from, row, part, 1, kind, stream, later))) return status;
    from += part, size -= part;
  }
  return 0;
}
static int line_from_array(char *to, const struct array *from, size_t x, size_t y, size_t size, int kind, handle stream, int later) {
  size_t row = from ? from->width * from->item : 0;
  if (!from || x >= row) return note(INVALID_VALUE);
  for (int status; size; x = 0, y++) {
    size_t part = size < row - x ? size : row - x;
    if ((status = from_array(to, row, from, x, y, part, 1, kind, stream, later))) return status;
    to += part, size -= part;
  }
  return 0;
}
API int cudaMemcpy2DToArray(struct array *to, size_t x, size_t y, const void *from, size_t p, size_t w, size_t h, int kind) { return to_array(to, x, y, from, p, w, h, kind, NULL, 0); }
API int cudaMemcpy2DToArrayAsync(struct array *to, size_t x, size_t y, const void *from, size_t p, size_t w, size_t h, int kind, handle stream) { return to_array(to, x, y, from, p, w, h, kind, stream, 1); }
API int cudaMemcpy2DFromArray(void *to, size_t p, const struct array *from, size_t x, size_t y, size_t w, size_t h, int kind) { return from_array(to, p, from, x, y, w, h, kind, NULL, 0); }
API int cudaMemcpy2DFromArrayAsync(void *to, size_t p, const struct array *from, size_t x, size_t y, size_t w, size_t h, int kind, handle stream) { return from_array(to, p, from, x, y, w, h, kind, stream, 1); }
API int cudaMemcpyToArray(struct array *to, size_t x, size_t y, const void *from, size_t n, int kind) { return line_to_array(to, x, y, from, n, kind, NULL, 0); }
API int cudaMemcpyToArrayAsync(struct array *to, size_t x, size_t y, const void *from, size_t n, int kind, handle stream) { return line_to_array(to, x, y, from, n, kind, stream, 1); }
API int cudaMemcpyFromArray(void *to, const struct array *from, size_t x, size_t y, size_t n, int kind) { return line_from_array(to, from, x, y, n, kind, NULL, 0); }
API int cudaMemcpyFromArrayAsync(void *to, const struct array *from, size_t x, size_t y, size_t n, int kind, handle stream) { return line_from_array(to, from, x, y, n, kind, stream, 1); }
API int cudaMemcpy2DArrayToArray(struct array *to, size_t x, size_t y, const struct array *from, size_t from_x, size_t from_y, size_t w, size_t h, int kind) {
  if (!to || !from || to->item != from->item) return note(INVALID_VALUE);
  struct copy_3d given = {.to_array = to, .to_place = {x / to->item, y, 0}, .from_array = from,
                          .from_place = {from_x / from->item, from_y, 0}, .extent = {w / to->item, h, 1}, .kind = kind};
  return copy_box(&given, NULL, 0);
}

struct runtime_resource {
  int kind;
  union {
    struct array *array;
    struct { u64 address; struct channel channel; size_t size; } linear;
    struct { u64 address; struct channel channel; size_t width, height, pitch; } pitched;
    int reserved[32];
  } of;
  unsigned flags;
};
struct runtime_sampling {
  int modes[3], filter, mode, srgb;
  float border[4];
  int is_normalized;
  unsigned anisotropy;
  int mipmap_filter;
  float bias, least_level, most_level;
  int others[2];
};
static int resource_of(const struct runtime_resource *given, struct resource *made) {
  *made = (struct resource){.kind = given->kind};
  if (given->kind == OF_ARRAY) {
    made->of.array = given->of.array;
  } else if (given->kind == OF_LINEAR || given->kind == OF_PITCHED) {
    made->of.pitched.address = given->of.linear.address;
    made->of.pitched.format = format_of(&given->of.linear.channel, &made->of.pitched.channels);
    if (!made->of.pitched.format) return 20;
    if (given->kind == OF_LINEAR) made->of.linear.size = given->of.linear.size;
    else made->of.pitched.width = given->of.pitched.width, made->of.pitched.height = given->of.pitched.height, made->of.pitched.pitch = given->of.pitched.pitch;
  }
  return 0;
}
API int cudaCreateTextureObject(u64 *object, const struct runtime_resource *given, const struct runtime_sampling *how, const void *view) {
  READY;
  struct resource resource;
  int status = resource_of(given, &resource);
  if (status) return note(status);
  struct sampling made = {.filter = how->filter, .flags = (how->mode ? 0 : AS_INTEGER) | (how->is_normalized ? NORMALIZED : 0) | (how->srgb ? AS_SRGB : 0)};
  memcpy(made.modes, how->modes, sizeof made.modes);
  memcpy(made.border, how->border, sizeof made.border);
  return note(cuTexObjectCreate(object, &resource, &made, view));
}
API int cudaDestroyTextureObject(u64 object) { CALL(cuTexObjectDestroy(object)); }
API int cudaCreateSurfaceObject(u64 *object, const struct runtime_resource *given) {
  READY;
  struct resource resource;
  int status = resource_of(given, &resource);
  return note(status ? status : cuSurfObjectCreate(object, &resource));
}
API int cudaDestroySurfaceObject(u64 object) { CALL(cuSurfObjectDestroy(object)); }

API int cudaMemset(void *to, int value, size_t size) { CALL(cuMemsetD8_v2((u64)to, (unsigned char)value, size)); }
API int cudaMemsetAsync(void *to, int value, size_t size, handle stream) { CALL(cuMemsetD8Async((u64)to, (unsigned char)value, size, stream)); }
API int cudaMemset2D(void *to, size_t pitch, int value, size_t width, size_t height) { CALL(cuMemsetD2D8_v2((u64)to, pitch, (unsigned char)value, width, height)); }
API int cudaMemset2DAsync(void *to, size_t pitch, int value, size_t width, size_t height, handle stream) { CALL(cuMemsetD2D8Async((u64)to, pitch, (unsigned char)value, width, height, stream)); }
API int cudaMemset3D(struct pitched to, int value, struct extent extent) { CALL(cuMemsetD2D8_v2((u64)to.pointer, to.pitch, (unsigned char)value, extent.width, extent.height * extent.depth)); }
API int cudaMemset3DAsync(struct pitched to, int value, struct extent extent, handle stream) { CALL(cuMemsetD2D8Async((u64)to.pointer, to.pitch, (unsigned char)value, extent.width, extent.height * extent.depth, stream)); }


// ---- Streams and events

API int cudaStreamCreateWithPriority(handle *stream, unsigned flags, int priority) { NEEDS(stream); CALL(cuStreamCreateWithPriority(stream, flags, priority)); }
API int cudaStreamCreateWithFlags(handle *stream, unsigned flags) { NEEDS(stream); CALL(cuStreamCreateWithPriority(stream, flags, 0)); }
API int cudaStreamCreate(handle *stream) { NEEDS(stream); CALL(cuStreamCreateWithPriority(stream, 0, 0)); }
API int cudaStreamDestroy(handle stream) { CALL(cuStreamDestroy_v2(stream)); }
API int cudaStreamSynchronize(handle stream) { CALL(cuStreamSynchronize(stream)); }
API int cudaStreamQuery(handle stream) { CALL(cuStreamQuery(stream)); }
API int cudaStreamWaitEvent(handle stream, handle event, unsigned flags) { CALL(cuStreamWaitEvent(stream, event, flags)); }
API int cudaStreamGetFlags(handle stream, unsigned *flags) { CALL(cuStreamGetFlags(stream, flags)); }
API int cudaStreamGetPriority(handle stream, int *priority) { CALL(cuStreamGetPriority(stream, priority)); }
API int cudaStreamGetId(handle stream, unsigned long long *id) { CALL(cuStreamGetId(stream, id)); }
API int cudaStreamGetDevice(handle stream, int *device) { (void)stream; READY; *device = 0; return 0; }
API int cudaStreamAttachMemAsync(handle stream, void *address, size_t size, unsigned flags) { (void)stream, (void)address, (void)size, (void)flags; READY; return 0; }
API int cudaStreamAddCallback(handle stream, void *function, void *given, unsigned flags) { CALL(cuStreamAddCallback(stream, function, given, flags)); }
API int cudaLaunchHostFunc(handle stream, void (*function)(void *), void *given) { CALL(cuLaunchHostFunc(stream, function, given)); }
API int cudaEventCreateWithFlags(handle *event, unsigned flags) { NEEDS(event); CALL(cuEventCreate(event, flags)); }
API int cudaEventCreate(handle *event) { NEEDS(event); CALL(cuEventCreate(event, 0)); }
API int cudaEventDestroy(handle event) { CALL(cuEventDestroy_v2(event)); }
API int cudaEventRecord(handle event, handle stream) { CALL(cuEventRecord(event, stream)); }
API int cudaEventRecordWithFlags(handle event, handle stream, unsigned flags) { (void)flags; CALL(cuEventRecord(event, stream)); }
API int cudaEventSynchronize(handle event) { CALL(cuEventSynchronize(event)); }
API int cudaEventQuery(handle event) { CALL(cuEventQuery(event)); }
API int cudaEventElapsedTime(float *milliseconds, handle from, handle to) { CALL(cuEventElapsedTime(milliseconds, from, to)); }
API int cudaEventElapsedTime_v2(float *milliseconds, handle from, handle to) { CALL(cuEventElapsedTime(milliseconds, from, to)); }

// ---- Functions and launches

struct function_attributes {
  size_t shared, constant, local;
  int threads, registers, ptx, binary, cache, dynamic_shared, carveout, must_cluster, width, height, depth, policy, non_portable, reserved[16];
};
API int cudaFuncGetAttributes(struct function_attributes *made, const void *host) {
  READY;
  handle f;
  int status = function_of(host, &f), value[10] = {0};
  if (status) return note(status);
  for (int k = 0; k < 10; k++) cuFuncGetAttribute(&value[k], k, f);
  memset(made, 0, sizeof *made);
  made->shared = (size_t)value[1], made->constant = (size_t)value[2], made->local = (size_t)value[3];
  made->threads = value[0], made->registers = value[4], made->ptx = value[5], made->binary = value[6];
  made->dynamic_shared = value[8], made->carveout = value[9];
  return 0;
}
// Texture references are sampled as they stand at a launch (include/texture_references.h).
static void (*before_launches)(void);
API void *gpusim_before_launches(void (*next)(void)) {
  void *earlier = (void *)before_launches;
  before_launches = next;
  return earlier;
}
static int with_function(const void *host, handle *f) {
  int status = ready();
  if (!status && before_launches) before_launches();
  return status ? status : function_of(host, f);
}
API int cudaFuncSetAttribute(const void *host, int attribute, int value) { handle f; int s = with_function(host, &f); return note(s ? s : cuFuncSetAttribute(f, attribute, value)); }
API int cudaFuncSetCacheConfig(const void *host, int config) { (void)config; handle f; return note(with_function(host, &f)); }
API int cudaFuncSetSharedMemConfig(const void *host, int config) { (void)config; handle f; return note(with_function(host, &f)); }
API int cudaFuncGetName(const char **name, const void *host) { handle f; int s = with_function(host, &f); return note(s ? s : cuFuncGetName(name, f)); }
API int cudaGetFuncBySymbol(handle *f, const void *host) { return note(with_function(host, f)); }
API int cudaGetKernel(handle *kernel, const void *host) { *kernel = (handle)host; return note(kernel_of(host) ? 0 : INVALID_FUNCTION); }
API int __cudaGetKernel(handle *kernel, const void *host) { return cudaGetKernel(kernel, host); }
API int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *host, int threads, size_t shared) { handle f; int s = with_function(host, &f); return note(s ? s : cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, f, threads, shared)); }
API int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *host, int threads, size_t shared, unsigned flags) { (void)flags; return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, host, threads, shared); }
API int cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, const void *host, int blocks, int threads) { handle f; int s = with_function(host, &f); return note(s ? s : cuOccupancyAvailableDynamicSMemPerBlock(bytes, f, blocks, threads)); }

static __thread struct { dim3 grid, block; size_t shared; handle stream; } configured[64];
static __thread int configurations;
API unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, handle stream) {
  if (configurations == 64) return 1;
  configured[configurations].grid = grid, configured[configurations].block = block;
  configured[configurations].shared = shared, configured[configurations++].stream = stream;
  return 0;
}
API int __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream) {
  if (!configurations) return INVALID_CONFIGURATION;
  configurations--;
  *grid = configured[configurations].grid, *block = configured[configurations].block;
  *shared = configured[configurations].shared, *(handle *)stream = configured[configurations].stream;
  return 0;
}
// Sizes that no launch can have are the runtime's error 9, where the driver says invalid value.
static int has_sizes(dim3 grid, dim3 block) {
  u64 threads = (u64)block.x * block.y * block.z;
  return threads && threads <= 1024 && block.z <= 64 && grid.x && grid.y && grid.z && grid.x < 1u << 31 && grid.y < 65536 && grid.z < 65536;
}
static void tell_unasked(handle f, int status) {
  char text[1024];
  const char *name = "";
  if (cuFuncGetName(&name, f)) return;
  size_t length = strnlen(name, sizeof text / 2);
  memcpy(text, name, length);
  text[length++] = 0;
  const char *error = cudaGetErrorString(status);
  size_t rest = strnlen(error, sizeof text / 2 - 1);
  memcpy(text + length, error, rest);
  gpusim_tell("unasked", text, length + rest);
  is_unasked = 1;
}
static int launch(const void *host, dim3 g, dim3 b, void **arguments, size_t shared, handle stream, int is_cooperative) {
  handle f;
  int status = with_function(host, &f);
  if (status) return note(status);
  status = is_cooperative ? cuLaunchCooperativeKernel(f, g.x, g.y, g.z, b.x, b.y, b.z, (unsigned)shared, stream, arguments)
                          : cuLaunchKernel(f, g.x, g.y, g.z, b.x, b.y, b.z, (unsigned)shared, stream, arguments, NULL);
  if (status && !has_sizes(g, b)) status = INVALID_CONFIGURATION;
  if (status) tell_unasked(f, status);
  return note(status);
}
API int cudaLaunchKernel(const void *f, dim3 g, dim3 b, void **arguments, size_t shared, handle stream) { return launch(f, g, b, arguments, shared, stream, 0); }
API int __cudaLaunchKernel(const void *f, dim3 g, dim3 b, void **arguments, size_t shared, handle stream) { return launch(f, g, b, arguments, shared, stream, 0); }
API int cudaLaunchCooperativeKernel(const void *f, dim3 g, dim3 b, void **arguments, size_t shared, handle stream) { return launch(f, g, b, arguments, shared, stream, 1); }
struct launch_config { dim3 grid, block; size_t shared; handle stream; void *attributes; unsigned count; };
struct driver_config { dim3 grid, block; unsigned shared; handle stream; void *attributes; unsigned count; };
API int cudaLaunchKernelExC(const struct launch_config *c, const void *host, void **arguments) {
  handle f;
  int status = with_function(host, &f);
  if (status) return note(status);
  if (!has_sizes(c->grid, c->block)) return note(INVALID_CONFIGURATION);
  struct driver_config made = {c->grid, c->block, (unsigned)c->shared, c->stream, c->attributes, c->count};
  return note(cuLaunchKernelEx(&made, f, arguments, NULL));
}

// ---- Graphs

API int cudaStreamBeginCapture(handle stream, int mode) { CALL(cuStreamBeginCapture_v2(stream, mode)); }
API int cudaStreamEndCapture(handle stream, handle *graph) { CALL(cuStreamEndCapture(stream, graph)); }
API int cudaStreamIsCapturing(handle stream, int *status) { CALL(cuStreamIsCapturing(stream, status)); }
API int cudaStreamBeginCaptureToGraph(handle stream, handle graph, const handle *before, const void *edges, size_t count, int mode) { CALL(cuStreamBeginCaptureToGraph(stream, graph, before, edges, count, mode)); }
API int cudaStreamGetCaptureInfo(handle stream, int *status, u64 *id, handle *graph, const handle **nodes, const void **edges, size_t *count) { CALL(cuStreamGetCaptureInfo_v3(stream, status, id, graph, nodes, edges, count)); }
API int cudaStreamUpdateCaptureDependencies(handle stream, handle *nodes, const void *edges, size_t count, unsigned flags) { CALL(cuStreamUpdateCaptureDependencies_v2(stream, nodes, edges, count, flags)); }
API int cudaThreadExchangeStreamCaptureMode(int *mode) { *mode = 0; return 0; }
API int cudaGraphCreate(handle *graph, unsigned flags) { CALL(cuGraphCreate(graph, flags)); }
API int cudaGraphDestroy(handle graph) { CALL(cuGraphDestroy(graph)); }
API int cudaGraphClone(handle *clone, handle graph) { CALL(cuGraphClone(clone, graph)); }
API int cudaGraphInstantiate(handle *made, handle graph, unsigned long long flags) { CALL(cuGraphInstantiateWithFlags(made, graph, flags)); }
API int cudaGraphInstantiateWithFlags(handle *made, handle graph, unsigned long long flags) { CALL(cuGraphInstantiateWithFlags(made, graph, flags)); }
API int cudaGraphExecDestroy(handle made) { CALL(cuGraphExecDestroy(made)); }
API int cudaGraphLaunch(handle made, handle stream) { CALL(cuGraphLaunch(made, stream)); }
API int cudaGraphUpload(handle made, handle stream) { (void)made, (void)stream; READY; return 0; }
API int cudaGraphMemsetNodeGetParams(handle node, void *given) { CALL(cuGraphMemsetNodeGetParams(node, given)); }
API int cudaGraphMemsetNodeSetParams(handle node, const void *given) { CALL(cuGraphMemsetNodeSetParams(node, given)); }
API int cudaGraphExecMemsetNodeSetParams(handle made, handle node, const void *given) { CALL(cuGraphExecMemsetNodeSetParams(made, node, given, NULL)); }
API int cudaGraphHostNodeGetParams(handle node, void *given) { CALL(cuGraphHostNodeGetParams(node, given)); }
API int cudaGraphHostNodeSetParams(handle node, const void *given) { CALL(cuGraphHostNodeSetParams(node, given)); }
API int cudaGraphExecHostNodeSetParams(handle made, handle node, const void *given) { CALL(cuGraphExecHostNodeSetParams(made, node, given)); }
API int cudaGraphNodeSetEnabled(handle made, handle node, unsigned is_on) { CALL(cuGraphNodeSetEnabled(made, node, is_on)); }
API int cudaGraphNodeGetEnabled(handle made, handle node, unsigned *is_on) { CALL(cuGraphNodeGetEnabled(made, node, is_on)); }
API int cudaGraphNodeFindInClone(handle *found, handle node, handle clone) { CALL(cuGraphNodeFindInClone(found, node, clone)); }
API int cudaGraphDestroyNode(handle node) { CALL(cuGraphDestroyNode(node)); }
API int cudaGraphInstantiateWithParams(handle *made, handle graph, void *given) { CALL(cuGraphInstantiateWithParams(made, graph, given)); }
API int cudaUserObjectCreate(handle *made, void *held, void (*destroy)(void *), unsigned owners, unsigned flags) { CALL(cuUserObjectCreate(made, held, destroy, owners, flags)); }
API int cudaUserObjectRetain(handle object, unsigned count) { CALL(cuUserObjectRetain(object, count)); }
API int cudaUserObjectRelease(handle object, unsigned count) { CALL(cuUserObjectRelease(object, count)); }
API int cudaGraphRetainUserObject(handle graph, handle object, unsigned count, unsigned flags) { CALL(cuGraphRetainUserObject(graph, object, count, flags)); }
API int cudaGraphReleaseUserObject(handle graph, handle object, unsigned count) { CALL(cuGraphReleaseUserObject(graph, object, count)); }
API int cudaStreamSetAttribute(handle stream, int attribute, const void *value) { CALL(cuStreamSetAttribute(stream, attribute, value)); }
API int cudaStreamGetAttribute(handle stream, int attribute, void *value) { CALL(cuStreamGetAttribute(stream, attribute, value)); }
API int cudaStreamCopyAttributes(handle to, handle from) { CALL(cuStreamCopyAttributes(to, from)); }
API int cudaGraphGetNodes(handle graph, handle *nodes, size_t *count) { CALL(cuGraphGetNodes(graph, nodes, count)); }
API int cudaGraphNodeGetType(handle node, int *type) { CALL(cuGraphNodeGetType(node, type)); }
API int cudaGraphAddEmptyNode(handle *node, handle graph, const handle *before, size_t count) { CALL(cuGraphAddEmptyNode(node, graph, before, count)); }
API int cudaGraphAddDependencies(handle graph, const handle *from, const handle *to, const void *edges, size_t count) { (void)edges; CALL(cuGraphAddDependencies(graph, from, to, count)); }
struct kernel_node { const void *host; dim3 grid, block; unsigned shared; void **arguments, **extra; };
struct driver_kernel_node { handle function; dim3 grid, block; unsigned shared; void **arguments, **extra; handle kernel, context; };
static int with_kernel_node(const struct kernel_node *given, struct driver_kernel_node *made) {
  handle f;
  int status = with_function(given->host, &f);
  *made = (struct driver_kernel_node){f, given->grid, given->block, given->shared, given->arguments, given->extra, NULL, NULL};
  return status;
}
API int cudaGraphAddKernelNode(handle *node, handle graph, const handle *before, size_t count, const struct kernel_node *given) {
  struct driver_kernel_node made;
  int status = with_kernel_node(given, &made);
  return note(status ? status : cuGraphAddKernelNode_v2(node, graph, before, count, &made));
}
API int cudaGraphAddMemcpyNode(handle *node, handle graph, const handle *before, size_t count, const struct copy_3d *given) {
  READY;
  struct box box = as_box(given);
  return note(cuGraphAddMemcpyNode(node, graph, before, count, &box, NULL));
}
API int cudaGraphAddMemcpyNode1D(handle *node, handle graph, const handle *before, size_t count, void *to, const void *from, size_t size, int kind) {
  struct copy_3d given = {.from = {(void *)from, size, size, 1}, .to = {to, size, size, 1}, .extent = {size, 1, 1}, .kind = kind};
  return cudaGraphAddMemcpyNode(node, graph, before, count, &given);
}
API int cudaGraphKernelNodeSetParams(handle node, const struct kernel_node *given) {
  struct driver_kernel_node made;
  int status = with_kernel_node(given, &made);
  return note(status ? status : cuGraphKernelNodeSetParams_v2(node, &made));
}
API int cudaGraphExecKernelNodeSetParams(handle made_graph, handle node, const struct kernel_node *given) {
  struct driver_kernel_node made;
  int status = with_kernel_node(given, &made);
  return note(status ? status : cuGraphExecKernelNodeSetParams_v2(made_graph, node, &made));
}
API int cudaGraphMemcpyNodeSetParams(handle node, const struct copy_3d *given) {
  READY;
  struct box box = as_box(given);
  return note(cuGraphMemcpyNodeSetParams(node, &box));
}
API int cudaGraphExecMemcpyNodeSetParams(handle made, handle node, const struct copy_3d *given) {
  READY;
  struct box box = as_box(given);
  return note(cuGraphExecMemcpyNodeSetParams(made, node, &box, NULL));
}
API int cudaGraphExecMemcpyNodeSetParams1D(handle made, handle node, void *to, const void *from, size_t size, int kind) {
  struct copy_3d given = {.from = {(void *)from, size, size, 1}, .to = {to, size, size, 1}, .extent = {size, 1, 1}, .kind = kind};
  return cudaGraphExecMemcpyNodeSetParams(made, node, &given);
}
API int cudaGraphExecUpdate(handle made, handle graph, void *said) { CALL(cuGraphExecUpdate_v2(made, graph, said)); }
API int cudaGraphAddMemAllocNode(handle *node, handle graph, const handle *before, size_t count, void *given) { CALL(cuGraphAddMemAllocNode(node, graph, before, count, given)); }
API int cudaGraphAddMemFreeNode(handle *node, handle graph, const handle *before, size_t count, void *address) { CALL(cuGraphAddMemFreeNode(node, graph, before, count, (u64)address)); }
API int cudaGraphAddEventRecordNode(handle *node, handle graph, const handle *before, size_t count, handle event) { CALL(cuGraphAddEventRecordNode(node, graph, before, count, event)); }
API int cudaGraphAddEventWaitNode(handle *node, handle graph, const handle *before, size_t count, handle event) { CALL(cuGraphAddEventWaitNode(node, graph, before, count, event)); }
API int cudaGraphAddChildGraphNode(handle *node, handle graph, const handle *before, size_t count, handle child) { CALL(cuGraphAddChildGraphNode(node, graph, before, count, child)); }
API int cudaGraphAddMemsetNode(handle *node, handle graph, const handle *before, size_t count, const void *given) { CALL(cuGraphAddMemsetNode(node, graph, before, count, given, NULL)); }
API int cudaGraphAddHostNode(handle *node, handle graph, const handle *before, size_t count, const void *given) { CALL(cuGraphAddHostNode(node, graph, before, count, given)); }
API int cudaGraphConditionalHandleCreate(u64 *made, handle graph, unsigned first, unsigned flags) { CALL(cuGraphConditionalHandleCreate(made, graph, NULL, first, flags)); }
API int cudaDeviceGetGraphMemAttribute(int device, int attribute, void *value) { CALL(cuDeviceGetGraphMemAttribute(device, attribute, value)); }
API int cudaDeviceSetGraphMemAttribute(int device, int attribute, void *value) { CALL(cuDeviceSetGraphMemAttribute(device, attribute, value)); }
API int cudaDeviceGraphMemTrim(int device) { CALL(cuDeviceGraphMemTrim(device)); }
// A node of any kind: those of kernels and copies differ from the driver's.
struct any_node {
  int type, unused[3];
  union {
    char bytes[232];
    struct kernel_node kernel;
    struct { int flags, unused[3]; struct copy_3d copy; } copy;
  } of;
  u64 reserved;
};
struct driver_any_node {
  int type, unused[3];
  union {
    char bytes[232];
    struct driver_kernel_node kernel;
    struct { int flags, unused; handle context; struct box box; } copy;
  } of;
  u64 reserved;
};
static int as_driver_node(const struct any_node *given, struct driver_any_node *made) {
  enum { KERNEL_NODE, COPY_NODE };
  memcpy(made, given, sizeof *made);
  if (given->type == KERNEL_NODE) return with_kernel_node(&given->of.kernel, &made->of.kernel);
  if (given->type == COPY_NODE) made->of.copy.box = as_box(&given->of.copy.copy);
  return ready();
}
// What the driver returns, such as an address, stands where it stands in the driver's structure.
API int cudaGraphAddNode(handle *node, handle graph, const handle *before, const void *edges, size_t count, struct any_node *given) {
  (void)edges;
  struct driver_any_node made;
  if (!given) return note(INVALID_VALUE);
  int status = as_driver_node(given, &made);
  if (!status) status = cuGraphAddNode(node, graph, before, count, &made);
  if (!status && given->type > 1) memcpy(given->of.bytes, made.of.bytes, sizeof made.of.bytes);
  return note(status);
}
API int cudaGraphNodeSetParams(handle node, const struct any_node *given) {
  struct driver_any_node made;
  int status = given ? as_driver_node(given, &made) : INVALID_VALUE;
  return note(status ? status : cuGraphNodeSetParams(node, &made));
}
API int cudaGraphExecNodeSetParams(handle exec, handle node, const struct any_node *given) {
  struct driver_any_node made;
  int status = given ? as_driver_node(given, &made) : INVALID_VALUE;
  return note(status ? status : cuGraphExecNodeSetParams(exec, node, &made));
}

// ---- The driver's functions by name

API int cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned version, unsigned long long flags, int *found) { CALL(cuGetProcAddress_v2(name, function, (int)version, flags, found)); }
API int cudaGetDriverEntryPoint(const char *name, void **function, unsigned long long flags, int *found) { CALL(cuGetProcAddress_v2(name, function, RUNTIME_VERSION, flags, found)); }

// ---- Documented functions that are not served

#define ABSENT(name) API int name(void) { return note(gpusim_refuse(#name)); }
#include "absent_runtime.h"
