// Virtual memory: reserved addresses, and memory that is mapped there (cuMemAddressReserve, cuMemMap).
#include "driver.h"

enum { GRANULARITY = 2 << 20, DEVICE_PLACE = 1, PINNED_ALLOCATION = 1, READ_WRITE = 3 };
struct place { int kind, id; };
struct properties { int kind, exported_as; struct place where; void *win32; unsigned char flags[8]; };
struct access { struct place where; int flags; };

static int is_known(const struct properties *asked) {
  return asked && asked->kind == PINNED_ALLOCATION && asked->where.kind == DEVICE_PLACE && !asked->where.id;
}
API int cuMemGetAllocationGranularity(size_t *bytes, const struct properties *asked, int which) {
  CURRENT;
  if (!bytes || which < 0 || which > 1 || !is_known(asked)) return INVALID_VALUE;
  *bytes = GRANULARITY;
  return SUCCESS;
}
API int cuMemAddressReserve(u64 *address, size_t size, size_t alignment, u64 wanted, u64 flags) {
  (void)wanted;  // a hint
  CURRENT;
  if (!address || !size || size % GRANULARITY || alignment & (alignment - 1) || flags) return INVALID_VALUE;
  u64 made[1];
  int status = ASK_FOR("reserve", made, size, alignment > GRANULARITY ? alignment : (u64)GRANULARITY);
  if (!status) *address = made[0];
  return status;
}
API int cuMemAddressFree(u64 address, size_t size) { CURRENT; return ASK("unreserve", address, size); }
API int cuMemCreate(u64 *handle, size_t size, const struct properties *asked, u64 flags) {
  CURRENT;
  if (!handle || !size || size % GRANULARITY || flags) return INVALID_VALUE;
  if (asked && asked->exported_as) return gpusim_refuse("memory that other processes may import");
  if (!is_known(asked)) return INVALID_VALUE;
  u64 made[1];
  int status = ASK_FOR("create", made, size);
  if (!status) *handle = made[0];
  return status;
}
API int cuMemRelease(u64 handle) { CURRENT; return ASK("release", handle); }
API int cuMemMap(u64 address, size_t size, size_t offset, u64 handle, u64 flags) {
  CURRENT;
  if (offset || flags) return INVALID_VALUE;  // the documentation asks for 0
  return ASK("map", address, size, handle);
}
API int cuMemUnmap(u64 address, size_t size) { CURRENT; return ASK("unmap", address, size); }
API int cuMemSetAccess(u64 address, size_t size, const struct access *asked, size_t count) {
  CURRENT;
  if (!asked || !count) return INVALID_VALUE;
  for (size_t k = 0; k < count; k++) {
    if (asked[k].where.kind != DEVICE_PLACE) return gpusim_refuse("access of the host to mapped memory");
    if (asked[k].where.id || (asked[k].flags && asked[k].flags != 1 && asked[k].flags != READ_WRITE)) return INVALID_VALUE;
    if (asked[k].flags == 1) return gpusim_refuse("mapped memory that is read only");
    int status = ASK("access", address, size, asked[k].flags == READ_WRITE);
    if (status) return status;
  }
  return SUCCESS;
}
API int cuMemGetAccess(u64 *flags, const struct place *where, u64 address) {
  CURRENT;
  if (!flags || !where || where->kind != DEVICE_PLACE || where->id) return INVALID_VALUE;
  u64 found[2];
  int status = ASK_FOR("mapping", found, address);
  if (!status) *flags = found[1] ? READ_WRITE : 0;
  return status;
}
API int cuMemRetainAllocationHandle(u64 *handle, void *address) {
  CURRENT;
  u64 found[2];
  int status = ASK_FOR("mapping", found, (u64)address);
  if (status) return status;
  *handle = found[0];
  return ASK("retain", found[0]);
}
API int cuMemGetAllocationPropertiesFromHandle(struct properties *found, u64 handle) {
  (void)handle;
  CURRENT;
  *found = (struct properties){PINNED_MEMORY, 0, {DEVICE_PLACE, 0}, 0, {0}};
  return SUCCESS;
}
