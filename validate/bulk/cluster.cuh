// PTX of clusters, tensor maps and programmatic launches, for the probes of this folder.
#pragma once
#include <cuda.h>
#include "bulk.cuh"
__device__ inline unsigned rank() { unsigned r; asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r; }
__device__ inline unsigned ranks() { unsigned r; asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(r)); return r; }
__device__ inline unsigned peer(const void *p, unsigned r) {
    unsigned a;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(a) : "r"(at(p)), "r"(r));
    return a;
}
#define MEET asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory")
#define SHOW asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory")
__device__ inline void arrive_at(unsigned b) {
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: "r"(b) : "memory");
}
__device__ inline void wait_for(u64 *b, int parity) {
    asm volatile("{.reg .pred p; L: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1;"
                 "@p bra D; bra L; D:}" :: "r"(at(b)), "r"(parity) : "memory");
}
__device__ inline void send(unsigned to, unsigned v, unsigned b) {
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];"
                 :: "r"(to), "r"(v), "r"(b) : "memory");
}
__device__ inline void send4(unsigned to, unsigned v, unsigned b) {
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.u32 [%0], {%1,%1,%1,%1}, [%2];"
                 :: "r"(to), "r"(v), "r"(b) : "memory");
}
__device__ inline void add(unsigned to, unsigned v, unsigned b) {
    asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32"
                 " [%0], %1, [%2];" :: "r"(to), "r"(v), "r"(b) : "memory");
}
__device__ inline void copy_to(unsigned to, const void *from, int bytes, unsigned b) {
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :: "r"(to), "r"(at(from)), "r"(bytes), "r"(b) : "memory");
}
__device__ inline void load_all(void *to, const void *from, int bytes, u64 *b, int mask) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
                 " [%0], [%1], %2, [%3], %4;" :: "r"(at(to)), "l"(from), "r"(bytes), "r"(at(b)),
                 "h"((unsigned short)mask) : "memory");
}
