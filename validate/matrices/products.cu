// Matrix products of each shape and type, and loads and stores of fragments; prints a digest of each.
// Run on a GPU and by `gpusim run validate/matrices/products.cu`, its lines should be the same.
// `products FILE` also writes the words of all operands and results; `products "" 8` takes 8 tiles each.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "operands.h"

// A product's registers: NA, NB and NC words of a lane, and its statement.
#define PRODUCT(NAME, NA, NB, NC, STATEMENT)                                          \
  __global__ void NAME(uint32_t *d, const uint32_t *a, const uint32_t *b, const uint32_t *c) { \
    int lane = blockIdx.x * 32 + threadIdx.x;                                         \
    uint32_t A[NA], B[NB], C[NC], D[NC];                                              \
    for (int i = 0; i < NA; i++) A[i] = a[lane * NA + i];                             \
    for (int i = 0; i < NB; i++) B[i] = b[lane * NB + i];                             \
    for (int i = 0; i < NC; i++) C[i] = c[lane * NC + i];                             \
    STATEMENT;                                                                        \
    for (int i = 0; i < NC; i++) d[lane * NC + i] = D[i];                             \
  }
#define W_1_1_2(S) asm volatile("mma.sync.aligned." S " {%0,%1}, {%2}, {%3}, {%4,%5};" \
  : "=r"(D[0]), "=r"(D[1]) : "r"(A[0]), "r"(B[0]), "r"(C[0]), "r"(C[1]))
#define W_2_1_2(S) asm volatile("mma.sync.aligned." S " {%0,%1}, {%2,%3}, {%4}, {%5,%6};" \
  : "=r"(D[0]), "=r"(D[1]) : "r"(A[0]), "r"(A[1]), "r"(B[0]), "r"(C[0]), "r"(C[1]))
#define W_2_1_4(S) asm volatile("mma.sync.aligned." S " {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%8,%9,%10};" \
  : "=r"(D[0]), "=r"(D[1]), "=r"(D[2]), "=r"(D[3])                                  \
  : "r"(A[0]), "r"(A[1]), "r"(B[0]), "r"(C[0]), "r"(C[1]), "r"(C[2]), "r"(C[3]))
#define W_4_2_2(S) asm volatile("mma.sync.aligned." S " {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%8,%9};" \
  : "=r"(D[0]), "=r"(D[1])                                                          \
  : "r"(A[0]), "r"(A[1]), "r"(A[2]), "r"(A[3]), "r"(B[0]), "r"(B[1]), "r"(C[0]), "r"(C[1]))
#define W_4_2_4(S) asm volatile("mma.sync.aligned." S " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};" \
  : "=r"(D[0]), "=r"(D[1]), "=r"(D[2]), "=r"(D[3])                                  \
  : "r"(A[0]), "r"(A[1]), "r"(A[2]), "r"(A[3]), "r"(B[0]), "r"(B[1]), "r"(C[0]), "r"(C[1]), "r"(C[2]), "r"(C[3]))

PRODUCT(f16_1688_f16, 2, 1, 2, W_2_1_2("m16n8k8.row.col.f16.f16.f16.f16"))
PRODUCT(f16_1688_f32, 2, 1, 4, W_2_1_4("m16n8k8.row.col.f32.f16.f16.f32"))
PRODUCT(s8_8816, 1, 1, 2, W_1_1_2("m8n8k16.row.col.s32.s8.s8.s32"))
PRODUCT(u8s8_8816_sat, 1, 1, 2, W_1_1_2("m8n8k16.row.col.satfinite.s32.u8.s8.s32"))
PRODUCT(s4_8832, 1, 1, 2, W_1_1_2("m8n8k32.row.col.s32.s4.s4.s32"))
PRODUCT(b1_88128, 1, 1, 2, W_1_1_2("m8n8k128.row.col.s32.b1.b1.s32.xor.popc"))
#if __CUDA_ARCH__ >= 800 || !defined(__CUDA_ARCH__)
PRODUCT(f16_16816_f16, 4, 2, 2, W_4_2_2("m16n8k16.row.col.f16.f16.f16.f16"))
PRODUCT(f16_16816_f32, 4, 2, 4, W_4_2_4("m16n8k16.row.col.f32.f16.f16.f32"))
PRODUCT(bf16_16816, 4, 2, 4, W_4_2_4("m16n8k16.row.col.f32.bf16.bf16.f32"))
PRODUCT(bf16_1688, 2, 1, 4, W_2_1_4("m16n8k8.row.col.f32.bf16.bf16.f32"))
PRODUCT(tf32_1688, 4, 2, 4, W_4_2_4("m16n8k8.row.col.f32.tf32.tf32.f32"))
PRODUCT(tf32_1684, 2, 1, 4, W_2_1_4("m16n8k4.row.col.f32.tf32.tf32.f32"))
PRODUCT(s8u8_16816, 2, 1, 4, W_2_1_4("m16n8k16.row.col.s32.s8.u8.s32"))
PRODUCT(s8_16832_sat, 4, 2, 4, W_4_2_4("m16n8k32.row.col.satfinite.s32.s8.s8.s32"))
PRODUCT(u8_16832, 4, 2, 4, W_4_2_4("m16n8k32.row.col.s32.u8.u8.s32"))
PRODUCT(s4u4_16832, 2, 1, 4, W_2_1_4("m16n8k32.row.col.s32.s4.u4.s32"))
PRODUCT(s4_16864_sat, 4, 2, 4, W_4_2_4("m16n8k64.row.col.satfinite.s32.s4.s4.s32"))
PRODUCT(b1_168128_xor, 2, 1, 4, W_2_1_4("m16n8k128.row.col.s32.b1.b1.s32.xor.popc"))
PRODUCT(b1_168256_and, 4, 2, 4, W_4_2_4("m16n8k256.row.col.s32.b1.b1.s32.and.popc"))

// Doubles: pairs of words.
__device__ double &wide(uint32_t *words, int i) { return ((double *)words)[i]; }
#define DOUBLES(NAME, NA, NB, NC, STATEMENT)                                          \
  __global__ void NAME(uint32_t *dw, const uint32_t *aw, const uint32_t *bw, const uint32_t *cw) { \
    int lane = blockIdx.x * 32 + threadIdx.x;                                         \
    const double *A = (const double *)aw + lane * NA, *B = (const double *)bw + lane * NB; \
    const double *C = (const double *)cw + lane * NC;                                 \
    double *D = (double *)dw + lane * NC;                                             \
    STATEMENT;                                                                        \
  }
DOUBLES(f64_884, 1, 1, 2, asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%4,%5};"
  : "=d"(D[0]), "=d"(D[1]) : "d"(A[0]), "d"(B[0]), "d"(C[0]), "d"(C[1])))
#endif
#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)
DOUBLES(f64_1684, 2, 1, 4, asm volatile("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%8,%9,%10};"
  : "=d"(D[0]), "=d"(D[1]), "=d"(D[2]), "=d"(D[3])
  : "d"(A[0]), "d"(A[1]), "d"(B[0]), "d"(C[0]), "d"(C[1]), "d"(C[2]), "d"(C[3])))
DOUBLES(f64_1688, 4, 2, 4, asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
  : "=d"(D[0]), "=d"(D[1]), "=d"(D[2]), "=d"(D[3])
  : "d"(A[0]), "d"(A[1]), "d"(A[2]), "d"(A[3]), "d"(B[0]), "d"(B[1]), "d"(C[0]), "d"(C[1]), "d"(C[2]), "d"(C[3])))
DOUBLES(f64_16816, 8, 4, 4, asm volatile("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7,%8,%9,%10,%11}, {%12,%13,%14,%15}, {%16,%17,%18,%19};"
  : "=d"(D[0]), "=d"(D[1]), "=d"(D[2]), "=d"(D[3])
  : "d"(A[0]), "d"(A[1]), "d"(A[2]), "d"(A[3]), "d"(A[4]), "d"(A[5]), "d"(A[6]), "d"(A[7]),
    "d"(B[0]), "d"(B[1]), "d"(B[2]), "d"(B[3]), "d"(C[0]), "d"(C[1]), "d"(C[2]), "d"(C[3])))
#endif
#if __CUDA_ARCH__ >= 890 || !defined(__CUDA_ARCH__)
PRODUCT(e4m3_16832, 4, 2, 4, W_4_2_4("m16n8k32.row.col.f32.e4m3.e4m3.f32"))
PRODUCT(e5m2e4m3_16832, 4, 2, 4, W_4_2_4("m16n8k32.row.col.f32.e5m2.e4m3.f32"))
#endif

// Loads of 1, 2 and 4 matrices, plain and transposed: 14 words of a lane out of 256 words.
__global__ void loads(uint32_t *d, const uint32_t *a, const uint32_t *, const uint32_t *) {
  __shared__ uint4 rows[64];
  int lane = threadIdx.x;
  for (int i = lane; i < 64; i += 32) rows[i] = ((const uint4 *)a)[blockIdx.x * 64 + i];
  __syncthreads();
  uint32_t D[14], at = (uint32_t)__cvta_generic_to_shared(&rows[(lane * 5 + blockIdx.x) % 64]);
#define LOAD(N, T, OUT) asm volatile("ldmatrix.sync.aligned.m8n8." N T ".shared.b16 " OUT
  LOAD("x4", "", "{%0,%1,%2,%3}, [%4];") : "=r"(D[0]), "=r"(D[1]), "=r"(D[2]), "=r"(D[3]) : "r"(at));
  LOAD("x2", "", "{%0,%1}, [%2];") : "=r"(D[4]), "=r"(D[5]) : "r"(at));
  LOAD("x1", "", "{%0}, [%1];") : "=r"(D[6]) : "r"(at));
  LOAD("x4", ".trans", "{%0,%1,%2,%3}, [%4];") : "=r"(D[7]), "=r"(D[8]), "=r"(D[9]), "=r"(D[10]) : "r"(at));
  LOAD("x2", ".trans", "{%0,%1}, [%2];") : "=r"(D[11]), "=r"(D[12]) : "r"(at));
  LOAD("x1", ".trans", "{%0}, [%1];") : "=r"(D[13]) : "r"(at));
  for (int i = 0; i < 14; i++) d[(blockIdx.x * 32 + lane) * 14 + i] = D[i];
}
__global__ void moved(uint32_t *d, const uint32_t *a, const uint32_t *, const uint32_t *) {
  int i = blockIdx.x * 32 + threadIdx.x;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(d[i]) : "r"(a[i]));
}
#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)
// Stores of 4 matrices, then of 2 transposed, then of 1 over parts of them.
__global__ void stores(uint32_t *d, const uint32_t *a, const uint32_t *, const uint32_t *) {
  __shared__ uint4 rows[32];
  int lane = threadIdx.x;
  const uint32_t *A = a + (blockIdx.x * 32 + lane) * 7;
  uint32_t at = (uint32_t)__cvta_generic_to_shared(&rows[(lane * 5 + blockIdx.x) % 32]);
#define STORE(N, T, IN) asm volatile("stmatrix.sync.aligned.m8n8." N T ".shared.b16 " IN
  STORE("x4", "", "[%0], {%1,%2,%3,%4};") :: "r"(at), "r"(A[0]), "r"(A[1]), "r"(A[2]), "r"(A[3]) : "memory");
  __syncthreads();
  STORE("x2", ".trans", "[%0], {%1,%2};") :: "r"(at), "r"(A[4]), "r"(A[5]) : "memory");
  __syncthreads();
  if (blockIdx.x % 2) STORE("x1", "", "[%0], {%1};") :: "r"(at), "r"(A[6]) : "memory");
  __syncthreads();
  ((uint4 *)d)[blockIdx.x * 32 + lane] = rows[lane];
}
#endif

typedef void (*Kernel)(uint32_t *, const uint32_t *, const uint32_t *, const uint32_t *);
FILE *dump = nullptr;

void run(const char *name, Kernel kernel, int tiles, int na, int nb, int nc, int nd, Type ta, Type tb, Type tc) {
  int families = ta.exponent ? N_FAMILIES : 5;
  for (int family = ta.exponent ? 0 : 3; family < families; family++) {
    state = 1;
    for (const char *p = name; *p; p++) state = state * 131 + *p;
    state = state * 131 + family;
    auto a = words(tiles * na, ta, family, false), b = words(tiles * nb, tb, family, false);
    auto c = words(tiles * nc, tc, family, true);
    std::vector<uint32_t> d(tiles * nd);
    uint32_t *da = on_device(a), *db = on_device(b), *dc = on_device(c), *dd = on_device(d);
    kernel<<<tiles, 32>>>(dd, da, db, dc);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(d.data(), dd, d.size() * 4, cudaMemcpyDeviceToHost));
    printf("%s %s %016llx\n", name, FAMILIES[family], (unsigned long long)digest(d));
    fflush(stdout);
    if (dump) {
      fprintf(dump, "%s %s %d %d %d %d %d\n", name, FAMILIES[family], tiles, na, nb, nc, nd);
      for (auto *w : {&a, &b, &c, &d}) fwrite(w->data(), 4, w->size(), dump);
    }
    cudaFree(da), cudaFree(db), cudaFree(dc), cudaFree(dd);
  }
}

int main(int argc, char **argv) {
  if (argc > 1 && *argv[1]) dump = fopen(argv[1], "wb");
  int tiles = argc > 2 ? atoi(argv[2]) : 64;
  cudaDeviceProp p;
  CHECK(cudaGetDeviceProperties(&p, 0));
  int cc = p.major * 10 + p.minor;
#define RUN(NAME, NA, NB, NC, TA, TB, TC) run(#NAME, NAME, tiles, 32 * NA, 32 * NB, 32 * NC, 32 * NC, TA, TB, TC)
  RUN(f16_1688_f16, 2, 1, 2, F16, F16, F16);
  RUN(f16_1688_f32, 2, 1, 4, F16, F16, F32);
  RUN(s8_8816, 1, 1, 2, BYTE, BYTE, INT);
  RUN(u8s8_8816_sat, 1, 1, 2, BYTE, BYTE, INT);
  RUN(s4_8832, 1, 1, 2, NIBBLE, NIBBLE, INT);
  RUN(b1_88128, 1, 1, 2, BIT, BIT, INT);
  run("loads", loads, tiles, 256, 1, 1, 14 * 32, BYTE, BYTE, BYTE);
  run("moved", moved, tiles, 32, 1, 1, 32, BYTE, BYTE, BYTE);
#ifndef TURING
  if (cc >= 80) {
    RUN(f16_16816_f16, 4, 2, 2, F16, F16, F16);
    RUN(f16_16816_f32, 4, 2, 4, F16, F16, F32);
    RUN(bf16_16816, 4, 2, 4, BF16, BF16, F32);
    RUN(bf16_1688, 2, 1, 4, BF16, BF16, F32);
    RUN(tf32_1688, 4, 2, 4, TF32, TF32, F32);
    RUN(tf32_1684, 2, 1, 4, TF32, TF32, F32);
    RUN(s8u8_16816, 2, 1, 4, BYTE, BYTE, INT);
    RUN(s8_16832_sat, 4, 2, 4, BYTE, BYTE, INT);
    RUN(u8_16832, 4, 2, 4, BYTE, BYTE, INT);
    RUN(s4u4_16832, 2, 1, 4, NIBBLE, NIBBLE, INT);
    RUN(s4_16864_sat, 4, 2, 4, NIBBLE, NIBBLE, INT);
    RUN(b1_168128_xor, 2, 1, 4, BIT, BIT, INT);
    RUN(b1_168256_and, 4, 2, 4, BIT, BIT, INT);
    RUN(f64_884, 2, 2, 4, F64, F64, F64);
  }
  if (cc >= 89) {
    RUN(e4m3_16832, 4, 2, 4, E4M3, E4M3, F32);
    RUN(e5m2e4m3_16832, 4, 2, 4, E5M2, E4M3, F32);
  }
  if (cc >= 90) {
    RUN(f64_1684, 4, 2, 8, F64, F64, F64);
    RUN(f64_1688, 8, 4, 8, F64, F64, F64);
    RUN(f64_16816, 16, 8, 8, F64, F64, F64);
    run("stores", stores, tiles, 7 * 32, 1, 1, 128, BYTE, BYTE, BYTE);
  }
#endif
  if (dump) fclose(dump);
}
