// PTX of bulk copies and mbarriers, for the kernels and the probes of this folder.
#pragma once
#include <cstdint>
using u64 = unsigned long long;
__device__ inline unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ inline void init(u64 *b, int n) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(at(b)), "r"(n) : "memory");
}
__device__ inline void arrive(u64 *b) {
    asm volatile("{.reg .b64 s; mbarrier.arrive.shared.b64 s, [%0];}" :: "r"(at(b)) : "memory");
}
__device__ inline void expect(u64 *b, int n) {
    asm volatile("{.reg .b64 s; mbarrier.arrive.expect_tx.shared.b64 s, [%0], %1;}"
                 :: "r"(at(b)), "r"(n) : "memory");
}
__device__ inline void wait(u64 *b, int parity) {
    asm volatile("{.reg .pred p; L: mbarrier.try_wait.parity.shared.b64 p, [%0], %1;"
                 "@p bra D; bra L; D:}" :: "r"(at(b)), "r"(parity) : "memory");
}
__device__ inline void load(void *to, const void *from, int bytes, u64 *b) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1], %2, [%3];"
                 :: "r"(at(to)), "l"(from), "r"(bytes), "r"(at(b)) : "memory");
}
__device__ inline void save(void *to, const void *from, int bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                 :: "l"(to), "r"(at(from)), "r"(bytes) : "memory");
}
#define COMMIT asm volatile("cp.async.bulk.commit_group;" ::: "memory")
#define AWAIT(n) asm volatile("cp.async.bulk.wait_group " #n ";" ::: "memory")
#define READ(n) asm volatile("cp.async.bulk.wait_group.read " #n ";" ::: "memory")
#define FENCE asm volatile("fence.proxy.async.shared::cta;" ::: "memory")
