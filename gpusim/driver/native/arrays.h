// CUDA arrays, and what texture and surface objects are made from, as the driver's API has them.
#ifndef GPUSIM_ARRAYS_H
#define GPUSIM_ARRAYS_H
#include <stddef.h>
#include <stdint.h>

// Rows lie `pitch` bytes apart, slices or layers `slice` bytes; an axis that is not there is 0.
struct array {
  uint64_t address;
  size_t pitch, slice, width, height, depth;
  int format;
  unsigned channels, flags, item;
};
struct array_size { size_t width, height, depth; int format; unsigned channels, flags; };
struct resource {
  int kind;
  union {
    struct array *array;
    struct { uint64_t address; int format; unsigned channels; size_t size; } linear;
    struct { uint64_t address; int format; unsigned channels; size_t width, height, pitch; } pitched;
    int reserved[32];
  } of;
  unsigned flags;
};
struct sampling {
  int modes[3], filter;
  unsigned flags, anisotropy;
  int mipmap_filter;
  float bias, least_level, most_level, border[4];
  int reserved[12];
};
enum { OF_ARRAY = 0, OF_MIPMAPS, OF_LINEAR, OF_PITCHED };
enum { LAYERED = 1, CUBE = 4 };                            // of arrays
enum { AS_INTEGER = 1, NORMALIZED = 2, AS_SRGB = 16 };     // of textures
enum { UNSIGNED_8 = 1, SIGNED_8 = 8, HALF = 16, FLOAT = 32 };
#endif
