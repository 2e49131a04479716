// The compiler knows what is declared here.
#pragma once
// A tensor map is passed to kernels by value (CUDA driver API, CUtensorMap: 128 bytes at 64).
typedef struct alignas(64) CUtensorMap_st {
  unsigned long long opaque[16];
} CUtensorMap;
