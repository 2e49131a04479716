// What the driver's API and the runtime's share: objects behind handles, and work on streams.
#ifndef GPUSIM_DRIVER_H
#define GPUSIM_DRIVER_H
#include "wire.h"

// SUCCESS, or why no call can be served: no connection, an earlier fault, no context.
INSIDE int gpusim_current(void);
#define CURRENT                     \
  do {                              \
    int status_ = gpusim_current(); \
    if (status_) return status_;    \
  } while (0)
API int gpusim_refuse(const char *name);

enum { MOST_PARAMETERS = 1024, FUNCTION_ATTRIBUTES = 10 };

struct module;
struct function {
  u64 id;
  struct module *module;
  struct function *next;
  int attributes[FUNCTION_ATTRIBUTES];
  unsigned parameters, bytes;       // how many there are, and of how many bytes together
  u64 (*places)[2];                 // offset and size of each
  unsigned block[3], shared;        // for earlier_launches.c, as are the parameters' bytes
  char *given;
  char name[];
};
struct module { u64 id; struct function *functions; };

struct graph;
struct stream { u64 id; unsigned flags; int priority; struct graph *captured; struct stream *next; int is_destroyed; };
struct event { u64 id; unsigned flags; int recorded; struct graph *captured; };

// A piece of work on a stream, done when it is given, or kept in a graph.
enum work_kind { LAUNCH, COPY, SET, CALL, RECORD, NOTHING, TAKE, GIVE_BACK, CONDITION };
struct work {
  enum work_kind kind;
  struct function *function;
  unsigned grid[3], block[3], shared, cooperative, cluster[3];  // without a cluster size: the function's own
  void *arguments;                                       // as they lie behind each other
  u64 to, to_pitch, from, from_pitch, width, height, depth, to_slice, from_slice;
  unsigned value, item, direction, is_asynchronous;      // of a set, and of a copy
  void (*call)(void *);
  void *given;
  struct event *event;
  struct condition *condition;
};
// What a conditional node decides by, the word at an address, and what it runs.
struct condition { u64 handle; int type; unsigned size; struct graph **bodies; };
// The word of a condition, with its value at the begin of each launch of its graph.
struct handle { u64 address; unsigned first; int has_first; struct handle *next; };
// A node, with the one that it was copied from, and pointers to a launch's values.
struct node { struct graph *graph; struct work work; struct node *origin; void **values; int is_off; };
struct owned { struct object *object; unsigned count; struct owned *next; };
struct graph { struct node **nodes; size_t count, room; struct owned *owned; struct handle *handles; };

// Kinds of memory, as the simulator calls them by number.
enum { DEVICE_MEMORY, PINNED_MEMORY, MANAGED_MEMORY, REGISTERED_MEMORY, MEMORY_OF_MODULES };
INSIDE int gpusim_take(u64 *address, size_t size, int kind, struct stream *stream);

INSIDE struct node *gpusim_keep(struct graph *graph, const struct work *work);
INSIDE int gpusim_run(struct graph *graph, u64 stream);
INSIDE struct graph *gpusim_copy_of(struct graph *graph);
INSIDE int gpusim_change(struct graph *made, struct graph *graph);
API int cuGraphDestroy(struct graph *graph);

// conditions.c
INSIDE struct condition *gpusim_copy_of_condition(const struct condition *one);
INSIDE int gpusim_decide(const struct condition *one, u64 stream);
INSIDE int gpusim_begin(const struct graph *graph);
INSIDE int gpusim_change_bodies(struct condition *one, const struct condition *to);
INSIDE void gpusim_forget_condition(struct condition *one);
INSIDE void gpusim_copy_handles(struct graph *to, const struct graph *from);
INSIDE void gpusim_forget_handles(struct graph *graph);

// graph_memory.c
INSIDE int gpusim_keep_take(struct graph *graph, struct node **node, u64 *address, size_t size);
INSIDE int gpusim_keep_give_back(struct graph *graph, struct node **node, u64 address);
INSIDE void gpusim_count_taken(u64 address, int is_taken);
INSIDE int gpusim_is_of_graphs(u64 address);
#endif
