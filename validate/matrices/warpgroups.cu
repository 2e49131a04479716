// Matrix products of a warpgroup (wgmma) in each type, shape and layout of shared memory; prints a digest of each.
// Run on a GPU and by `gpusim run validate/matrices/warpgroups.cu`, its lines should be the same.
// `warpgroups rates` prints the cycles of groups of 1, 9 and 17 products instead, of 1, 2 and 4 warpgroups of an SM.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "operands.h"

const int FACTOR_A = 32768, FACTOR_B = 65536;  // bytes of shared memory

// The registers of D, and what a statement calls the operands behind them.
#define S2 "{%0,%1}"
#define O2(i) "+r"(D[i]), "+r"(D[i + 1])
#define SS2 "%2, %3"
#define RS2 "{%2,%3,%4,%5}, %6"
#define ADDS_SS2 "%4"
#define ADDS_RS2 "%7"
#define S4 "{%0,%1,%2,%3}"
#define O4(i) O2(i), O2(i + 2)
#define SS4 "%4, %5"
#define RS4 "{%4,%5,%6,%7}, %8"
#define ADDS_SS4 "%6"
#define ADDS_RS4 "%9"
#define S8 "{%0,%1,%2,%3,%4,%5,%6,%7}"
#define O8(i) O4(i), O4(i + 4)
#define SS8 "%8, %9"
#define RS8 "{%8,%9,%10,%11}, %12"
#define ADDS_SS8 "%10"
#define ADDS_RS8 "%13"
#define S12 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11}"
#define O12(i) O8(i), O4(i + 8)
#define SS12 "%12, %13"
#define RS12 "{%12,%13,%14,%15}, %16"
#define ADDS_SS12 "%14"
#define ADDS_RS12 "%17"
#define S16 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}"
#define O16(i) O8(i), O8(i + 8)
#define SS16 "%16, %17"
#define RS16 "{%16,%17,%18,%19}, %20"
#define ADDS_SS16 "%18"
#define ADDS_RS16 "%21"
#define S32 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}"
#define O32(i) O16(i), O16(i + 16)
#define SS32 "%32, %33"
#define RS32 "{%32,%33,%34,%35}, %36"
#define ADDS_SS32 "%34"
#define ADDS_RS32 "%37"
#define S48 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47}"
#define O48(i) O32(i), O16(i + 32)
#define SS48 "%48, %49"
#define RS48 "{%48,%49,%50,%51}, %52"
#define ADDS_SS48 "%50"
#define ADDS_RS48 "%53"
#define S64 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}"
#define O64(i) O32(i), O32(i + 32)
#define SS64 "%64, %65"
#define RS64 "{%64,%65,%66,%67}, %68"
#define ADDS_SS64 "%66"
#define ADDS_RS64 "%69"
#define S96 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63,%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95}"
#define O96(i) O64(i), O32(i + 64)
#define SS96 "%96, %97"
#define RS96 "{%96,%97,%98,%99}, %100"
#define ADDS_SS96 "%98"
#define ADDS_RS96 "%101"
#define S128 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63,%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95,%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127}"
#define O128(i) O64(i), O64(i + 64)
#define SS128 "%128, %129"
#define RS128 "{%128,%129,%130,%131}, %132"
#define ADDS_SS128 "%130"
#define ADDS_RS128 "%133"
#define IN_SS "l"(da), "l"(db)
#define IN_RS "r"(A[0]), "r"(A[1]), "r"(A[2]), "r"(A[3]), "l"(db)
#ifdef __CUDA_ARCH__
#define WGMMA(FROM, R, TYPES, END)                                                                         \
  asm volatile("{.reg .pred q; setp.ne.b32 q, " ADDS_##FROM##R ", 0;"                                       \
               "wgmma.mma_async.sync.aligned." TYPES " " S##R ", " FROM##R ", q" END ";}" : O##R(0) : IN_##FROM, "r"(adds))
#define ORDER(WHAT) asm volatile("wgmma." WHAT ";" ::: "memory")
#else
#define WGMMA(FROM, R, TYPES, END)
#define ORDER(WHAT)
#endif

// A descriptor's place is counted from the begin of its factor.
__device__ uint64_t placed(uint64_t descriptor, const void *begin) {
  return descriptor + ((uint32_t)__cvta_generic_to_shared(begin) >> 4);
}

struct Case { uint64_t a, b; int adds; };

#define PRODUCT(NAME, FROM, R, TYPES, END)                                                                  \
  __global__ void __launch_bounds__(128) NAME(uint32_t *d, const uint4 *factors, const uint32_t *a, Case one) { \
    extern __shared__ __align__(1024) uint4 memory[];                                                       \
    for (int i = threadIdx.x; i < (FACTOR_A + FACTOR_B) / 16; i += 128) memory[i] = factors[i];              \
    __syncthreads();                                                                                        \
    asm volatile("fence.proxy.async;" ::: "memory");                                                        \
    uint64_t da = placed(one.a, memory), db = placed(one.b, memory + FACTOR_A / 16);                        \
    uint32_t A[4], D[R];                                                                                    \
    int adds = one.adds, t = threadIdx.x;                                                                   \
    for (int i = 0; i < 4; i++) A[i] = a[t * 4 + i];                                                        \
    for (int i = 0; i < R; i++) D[i] = d[t * R + i];                                                        \
    ORDER("fence.sync.aligned");                                                                            \
    WGMMA(FROM, R, TYPES, END);                                                                             \
    ORDER("commit_group.sync.aligned");                                                                     \
    ORDER("wait_group.sync.aligned 0");                                                                     \
    for (int i = 0; i < R; i++) d[t * R + i] = D[i];                                                        \
  }

// Name, where A is, registers of D, types of A, B and D; statement; transposed factors.
#define ALL(X)                                                                     \
  X(f16_n8, SS, 4, F16, F16, F32, "m64n8k16.f32.f16.f16", ", 1, 1, 0, 0", 0, 0)      \
  X(f16_n24_nb, SS, 12, F16, F16, F32, "m64n24k16.f32.f16.f16", ", 1, 1, 0, 1", 0, 1) \
  X(f16_n64_ta, SS, 32, F16, F16, F32, "m64n64k16.f32.f16.f16", ", -1, 1, 1, 0", 1, 0) \
  X(f16_n256_tt, SS, 128, F16, F16, F32, "m64n256k16.f32.f16.f16", ", 1, -1, 1, 1", 1, 1) \
  X(f16_f16_n8, SS, 2, F16, F16, F16, "m64n8k16.f16.f16.f16", ", 1, 1, 0, 0", 0, 0)  \
  X(f16_f16_n128, SS, 32, F16, F16, F16, "m64n128k16.f16.f16.f16", ", 1, -1, 0, 1", 0, 1) \
  X(f16_rs_n64, RS, 32, F16, F16, F32, "m64n64k16.f32.f16.f16", ", 1, 1, 0", 0, 0)   \
  X(f16_rs_n24_tb, RS, 12, F16, F16, F32, "m64n24k16.f32.f16.f16", ", -1, 1, 1", 0, 1) \
  X(bf16_n8, SS, 4, BF16, BF16, F32, "m64n8k16.f32.bf16.bf16", ", 1, 1, 0, 0", 0, 0) \
  X(bf16_n128_tt, SS, 64, BF16, BF16, F32, "m64n128k16.f32.bf16.bf16", ", 1, 1, 1, 1", 1, 1) \
  X(bf16_rs_n256, RS, 128, BF16, BF16, F32, "m64n256k16.f32.bf16.bf16", ", 1, 1, 0", 0, 0) \
  X(tf32_n8, SS, 4, TF32, TF32, F32, "m64n8k8.f32.tf32.tf32", ", 1, 1", 0, 0)        \
  X(tf32_n64, SS, 32, TF32, TF32, F32, "m64n64k8.f32.tf32.tf32", ", -1, 1", 0, 0)    \
  X(tf32_rs_n24, RS, 12, TF32, TF32, F32, "m64n24k8.f32.tf32.tf32", ", 1, 1", 0, 0)  \
  X(e4m3_n8, SS, 4, E4M3, E4M3, F32, "m64n8k32.f32.e4m3.e4m3", ", 1, 1", 0, 0)       \
  X(e4m3e5m2_n64, SS, 32, E4M3, E5M2, F32, "m64n64k32.f32.e4m3.e5m2", ", 1, 1", 0, 0) \
  X(e5m2_rs_n24, RS, 12, E5M2, E4M3, F32, "m64n24k32.f32.e5m2.e4m3", ", 1, -1", 0, 0) \
  X(e4m3_f16_n16, SS, 4, E4M3, E4M3, F16, "m64n16k32.f16.e4m3.e4m3", ", 1, 1", 0, 0) \
  X(s8_n8, SS, 4, BYTE, BYTE, INT, "m64n8k32.s32.s8.s8", "", 0, 0)                  \
  X(u8s8_n64, SS, 32, BYTE, BYTE, INT, "m64n64k32.s32.u8.s8", "", 0, 0)             \
  X(s8u8_rs_n24, RS, 12, BYTE, BYTE, INT, "m64n24k32.s32.s8.u8", "", 0, 0)          \
  X(s8_sat_n256, SS, 128, BYTE, BYTE, INT, "m64n256k32.s32.s8.s8.satfinite", "", 0, 0) \
  X(b1_n8, SS, 4, BIT, BIT, INT, "m64n8k256.s32.b1.b1.and.popc", "", 0, 0)          \
  X(b1_rs_n64, RS, 32, BIT, BIT, INT, "m64n64k256.s32.b1.b1.and.popc", "", 0, 0)

#define DEFINE(NAME, FROM, R, A, B, C, TYPES, END, TA, TB) PRODUCT(NAME, FROM, R, TYPES, END)
ALL(DEFINE)

// Layouts: without a swizzle, of 128, 64 and 32 bytes, as compilers make them; then with odd strides and places.
const int WIDTHS[] = {16, 128, 64, 32};
uint64_t descriptor(int layout, bool transposed, bool in_registers) {
  int swizzle = layout % 4, width = WIDTHS[swizzle], pattern = 8 * width;
  uint64_t leading = pattern * (1 + below(2)), stride = pattern * (1 + below(2)), first = 0;
  if (swizzle && !transposed) leading = 16, first = 32 * below(width / 32);
  if (layout >= 4) {
    leading = 16 * below(120), stride = 16 * below(120), first = 16 * below(64);
    if (swizzle) first = first / 8 * 8;
  }
  return first >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | (uint64_t)swizzle << 62;
}

FILE *dump = nullptr;

typedef void (*Kernel)(uint32_t *, const uint4 *, const uint32_t *, Case);

void run(const char *name, Kernel kernel, bool from_registers, int registers, Type ta, Type tb, Type tc, bool at, bool bt) {
  int bytes = FACTOR_A + FACTOR_B;
  CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  int families = ta.exponent ? N_FAMILIES : 5, from = ta.exponent ? 0 : 3;
  for (int layout = 0; layout < 8; layout++) {
    int family = from + layout % (families - from);
    state = 7 + layout;
    for (const char *p = name; *p; p++) state = state * 131 + *p;
    auto factors = words(FACTOR_A / 4, ta, family, false), b = words(FACTOR_B / 4, tb, family, false);
    factors.insert(factors.end(), b.begin(), b.end());
    auto a = words(128 * 4, ta, family, false), d = words(128 * registers, tc, family, true);
    Case one{descriptor(layout, at, from_registers), descriptor(layout, bt, false), layout % 3 != 1};
    uint32_t *on_factors = on_device(factors), *on_a = on_device(a), *on_d = on_device(d);
    kernel<<<1, 128, bytes>>>(on_d, (const uint4 *)on_factors, on_a, one);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(d.data(), on_d, d.size() * 4, cudaMemcpyDeviceToHost));
    printf("%s %d %s %016llx\n", name, layout, FAMILIES[family], (unsigned long long)digest(d));
    fflush(stdout);
    if (dump) fwrite(d.data(), 4, d.size(), dump);
    cudaFree(on_factors), cudaFree(on_a), cudaFree(on_d);
  }
}

// -- cycles -----------------------------------------------------------------------------------

#define RATE(NAME, FROM, R, TYPES, END)                                                          \
  template <int COUNT> __global__ void __launch_bounds__(512) NAME(long long *cycles, uint32_t *out, int adds) { \
    extern __shared__ __align__(1024) uint4 memory[];                                            \
    uint64_t layout = (uint64_t)64 << 32 | (uint64_t)1 << 16 | (uint64_t)1 << 62;                \
    uint64_t da = placed(layout, memory), db = placed(layout, memory + FACTOR_A / 16);           \
    uint32_t A[4] = {}, D[R] = {};                                                               \
    for (int i = threadIdx.x; i < (FACTOR_A + FACTOR_B) / 16; i += blockDim.x) memory[i] = uint4{}; \
    __syncthreads();                                                                             \
    asm volatile("fence.proxy.async;" ::: "memory");                                             \
    __syncthreads();                                                                             \
    long long begin = clock64();                                                                 \
    ORDER("fence.sync.aligned");                                                                 \
    _Pragma("unroll") for (int i = 0; i < COUNT; i++) WGMMA(FROM, R, TYPES, END);                \
    ORDER("commit_group.sync.aligned");                                                          \
    ORDER("wait_group.sync.aligned 0");                                                          \
    long long took = clock64() - begin;                                                          \
    uint32_t sum = 0;                                                                            \
    for (int i = 0; i < R; i++) sum |= D[i];                                                     \
    out[threadIdx.x] = sum;                                                                      \
    if (threadIdx.x % 128 == 0) cycles[threadIdx.x / 128] = took;                                \
  }
#define RATES(X)                                                      \
  X(bf16_n8, SS, 4, "m64n8k16.f32.bf16.bf16", ", 1, 1, 0, 0")          \
  X(bf16_n16, SS, 8, "m64n16k16.f32.bf16.bf16", ", 1, 1, 0, 0")        \
  X(bf16_n32, SS, 16, "m64n32k16.f32.bf16.bf16", ", 1, 1, 0, 0")       \
  X(bf16_n64, SS, 32, "m64n64k16.f32.bf16.bf16", ", 1, 1, 0, 0")       \
  X(bf16_n96, SS, 48, "m64n96k16.f32.bf16.bf16", ", 1, 1, 0, 0")       \
  X(bf16_n128, SS, 64, "m64n128k16.f32.bf16.bf16", ", 1, 1, 0, 0")     \
  X(bf16_n192, SS, 96, "m64n192k16.f32.bf16.bf16", ", 1, 1, 0, 0")     \
  X(bf16_n128_tt, SS, 64, "m64n128k16.f32.bf16.bf16", ", 1, 1, 1, 1")  \
  X(bf16_rs_n8, RS, 4, "m64n8k16.f32.bf16.bf16", ", 1, 1, 0")          \
  X(bf16_rs_n32, RS, 16, "m64n32k16.f32.bf16.bf16", ", 1, 1, 0")       \
  X(bf16_rs_n64, RS, 32, "m64n64k16.f32.bf16.bf16", ", 1, 1, 0")       \
  X(bf16_rs_n128, RS, 64, "m64n128k16.f32.bf16.bf16", ", 1, 1, 0")     \
  X(f16_f16_n64, SS, 16, "m64n64k16.f16.f16.f16", ", 1, 1, 0, 0")      \
  X(tf32_n64, SS, 32, "m64n64k8.f32.tf32.tf32", ", 1, 1")              \
  X(tf32_n128, SS, 64, "m64n128k8.f32.tf32.tf32", ", 1, 1")            \
  X(e4m3_n8, SS, 4, "m64n8k32.f32.e4m3.e4m3", ", 1, 1")                \
  X(e4m3_n64, SS, 32, "m64n64k32.f32.e4m3.e4m3", ", 1, 1")             \
  X(e4m3_n128, SS, 64, "m64n128k32.f32.e4m3.e4m3", ", 1, 1")           \
  X(s8_n64, SS, 32, "m64n64k32.s32.s8.s8", "")                        \
  X(s8_n128, SS, 64, "m64n128k32.s32.s8.s8", "")
#define DEFINE_RATE(NAME, FROM, R, TYPES, END) RATE(rate_##NAME, FROM, R, TYPES, END)
RATES(DEFINE_RATE)

typedef void (*Timed)(long long *, uint32_t *, int);

void rate(const char *name, int registers, const Timed *kernels) {
  long long *cycles, host[4];
  uint32_t *out;
  CHECK(cudaMalloc(&cycles, sizeof host));
  CHECK(cudaMalloc(&out, 512 * 4));
  for (int groups = 1; groups <= 4; groups *= 2) {
    if (groups * 128 * (registers + 24) > 65536) continue;
    printf("{\"what\": \"%s\", \"warpgroups\": %d, \"cycles\": [", name, groups);
    for (int k = 0; k < 3; k++) {
      CHECK(cudaFuncSetAttribute(kernels[k], cudaFuncAttributeMaxDynamicSharedMemorySize, FACTOR_A + FACTOR_B));
      long long least = 1 << 30;
      for (int time = 0; time < 5; time++) {
        kernels[k]<<<1, 128 * groups, FACTOR_A + FACTOR_B>>>(cycles, out, 1);
        CHECK(cudaMemcpy(host, cycles, sizeof host, cudaMemcpyDeviceToHost));
        long long most = 0;
        for (int g = 0; g < groups; g++) most = host[g] > most ? host[g] : most;
        least = most < least ? most : least;
      }
      printf("%s%lld", k ? ", " : "", least);
    }
    printf("]}\n");
  }
  cudaFree(cycles), cudaFree(out);
}

int main(int argc, char **argv) {
  if (argc > 1 && !strcmp(argv[1], "rates")) {
#define RUN_RATE(NAME, FROM, R, TYPES, END)                                                     \
  {                                                                                             \
    const Timed kernels[] = {rate_##NAME<1>, rate_##NAME<9>, rate_##NAME<17>};                  \
    rate(#NAME, R, kernels);                                                                    \
  }
    RATES(RUN_RATE)
    return 0;
  }
  if (argc > 1) dump = fopen(argv[1], "wb");
#define RUN(NAME, FROM, R, A, B, C, TYPES, END, TA, TB) run(#NAME, NAME, !strcmp(#FROM, "RS"), R, A, B, C, TA, TB);
  ALL(RUN)
  if (dump) fclose(dump);
}
