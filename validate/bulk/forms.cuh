// Kernels whose bytes on an H200 are in forms.csv: a test runs them. Clusters of four blocks of 64
// threads; each block has 256 words of its own of x, and writes 256 words behind them.
#pragma once
#include "cluster.cuh"
#define FORM extern "C" __global__ void __cluster_dims__(4, 1, 1)
#define BEGIN(bytes) \
    __shared__ alignas(128) unsigned tile[256], got[256]; \
    __shared__ u64 bar; \
    unsigned t = threadIdx.x, me = rank(); \
    for (int i = t; i < 256; i += 64) { tile[i] = x[blockIdx.x * 256 + i]; got[i] = out[blockIdx.x * 256 + i]; } \
    FENCE; \
    if (t == 0) { init(&bar, 1); SHOW; if (bytes) expect(&bar, bytes); } \
    MEET; \
    unsigned to = peer(got, me ^ 1), there = peer(&bar, me ^ 1); (void)to; (void)there;
#define END \
    wait_for(&bar, 0); \
    for (int i = t; i < 256; i += 64) out[blockIdx.x * 256 + i] = got[i]; \
    __syncthreads(); \
    MEET;
#define SENT(name, type, C, T, words) \
    FORM name(const unsigned *x, unsigned *out) { \
        BEGIN(64 * words * 4) \
        T v = ((T *)tile)[t]; \
        asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes." type " [%0], %1, [%2];" \
                     :: "r"(to + t * words * 4), C(v), "r"(there) : "memory"); \
        END \
    }
SENT(send_b32, "b32", "r", unsigned, 1)
SENT(send_s32, "s32", "r", int, 1)
SENT(send_f32, "f32", "f", float, 1)
SENT(send_b64, "b64", "l", u64, 2)
SENT(send_s64, "s64", "l", long long, 2)
SENT(send_f64, "f64", "d", double, 2)
FORM send_v2_b32(const unsigned *x, unsigned *out) {
    BEGIN(64 * 8)
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%0], {%1, %2}, [%3];"
                 :: "r"(to + t * 8), "r"(tile[2 * t]), "r"(tile[2 * t + 1]), "r"(there) : "memory");
    END
}
FORM send_v4_b32(const unsigned *x, unsigned *out) {
    BEGIN(64 * 16)
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, [%5];"
                 :: "r"(to + t * 16), "r"(tile[4 * t]), "r"(tile[4 * t + 1]), "r"(tile[4 * t + 2]),
                 "r"(tile[4 * t + 3]), "r"(there) : "memory");
    END
}
FORM send_v2_b64(const unsigned *x, unsigned *out) {
    BEGIN(64 * 16)
    u64 *w = (u64 *)tile;
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b64 [%0], {%1, %2}, [%3];"
                 :: "r"(to + t * 16), "l"(w[2 * t]), "l"(w[2 * t + 1]), "r"(there) : "memory");
    END
}
#define REDUCED(name, type, C, T, words) \
    FORM name(const unsigned *x, unsigned *out) { \
        BEGIN(64 * words * 4) \
        T v = ((T *)tile)[t]; \
        asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes." type \
                     " [%0], %1, [%2];" :: "r"(to + t % 16 * words * 4), C(v), "r"(there) : "memory"); \
        END \
    }
REDUCED(red_add_u32, "add.u32", "r", unsigned, 1)
REDUCED(red_add_s32, "add.s32", "r", int, 1)
REDUCED(red_add_u64, "add.u64", "l", u64, 2)
REDUCED(red_min_u32, "min.u32", "r", unsigned, 1)
REDUCED(red_min_s32, "min.s32", "r", int, 1)
REDUCED(red_max_u32, "max.u32", "r", unsigned, 1)
REDUCED(red_max_s32, "max.s32", "r", int, 1)
REDUCED(red_and_b32, "and.b32", "r", unsigned, 1)
REDUCED(red_or_b32, "or.b32", "r", unsigned, 1)
REDUCED(red_xor_b32, "xor.b32", "r", unsigned, 1)
#define RED_IN_BULK(name, type) \
    FORM name(const unsigned *x, unsigned *out) { \
        BEGIN(512) \
        if (t == 0) \
            asm volatile("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes." type \
                         " [%0], [%1], %2, [%3];" :: "r"(to + 64), "r"(at(tile + 16)), "r"(512), "r"(there) \
                         : "memory"); \
        END \
    }
RED_IN_BULK(peer_add_u32, "add.u32")
RED_IN_BULK(peer_add_s32, "add.s32")
RED_IN_BULK(peer_add_u64, "add.u64")
RED_IN_BULK(peer_min_u32, "min.u32")
RED_IN_BULK(peer_min_s32, "min.s32")
RED_IN_BULK(peer_max_u32, "max.u32")
RED_IN_BULK(peer_max_s32, "max.s32")
RED_IN_BULK(peer_inc_u32, "inc.u32")
RED_IN_BULK(peer_dec_u32, "dec.u32")
RED_IN_BULK(peer_and_b32, "and.b32")
RED_IN_BULK(peer_or_b32, "or.b32")
RED_IN_BULK(peer_xor_b32, "xor.b32")
#define COPIED(name, begin, bytes) \
    FORM name(const unsigned *x, unsigned *out) { \
        BEGIN(bytes) \
        if (t == 0) copy_to(to + begin, tile + 4, bytes, there); \
        END \
    }
COPIED(copy_16, 32, 16)
COPIED(copy_256, 0, 256)
COPIED(copy_944, 64, 944)
#define MULTICAST(name, source, mask, bytes) \
    FORM name(const unsigned *x, unsigned *out) { \
        BEGIN((mask) >> me & 1 ? bytes : 0) \
        if (!((mask) >> me & 1) && t == 0) arrive(&bar); \
        if (t == 0 && me == source) load_all(got + 8, x + 256 * 4, bytes, &bar, mask); \
        END \
    }
MULTICAST(multicast_0_15, 0, 15, 512)
MULTICAST(multicast_0_1, 0, 1, 512)
MULTICAST(multicast_2_6, 2, 6, 256)
MULTICAST(multicast_3_9, 3, 9, 16)
MULTICAST(multicast_1_13, 1, 13, 768)
#define TO_GLOBAL(name, type) \
    FORM name(const unsigned *x, unsigned *out) { \
        __shared__ alignas(128) unsigned tile[256]; \
        for (int i = threadIdx.x; i < 256; i += 64) tile[i] = x[blockIdx.x * 256 + i]; \
        FENCE; \
        __syncthreads(); \
        if (threadIdx.x == 0) { \
            asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group." type " [%0], [%1], %2;" \
                         :: "l"(out + blockIdx.x * 256), "r"(at(tile)), "r"(1024) : "memory"); \
            COMMIT; \
            AWAIT(0); \
        } \
    }
TO_GLOBAL(to_add_u32, "add.u32")
TO_GLOBAL(to_add_s32, "add.s32")
TO_GLOBAL(to_add_u64, "add.u64")
TO_GLOBAL(to_add_f32, "add.f32")
TO_GLOBAL(to_add_f64, "add.f64")
TO_GLOBAL(to_add_f16, "add.noftz.f16")
TO_GLOBAL(to_add_bf16, "add.noftz.bf16")
TO_GLOBAL(to_min_u32, "min.u32")
TO_GLOBAL(to_min_s32, "min.s32")
TO_GLOBAL(to_min_u64, "min.u64")
TO_GLOBAL(to_min_s64, "min.s64")
TO_GLOBAL(to_min_f16, "min.f16")
TO_GLOBAL(to_min_bf16, "min.bf16")
TO_GLOBAL(to_max_u32, "max.u32")
TO_GLOBAL(to_max_s32, "max.s32")
TO_GLOBAL(to_max_u64, "max.u64")
TO_GLOBAL(to_max_s64, "max.s64")
TO_GLOBAL(to_max_f16, "max.f16")
TO_GLOBAL(to_max_bf16, "max.bf16")
TO_GLOBAL(to_inc_u32, "inc.u32")
TO_GLOBAL(to_dec_u32, "dec.u32")
TO_GLOBAL(to_and_b32, "and.b32")
TO_GLOBAL(to_and_b64, "and.b64")
TO_GLOBAL(to_or_b32, "or.b32")
TO_GLOBAL(to_or_b64, "or.b64")
TO_GLOBAL(to_xor_b32, "xor.b32")
TO_GLOBAL(to_xor_b64, "xor.b64")
// Boxes of 512 bytes at (c0, c1) of a tensor map, reduced, or loaded by one block for some others.
#define OF_BOX(name, op) \
    extern "C" __global__ void name(const __grid_constant__ CUtensorMap map, const unsigned *x, \
                                    int c0, int c1) { \
        __shared__ alignas(128) unsigned tile[128]; \
        for (int i = threadIdx.x; i < 128; i += 64) tile[i] = x[i]; \
        FENCE; \
        __syncthreads(); \
        if (threadIdx.x == 0) { \
            asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta." op ".tile.bulk_group" \
                         " [%0, {%2, %3}], [%1];" \
                         :: "l"(&map), "r"(at(tile)), "r"(c0), "r"(c1) : "memory"); \
            COMMIT; \
            AWAIT(0); \
        } \
    }
OF_BOX(tensor_add, "add")
OF_BOX(tensor_min, "min")
OF_BOX(tensor_max, "max")
OF_BOX(tensor_inc, "inc")
OF_BOX(tensor_dec, "dec")
OF_BOX(tensor_and, "and")
OF_BOX(tensor_or, "or")
OF_BOX(tensor_xor, "xor")
FORM tensor_all(const __grid_constant__ CUtensorMap map, unsigned *out, int mask, int source) {
    __shared__ alignas(128) unsigned got[256];
    __shared__ u64 bar;
    unsigned me = rank();
    for (int i = threadIdx.x; i < 256; i += 64) got[i] = out[blockIdx.x * 256 + i];
    FENCE;
    if (threadIdx.x == 0) {
        init(&bar, 1);
        SHOW;
        if (mask >> me & 1) expect(&bar, 512); else arrive(&bar);
    }
    MEET;
    if (threadIdx.x == 0 && me == source)
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile"
                     ".mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {4, 2}], [%2], %3;"
                     :: "r"(at(got)), "l"(&map), "r"(at(&bar)), "h"((unsigned short)mask) : "memory");
    wait_for(&bar, 0);
    for (int i = threadIdx.x; i < 256; i += 64) out[blockIdx.x * 256 + i] = got[i];
    __syncthreads();
    MEET;
}
