// The driver's API as its documentation has it, served by a simulator; nothing of its inner tables.
#define _GNU_SOURCE
#include "arrays.h"
#include "driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "errors.h"

typedef struct function *function_t;
typedef struct module *module_t;
typedef struct stream *stream_t;
typedef struct event *event_t;
typedef struct graph *graph_t;
typedef struct node *node_t;
struct context { int device; unsigned flags; };
typedef struct context *context_t;

enum { DRIVER_VERSION = 13000, DEPTH = 64, POOL = 1 };

static struct context primary;
static __thread context_t stack[DEPTH];
static __thread int depth;
enum { PER_THREAD = 0xFFFF };  // its number; those of the program's own streams begin at 1
static struct stream null_stream = {.id = 0}, per_thread = {.id = PER_THREAD};
static struct stream *streams;
static int broken;  // the fault that no call gets beyond

#define READY                                          \
  do {                                                 \
    if (!gpusim_is_connected()) return NOT_INITIALIZED; \
    if (broken) return broken;                         \
  } while (0)
INSIDE int gpusim_current(void) {
  READY;
  return depth ? SUCCESS : INVALID_CONTEXT;
}
API int gpusim_refuse(const char *name) {
  gpusim_ask("refuse", NULL, 0, name, strlen(name), NULL, 0, NULL, NULL);
  return NOT_SUPPORTED;
}

API void gpusim_tell(const char *what, const char *text, size_t size) {
  gpusim_ask(what, NULL, 0, text, size, NULL, 0, NULL, NULL);
}

static stream_t stream_of(stream_t given) {
  if (given == NULL || given == (stream_t)1) return &null_stream;
  return given == (stream_t)2 ? &per_thread : given;
}
// A stream's memory outlives it: whoever uses it then is told.
#define USABLE(stream) \
  do if (stream_of(stream)->is_destroyed) return INVALID_HANDLE; while (0)

// ---- Initialisation, errors, the device

API int cuInit(unsigned flags) { return flags ? INVALID_VALUE : gpusim_connect(); }
API int cuDriverGetVersion(int *version) {
  if (!version) return INVALID_VALUE;
  *version = DRIVER_VERSION;
  return SUCCESS;
}
API int cuGetErrorName(int status, const char **name) {
  const struct status *found = gpusim_status(status);
  *name = found ? found->driver_name : NULL;
  return found ? SUCCESS : INVALID_VALUE;
}
API int cuGetErrorString(int status, const char **text) {
  const struct status *found = gpusim_status(status);
  *text = found ? found->text : NULL;
  return found ? SUCCESS : INVALID_VALUE;
}
API int cuDeviceGetCount(int *count) { READY; *count = 1; return SUCCESS; }
API int cuDeviceGet(int *device, int ordinal) {
  READY;
  *device = 0;
  return ordinal ? INVALID_DEVICE : SUCCESS;
}
API int cuDeviceGetName(char *name, int size, int device) {
  READY;
  if (device) return INVALID_DEVICE;
  snprintf(name, (size_t)size, "%s", gpusim_device.name);
  return SUCCESS;
}
API int cuDeviceTotalMem_v2(size_t *bytes, int device) {
  READY;
  *bytes = gpusim_device.memory_bytes;
  return device ? INVALID_DEVICE : SUCCESS;
}
API int cuDeviceGetAttribute(int *value, int attribute, int device) {
  READY;
  if (device) return INVALID_DEVICE;
  if (attribute < 1 || attribute >= ATTRIBUTES) return INVALID_VALUE;
  *value = (int)gpusim_device.attributes[attribute];
  return SUCCESS;
}
API int cuDeviceComputeCapability(int *major, int *minor, int device) {
  cuDeviceGetAttribute(major, 75, device);
  return cuDeviceGetAttribute(minor, 76, device);
}
API int cuDeviceGetUuid_v2(char *uuid, int device) {
  READY;
  strncpy(uuid, "gpusim simulator", 16);
  return device ? INVALID_DEVICE : SUCCESS;
}
API int cuDeviceGetUuid(char *uuid, int device) { return cuDeviceGetUuid_v2(uuid, device); }
API int cuDeviceGetPCIBusId(char *text, int size, int device) {
  READY;
  snprintf(text, (size_t)size, "0000:00:00.0");
  return device ? INVALID_DEVICE : SUCCESS;
}
API int cuDeviceGetByPCIBusId(int *device, const char *text) { (void)text; READY; *device = 0; return SUCCESS; }
API int cuDeviceCanAccessPeer(int *can, int one, int other) { (void)one, (void)other; READY; *can = 0; return SUCCESS; }
API int cuDeviceGetP2PAttribute(int *value, int a, int one, int other) {
  (void)a, (void)one, (void)other;
  *value = 0;
  return INVALID_DEVICE;
}

// ---- Contexts

static int make_current(context_t context) {
  if (!depth) depth = 1;
  stack[depth - 1] = context;
  if (!context) depth--;
  return SUCCESS;
}
API int cuDevicePrimaryCtxRetain(context_t *context, int device) {
  READY;
  *context = &primary;
  return device ? INVALID_DEVICE : SUCCESS;
}
API int cuDevicePrimaryCtxRelease_v2(int device) { return device ? INVALID_DEVICE : SUCCESS; }
API int cuDevicePrimaryCtxReset_v2(int device) {
  if (!gpusim_is_connected()) return NOT_INITIALIZED;
  broken = 0;
  return device ? INVALID_DEVICE : ASK("reset", 0);
}
API int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
  READY;
  *flags = primary.flags, *active = 1;
  return device ? INVALID_DEVICE : SUCCESS;
}
API int cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags) {
  primary.flags = flags;
  return device ? INVALID_DEVICE : SUCCESS;
}
API int cuCtxGetCurrent(context_t *context) {
  if (!gpusim_is_connected()) return NOT_INITIALIZED;
  *context = depth ? stack[depth - 1] : NULL;
  return SUCCESS;
}
API int cuCtxSetCurrent(context_t context) {
  if (!gpusim_is_connected()) return NOT_INITIALIZED;
  return make_current(context);
}
API int cuCtxPushCurrent_v2(context_t context) {
  READY;
  if (depth == DEPTH) return INVALID_VALUE;
  stack[depth++] = context;
  return SUCCESS;
}
API int cuCtxPopCurrent_v2(context_t *context) {
  READY;
  if (!depth) return INVALID_CONTEXT;
  depth--;
  if (context) *context = stack[depth];
  return SUCCESS;
}
API int cuCtxCreate_v2(context_t *context, unsigned flags, int device) {
  READY;
  if (device) return INVALID_DEVICE;
  context_t made = calloc(1, sizeof *made);
  if (!made) return OUT_OF_MEMORY;
  made->flags = flags;
  *context = made;
  return cuCtxPushCurrent_v2(made);
}
API int cuCtxCreate_v4(context_t *context, void *parameters, unsigned flags, int device) {
  (void)parameters;
  return cuCtxCreate_v2(context, flags, device);
}
API int cuCtxCreate_v3(context_t *context, void *affinity, int count, unsigned flags, int device) {
  (void)affinity, (void)count;
  return cuCtxCreate_v2(context, flags, device);
}
API int cuCtxDestroy_v2(context_t context) {
  READY;
  if (depth && stack[depth - 1] == context) depth--;
  return SUCCESS;
}
API int cuCtxAttach(context_t *context, unsigned flags) { (void)flags; CURRENT; *context = stack[depth - 1]; return SUCCESS; }
API int cuCtxDetach(context_t context) { return cuCtxDestroy_v2(context); }
API int cuCtxGetDevice(int *device) { CURRENT; *device = 0; return SUCCESS; }
API int cuCtxGetDevice_v2(int *device, context_t context) { (void)context; READY; *device = 0; return SUCCESS; }
static int synchronize(void) {
  int status = ASK("synchronize", 0);
  gpusim_guard();
  return status;
}
API int cuCtxSynchronize(void) { CURRENT; return synchronize(); }
API int cuCtxSynchronize_v2(context_t context) { (void)context; READY; return synchronize(); }
API int cuCtxGetId(context_t context, unsigned long long *id) {
  READY;
  *id = context ? (u64)context : (u64)&primary;
  return SUCCESS;
}
API int cuCtxGetApiVersion(context_t context, unsigned *version) { (void)context; *version = 3020; return SUCCESS; }
API int cuCtxGetFlags(unsigned *flags) { CURRENT; *flags = stack[depth - 1]->flags; return SUCCESS; }
API int cuCtxSetFlags(unsigned flags) { CURRENT; stack[depth - 1]->flags = flags; return SUCCESS; }
API int cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  CURRENT;
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return SUCCESS;
}
static size_t limits[8] = {1024, 1 << 20, 8 << 20, 2, 2048, 128, 0, 0};
API int cuCtxGetLimit(size_t *value, int limit) {
  CURRENT;
  if (limit < 0 || limit >= 8) return INVALID_VALUE;
  *value = limits[limit];
  return SUCCESS;
}
API int cuCtxSetLimit(int limit, size_t value) {
  CURRENT;
  if (limit < 0 || limit >= 8) return INVALID_VALUE;
  limits[limit] = value;
  return ASK("limit", (u64)limit, value);
}
API int cuCtxGetCacheConfig(int *config) { CURRENT; *config = 0; return SUCCESS; }
API int cuCtxSetCacheConfig(int config) { (void)config; CURRENT; return SUCCESS; }
API int cuCtxGetSharedMemConfig(int *config) { CURRENT; *config = 1; return SUCCESS; }
API int cuCtxSetSharedMemConfig(int config) { (void)config; CURRENT; return SUCCESS; }
API int cuCtxResetPersistingL2Cache(void) { CURRENT; return SUCCESS; }
API int cuCtxEnablePeerAccess(context_t context, unsigned flags) { (void)context, (void)flags; return 217; }
API int cuCtxDisablePeerAccess(context_t context) { (void)context; return 705; }
API int cuProfilerInitialize(const char *config, const char *output, int mode) { (void)config, (void)output, (void)mode; return SUCCESS; }
API int cuProfilerStart(void) { return SUCCESS; }
API int cuProfilerStop(void) { return SUCCESS; }

// ---- Memory

INSIDE int gpusim_take(u64 *address, size_t size, int kind, stream_t stream) {
  if (!address || !size) return INVALID_VALUE;
  u64 made[1];
  int status = ASK_FOR("allocate", made, size, (u64)kind, stream_of(stream)->id);
  if (!status) gpusim_share(made[0], size, kind == PINNED_MEMORY || kind == MANAGED_MEMORY), *address = made[0];
  return status;
}
API void gpusim_manage(u64 address, size_t size) { gpusim_share(address, size, 1); }
// For programs that compute on device memory with the host's processor, as if it were the GPU.
API int gpusimShareMemory(u64 range[2]) {
  READY;
  gpusim_share_all();
  range[0] = gpusim_device.arena_begin, range[1] = range[0] + gpusim_device.arena_bytes;
  return SUCCESS;
}
API int gpusimHasValues(u64 address, size_t size) {
  READY;
  gpusim_note(HAS_VALUES, address, size);
  return SUCCESS;
}
API int gpusimAllocated(u64 address, size_t size) {
  READY;
  gpusim_note(ALLOCATED, address, size);
  return SUCCESS;
}
API int gpusimFreed(u64 address) {
  READY;
  gpusim_note(FREED, address, 0);
  return SUCCESS;
}
static int give_back(u64 address, int kind, stream_t stream, int is_asynchronous) {
  if (!address) return SUCCESS;
  if (gpusim_is_of_graphs(address)) {
    gpusim_count_taken(address, 0);
    return SUCCESS;
  }
  gpusim_unguard();
  int status = ASK("free", address, (u64)kind, stream_of(stream)->id, (u64)is_asynchronous);
  gpusim_guard();
  return status;
}
API int cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
  CURRENT;
  u64 found[1];
  int status = ASK_FOR("room", found, 0);
  *total = gpusim_device.memory_bytes, *free_bytes = found[0];
  return status;
}
API int cuMemAlloc_v2(u64 *address, size_t size) { CURRENT; return gpusim_take(address, size, DEVICE_MEMORY, NULL); }
API int cuMemAllocPitch_v2(u64 *address, size_t *pitch, size_t width, size_t height, unsigned item) {
  CURRENT;
  if (item != 4 && item != 8 && item != 16) return INVALID_VALUE;
  *pitch = (width + 511) / 512 * 512;
  return gpusim_take(address, *pitch * height, DEVICE_MEMORY, NULL);
}
API int cuMemAllocManaged(u64 *address, size_t size, unsigned flags) {
  CURRENT;
  return flags == 1 || flags == 2 ? gpusim_take(address, size, MANAGED_MEMORY, NULL) : INVALID_VALUE;
}
API int cuMemFree_v2(u64 address) { CURRENT; return give_back(address, DEVICE_MEMORY, NULL, 0); }
API int cuMemHostAlloc(void **address, size_t size, unsigned flags) {
  CURRENT;
  return flags > 7 ? INVALID_VALUE : gpusim_take((u64 *)address, size, PINNED_MEMORY, NULL);
}
API int cuMemAllocHost_v2(void **address, size_t size) { return cuMemHostAlloc(address, size, 0); }
API int cuMemFreeHost(void *address) { CURRENT; return give_back((u64)address, PINNED_MEMORY, NULL, 0); }

static int is_of_host(u64 kind) { return kind == PINNED_MEMORY || kind == REGISTERED_MEMORY; }
static int range_of(u64 address, u64 found[3]) {
  return gpusim_ask("range", &address, 1, NULL, 0, found, 3, NULL, NULL);
}
enum { PAGE = 4096 };
API int cuMemHostRegister_v2(void *address, size_t size, unsigned flags) {
  (void)flags;
  CURRENT;
  if (!address || !size) return INVALID_VALUE;
  u64 begin = (u64)address / PAGE * PAGE, end = ((u64)address + size + PAGE - 1) / PAGE * PAGE;
  u64 made[2];
  int status = ASK_FOR("register", made, (u64)address, size, begin, end - begin);
  if (status) return status;
  memcpy(gpusim_at(gpusim_device.arena_begin + made[0]), (void *)begin, end - begin);
  return gpusim_map((void *)begin, end - begin, made[0]);
}
API int cuMemHostUnregister(void *address) {
  CURRENT;
  u64 pages[2];
  int status = ASK_FOR("unregister", pages, (u64)address);
  return status ? status : gpusim_unmap((void *)pages[0], pages[1]);
}
API int cuMemHostGetDevicePointer_v2(u64 *address, void *host, unsigned flags) {
  CURRENT;
  u64 found[3];
  if (flags || range_of((u64)host, found) || !(is_of_host(found[2]) || found[2] == MANAGED_MEMORY)) return INVALID_VALUE;
  *address = (u64)host;
  return SUCCESS;
}
API int cuMemHostGetFlags(unsigned *flags, void *host) {
  CURRENT;
  u64 found[3];
  *flags = 2;
  return range_of((u64)host, found) ? INVALID_VALUE : SUCCESS;
}
API int cuMemGetAddressRange_v2(u64 *base, size_t *size, u64 address) {
  CURRENT;
  u64 found[3];
  if (range_of(address, found)) return NOT_FOUND;
  if (base) *base = found[0];
  if (size) *size = found[1];
  return SUCCESS;
}
API int cuMemAdvise(u64 address, size_t size, int advice, int device) { (void)address, (void)size, (void)advice, (void)device; CURRENT; return SUCCESS; }
struct location { int kind, id; };
API int cuMemAdvise_v2(u64 address, size_t size, int advice, struct location where) { (void)where; return cuMemAdvise(address, size, advice, 0); }
API int cuMemPrefetchAsync(u64 address, size_t size, int device, stream_t stream) {
  (void)device, (void)stream;
  CURRENT;
  u64 found[3];
  return size && !range_of(address, found) ? SUCCESS : INVALID_VALUE;
}
API int cuMemPrefetchAsync_v2(u64 address, size_t size, struct location where, unsigned flags, stream_t stream) {
  (void)where, (void)flags;
  return cuMemPrefetchAsync(address, size, 0, stream);
}
static void attribute_of(void *value, int attribute, u64 address, const u64 *range) {
  switch (attribute) {
    case 1: *(void **)value = range ? &primary : NULL; break;
    case 2: *(unsigned *)value = range ? (is_of_host(range[2]) ? 1 : 2) : 0; break;
    case 3: *(u64 *)value = range ? address : 0; break;
    case 4: *(u64 *)value = !range || is_of_host(range[2]) || range[2] == MANAGED_MEMORY ? address : 0; break;
    case 7: *(u64 *)value = range ? range[0] : 0; break;
    case 8: *(char *)value = range && range[2] == MANAGED_MEMORY; break;
    case 9: *(int *)value = range ? 0 : -2; break;
    case 11: *(u64 *)value = range ? range[0] : 0; break;
    case 12: *(u64 *)value = range ? range[1] : 0; break;
    case 13: *(char *)value = range != NULL; break;
    case 17: *(u64 *)value = 0; break;
    default: *(int *)value = 0;
  }
}
API int cuPointerGetAttribute(void *value, int attribute, u64 address) {
  CURRENT;
  u64 range[3];
  if (range_of(address, range)) return INVALID_VALUE;
  attribute_of(value, attribute, address, range);
  return attribute == 4 && !*(u64 *)value ? INVALID_VALUE : SUCCESS;
}
API int cuPointerGetAttributes(unsigned count, const int *attributes, void **values, u64 address) {
  CURRENT;
  u64 range[3];
  int is_there = !range_of(address, range);
  for (unsigned k = 0; k < count; k++)
    attribute_of(values[k], attributes[k], address, is_there ? range : NULL);
  return SUCCESS;
}
API int cuPointerSetAttribute(const void *value, int attribute, u64 address) { (void)value, (void)attribute, (void)address; CURRENT; return SUCCESS; }

// Pools give memory as cuMemAlloc does; what they release and keep is not simulated.
API int cuDeviceGetDefaultMemPool(u64 *pool, int device) { READY; *pool = POOL; return device ? INVALID_DEVICE : SUCCESS; }
API int cuDeviceGetMemPool(u64 *pool, int device) { return cuDeviceGetDefaultMemPool(pool, device); }
API int cuDeviceSetMemPool(int device, u64 pool) { (void)pool; READY; return device ? INVALID_DEVICE : SUCCESS; }
API int cuMemPoolCreate(u64 *pool, const void *properties) { static u64 last = POOL; (void)properties; READY; *pool = ++last; return SUCCESS; }
API int cuMemPoolDestroy(u64 pool) { (void)pool; READY; return SUCCESS; }
API int cuMemPoolTrimTo(u64 pool, size_t least) { (void)pool, (void)least; READY; return SUCCESS; }
static u64 release_threshold;
API int cuMemPoolGetAttribute(u64 pool, int attribute, void *value) {
  (void)pool;
  READY;
  if (attribute < 4) *(int *)value = 1;
  else *(u64 *)value = attribute == 4 ? release_threshold : 0;
  return SUCCESS;
}
API int cuMemPoolSetAttribute(u64 pool, int attribute, void *value) {
  (void)pool;
  READY;
  if (attribute == 4) release_threshold = *(u64 *)value;
  return SUCCESS;
}
API int cuMemPoolSetAccess(u64 pool, const void *map, size_t count) { (void)pool, (void)map, (void)count; READY; return SUCCESS; }
API int cuMemPoolGetAccess(int *flags, u64 pool, void *location) { (void)pool, (void)location; READY; *flags = 3; return SUCCESS; }

// ---- Work on streams: done at once, or kept while a stream is captured

static int launch(const struct work *work, u64 stream) {
  u64 numbers[] = {work->function->id, work->grid[0], work->grid[1], work->grid[2], work->block[0],
                   work->block[1], work->block[2], work->shared, stream, work->cooperative,
                   work->cluster[0], work->cluster[1], work->cluster[2]};
  u64 fault[2] = {0};  // the status of the context, and how many bytes are of assertions
  char *text = NULL;
  size_t length = 0;
  int status = gpusim_ask("launch", numbers, sizeof numbers / sizeof *numbers, work->arguments,
                          work->function->bytes, fault, 2, &text, &length);
  if (text && length) {
    fwrite(text, 1, length - fault[1], stdout);
    fwrite(text + length - fault[1], 1, fault[1], stderr);
  }
  free(text);
  if (fault[0]) broken = (int)fault[0];
  gpusim_guard();
  return status;
}

// Directions of a copy: from host to device, back, within the device, and wherever pointers lead.
enum { TO_DEVICE = 1, TO_HOST, WITHIN, BY_ADDRESS, FIRST_PAGE = 4096 };

static int copy(const struct work *work, u64 stream) {
  u64 rows = work->height * work->depth;
  if (!work->width || !rows) return SUCCESS;
  if (work->to < FIRST_PAGE || work->from < FIRST_PAGE) return INVALID_VALUE;  // null, with an offset
  int status = ASK("copy", work->to, work->from, work->width, work->height, work->depth,
                   work->to_pitch, work->to_slice, work->from_pitch, work->from_slice,
                   work->direction, stream, work->is_asynchronous);
  gpusim_unguard();
  for (u64 z = 0; !status && z < work->depth; z++)
    for (u64 y = 0; y < work->height; y++)
      memmove(gpusim_at(work->to + z * work->to_slice + y * work->to_pitch),
              gpusim_at(work->from + z * work->from_slice + y * work->from_pitch), work->width);
  gpusim_guard();
  return status;
}

static int set(const struct work *work, u64 stream) {
  if (!work->width || !work->height) return SUCCESS;
  int status = ASK("set", work->to, work->width * work->item, work->height, work->to_pitch, stream,
                   work->is_asynchronous);
  gpusim_unguard();
  for (u64 y = 0; !status && y < work->height; y++) {
    char *row = gpusim_at(work->to + y * work->to_pitch);
    if (work->item == 1) memset(row, (int)work->value, work->width);
    else
      for (u64 x = 0; x < work->width; x++) memcpy(row + x * work->item, &work->value, work->item);
  }
  gpusim_guard();
  return status;
}

static int perform(const struct work *work, u64 stream) {
  switch (work->kind) {
    case LAUNCH: return launch(work, stream);
    case COPY: return copy(work, stream);
    case SET: return set(work, stream);
    case CALL:  // in the order of the stream: what the host does there is no race with it
      gpusim_unguard();
      work->call(work->given);
      gpusim_guard();
      return SUCCESS;
    case RECORD: work->event->recorded = 1; return ASK("record", work->event->id, stream);
    case TAKE: case GIVE_BACK: gpusim_count_taken(work->to, work->kind == TAKE); return SUCCESS;
    case CONDITION: return gpusim_decide(work->condition, stream);
    case NOTHING: return SUCCESS;
  }
  return UNKNOWN;
}

INSIDE int gpusim_run(graph_t graph, u64 stream) {
  int status = SUCCESS;
  for (size_t k = 0; !status && k < graph->count; k++)
    if (!graph->nodes[k]->is_off) status = perform(&graph->nodes[k]->work, stream);
  return status;
}

INSIDE node_t gpusim_keep(graph_t graph, const struct work *work) {
  if (graph->count == graph->room) {
    graph->room = graph->room ? 2 * graph->room : 16;
    graph->nodes = realloc(graph->nodes, graph->room * sizeof *graph->nodes);
  }
  node_t made = calloc(1, sizeof *made);
  made->graph = graph, made->work = *work;
  if (work->kind == LAUNCH) {
    made->work.arguments = malloc(work->function->bytes + 1);
    memcpy(made->work.arguments, work->arguments, work->function->bytes);
  }
  if (work->kind == CONDITION) made->work.condition = gpusim_copy_of_condition(work->condition);
  graph->nodes[graph->count++] = made;
  return made;
}

API int cuMemAllocAsync(u64 *address, size_t size, stream_t stream) {
  CURRENT;
  USABLE(stream);
  graph_t graph = stream_of(stream)->captured;
  return graph ? gpusim_keep_take(graph, NULL, address, size) : gpusim_take(address, size, DEVICE_MEMORY, stream);
}
API int cuMemAllocFromPoolAsync(u64 *address, size_t size, u64 pool, stream_t stream) {
  return pool ? cuMemAllocAsync(address, size, stream) : INVALID_VALUE;
}
API int cuMemFreeAsync(u64 address, stream_t stream) {
  CURRENT;
  USABLE(stream);
  graph_t graph = stream_of(stream)->captured;
  return graph ? gpusim_keep_give_back(graph, NULL, address) : give_back(address, DEVICE_MEMORY, stream, 1);
}

static int submit(stream_t given, const struct work *work) {
  USABLE(given);
  stream_t stream = stream_of(given);
  if (stream->captured) return gpusim_keep(stream->captured, work) ? SUCCESS : OUT_OF_MEMORY;
  return perform(work, stream->id);
}

#define LINE(destination, source, size, way, later)                                               \
  {.kind = COPY, .to = (u64)(destination), .from = (u64)(source), .width = (size), .height = 1,   \
   .depth = 1, .direction = (way), .is_asynchronous = (later)}
static int copy_line(u64 to, u64 from, size_t size, unsigned way, int later, stream_t stream) {
  CURRENT;
  struct work work = LINE(to, from, size, way, (unsigned)later);
  return submit(stream, &work);
}
API int cuMemcpyHtoD_v2(u64 to, const void *from, size_t n) { return copy_line(to, (u64)from, n, TO_DEVICE, 0, NULL); }
API int cuMemcpyDtoH_v2(void *to, u64 from, size_t n) { return copy_line((u64)to, from, n, TO_HOST, 0, NULL); }
API int cuMemcpyDtoD_v2(u64 to, u64 from, size_t n) { return copy_line(to, from, n, WITHIN, 0, NULL); }
API int cuMemcpy(u64 to, u64 from, size_t n) { return copy_line(to, from, n, BY_ADDRESS, 0, NULL); }
API int cuMemcpyHtoDAsync_v2(u64 to, const void *from, size_t n, stream_t s) { return copy_line(to, (u64)from, n, TO_DEVICE, 1, s); }
API int cuMemcpyDtoHAsync_v2(void *to, u64 from, size_t n, stream_t s) { return copy_line((u64)to, from, n, TO_HOST, 1, s); }
API int cuMemcpyDtoDAsync_v2(u64 to, u64 from, size_t n, stream_t s) { return copy_line(to, from, n, WITHIN, 1, s); }
API int cuMemcpyAsync(u64 to, u64 from, size_t n, stream_t s) { return copy_line(to, from, n, BY_ADDRESS, 1, s); }
API int cuMemcpyPeer(u64 to, context_t a, u64 from, context_t b, size_t n) { (void)a, (void)b; return copy_line(to, from, n, WITHIN, 0, NULL); }
API int cuMemcpyPeerAsync(u64 to, context_t a, u64 from, context_t b, size_t n, stream_t s) { (void)a, (void)b; return copy_line(to, from, n, WITHIN, 1, s); }

enum { HOST_SIDE = 1, DEVICE_SIDE, ARRAY_SIDE, UNIFIED_SIDE };
struct box_side { size_t x, y, z, lod; int kind; const void *host; u64 device; void *array, *reserved; size_t pitch, height; };
struct box { struct box_side from, to; size_t width, height, depth; };
struct sheet_side { size_t x, y; int kind; const void *host; u64 device; void *array; size_t pitch; };
struct sheet { struct sheet_side from, to; size_t width, height; };

// ---- Arrays, textures and surfaces

static unsigned bytes_of_format(int format) {  // 8, 16 or 32 bits: 1..3 without, 8..10 with a sign
  if (format == HALF) return 2;
  if (format == FLOAT) return 4;
  int number = format >= SIGNED_8 ? format - SIGNED_8 : format - UNSIGNED_8;
  return number >= 0 && number <= 2 ? 1u << number : 0;
}
API int cuArray3DCreate_v2(struct array **made, const struct array_size *size) {
  CURRENT;
  unsigned item = bytes_of_format(size->format) * size->channels;
  if (!item || size->channels > 4 || size->channels == 3 || !size->width) return INVALID_VALUE;
  if (size->flags & CUBE) return gpusim_refuse("cube maps");
  struct array one = {0, (size->width * item + 31) / 32 * 32, 0, size->width, size->height, size->depth,
                      size->format, size->channels, size->flags, item};
  one.slice = one.pitch * (one.height ? one.height : 1);
  int status = gpusim_take(&one.address, one.slice * (one.depth ? one.depth : 1), DEVICE_MEMORY, NULL);
  if (status) return status;
  *made = malloc(sizeof **made);
  **made = one;
  return SUCCESS;
}
struct flat_size { size_t width, height; int format; unsigned channels; };
API int cuArrayCreate_v2(struct array **made, const struct flat_size *size) {
  struct array_size given = {size->width, size->height, 0, size->format, size->channels, 0};
  return cuArray3DCreate_v2(made, &given);
}
API int cuArrayDestroy(struct array *array) {
  CURRENT;
  if (!array) return INVALID_HANDLE;
  int status = give_back(array->address, DEVICE_MEMORY, NULL, 0);
  if (!status) free(array);
  return status;
}
API int cuArray3DGetDescriptor_v2(struct array_size *size, const struct array *array) {
  if (!array) return INVALID_HANDLE;
  *size = (struct array_size){array->width, array->height, array->depth, array->format, array->channels, array->flags};
  return SUCCESS;
}
API int cuArrayGetDescriptor_v2(struct flat_size *size, const struct array *array) {
  if (!array) return INVALID_HANDLE;
  *size = (struct flat_size){array->width, array->height, array->format, array->channels};
  return SUCCESS;
}

static int describe_texture(u64 *object, const struct resource *resource, const struct sampling *how) {
  struct array one = {0};
  if (resource->kind == OF_ARRAY) {
    if (!resource->of.array) return INVALID_HANDLE;
    one = *resource->of.array;
  } else if (resource->kind == OF_LINEAR || resource->kind == OF_PITCHED) {
    int is_linear = resource->kind == OF_LINEAR;
    one.address = resource->of.linear.address, one.format = resource->of.linear.format;
    one.channels = resource->of.linear.channels;
    one.item = bytes_of_format(one.format) * one.channels;
    if (!one.item) return INVALID_VALUE;
    one.width = is_linear ? resource->of.linear.size / one.item : resource->of.pitched.width;
    one.height = is_linear ? 0 : resource->of.pitched.height;
    one.pitch = is_linear ? 0 : resource->of.pitched.pitch;
  } else {
    return gpusim_refuse("textures of mipmaps");
  }
  if (how && how->flags & AS_SRGB) return gpusim_refuse("textures of sRGB colours");
  int is_integer = one.format != HALF && one.format != FLOAT && bytes_of_format(one.format) == 4;
  unsigned border[4];
  memcpy(border, how ? how->border : (float[4]){0}, sizeof border);
  u64 made[1];
  int status = ASK_FOR("texture", made, one.address, one.width, one.height, one.depth, one.pitch, one.slice,
                       (u64)one.format, one.channels, one.flags & LAYERED, how ? (u64)how->modes[0] : 1,
                       how ? (u64)how->modes[1] : 1, how ? (u64)how->modes[2] : 1, how && how->filter == 1,
                       how && how->flags & NORMALIZED, how && !(how->flags & AS_INTEGER) && !is_integer,
                       border[0], border[1], border[2], border[3]);
  *object = made[0];
  return status;
}
API int cuTexObjectCreate(u64 *object, const struct resource *resource, const struct sampling *how, const void *view) {
  CURRENT;
  return view ? gpusim_refuse("views of textures") : describe_texture(object, resource, how);
}
API int cuTexObjectDestroy(u64 object) { CURRENT; return ASK("no_texture", object); }
API int cuSurfObjectCreate(u64 *object, const struct resource *resource) {
  CURRENT;
  return resource->kind == OF_ARRAY ? describe_texture(object, resource, NULL) : INVALID_VALUE;
}
API int cuSurfObjectDestroy(u64 object) { CURRENT; return ASK("no_texture", object); }

// An array's side of a copy, as memory: what is copied does not tell them apart.
static struct box_side as_memory(const struct box_side *side) {
  struct box_side made = *side;
  if (side->kind == ARRAY_SIDE) {
    const struct array *array = side->array;
    made.kind = DEVICE_SIDE, made.device = array->address, made.pitch = array->pitch;
    made.height = array->height ? array->height : 1;
  }
  return made;
}

static u64 begin_of(const struct box_side *side) {
  u64 base = side->kind == HOST_SIDE ? (u64)side->host : side->device;
  return base + side->z * side->pitch * side->height + side->y * side->pitch + side->x;
}
static unsigned direction_of(int from, int to) {
  if (from == HOST_SIDE) return to == HOST_SIDE ? BY_ADDRESS : TO_DEVICE;
  if (from == UNIFIED_SIDE || to == UNIFIED_SIDE) return BY_ADDRESS;
  return to == HOST_SIDE ? TO_HOST : WITHIN;
}
static int copy_box(const struct box *box, int later, stream_t stream) {
  CURRENT;
  struct box_side to_memory = as_memory(&box->to), from_memory = as_memory(&box->from);
  const struct box_side *to = &to_memory, *from = &from_memory;
  struct work work = {.kind = COPY, .to = begin_of(to), .from = begin_of(from), .to_pitch = to->pitch,
                      .from_pitch = from->pitch, .to_slice = to->pitch * to->height,
                      .from_slice = from->pitch * from->height, .width = box->width,
                      .height = box->height, .depth = box->depth,
                      .direction = direction_of(from->kind, to->kind), .is_asynchronous = (unsigned)later};
  return submit(stream, &work);
}
static struct box_side as_box(const struct sheet_side *side) {
  return (struct box_side){side->x, side->y, 0, 0, side->kind, side->host, side->device, side->array, NULL, side->pitch, 0};
}
static int copy_sheet(const struct sheet *sheet, int later, stream_t stream) {
  struct box box = {as_box(&sheet->from), as_box(&sheet->to), sheet->width, sheet->height, 1};
  return copy_box(&box, later, stream);
}
API int cuMemcpy2D_v2(const struct sheet *sheet) { return copy_sheet(sheet, 0, NULL); }
API int cuMemcpy2DUnaligned_v2(const struct sheet *sheet) { return copy_sheet(sheet, 0, NULL); }
API int cuMemcpy2DAsync_v2(const struct sheet *sheet, stream_t stream) { return copy_sheet(sheet, 1, stream); }
API int cuMemcpy3D_v2(const struct box *box) { return copy_box(box, 0, NULL); }
API int cuMemcpy3DAsync_v2(const struct box *box, stream_t stream) { return copy_box(box, 1, stream); }
// Contexts stand in the place of what is reserved.
API int cuMemcpy3DPeer(const struct box *box) { return copy_box(box, 0, NULL); }
API int cuMemcpy3DPeerAsync(const struct box *box, stream_t stream) { return copy_box(box, 1, stream); }
static u64 in_array(const struct array *array, size_t offset) { return array ? array->address + offset : 0; }
API int cuMemcpyAtoA_v2(struct array *to, size_t a, struct array *from, size_t b, size_t n) { return copy_line(in_array(to, a), in_array(from, b), n, WITHIN, 0, NULL); }
API int cuMemcpyAtoD_v2(u64 to, struct array *from, size_t b, size_t n) { return copy_line(to, in_array(from, b), n, WITHIN, 0, NULL); }
API int cuMemcpyDtoA_v2(struct array *to, size_t a, u64 from, size_t n) { return copy_line(in_array(to, a), from, n, WITHIN, 0, NULL); }
API int cuMemcpyAtoH_v2(void *to, struct array *from, size_t b, size_t n) { return copy_line((u64)to, in_array(from, b), n, TO_HOST, 0, NULL); }
API int cuMemcpyHtoA_v2(struct array *to, size_t a, const void *from, size_t n) { return copy_line(in_array(to, a), (u64)from, n, TO_DEVICE, 0, NULL); }
API int cuMemcpyAtoHAsync_v2(void *to, struct array *from, size_t b, size_t n, stream_t s) { return copy_line((u64)to, in_array(from, b), n, TO_HOST, 1, s); }
API int cuMemcpyHtoAAsync_v2(struct array *to, size_t a, const void *from, size_t n, stream_t s) { return copy_line(in_array(to, a), (u64)from, n, TO_DEVICE, 1, s); }

static int set_rows(u64 to, size_t pitch, unsigned value, unsigned item, size_t width, size_t height, int later, stream_t stream) {
  CURRENT;
  if (to % item) return INVALID_VALUE;
  struct work work = {.kind = SET, .to = to, .to_pitch = pitch, .value = value, .item = item,
                      .width = width, .height = height, .is_asynchronous = (unsigned)later};
  return submit(stream, &work);
}
API int cuMemsetD8_v2(u64 to, unsigned char v, size_t n) { return set_rows(to, 0, v, 1, n, 1, 0, NULL); }
API int cuMemsetD16_v2(u64 to, unsigned short v, size_t n) { return set_rows(to, 0, v, 2, n, 1, 0, NULL); }
API int cuMemsetD32_v2(u64 to, unsigned v, size_t n) { return set_rows(to, 0, v, 4, n, 1, 0, NULL); }
API int cuMemsetD8Async(u64 to, unsigned char v, size_t n, stream_t s) { return set_rows(to, 0, v, 1, n, 1, 1, s); }
API int cuMemsetD16Async(u64 to, unsigned short v, size_t n, stream_t s) { return set_rows(to, 0, v, 2, n, 1, 1, s); }
API int cuMemsetD32Async(u64 to, unsigned v, size_t n, stream_t s) { return set_rows(to, 0, v, 4, n, 1, 1, s); }
API int cuMemsetD2D8_v2(u64 to, size_t p, unsigned char v, size_t w, size_t h) { return set_rows(to, p, v, 1, w, h, 0, NULL); }
API int cuMemsetD2D16_v2(u64 to, size_t p, unsigned short v, size_t w, size_t h) { return set_rows(to, p, v, 2, w, h, 0, NULL); }
API int cuMemsetD2D32_v2(u64 to, size_t p, unsigned v, size_t w, size_t h) { return set_rows(to, p, v, 4, w, h, 0, NULL); }
API int cuMemsetD2D8Async(u64 to, size_t p, unsigned char v, size_t w, size_t h, stream_t s) { return set_rows(to, p, v, 1, w, h, 1, s); }
API int cuMemsetD2D16Async(u64 to, size_t p, unsigned short v, size_t w, size_t h, stream_t s) { return set_rows(to, p, v, 2, w, h, 1, s); }
API int cuMemsetD2D32Async(u64 to, size_t p, unsigned v, size_t w, size_t h, stream_t s) { return set_rows(to, p, v, 4, w, h, 1, s); }

// ---- Streams and events

API int cuStreamCreateWithPriority(stream_t *stream, unsigned flags, int priority) {
  CURRENT;
  u64 made[1];
  int status = ASK_FOR("stream", made, flags);
  if (status) return status;
  stream_t one = calloc(1, sizeof *one);
  *one = (struct stream){made[0], flags, priority > 0 ? 0 : priority < -5 ? -5 : priority, NULL, streams, 0};
  *stream = streams = one;
  return SUCCESS;
}
API int cuStreamCreate(stream_t *stream, unsigned flags) { return cuStreamCreateWithPriority(stream, flags, 0); }
API int cuStreamDestroy_v2(stream_t stream) {
  CURRENT;
  for (stream_t *place = &streams; *place; place = &(*place)->next)
    if (*place == stream) {
      *place = stream->next;
      stream->is_destroyed = 1;
      return SUCCESS;
    }
  return INVALID_HANDLE;
}
static int await(const char *what, u64 of) {
  int status = ASK(what, of);
  gpusim_guard();
  return status;
}
API int cuStreamSynchronize(stream_t stream) { CURRENT; USABLE(stream); return await("wait", stream_of(stream)->id); }
// All work is done when it is asked for: who polls has waited.
API int cuStreamQuery(stream_t stream) { CURRENT; USABLE(stream); return await("wait", stream_of(stream)->id); }
API int cuStreamWaitEvent(stream_t given, event_t event, unsigned flags) {
  (void)flags;
  CURRENT;
  if (!event) return INVALID_HANDLE;
  USABLE(given);
  stream_t stream = stream_of(given);
  if (event->captured) stream->captured = event->captured;
  return stream->captured || !event->recorded ? SUCCESS : ASK("order", stream->id, event->id);
}
struct callback { void (*function)(stream_t, int, void *); stream_t stream; void *given; };
static void run_callback(void *held) {
  struct callback *one = held;
  one->function(one->stream, SUCCESS, one->given);
  free(one);
}
API int cuStreamAddCallback(stream_t stream, void (*function)(stream_t, int, void *), void *given, unsigned flags) {
  (void)flags;
  CURRENT;
  struct callback *one = malloc(sizeof *one);
  *one = (struct callback){function, stream, given};
  struct work work = {.kind = CALL, .call = run_callback, .given = one};
  return submit(stream, &work);
}
API int cuLaunchHostFunc(stream_t stream, void (*function)(void *), void *given) {
  CURRENT;
  struct work work = {.kind = CALL, .call = function, .given = given};
  return submit(stream, &work);
}
API int cuStreamGetCtx(stream_t stream, context_t *context) { (void)stream; CURRENT; *context = stack[depth - 1]; return SUCCESS; }
API int cuStreamGetFlags(stream_t stream, unsigned *flags) { CURRENT; USABLE(stream); *flags = stream_of(stream)->flags; return SUCCESS; }
API int cuStreamGetPriority(stream_t stream, int *priority) { CURRENT; USABLE(stream); *priority = stream_of(stream)->priority; return SUCCESS; }
API int cuStreamGetDevice(stream_t stream, int *device) { (void)stream; CURRENT; *device = 0; return SUCCESS; }
API int cuStreamGetId(stream_t stream, unsigned long long *id) { CURRENT; USABLE(stream); *id = stream_of(stream)->id; return SUCCESS; }
API int cuStreamAttachMemAsync(stream_t stream, u64 address, size_t size, unsigned flags) { (void)stream, (void)address, (void)size, (void)flags; CURRENT; return SUCCESS; }

API int cuEventCreate(event_t *event, unsigned flags) {
  CURRENT;
  u64 made[1];
  int status = ASK_FOR("event", made, flags);
  if (status) return status;
  event_t one = calloc(1, sizeof *one);
  one->id = made[0], one->flags = flags;
  *event = one;
  return SUCCESS;
}
API int cuEventDestroy_v2(event_t event) { CURRENT; free(event); return event ? SUCCESS : INVALID_HANDLE; }
API int cuEventRecord(event_t event, stream_t stream) {
  CURRENT;
  if (!event) return INVALID_HANDLE;
  USABLE(stream);
  event->captured = stream_of(stream)->captured;
  struct work work = {.kind = RECORD, .event = event};
  return submit(stream, &work);
}
API int cuEventRecordWithFlags(event_t event, stream_t stream, unsigned flags) { (void)flags; return cuEventRecord(event, stream); }
API int cuEventSynchronize(event_t event) {
  CURRENT;
  if (!event) return INVALID_HANDLE;
  return event->recorded ? await("await", event->id) : SUCCESS;
}
API int cuEventQuery(event_t event) { return cuEventSynchronize(event); }
API int cuEventElapsedTime(float *milliseconds, event_t from, event_t to) {
  CURRENT;
  enum { WITHOUT_TIME = 2 };
  if (!from || !to || !from->recorded || !to->recorded) return INVALID_HANDLE;
  if ((from->flags | to->flags) & WITHOUT_TIME) return INVALID_HANDLE;
  u64 bits[1] = {0};
  double taken;
  int status = ASK_FOR("elapsed", bits, from->id, to->id);
  memcpy(&taken, bits, sizeof taken);
  *milliseconds = (float)taken;
  return status;
}
API int cuEventElapsedTime_v2(float *milliseconds, event_t from, event_t to) { return cuEventElapsedTime(milliseconds, from, to); }

// Attributes of streams have no effect here: what is set is accepted, and read as 0.
API int cuStreamSetAttribute(stream_t stream, int attribute, const void *value) { (void)stream, (void)attribute; CURRENT; return value ? SUCCESS : INVALID_VALUE; }
API int cuStreamGetAttribute(stream_t stream, int attribute, void *value) {
  enum { ATTRIBUTE_BYTES = 64 };
  (void)stream, (void)attribute;
  CURRENT;
  if (!value) return INVALID_VALUE;
  memset(value, 0, ATTRIBUTE_BYTES);
  return SUCCESS;
}
API int cuStreamCopyAttributes(stream_t to, stream_t from) { (void)to, (void)from; CURRENT; return SUCCESS; }

// Words of memory that a stream writes, or waits for: what it waits for must be there already.
static int write_word(stream_t stream, u64 address, u64 value, unsigned bytes) {
  u64 found[3];
  if (address % bytes || range_of(address, found)) return INVALID_VALUE;
  for (unsigned at = 0; at < bytes; at += 4) {
    struct work work = {.kind = SET, .to = address + at, .value = (unsigned)(value >> 8 * at), .item = 4, .width = 1, .height = 1, .is_asynchronous = 1};
    int status = submit(stream, &work);
    if (status) return status;
  }
  return SUCCESS;
}
static int wait_for_word(stream_t stream, u64 address, u64 value, unsigned flags, unsigned bytes) {
  enum { AT_LEAST, EQUAL, AND, NOR };
  u64 range[3], found = 0;
  if (address % bytes || range_of(address, range)) return INVALID_VALUE;
  USABLE(stream);
  if (stream_of(stream)->captured) return CAPTURE_UNSUPPORTED;
  gpusim_unguard();
  memcpy(&found, gpusim_at(address), bytes);
  gpusim_guard();
  u64 above = (found - value) << (bytes == 4 ? 32 : 0);
  int is_there[] = {(int64_t)above >= 0, found == value, (found & value) != 0, (~(found | value) << (bytes == 4 ? 32 : 0)) != 0};
  return is_there[flags & 3] ? SUCCESS : gpusim_refuse("a stream's wait for a word that is written later");
}
API int cuStreamWriteValue32_v2(stream_t stream, u64 address, unsigned value, unsigned flags) { (void)flags; CURRENT; return write_word(stream, address, value, 4); }
API int cuStreamWriteValue64_v2(stream_t stream, u64 address, u64 value, unsigned flags) { (void)flags; CURRENT; return write_word(stream, address, value, 8); }
API int cuStreamWaitValue32_v2(stream_t stream, u64 address, unsigned value, unsigned flags) { CURRENT; return wait_for_word(stream, address, value, flags, 4); }
API int cuStreamWaitValue64_v2(stream_t stream, u64 address, u64 value, unsigned flags) { CURRENT; return wait_for_word(stream, address, value, flags, 8); }

// An operation on a word, of several that a stream does one after the other.
struct word_work { int kind, unused; u64 address, value; unsigned flags, also_unused; u64 alias, reserved; };
API int cuStreamBatchMemOp_v2(stream_t stream, unsigned count, const struct word_work *all, unsigned flags) {
  enum { WAIT_32 = 1, WRITE_32, FLUSH, WAIT_64, WRITE_64, FENCE };
  CURRENT;
  int status = !all || !count || count > 256 || flags ? INVALID_VALUE : SUCCESS;
  for (unsigned k = 0; !status && k < count; k++) {
    const struct word_work *one = &all[k];
    switch (one->kind) {
      case WAIT_32: status = wait_for_word(stream, one->address, (unsigned)one->value, one->flags, 4); break;
      case WAIT_64: status = wait_for_word(stream, one->address, one->value, one->flags, 8); break;
      case WRITE_32: status = write_word(stream, one->address, (unsigned)one->value, 4); break;
      case WRITE_64: status = write_word(stream, one->address, one->value, 8); break;
      case FLUSH: case FENCE: break;  // work is done in order
      default: status = INVALID_VALUE;
    }
  }
  return status;
}

// ---- Modules, libraries, functions

static int load(module_t *module, const void *image, size_t size) {
  if (!image) return INVALID_VALUE;
  u64 made[1];
  int status = gpusim_ask("load", NULL, 0, image, size, made, 1, NULL, NULL);
  if (status) return status;
  module_t one = calloc(1, sizeof *one);
  one->id = made[0];
  *module = one;
  return SUCCESS;
}
static u64 at(const void *image, size_t offset, size_t size) {
  u64 value = 0;
  memcpy(&value, (const char *)image + offset, size);
  return value;
}
// How long an image is: an ELF file by its tables, a fat binary by its header, text to its zero.
static size_t length_of(const void *image) {
  u64 first = at(image, 0, 4);
  if (first == 0x464C457F) {
    u64 sections = at(image, 40, 8) + at(image, 58, 2) * at(image, 60, 2);
    u64 segments = at(image, 32, 8) + at(image, 54, 2) * at(image, 56, 2);
    return sections > segments ? sections : segments;
  }
  return first == 0xBA55ED50 ? at(image, 6, 2) + at(image, 8, 8) : strlen(image) + 1;
}
static int load_image(module_t *module, const void *image) {
  if (!image) return INVALID_VALUE;
  if (at(image, 0, 4) == 0x466243B1) image = (const void *)at(image, 8, 8);  // a wrapper
  return load(module, image, length_of(image));
}
API int cuModuleLoadDataEx(module_t *module, const void *image, unsigned count, int *options, void **values) {
  (void)count, (void)options, (void)values;
  CURRENT;
  return load_image(module, image);
}
API int cuModuleLoadData(module_t *module, const void *image) { return cuModuleLoadDataEx(module, image, 0, NULL, NULL); }
API int cuModuleLoadFatBinary(module_t *module, const void *image) { return cuModuleLoadDataEx(module, image, 0, NULL, NULL); }
static int load_file(module_t *module, const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) return 301;
  fseek(file, 0, SEEK_END);
  long size = ftell(file);
  rewind(file);
  char *held = malloc((size_t)size + 1);
  int failed = fread(held, 1, (size_t)size, file) != (size_t)size;
  fclose(file);
  held[size] = 0;
  int status = failed ? 301 : load(module, held, (size_t)size + 1);
  free(held);
  return status;
}
API int cuModuleLoad(module_t *module, const char *path) { CURRENT; return load_file(module, path); }
API int cuModuleUnload(module_t module) {
  CURRENT;
  return module ? ASK("unload", module->id) : INVALID_HANDLE;
}
API int cuModuleGetLoadingMode(int *mode) { READY; *mode = 1; return SUCCESS; }

static int describe(module_t module, const char *name, function_t *made) {
  u64 head[3 + FUNCTION_ATTRIBUTES];
  char *text = NULL;
  size_t length = 0;
  int status = gpusim_ask("function", NUMBERS(module->id), 1, name, strlen(name), head,
                          sizeof head / sizeof *head, &text, &length);
  if (!status) {
    function_t one = calloc(1, sizeof *one + strlen(name) + 1);
    one->id = head[0], one->parameters = (unsigned)head[1], one->bytes = (unsigned)head[2];
    for (int k = 0; k < FUNCTION_ATTRIBUTES; k++) one->attributes[k] = (int)head[3 + k];
    one->block[0] = one->block[1] = one->block[2] = 1;
    one->module = module, one->next = module->functions;
    one->places = (u64(*)[2])text;
    strcpy(one->name, name);
    *made = module->functions = one;
  } else {
    free(text);
  }
  return status;
}
API int cuModuleGetFunction(function_t *function, module_t module, const char *name) {
  CURRENT;
  if (!module) return INVALID_HANDLE;
  if (!name) return INVALID_VALUE;
  for (function_t one = module->functions; one; one = one->next)
    if (!strcmp(one->name, name)) {
      *function = one;
      return SUCCESS;
    }
  return describe(module, name, function);
}
API int cuModuleGetGlobal_v2(u64 *address, size_t *size, module_t module, const char *name) {
  CURRENT;
  if (!module) return INVALID_HANDLE;
  u64 found[2];
  int status = gpusim_ask("variable", NUMBERS(module->id), 1, name, strlen(name), found, 2, NULL, NULL);
  if (status) return status;
  if (address) *address = found[0];
  if (size) *size = found[1];
  return SUCCESS;
}
static int names_of(module_t module, char **names, unsigned *count) {
  u64 found[1];
  int status = gpusim_ask("functions", NUMBERS(module->id), 1, NULL, 0, found, 1, names, NULL);
  *count = (unsigned)found[0];
  return status;
}
API int cuModuleGetFunctionCount(unsigned *count, module_t module) {
  CURRENT;
  char *names = NULL;
  int status = names_of(module, &names, count);
  free(names);
  return status;
}
API int cuModuleEnumerateFunctions(function_t *functions, unsigned most, module_t module) {
  CURRENT;
  char *names = NULL;
  unsigned count;
  int status = names_of(module, &names, &count);
  char *name = names;
  for (unsigned k = 0; !status && k < count && k < most; k++, name += strlen(name) + 1)
    status = cuModuleGetFunction(&functions[k], module, name);
  free(names);
  return status;
}
API int cuLibraryLoadData(module_t *library, const void *code, void *a, void *b, unsigned n, void *c, void *d, unsigned m) {
  (void)a, (void)b, (void)n, (void)c, (void)d, (void)m;
  READY;
  return load_image(library, code);
}
API int cuLibraryLoadFromFile(module_t *library, const char *path, void *a, void *b, unsigned n, void *c, void *d, unsigned m) {
  (void)a, (void)b, (void)n, (void)c, (void)d, (void)m;
  READY;
  return load_file(library, path);
}
API int cuLibraryUnload(module_t library) { return cuModuleUnload(library); }
API int cuLibraryGetKernel(function_t *kernel, module_t library, const char *name) { return cuModuleGetFunction(kernel, library, name); }
API int cuLibraryGetModule(module_t *module, module_t library) { CURRENT; *module = library; return SUCCESS; }
API int cuLibraryGetGlobal(u64 *address, size_t *size, module_t library, const char *name) { return cuModuleGetGlobal_v2(address, size, library, name); }
API int cuLibraryGetManaged(u64 *address, size_t *size, module_t library, const char *name) { return cuModuleGetGlobal_v2(address, size, library, name); }
API int cuLibraryGetKernelCount(unsigned *count, module_t library) { return cuModuleGetFunctionCount(count, library); }
API int cuLibraryEnumerateKernels(function_t *kernels, unsigned most, module_t library) { return cuModuleEnumerateFunctions(kernels, most, library); }
API int cuKernelGetFunction(function_t *function, function_t kernel) { CURRENT; *function = kernel; return SUCCESS; }
API int cuKernelGetLibrary(module_t *library, function_t kernel) { READY; *library = kernel->module; return SUCCESS; }
API int cuFuncGetModule(module_t *module, function_t function) { READY; *module = function->module; return SUCCESS; }
API int cuFuncGetName(const char **name, function_t function) { READY; *name = function->name; return SUCCESS; }
API int cuKernelGetName(const char **name, function_t kernel) { return cuFuncGetName(name, kernel); }
API int cuFuncGetParamInfo(function_t function, size_t index, size_t *offset, size_t *size) {
  READY;
  if (index >= function->parameters) return INVALID_VALUE;
  *offset = function->places[index][0];
  if (size) *size = function->places[index][1];
  return SUCCESS;
}
API int cuKernelGetParamInfo(function_t kernel, size_t index, size_t *offset, size_t *size) { return cuFuncGetParamInfo(kernel, index, offset, size); }
API int cuFuncGetParamCount(function_t function, size_t *count) { READY; *count = function->parameters; return SUCCESS; }
API int cuKernelGetParamCount(function_t kernel, size_t *count) { return cuFuncGetParamCount(kernel, count); }
API int cuFuncIsLoaded(int *state, function_t function) { (void)function; READY; *state = 1; return SUCCESS; }
API int cuFuncLoad(function_t function) { (void)function; READY; return SUCCESS; }
// Of CUDA 13.0: programs ask for later attributes too, and do without where a driver lacks them.
enum { DYNAMIC_SHARED = 8, CARVEOUT = 9, LAST_ATTRIBUTE = 15 };
API int cuFuncGetAttribute(int *value, int attribute, function_t function) {
  READY;
  if (!function) return INVALID_HANDLE;
  if (attribute < 0 || attribute > LAST_ATTRIBUTE) return INVALID_VALUE;
  *value = attribute < FUNCTION_ATTRIBUTES ? function->attributes[attribute] : 0;
  return SUCCESS;
}
API int cuKernelGetAttribute(int *value, int attribute, function_t kernel, int device) { (void)device; return cuFuncGetAttribute(value, attribute, kernel); }
API int cuFuncSetAttribute(function_t function, int attribute, int value) {
  READY;
  if (!function) return INVALID_HANDLE;
  if (attribute < DYNAMIC_SHARED || attribute > LAST_ATTRIBUTE) return INVALID_VALUE;
  if (attribute == DYNAMIC_SHARED) {
    int64_t most = gpusim_device.attributes[97] - function->attributes[1];
    if (value < 0 || value > most) return INVALID_VALUE;
  }
  if (attribute < FUNCTION_ATTRIBUTES) function->attributes[attribute] = value;
  return SUCCESS;
}
API int cuKernelSetAttribute(int attribute, int value, function_t kernel, int device) { (void)device; return cuFuncSetAttribute(kernel, attribute, value); }
API int cuFuncSetCacheConfig(function_t function, int config) { (void)function, (void)config; READY; return SUCCESS; }
API int cuKernelSetCacheConfig(function_t kernel, int config, int device) { (void)kernel, (void)config, (void)device; READY; return SUCCESS; }
API int cuFuncSetSharedMemConfig(function_t function, int config) { (void)function, (void)config; READY; return SUCCESS; }

// ---- Tensor maps: words as in launch/tensor_maps.py

enum { MOST_DIMENSIONS = 5, MOST_BOX = 256, BFLOAT16 = 9, FLOAT32_FTZ = 10, STORED_FLOAT32 = 7 };
static const unsigned bytes_of_type[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2};

API int cuTensorMapEncodeTiled(u64 *map, unsigned type, unsigned rank, void *address, const u64 *dims, const u64 *strides,
                               const unsigned *box, const unsigned *steps, int interleave, unsigned swizzle, int promotion,
                               unsigned fill) {
  (void)promotion;
  READY;
  if (!map || !dims || !box || !steps || (rank > 1 && !strides)) return INVALID_VALUE;
  if (rank < 1 || rank > MOST_DIMENSIONS || !address || (u64)address % 16 || fill > 1) return INVALID_VALUE;
  type = type == FLOAT32_FTZ ? STORED_FLOAT32 : type;
  if (type > BFLOAT16) return gpusim_refuse("cuTensorMapEncodeTiled with elements of this type");
  if (interleave) return gpusim_refuse("cuTensorMapEncodeTiled with interleaved elements");
  if (swizzle > 3) return gpusim_refuse("cuTensorMapEncodeTiled with this swizzle");
  unsigned row = box[0] * bytes_of_type[type], width = swizzle ? 16u << swizzle : 0;
  if (row % 16 || (width && row > width)) return INVALID_VALUE;
  if (width && row < width) return gpusim_refuse("cuTensorMapEncodeTiled with rows narrower than the swizzle");
  memset(map, 0, 128);
  map[0] = (u64)address, map[1] = rank | swizzle << 8 | fill << 16 | type << 24;
  for (unsigned k = 0; k < rank; k++) {
    if (!dims[k] || dims[k] > (u64)1 << 32 || !box[k] || box[k] > MOST_BOX || !steps[k]) return INVALID_VALUE;
    if (steps[k] != 1) return gpusim_refuse("cuTensorMapEncodeTiled with steps between elements");
    map[2 + k] = dims[k], map[2 + MOST_DIMENSIONS + k] = box[k];
    if (k && (!strides[k - 1] || strides[k - 1] % 16)) return INVALID_VALUE;
    if (k) map[1 + 2 * MOST_DIMENSIONS + k] = strides[k - 1];
  }
  return SUCCESS;
}

// ---- Launches

enum { PLAIN, COOPERATIVE, PROGRAMMATIC };  // bits

static int gather(function_t function, void **arguments, void **extra, char *held) {
  memset(held, 0, function->bytes);
  if (arguments) {
    for (unsigned k = 0; k < function->parameters; k++)
      memcpy(held + function->places[k][0], arguments[k], function->places[k][1]);
    return SUCCESS;
  }
  enum { END, BUFFER, BUFFER_SIZE };
  const void *buffer = NULL;
  size_t size = 0;
  for (; extra && (u64)extra[0] != END; extra += 2) {
    if ((u64)extra[0] == BUFFER) buffer = extra[1];
    if ((u64)extra[0] == BUFFER_SIZE) size = *(size_t *)extra[1];
  }
  if (function->parameters && !buffer) return INVALID_VALUE;
  memcpy(held, buffer ? buffer : held, size < function->bytes ? size : function->bytes);
  return SUCCESS;
}
static int check_sizes(const struct work *work) {
  const int64_t *most = gpusim_device.attributes;
  u64 threads = 1;
  for (int k = 0; k < 3; k++) {
    if (!work->grid[k] || !work->block[k]) return INVALID_VALUE;
    if (work->block[k] > most[2 + k] || work->grid[k] > most[5 + k]) return INVALID_VALUE;
    threads *= work->block[k];
  }
  if (threads > (u64)most[1] || threads > (u64)work->function->attributes[0]) return INVALID_VALUE;
  int64_t shared = work->shared, own = work->function->attributes[1];
  int64_t opted = work->function->attributes[DYNAMIC_SHARED];
  return shared > opted || shared + own > most[97] ? INVALID_VALUE : SUCCESS;
}
static int prepare(struct work *work, void **arguments, void **extra) {
  if (!work->function) return INVALID_HANDLE;
  int status = check_sizes(work);
  if (status) {
    gpusim_ask("misfit",
               NUMBERS(work->grid[0], work->grid[1], work->grid[2], work->block[0], work->block[1],
                       work->block[2], work->shared, (u64)work->function->attributes[0],
                       (u64)work->function->attributes[DYNAMIC_SHARED]),
               9, work->function->name, strlen(work->function->name), NULL, 0, NULL, NULL);
    return status;
  }
  work->arguments = malloc(work->function->bytes + 1);
  return work->arguments ? gather(work->function, arguments, extra, work->arguments) : OUT_OF_MEMORY;
}
static int start(struct work *work, stream_t stream, void **arguments, void **extra) {
  CURRENT;
  int status = prepare(work, arguments, extra);
  if (!status) status = submit(stream, work);
  free(work->arguments);
  return status;
}
#define LAUNCH_OF(f, gx, gy, gz, bx, by, bz, bytes, how) \
  {.kind = LAUNCH, .function = (f), .grid = {gx, gy, gz}, .block = {bx, by, bz}, .shared = (bytes), .cooperative = (how)}
API int cuLaunchKernel(function_t f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                       unsigned shared, stream_t stream, void **arguments, void **extra) {
  struct work work = LAUNCH_OF(f, gx, gy, gz, bx, by, bz, shared, PLAIN);
  return start(&work, stream, arguments, extra);
}
API int cuLaunchCooperativeKernel(function_t f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                                  unsigned shared, stream_t stream, void **arguments) {
  struct work work = LAUNCH_OF(f, gx, gy, gz, bx, by, bz, shared, COOPERATIVE);
  return start(&work, stream, arguments, NULL);
}
struct launch_attribute { int id, unused; union { char bytes[64]; int number; unsigned size[3]; } value; };
struct launch_config { unsigned grid[3], block[3], shared; stream_t stream; struct launch_attribute *attributes; unsigned count; };
API int cuLaunchKernelEx(const struct launch_config *config, function_t f, void **arguments, void **extra) {
  enum { IS_COOPERATIVE = 2, CLUSTER = 4, IS_PROGRAMMATIC = 6 };
  struct work work = LAUNCH_OF(f, config->grid[0], config->grid[1], config->grid[2], config->block[0],
                               config->block[1], config->block[2], config->shared, PLAIN);
  for (unsigned k = 0; k < config->count; k++) {
    const struct launch_attribute *one = &config->attributes[k];
    if (one->id == IS_COOPERATIVE && one->value.number) work.cooperative |= COOPERATIVE;
    if (one->id == IS_PROGRAMMATIC && one->value.number) work.cooperative |= PROGRAMMATIC;
    if (one->id == CLUSTER) memcpy(work.cluster, one->value.size, sizeof work.cluster);
  }
  return start(&work, config->stream, arguments, extra);
}

// ---- Occupancy

API int cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, function_t f, int threads, size_t shared, unsigned flags) {
  (void)flags;
  READY;
  if (!f || threads <= 0) return INVALID_VALUE;
  u64 found[1];
  int status = ASK_FOR("occupancy", found, f->id, (u64)threads, shared);
  *blocks = (int)found[0];
  return status;
}
API int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, function_t f, int threads, size_t shared) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, f, threads, shared, 0);
}
API int cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, function_t f, size_t (*shared_of)(int), size_t shared, int most, unsigned flags) {
  (void)flags;
  READY;
  if (!f) return INVALID_VALUE;
  int limit = f->attributes[0], best = 0;
  if (most > 0 && most < limit) limit = most;
  for (int threads = (limit + 31) / 32 * 32; threads > 0; threads -= 32) {
    int given = threads < limit ? threads : limit, blocks = 0;
    int status = cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, given, shared_of ? shared_of(given) : shared);
    if (!status && blocks * given > best) {
      best = blocks * given;
      *block = given, *grid = blocks * (int)gpusim_device.attributes[16];
    }
  }
  return best ? SUCCESS : INVALID_VALUE;
}
API int cuOccupancyMaxPotentialBlockSize(int *grid, int *block, function_t f, size_t (*shared_of)(int), size_t shared, int most) {
  return cuOccupancyMaxPotentialBlockSizeWithFlags(grid, block, f, shared_of, shared, most, 0);
}
API int cuOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, function_t f, int blocks, int threads) {
  (void)threads;
  READY;
  if (!f || blocks <= 0) return INVALID_VALUE;
  int64_t each = gpusim_device.attributes[81] / blocks - gpusim_device.attributes[111] - f->attributes[1];
  int64_t most = gpusim_device.attributes[97] - f->attributes[1];
  *bytes = (size_t)(each < 0 ? 0 : each < most ? each : most);
  return SUCCESS;
}

// ---- Graphs: work in the order in which it was captured or added

API int cuStreamBeginCapture_v2(stream_t given, int mode) {
  (void)mode;
  CURRENT;
  USABLE(given);
  stream_t stream = stream_of(given);
  if (stream == &null_stream) return CAPTURE_UNSUPPORTED;
  if (stream->captured) return ILLEGAL_STATE;
  stream->captured = calloc(1, sizeof *stream->captured);
  return stream->captured ? SUCCESS : OUT_OF_MEMORY;
}
API int cuStreamEndCapture(stream_t given, graph_t *graph) {
  CURRENT;
  USABLE(given);
  graph_t found = stream_of(given)->captured;
  if (graph) *graph = found;
  if (!found) return ILLEGAL_STATE;
  for (stream_t one = streams; one; one = one->next)
    if (one->captured == found) one->captured = NULL;
  if (per_thread.captured == found) per_thread.captured = NULL;
  return SUCCESS;
}
API int cuStreamIsCapturing(stream_t stream, int *status) { CURRENT; USABLE(stream); *status = stream_of(stream)->captured != NULL; return SUCCESS; }
API int cuStreamGetCaptureInfo_v2(stream_t stream, int *status, u64 *id, graph_t *graph, const node_t **nodes, size_t *count) {
  CURRENT;
  USABLE(stream);
  graph_t found = stream_of(stream)->captured;
  *status = found != NULL;
  if (id) *id = (u64)found;
  if (graph) *graph = found;
  // Nodes run in the order of their addition: the last one is behind all others.
  size_t last = found && found->count ? 1 : 0;
  if (nodes) *nodes = last ? &found->nodes[found->count - 1] : NULL;
  if (count) *count = last;
  return SUCCESS;
}
API int cuStreamGetCaptureInfo_v3(stream_t stream, int *status, u64 *id, graph_t *graph, const node_t **nodes, const void **edges, size_t *count) {
  if (edges) *edges = NULL;
  return cuStreamGetCaptureInfo_v2(stream, status, id, graph, nodes, count);
}
// What is captured comes behind the nodes that the graph has.
API int cuStreamBeginCaptureToGraph(stream_t given, graph_t graph, const node_t *before, const void *edges, size_t count, int mode) {
  (void)before, (void)edges, (void)count, (void)mode;
  CURRENT;
  USABLE(given);
  stream_t stream = stream_of(given);
  if (stream == &null_stream) return CAPTURE_UNSUPPORTED;
  if (!graph) return INVALID_VALUE;
  if (stream->captured) return ILLEGAL_STATE;
  stream->captured = graph;
  return SUCCESS;
}
// Nodes run in the order of their addition, which all dependencies follow.
API int cuStreamUpdateCaptureDependencies_v2(stream_t stream, node_t *nodes, const void *edges, size_t count, unsigned flags) {
  (void)nodes, (void)edges, (void)count, (void)flags;
  CURRENT;
  return stream_of(stream)->captured ? SUCCESS : ILLEGAL_STATE;
}
API int cuStreamUpdateCaptureDependencies(stream_t stream, node_t *nodes, size_t count, unsigned flags) {
  return cuStreamUpdateCaptureDependencies_v2(stream, nodes, NULL, count, flags);
}
API int cuThreadExchangeStreamCaptureMode(int *mode) { *mode = 0; return SUCCESS; }
API int cuGraphCreate(graph_t *graph, unsigned flags) { (void)flags; READY; *graph = calloc(1, sizeof **graph); return SUCCESS; }
static int add(node_t *node, graph_t graph, const struct work *work) {
  if (!graph) return INVALID_VALUE;
  node_t made = gpusim_keep(graph, work);
  if (node) *node = made;
  return SUCCESS;
}
struct kernel_node { function_t function; unsigned grid[3], block[3], shared; void **arguments, **extra; function_t kernel; context_t context; };
static int as_launch(struct work *work, const struct kernel_node *given) {
  function_t f = given->function ? given->function : given->kernel;
  *work = (struct work)LAUNCH_OF(f, given->grid[0], given->grid[1], given->grid[2], given->block[0],
                                 given->block[1], given->block[2], given->shared, PLAIN);
  return prepare(work, given->arguments, given->extra);
}
API int cuGraphAddKernelNode_v2(node_t *node, graph_t graph, const node_t *before, size_t count, const struct kernel_node *given) {
  (void)before, (void)count;
  READY;
  struct work work;
  int status = as_launch(&work, given);
  if (!status) status = add(node, graph, &work);
  free(work.arguments);
  return status;
}
static struct work as_copy(const struct box *box) {
  struct box_side to = as_memory(&box->to), from = as_memory(&box->from);
  return (struct work){.kind = COPY, .to = begin_of(&to), .from = begin_of(&from),
                       .to_pitch = to.pitch, .from_pitch = from.pitch,
                       .to_slice = to.pitch * to.height, .from_slice = from.pitch * from.height,
                       .width = box->width, .height = box->height, .depth = box->depth,
                       .direction = direction_of(from.kind, to.kind), .is_asynchronous = 1};
}
API int cuGraphAddMemcpyNode(node_t *node, graph_t graph, const node_t *before, size_t count, const struct box *box, context_t context) {
  (void)before, (void)count, (void)context;
  READY;
  struct work work = as_copy(box);
  return add(node, graph, &work);
}
struct set_node { u64 to; size_t pitch; unsigned value, item; size_t width, height; };
static struct work as_set(const struct set_node *given) {
  return (struct work){.kind = SET, .to = given->to, .to_pitch = given->pitch, .value = given->value, .item = given->item,
                       .width = given->width, .height = given->height, .is_asynchronous = 1};
}
API int cuGraphAddMemsetNode(node_t *node, graph_t graph, const node_t *before, size_t count, const struct set_node *given, context_t context) {
  (void)before, (void)count, (void)context;
  READY;
  struct work work = as_set(given);
  return add(node, graph, &work);
}
struct host_node { void (*call)(void *); void *given; };
static struct work as_call(const struct host_node *given) { return (struct work){.kind = CALL, .call = given->call, .given = given->given}; }
API int cuGraphAddHostNode(node_t *node, graph_t graph, const node_t *before, size_t count, const struct host_node *given) {
  (void)before, (void)count;
  READY;
  struct work work = as_call(given);
  return add(node, graph, &work);
}
API int cuGraphAddEmptyNode(node_t *node, graph_t graph, const node_t *before, size_t count) {
  (void)before, (void)count;
  READY;
  struct work work = {.kind = NOTHING};
  return add(node, graph, &work);
}
struct memory_node { char pool[88]; const void *accesses; size_t count, size; u64 address; };
API int cuGraphAddMemAllocNode(node_t *node, graph_t graph, const node_t *before, size_t count, struct memory_node *given) {
  (void)before, (void)count;
  READY;
  return graph && given ? gpusim_keep_take(graph, node, &given->address, given->size) : INVALID_VALUE;
}
API int cuGraphAddMemFreeNode(node_t *node, graph_t graph, const node_t *before, size_t count, u64 address) {
  (void)before, (void)count;
  READY;
  return graph ? gpusim_keep_give_back(graph, node, address) : INVALID_VALUE;
}
API int cuGraphAddEventRecordNode(node_t *node, graph_t graph, const node_t *before, size_t count, event_t event) {
  (void)before, (void)count;
  READY;
  struct work work = {.kind = RECORD, .event = event};
  return add(node, graph, &work);
}
API int cuGraphAddEventWaitNode(node_t *node, graph_t graph, const node_t *before, size_t count, event_t event) {
  (void)event;  // nodes run one after the other
  return cuGraphAddEmptyNode(node, graph, before, count);
}
// The nodes of a child follow each other in its place; its own node comes after them.
API int cuGraphAddChildGraphNode(node_t *node, graph_t graph, const node_t *before, size_t count, graph_t child) {
  READY;
  if (!graph || !child || graph == child || child->handles) return INVALID_VALUE;
  for (size_t k = 0; k < child->count; k++) gpusim_keep(graph, &child->nodes[k]->work);
  return cuGraphAddEmptyNode(node, graph, before, count);
}
static size_t place_of(graph_t graph, node_t node) {
  size_t k = 0;
  while (k < graph->count && graph->nodes[k] != node) k++;
  return k;
}
API int cuGraphAddDependencies(graph_t graph, const node_t *from, const node_t *to, size_t count) {
  READY;
  // Nodes run in the order in which they were added: a dependency on a later one is not kept.
  for (size_t k = 0; k < count; k++)
    if (place_of(graph, from[k]) > place_of(graph, to[k])) return gpusim_refuse("a graph's node that depends on a later one");
  return SUCCESS;
}
API int cuGraphAddDependencies_v2(graph_t graph, const node_t *from, const node_t *to, const void *edges, size_t count) {
  (void)edges;
  return cuGraphAddDependencies(graph, from, to, count);
}
API int cuGraphGetNodes(graph_t graph, node_t *nodes, size_t *count) {
  READY;
  for (size_t k = 0; nodes && k < *count && k < graph->count; k++) nodes[k] = graph->nodes[k];
  *count = graph->count;
  return SUCCESS;
}
API int cuGraphNodeGetType(node_t node, int *type) {
  static const int types[] = {[LAUNCH] = 0, [COPY] = 1, [SET] = 2, [CALL] = 3, [RECORD] = 7, [NOTHING] = 5, [TAKE] = 10, [GIVE_BACK] = 11, [CONDITION] = 13};
  READY;
  *type = types[node->work.kind];
  return SUCCESS;
}
// Objects of the program that are destroyed with their last owner.
struct object { void *held; void (*destroy)(void *); unsigned owners; };
API int cuUserObjectCreate(struct object **made, void *held, void (*destroy)(void *), unsigned owners, unsigned flags) {
  (void)flags;
  if (!made || !destroy || !owners) return INVALID_VALUE;
  *made = malloc(sizeof **made);
  **made = (struct object){held, destroy, owners};
  return SUCCESS;
}
API int cuUserObjectRetain(struct object *object, unsigned count) {
  if (!object || !count) return INVALID_VALUE;
  object->owners += count;
  return SUCCESS;
}
API int cuUserObjectRelease(struct object *object, unsigned count) {
  if (!object || !count || count > object->owners) return INVALID_VALUE;
  object->owners -= count;
  if (object->owners) return SUCCESS;
  object->destroy(object->held);
  free(object);
  return SUCCESS;
}
static void own(graph_t graph, struct object *object, unsigned count) {
  struct owned *made = malloc(sizeof *made);
  *made = (struct owned){object, count, graph->owned};
  graph->owned = made;
}
API int cuGraphRetainUserObject(graph_t graph, struct object *object, unsigned count, unsigned flags) {
  enum { MOVE = 1 };
  READY;
  if (!graph || !object || !count) return INVALID_VALUE;
  if (!(flags & MOVE)) object->owners += count;
  own(graph, object, count);
  return SUCCESS;
}
API int cuGraphReleaseUserObject(graph_t graph, struct object *object, unsigned count) {
  READY;
  for (struct owned **one = graph ? &graph->owned : NULL; one && *one; one = &(*one)->next)
    if ((*one)->object == object && (*one)->count == count) {
      struct owned *gone = *one;
      *one = gone->next;
      free(gone);
      return cuUserObjectRelease(object, count);
    }
  return INVALID_VALUE;
}
INSIDE graph_t gpusim_copy_of(graph_t graph) {
  graph_t made = calloc(1, sizeof *made);
  gpusim_copy_handles(made, graph);
  for (size_t k = 0; k < graph->count; k++) gpusim_keep(made, &graph->nodes[k]->work)->origin = graph->nodes[k];
  for (struct owned *one = graph->owned; one; one = one->next) {
    one->object->owners += one->count;
    own(made, one->object, one->count);
  }
  return made;
}
// Graphs with conditional nodes are neither cloned nor children of others (CUDA driver API).
API int cuGraphClone(graph_t *clone, graph_t graph) {
  READY;
  if (!graph || graph->handles) return INVALID_VALUE;
  *clone = gpusim_copy_of(graph);
  return SUCCESS;
}
API int cuGraphInstantiateWithFlags(graph_t *made, graph_t graph, unsigned long long flags) {
  (void)flags;
  READY;
  if (!graph) return INVALID_VALUE;
  *made = gpusim_copy_of(graph);
  return SUCCESS;
}
API int cuGraphInstantiate_v2(graph_t *made, graph_t graph, node_t *wrong, char *log, size_t size) {
  (void)wrong;
  if (log && size) *log = 0;
  return cuGraphInstantiateWithFlags(made, graph, 0);
}
struct instantiation { u64 flags; stream_t stream; node_t wrong; int result; };
API int cuGraphInstantiateWithParams(graph_t *made, graph_t graph, struct instantiation *given) {
  if (!given) return INVALID_VALUE;
  int status = cuGraphInstantiateWithFlags(made, graph, given->flags);
  given->wrong = NULL, given->result = status ? 1 : 0;
  return status;
}
// Takes the work of one node for another's; their functions may differ.
static void change(node_t node, const struct work *work) {
  struct work before = node->work;
  node->work = *work;
  if (work->kind == LAUNCH) {
    node->work.arguments = malloc(work->function->bytes + 1);
    memcpy(node->work.arguments, work->arguments, work->function->bytes);
  }
  if (before.kind == LAUNCH) free(before.arguments);
}
static int change_launch(node_t node, const struct kernel_node *given) {
  struct work work;
  if (!node || node->work.kind != LAUNCH) return INVALID_VALUE;
  int status = as_launch(&work, given);
  if (!status) change(node, &work);
  free(work.arguments);
  return status;
}
// The node of an executable graph that was made from a graph's node.
static node_t made_from(graph_t made, node_t node) {
  for (size_t k = 0; made && node && k < made->count; k++) {
    const struct work *work = &made->nodes[k]->work;
    if (made->nodes[k]->origin == node) return made->nodes[k];
    for (unsigned body = 0; work->kind == CONDITION && body < work->condition->size; body++) {
      node_t found = made_from(work->condition->bodies[body], node);
      if (found) return found;
    }
  }
  return NULL;
}
API int cuGraphNodeFindInClone(node_t *found, node_t node, graph_t clone) {
  READY;
  *found = made_from(clone, node);
  return *found ? SUCCESS : INVALID_VALUE;
}
API int cuGraphKernelNodeSetParams_v2(node_t node, const struct kernel_node *given) { READY; return change_launch(node, given); }
API int cuGraphExecKernelNodeSetParams_v2(graph_t made, node_t node, const struct kernel_node *given) {
  READY;
  return change_launch(made_from(made, node), given);
}
API int cuGraphExecMemcpyNodeSetParams(graph_t made, node_t node, const struct box *box, context_t context) {
  (void)context;
  READY;
  node_t found = made_from(made, node);
  if (!found || found->work.kind != COPY) return INVALID_VALUE;
  found->work = as_copy(box);
  return SUCCESS;
}
API int cuGraphMemcpyNodeSetParams(node_t node, const struct box *box) {
  READY;
  if (!node || node->work.kind != COPY) return INVALID_VALUE;
  node->work = as_copy(box);
  return SUCCESS;
}
API int cuGraphKernelNodeGetParams_v2(node_t node, struct kernel_node *given) {
  READY;
  if (!node || node->work.kind != LAUNCH) return INVALID_VALUE;
  const struct work *work = &node->work;
  function_t f = work->function;
  node->values = realloc(node->values, (f->parameters + 1) * sizeof *node->values);
  for (unsigned k = 0; k < f->parameters; k++) node->values[k] = (char *)work->arguments + f->places[k][0];
  *given = (struct kernel_node){f, {work->grid[0], work->grid[1], work->grid[2]}, {work->block[0], work->block[1], work->block[2]},
                                work->shared, node->values, NULL, NULL, NULL};
  return SUCCESS;
}
API int cuGraphMemcpyNodeGetParams(node_t node, struct box *box) {
  READY;
  if (!node || node->work.kind != COPY) return INVALID_VALUE;
  const struct work *work = &node->work;
  u64 to_height = work->to_pitch ? work->to_slice / work->to_pitch : 0;
  u64 from_height = work->from_pitch ? work->from_slice / work->from_pitch : 0;
  *box = (struct box){{0, 0, 0, 0, UNIFIED_SIDE, NULL, work->from, NULL, NULL, work->from_pitch, from_height},
                      {0, 0, 0, 0, UNIFIED_SIDE, NULL, work->to, NULL, NULL, work->to_pitch, to_height},
                      work->width, work->height, work->depth};
  return SUCCESS;
}
static int change_to(node_t node, struct work work) {
  if (!node || node->work.kind != work.kind) return INVALID_VALUE;
  node->work = work;
  return SUCCESS;
}
API int cuGraphMemsetNodeGetParams(node_t node, struct set_node *given) {
  READY;
  if (!node || node->work.kind != SET) return INVALID_VALUE;
  const struct work *work = &node->work;
  *given = (struct set_node){work->to, work->to_pitch, work->value, work->item, work->width, work->height};
  return SUCCESS;
}
API int cuGraphMemsetNodeSetParams(node_t node, const struct set_node *given) { READY; return change_to(node, as_set(given)); }
API int cuGraphExecMemsetNodeSetParams(graph_t made, node_t node, const struct set_node *given, context_t context) {
  (void)context;
  READY;
  return change_to(made_from(made, node), as_set(given));
}
API int cuGraphHostNodeGetParams(node_t node, struct host_node *given) {
  READY;
  if (!node || node->work.kind != CALL) return INVALID_VALUE;
  *given = (struct host_node){node->work.call, node->work.given};
  return SUCCESS;
}
API int cuGraphHostNodeSetParams(node_t node, const struct host_node *given) { READY; return change_to(node, as_call(given)); }
API int cuGraphExecHostNodeSetParams(graph_t made, node_t node, const struct host_node *given) {
  READY;
  return change_to(made_from(made, node), as_call(given));
}
API int cuGraphNodeSetEnabled(graph_t made, node_t node, unsigned is_on) {
  READY;
  node_t found = made_from(made, node);
  if (!found || found->work.kind > SET) return INVALID_VALUE;  // launches, copies and sets alone
  found->is_off = !is_on;
  return SUCCESS;
}
API int cuGraphNodeGetEnabled(graph_t made, node_t node, unsigned *is_on) {
  READY;
  node_t found = made_from(made, node);
  if (!found || !is_on) return INVALID_VALUE;
  *is_on = !found->is_off;
  return SUCCESS;
}
// A node of any kind: its type (CUgraphNodeType), and what is given for nodes of it.
struct any_node {
  int type, unused[3];
  union {
    char bytes[232];
    struct kernel_node kernel;
    struct { int flags, unused; context_t context; struct box box; } copy;
    struct set_node set;
    struct host_node host;
    event_t event;
    graph_t graph;
    struct memory_node memory;
    u64 address;
    struct condition condition;
  } of;
};
enum { KERNEL_NODE, COPY_NODE, SET_NODE, HOST_NODE, CHILD_NODE, EMPTY_NODE, WAIT_NODE, RECORD_NODE, TAKE_NODE = 10, GIVE_BACK_NODE, CONDITION_NODE = 13 };
// A conditional node has empty graphs for its bodies, which the program fills.
static int add_condition(node_t *node, graph_t graph, struct condition *given) {
  enum { IF, WHILE, SWITCH };
  unsigned most = given->type == WHILE ? 1 : given->type == IF ? 2 : UINT32_MAX;
  if (!graph || !given->handle || given->type > SWITCH || !given->size || given->size > most) return INVALID_VALUE;
  struct condition wanted = {given->handle, given->type, given->size, NULL};
  node_t made = gpusim_keep(graph, &(struct work){.kind = CONDITION, .condition = &wanted});
  given->bodies = made->work.condition->bodies;
  if (node) *node = made;
  return SUCCESS;
}
API int cuGraphAddNode(node_t *node, graph_t graph, const node_t *before, size_t count, struct any_node *given) {
  READY;
  if (!given) return INVALID_VALUE;
  switch (given->type) {
    case KERNEL_NODE: return cuGraphAddKernelNode_v2(node, graph, before, count, &given->of.kernel);
    case COPY_NODE: return cuGraphAddMemcpyNode(node, graph, before, count, &given->of.copy.box, NULL);
    case SET_NODE: return cuGraphAddMemsetNode(node, graph, before, count, &given->of.set, NULL);
    case HOST_NODE: return cuGraphAddHostNode(node, graph, before, count, &given->of.host);
    case CHILD_NODE: return cuGraphAddChildGraphNode(node, graph, before, count, given->of.graph);
    case EMPTY_NODE: return cuGraphAddEmptyNode(node, graph, before, count);
    case WAIT_NODE: return cuGraphAddEventWaitNode(node, graph, before, count, given->of.event);
    case RECORD_NODE: return cuGraphAddEventRecordNode(node, graph, before, count, given->of.event);
    case TAKE_NODE: return cuGraphAddMemAllocNode(node, graph, before, count, &given->of.memory);
    case GIVE_BACK_NODE: return cuGraphAddMemFreeNode(node, graph, before, count, given->of.address);
    case CONDITION_NODE: return add_condition(node, graph, &given->of.condition);
    default: return gpusim_refuse("graphs' nodes of other kinds");
  }
}
API int cuGraphAddNode_v2(node_t *node, graph_t graph, const node_t *before, const void *edges, size_t count, struct any_node *given) {
  (void)edges;
  return cuGraphAddNode(node, graph, before, count, given);
}
static int change_any(node_t node, const struct any_node *given) {
  if (!given) return INVALID_VALUE;
  switch (given->type) {
    case KERNEL_NODE: return change_launch(node, &given->of.kernel);
    case COPY_NODE: return change_to(node, as_copy(&given->of.copy.box));
    case SET_NODE: return change_to(node, as_set(&given->of.set));
    case HOST_NODE: return change_to(node, as_call(&given->of.host));
    case RECORD_NODE: return change_to(node, (struct work){.kind = RECORD, .event = given->of.event});
    default: return gpusim_refuse("changes of graphs' nodes of other kinds");
  }
}
API int cuGraphNodeSetParams(node_t node, const struct any_node *given) { READY; return change_any(node, given); }
API int cuGraphExecNodeSetParams(graph_t made, node_t node, const struct any_node *given) { READY; return change_any(made_from(made, node), given); }
static void forget(node_t node) {
  if (node->work.kind == LAUNCH) free(node->work.arguments);
  if (node->work.kind == CONDITION) gpusim_forget_condition(node->work.condition);
  free(node->values);
  free(node);
}
API int cuGraphDestroyNode(node_t node) {
  READY;
  if (!node) return INVALID_VALUE;
  graph_t graph = node->graph;
  size_t place = place_of(graph, node);
  memmove(graph->nodes + place, graph->nodes + place + 1, (graph->count - place - 1) * sizeof node);
  graph->count--;
  forget(node);
  return SUCCESS;
}
static int is_alike(const struct work *one, const struct work *other) {
  if (one->kind != other->kind) return 0;
  return one->kind != CONDITION || (one->condition->type == other->condition->type && one->condition->size == other->condition->size);
}
INSIDE int gpusim_change(graph_t made, graph_t graph) {
  size_t k = 0;
  while (k < graph->count && k < made->count && is_alike(&graph->nodes[k]->work, &made->nodes[k]->work)) k++;
  if (k < graph->count || k < made->count) return GRAPH_UPDATE_FAILURE;
  int status = SUCCESS;
  for (k = 0; !status && k < graph->count; k++) {
    const struct work *work = &graph->nodes[k]->work;
    if (work->kind == CONDITION) status = gpusim_change_bodies(made->nodes[k]->work.condition, work->condition);
    else change(made->nodes[k], work);
  }
  return status;
}
struct update { int result; node_t wrong, from; };
API int cuGraphExecUpdate_v2(graph_t made, graph_t graph, struct update *said) {
  READY;
  if (!made || !graph) return INVALID_VALUE;
  int status = gpusim_change(made, graph);
  if (said) *said = (struct update){status ? 2 : 0, NULL, NULL};  // its topology has changed
  return status;
}
API int cuGraphUpload(graph_t graph, stream_t stream) { (void)graph, (void)stream; CURRENT; return SUCCESS; }
API int cuGraphLaunch(graph_t graph, stream_t stream) {
  CURRENT;
  if (!graph) return INVALID_VALUE;
  USABLE(stream);
  graph_t captured = stream_of(stream)->captured;
  if (captured) return cuGraphAddChildGraphNode(NULL, captured, NULL, 0, graph);
  int status = gpusim_begin(graph);
  return status ? status : gpusim_run(graph, stream_of(stream)->id);
}
API int cuGraphDestroy(graph_t graph) {
  READY;
  for (size_t k = 0; graph && k < graph->count; k++) forget(graph->nodes[k]);
  while (graph && graph->owned) cuGraphReleaseUserObject(graph, graph->owned->object, graph->owned->count);
  if (graph) gpusim_forget_handles(graph), free(graph->nodes);
  free(graph);
  return graph ? SUCCESS : INVALID_VALUE;
}
API int cuGraphExecDestroy(graph_t graph) { return cuGraphDestroy(graph); }

// ---- By name

API int cuGetExportTable(const void **table, const void *id) {
  static int told;
  (void)id;
  *table = NULL;
  if (!told++ && !gpusim_connect()) ASK("tables", 0);  // a static runtime asks before cuInit
  return NOT_FOUND;
}

// Functions whose meaning depends on the version that a caller was made for.
static const struct { const char *name; int since; const char *symbol; } versions[] = {
    {"cuCtxGetDevice", 13000, "cuCtxGetDevice_v2"},       {"cuCtxSynchronize", 13000, "cuCtxSynchronize_v2"},
    {"cuMemAdvise", 12020, "cuMemAdvise_v2"},             {"cuMemPrefetchAsync", 12020, "cuMemPrefetchAsync_v2"},
    {"cuEventElapsedTime", 12080, "cuEventElapsedTime_v2"}, {"cuCtxCreate", 12050, "cuCtxCreate_v4"},
    {"cuDeviceGetUuid", 11040, "cuDeviceGetUuid_v2"},     {"cuGraphInstantiate", 12000, "cuGraphInstantiateWithFlags"},
    {"cuGraphAddNode", 12030, "cuGraphAddNode_v2"},       {"cuGraphAddDependencies", 12030, "cuGraphAddDependencies_v2"},
    {"cuStreamGetCaptureInfo", 12030, "cuStreamGetCaptureInfo_v3"},
    {"cuStreamUpdateCaptureDependencies", 12030, "cuStreamUpdateCaptureDependencies_v2"},
};
API int cuGetProcAddress_v2(const char *name, void **function, int version, u64 flags, int *found) {
  static void *self;
  (void)flags;
  if (!self) {
    Dl_info info;
    if (dladdr(&primary, &info)) self = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  }
  const char *symbol = NULL;
  for (size_t k = 0; k < sizeof versions / sizeof *versions; k++)
    if (!strcmp(versions[k].name, name)) symbol = version >= versions[k].since ? versions[k].symbol : name;
  char longer[160];
  snprintf(longer, sizeof longer, "%.150s_v2", name);
  *function = symbol ? dlsym(self, symbol) : NULL;
  if (!*function) *function = dlsym(self, longer);
  if (!*function) *function = dlsym(self, name);
  if (found) *found = *function ? 0 : 1;
  return *function ? SUCCESS : NOT_FOUND;
}
API int cuGetProcAddress(const char *name, void **function, int version, u64 flags) {
  return cuGetProcAddress_v2(name, function, version, flags, NULL);
}

// ---- Documented functions that are not served

#define ABSENT(name) API int name(void) { return gpusim_refuse(#name); }
#include "absent.h"
