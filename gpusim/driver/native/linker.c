// Linking of code when a program runs (cuLinkCreate): parts are kept until they are linked together.
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct link { char *parts, *made; size_t size; };

// A part: its kind (CUjitInputType), its length, and its bytes.
static int append(struct link *link, int kind, const void *data, size_t size) {
  u64 head[] = {(u64)kind, size};
  char *grown = realloc(link->parts, link->size + sizeof head + size);
  if (!grown) return OUT_OF_MEMORY;
  memcpy(grown + link->size, head, sizeof head);
  memcpy(grown + link->size + sizeof head, data, size);
  link->parts = grown, link->size += sizeof head + size;
  return SUCCESS;
}
API int cuLinkCreate_v2(unsigned count, int *options, void **values, struct link **made) {
  (void)count, (void)options, (void)values;
  CURRENT;
  if (!made) return INVALID_VALUE;
  *made = calloc(1, sizeof **made);
  return *made ? SUCCESS : OUT_OF_MEMORY;
}
API int cuLinkAddData_v2(struct link *link, int kind, const void *data, size_t size, const char *name,
                         unsigned count, int *options, void **values) {
  (void)name, (void)count, (void)options, (void)values;
  CURRENT;
  return link && data ? append(link, kind, data, size) : INVALID_VALUE;
}
API int cuLinkAddFile_v2(struct link *link, int kind, const char *path, unsigned count, int *options, void **values) {
  (void)count, (void)options, (void)values;
  CURRENT;
  enum { FILE_NOT_FOUND = 301 };
  FILE *file = link && path ? fopen(path, "rb") : NULL;
  if (!file) return FILE_NOT_FOUND;
  fseek(file, 0, SEEK_END);
  long size = ftell(file);
  rewind(file);
  char *held = size >= 0 ? malloc((size_t)size + 1) : NULL;
  int is_read = held && fread(held, 1, (size_t)size, file) == (size_t)size;
  fclose(file);
  int status = is_read ? append(link, kind, held, (size_t)size) : FILE_NOT_FOUND;
  free(held);
  return status;
}
API int cuLinkComplete(struct link *link, void **cubin, size_t *size) {
  CURRENT;
  if (!link || !cubin) return INVALID_VALUE;
  size_t length = 0;
  free(link->made);
  link->made = NULL;
  int status = gpusim_ask("link", NULL, 0, link->parts, link->size, NULL, 0, &link->made, &length);
  *cubin = link->made;
  if (size) *size = length;
  return status;
}
API int cuLinkDestroy(struct link *link) {
  if (link) free(link->parts), free(link->made);
  free(link);
  return link ? SUCCESS : INVALID_HANDLE;
}
