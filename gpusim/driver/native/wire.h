// What a program's process asks of the simulator, over a socket; device memory is shared with it.
#ifndef GPUSIM_WIRE_H
#define GPUSIM_WIRE_H
#include <stddef.h>
#include <stdint.h>

#define API __attribute__((visibility("default")))
#define INSIDE __attribute__((visibility("hidden")))

typedef uint64_t u64;

// Status codes of the driver's API (CUresult).
enum {
  SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, DEINITIALIZED = 4,
  NO_DEVICE = 100, INVALID_DEVICE = 101, INVALID_IMAGE = 200, INVALID_CONTEXT = 201,
  INVALID_HANDLE = 400, NOT_FOUND = 500, NOT_READY = 600, ILLEGAL_ADDRESS = 700,
  CAPTURE_UNSUPPORTED = 900, CAPTURE_INVALIDATED = 901, GRAPH_UPDATE_FAILURE = 910, ILLEGAL_STATE = 401, NOT_SUPPORTED = 801,
  UNKNOWN = 999
};

// What the simulator tells once: attributes of the device by their numbers, its name.
enum { ATTRIBUTES = 160, NAME_BYTES = 256 };
struct device {
  int64_t attributes[ATTRIBUTES];
  u64 memory_bytes, arena_begin, arena_bytes, watches_host;
  char name[NAME_BYTES];
};
INSIDE extern struct device gpusim_device;

// Connects once; NO_DEVICE where there is no simulator.
INSIDE int gpusim_connect(void);
INSIDE int gpusim_is_connected(void);

// Asks, and waits for the answer: a status, `outs` numbers, and bytes, which are given to `text`
// (to be freed).
INSIDE int gpusim_ask(const char *name, const u64 *numbers, unsigned count, const void *bytes,
                      size_t size, u64 *out, unsigned outs, char **text, size_t *length);

// Puts device memory at `offset` of the arena in the place of pages that the program has.
INSIDE int gpusim_map(void *place, size_t size, u64 offset);
INSIDE int gpusim_unmap(void *place, size_t size);

// Device memory as this library reaches it: the program itself does so only where it is shared.
INSIDE void *gpusim_at(u64 address);
INSIDE void gpusim_share(u64 address, size_t size, int is_shared);
INSIDE void gpusim_share_all(void);

// Notes of programs that take device memory from reserved addresses, and compute on it by themselves:
// told in their order with the next request.
enum { HAS_VALUES, ALLOCATED, FREED };
INSIDE void gpusim_note(int kind, u64 address, size_t size);

// Where the host's accesses are checked: keeps it from memory that work on streams still touches,
// as the simulator knows; an access is let through, and told with the next request.
INSIDE void gpusim_guard(void);
INSIDE void gpusim_unguard(void);

#define NUMBERS(...) ((const u64[]){__VA_ARGS__})
#define COUNT(...) (sizeof((const u64[]){__VA_ARGS__}) / sizeof(u64))
#define ASK(name, ...) \
  gpusim_ask(name, NUMBERS(__VA_ARGS__), COUNT(__VA_ARGS__), NULL, 0, NULL, 0, NULL, NULL)
#define ASK_FOR(name, out, ...)                                                     \
  gpusim_ask(name, NUMBERS(__VA_ARGS__), COUNT(__VA_ARGS__), NULL, 0, (u64 *)(out), \
             sizeof(out) / sizeof(u64), NULL, NULL)
#endif
