// Memory that graphs take: at one address in all launches of a graph, until the process ends. A GPU
// gives it to a graph at a launch, holds it for other graphs, and lets it go when it is trimmed.
#include "driver.h"

#include <stdlib.h>

static struct taken { u64 address; size_t size; int is_in_use; } *all;
static size_t count;
static u64 used, held, most;  // bytes in use, bytes held, and the most held so far

static struct taken *of(u64 address) {
  for (size_t k = 0; k < count; k++)
    if (all[k].address == address) return &all[k];
  return NULL;
}
INSIDE int gpusim_is_of_graphs(u64 address) { return of(address) != NULL; }
INSIDE void gpusim_count_taken(u64 address, int is_taken) {
  struct taken *one = of(address);
  if (!one || one->is_in_use == is_taken) return;
  one->is_in_use = is_taken;
  used = is_taken ? used + one->size : used - one->size;
  if (used > held) held = used;
  if (held > most) most = held;
}

static int add(struct graph *graph, struct node **node, enum work_kind kind, u64 address) {
  struct work work = {.kind = kind, .to = address};
  struct node *made = gpusim_keep(graph, &work);
  if (node) *node = made;
  return SUCCESS;
}
INSIDE int gpusim_keep_take(struct graph *graph, struct node **node, u64 *address, size_t size) {
  int status = gpusim_take(address, size, MEMORY_OF_MODULES, NULL);
  if (status) return status;
  all = realloc(all, (count + 1) * sizeof *all);
  all[count++] = (struct taken){*address, size, 0};
  return add(graph, node, TAKE, *address);
}
INSIDE int gpusim_keep_give_back(struct graph *graph, struct node **node, u64 address) {
  return add(graph, node, GIVE_BACK, address);
}

// What is associated with graphs and what their allocator has reserved are the same here.
enum { USED, MOST_USED, RESERVED, MOST_RESERVED };
API int cuDeviceGetGraphMemAttribute(int device, int attribute, void *value) {
  CURRENT;
  if (device) return INVALID_DEVICE;
  if (attribute < USED || attribute > MOST_RESERVED || !value) return INVALID_VALUE;
  *(u64 *)value = attribute == USED || attribute == RESERVED ? held : most;
  return SUCCESS;
}
API int cuDeviceSetGraphMemAttribute(int device, int attribute, void *value) {
  CURRENT;
  if (device) return INVALID_DEVICE;
  if (!value || *(u64 *)value || (attribute != MOST_USED && attribute != MOST_RESERVED)) return INVALID_VALUE;
  most = held;
  return SUCCESS;
}
API int cuDeviceGraphMemTrim(int device) {
  CURRENT;
  held = used;
  return device ? INVALID_DEVICE : SUCCESS;
}
