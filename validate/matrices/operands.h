// Elements of matrices by family, and digests: of the programs that compare products of matrices.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                       \
  do {                                                                    \
    cudaError_t status = (call);                                          \
    if (status) printf("%s: %s\n", #call, cudaGetErrorName(status)), exit(1); \
  } while (0)

uint64_t state;
uint64_t draw() {  // splitmix64
  uint64_t z = (state += 0x9E3779B97F4A7C15ull);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}
uint64_t below(uint64_t n) { return (draw() >> 11) % n; }

// A type's bits, those of its exponent and of its fraction; integers have neither.
struct Type { int bits, exponent, fraction; };
const Type F16{16, 5, 10}, BF16{16, 8, 7}, TF32{32, 8, 23}, F32{32, 8, 23}, F64{64, 11, 52}, E4M3{8, 4, 3},
    E5M2{8, 5, 2}, BYTE{8, 0, 0}, NIBBLE{4, 0, 0}, BIT{1, 0, 0}, INT{32, 0, 0};

const char *FAMILIES[] = {"near", "wide", "cancelling", "ends", "any", "zeros", "whole"};
const int N_FAMILIES = 7;

// An element of a family: numbers of like size; of sizes far apart; pairs that cancel but for small
// ones; next to subnormal numbers or overflow; any bits; many zeros; small whole numbers.
uint64_t element(Type t, int family, bool is_sum) {
  uint64_t any = draw();
  if (!t.exponent) {
    if (t.bits == 32 && family != 4) return (uint32_t)(int32_t)((int64_t)below(2000001) - 1000000);
    if (t.bits == 32) return below(3) ? (uint32_t)any : below(2) ? 0x7FFFFF00u + below(256) : 0x80000000u + below(256);
    return any & ((1ull << t.bits) - 1);
  }
  int bias = (1 << (t.exponent - 1)) - 1, top = (1 << t.exponent) - 1, e = bias;
  uint64_t fraction = any & ((1ull << t.fraction) - 1), sign = any >> 63;
  int reach = t.exponent < 6 ? 3 : 12;
  switch (family) {
    case 0: e = bias - 2 + (int)below(5); break;
    case 1: e = t.exponent < 6 ? 1 + (int)below(top - 1) : bias - 30 + (int)below(61); break;
    case 2: {
      bool large = below(3) == 0;
      e = large ? bias + reach : bias - (int)below(reach + 4);
      if (large) fraction = fraction >> (t.fraction - 2) << (t.fraction - 2);
      break;
    }
    case 3: {
      bool low = below(4) != 0;
      if (is_sum && t.bits == 32) low = below(2);
      e = low ? (int)below(t.exponent < 6 ? 4 : bias / 2 + 20) : top - 1 - (int)below(3);
      if (is_sum && low) e = (int)below(4);
      if (e < 0) e = 0;
      break;
    }
    case 4: e = (int)below(top + 1); if (e == top && below(2)) fraction = 0; if (e == top && below(8)) e = bias; break;
    case 5: e = below(2) ? 0 : bias - (int)below(4); if (!e) fraction = below(8) ? 0 : fraction; break;
    default: {  // -8 to 7
      int whole = (int)below(16) - 8, size = whole < 0 ? -whole : whole;
      sign = whole < 0;
      if (!size) { e = 0; fraction = 0; break; }
      int power = size >= 8 ? 3 : size >= 4 ? 2 : size >= 2 ? 1 : 0;
      e = bias + power;
      fraction = power > t.fraction ? 0 : (uint64_t)(size - (1 << power)) << (t.fraction - power);
    }
  }
  return sign << (t.bits - 1) | (uint64_t)e << t.fraction | fraction;
}

std::vector<uint32_t> words(int count, Type t, int family, bool is_sum) {
  std::vector<uint32_t> made(count);
  if (t.bits == 64) {
    for (int i = 0; i < count; i += 2) {
      uint64_t e = element(t, family, is_sum);
      made[i] = (uint32_t)e, made[i + 1] = (uint32_t)(e >> 32);
    }
    return made;
  }
  for (int i = 0; i < count; i++)
    for (int bit = 0; bit < 32; bit += t.bits) made[i] |= (uint32_t)(element(t, family, is_sum) << bit);
  return made;
}

uint64_t digest(const std::vector<uint32_t> &words) {  // FNV-1a, word by word
  uint64_t h = 0xCBF29CE484222325ull;
  for (uint32_t w : words) h = (h ^ w) * 0x100000001B3ull;
  return h;
}

uint32_t *on_device(const std::vector<uint32_t> &host) {
  uint32_t *device;
  CHECK(cudaMalloc(&device, host.size() * 4 + 16));
  CHECK(cudaMemcpy(device, host.data(), host.size() * 4, cudaMemcpyHostToDevice));
  return device;
}
