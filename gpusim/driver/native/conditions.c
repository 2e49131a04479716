// Conditional nodes of graphs: a word of device memory, which kernels set by its address, decides
// whether, how often or which graph is run.
#include "driver.h"

#include <stdlib.h>

enum { IF, WHILE, SWITCH };

API int cuGraphConditionalHandleCreate(u64 *handle, struct graph *graph, void *context, unsigned first, unsigned flags) {
  enum { ASSIGN_FIRST = 1 };
  (void)context;
  CURRENT;
  if (!handle || !graph || flags > ASSIGN_FIRST) return INVALID_VALUE;
  struct handle *made = malloc(sizeof *made);
  if (!made) return OUT_OF_MEMORY;
  *made = (struct handle){0, first, flags & ASSIGN_FIRST, graph->handles};
  int status = gpusim_take(&made->address, sizeof(u64), MEMORY_OF_MODULES, NULL);
  if (status) {
    free(made);
    return status;
  }
  graph->handles = made, *handle = made->address;
  return SUCCESS;
}

INSIDE int gpusim_begin(const struct graph *graph) {
  int status = SUCCESS;
  for (const struct handle *one = graph->handles; !status && one; one = one->next)
    if (one->has_first) status = ASK("assign", one->address, one->first);
  return status;
}

static unsigned value_of(const struct condition *one) { return *(volatile const unsigned *)gpusim_at(one->handle); }

INSIDE int gpusim_decide(const struct condition *one, u64 stream) {
  int status = SUCCESS;
  if (one->type == WHILE) {
    while (!status && value_of(one)) status = gpusim_run(one->bodies[0], stream);
    return status;
  }
  unsigned chosen = one->type == SWITCH ? value_of(one) : !value_of(one);
  return chosen < one->size ? gpusim_run(one->bodies[chosen], stream) : SUCCESS;
}

INSIDE struct condition *gpusim_copy_of_condition(const struct condition *one) {
  struct condition *made = malloc(sizeof *made);
  *made = *one;
  made->bodies = calloc(one->size, sizeof *made->bodies);
  for (unsigned k = 0; k < one->size; k++)
    made->bodies[k] = one->bodies ? gpusim_copy_of(one->bodies[k]) : calloc(1, sizeof **made->bodies);
  return made;
}
INSIDE int gpusim_change_bodies(struct condition *one, const struct condition *to) {
  int status = SUCCESS;
  for (unsigned k = 0; !status && k < one->size; k++) status = gpusim_change(one->bodies[k], to->bodies[k]);
  return status;
}
INSIDE void gpusim_forget_condition(struct condition *one) {
  for (unsigned k = 0; k < one->size; k++) cuGraphDestroy(one->bodies[k]);
  free(one->bodies);
  free(one);
}

INSIDE void gpusim_copy_handles(struct graph *to, const struct graph *from) {
  for (const struct handle *one = from->handles; one; one = one->next) {
    struct handle *made = malloc(sizeof *made);
    *made = *one, made->next = to->handles;
    to->handles = made;
  }
}
INSIDE void gpusim_forget_handles(struct graph *graph) {
  while (graph->handles) {
    struct handle *gone = graph->handles;
    graph->handles = gone->next;
    free(gone);
  }
}
