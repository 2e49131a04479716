// Launches as they were before cuLaunchKernel: size and parameters are set at the function first.
#include "driver.h"

#include <stdlib.h>
#include <string.h>

API int cuLaunchKernel(struct function *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                       unsigned shared, struct stream *stream, void **arguments, void **extra);

API int cuFuncSetBlockShape(struct function *f, int x, int y, int z) {
  CURRENT;
  if (!f) return INVALID_HANDLE;
  if (x <= 0 || y <= 0 || z <= 0) return INVALID_VALUE;
  f->block[0] = (unsigned)x, f->block[1] = (unsigned)y, f->block[2] = (unsigned)z;
  return SUCCESS;
}
API int cuFuncSetSharedSize(struct function *f, unsigned bytes) {
  CURRENT;
  if (!f) return INVALID_HANDLE;
  f->shared = bytes;
  return SUCCESS;
}
API int cuParamSetv(struct function *f, int offset, const void *value, unsigned size) {
  CURRENT;
  if (!f) return INVALID_HANDLE;
  if (offset < 0 || !value || (size_t)offset + size > f->bytes) return INVALID_VALUE;
  if (!f->given) f->given = calloc(1, f->bytes + 1);
  if (!f->given) return OUT_OF_MEMORY;
  memcpy(f->given + offset, value, size);
  return SUCCESS;
}
API int cuParamSeti(struct function *f, int offset, unsigned value) { return cuParamSetv(f, offset, &value, sizeof value); }
API int cuParamSetf(struct function *f, int offset, float value) { return cuParamSetv(f, offset, &value, sizeof value); }
API int cuParamSetSize(struct function *f, unsigned bytes) {
  CURRENT;
  if (!f) return INVALID_HANDLE;
  return bytes <= f->bytes ? SUCCESS : INVALID_VALUE;
}
API int cuLaunchGridAsync(struct function *f, int width, int height, struct stream *stream) {
  enum { END, BUFFER, BUFFER_SIZE };
  CURRENT;
  if (!f) return INVALID_HANDLE;
  if (width <= 0 || height <= 0 || (f->bytes && !f->given)) return INVALID_VALUE;
  size_t size = f->bytes;
  void *extra[] = {(void *)BUFFER, f->given, (void *)BUFFER_SIZE, &size, (void *)END};
  return cuLaunchKernel(f, (unsigned)width, (unsigned)height, 1, f->block[0], f->block[1], f->block[2], f->shared,
                        stream, NULL, extra);
}
API int cuLaunchGrid(struct function *f, int width, int height) { return cuLaunchGridAsync(f, width, height, NULL); }
API int cuLaunch(struct function *f) { return cuLaunchGridAsync(f, 1, 1, NULL); }
