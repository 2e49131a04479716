// Kernels whose counters Nsight Compute read on an H200 (counters.csv): count.cu launches them.
// Each copies `count` pieces of `bytes`, from and to places `apart` bytes from each other; those in
// shared memory begin `shift` bytes behind a line of 128.
#include "cluster.cuh"
extern __shared__ __align__(1024) char place[];
#ifndef BEGIN  // bytes from an array's begin to the first piece, where no launch adds them
#define BEGIN 0
#endif
#define COUNTED extern "C" __global__ void
#define OF(x) extern "C" __global__ void __cluster_dims__(x, 1, 1)
#define ARGUMENTS char *x, int bytes, int count, int apart, int shift
#define FIRST if (threadIdx.x == 0)
#define EACH for (int i = 0; i < count; i++)
// A block's piece in global memory, and in shared memory.
__device__ inline char *far_(char *x, int i, int count, int apart) {
    return x + BEGIN + ((size_t)blockIdx.x * count + i) * apart;
}
__device__ inline char *near_(int i, int bytes, int shift) {
    return place + i * ((bytes + shift + 127) / 128 * 128) + shift;
}
template <class F> __device__ void filled(int parts, F f) {
    __shared__ u64 full;
    FIRST { init(&full, 1); SHOW; FENCE; expect(&full, parts); f(&full); }
    __syncthreads();
    FIRST wait(&full, 0);
    __syncthreads();
}
template <class F> __device__ void emptied(int bytes, F f) {
    for (int i = threadIdx.x; i < bytes / 4; i += blockDim.x) ((unsigned *)place)[i] = i;
    FENCE;
    __syncthreads();
    FIRST { f(); COMMIT; AWAIT(0); }
    __syncthreads();
}
COUNTED bulk_load(ARGUMENTS) {
    filled(bytes * count, [&](u64 *b) { EACH load(near_(i, bytes, shift), far_(x, i, count, apart), bytes, b); });
}
COUNTED bulk_store(ARGUMENTS) {
    emptied(bytes * count, [&] { EACH save(far_(x, i, count, apart), near_(i, bytes, shift), bytes); });
}
COUNTED bulk_add(ARGUMENTS) {
    emptied(bytes * count, [&] {
        EACH asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], %2;"
                          :: "l"(far_(x, i, count, apart)), "r"(at(near_(i, bytes, shift))), "r"(bytes) : "memory");
    });
}
COUNTED bulk_prefetch(ARGUMENTS) {
    FIRST EACH asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;"
                            :: "l"(far_(x, i, count, apart)), "r"(bytes) : "memory");
}
// The first block of a cluster of four loads for all.
OF(4) multicast(ARGUMENTS) {
    __shared__ u64 full;
    FIRST { init(&full, 1); SHOW; expect(&full, bytes * count); }
    MEET;
    FIRST if (rank() == 0) EACH load_all(near_(i, bytes, shift), far_(x, i, count, apart), bytes, &full, 15);
    FIRST wait(&full, 0);
    MEET;
}
// Each block of a cluster of two copies to the other.
OF(2) peer_copy(ARGUMENTS) {
    __shared__ u64 full;
    FIRST { init(&full, 1); SHOW; expect(&full, bytes * count); }
    for (int i = threadIdx.x; i < bytes * count / 4; i += blockDim.x) ((unsigned *)place)[i] = i;
    FENCE;
    MEET;
    FIRST EACH copy_to(peer(near_(count + i, bytes, shift), rank() ^ 1), near_(i, bytes, shift), bytes, peer(&full, rank() ^ 1));
    FIRST wait(&full, 0);
    MEET;
}
#define WORDS unsigned mine = peer(place, rank() ^ 1) + threadIdx.x * apart
// By all threads, words `apart` bytes from each other, others each time.
#define NEXT mine += 4096
OF(2) peer_store(ARGUMENTS) {
    WORDS;
    MEET;
    EACH { asm volatile("st.shared::cluster.u32 [%0], %1;" :: "r"(mine), "r"(i) : "memory"); NEXT; }
    MEET;
}
OF(2) peer_load(ARGUMENTS) {
    WORDS;
    unsigned v, sum = 0;
    MEET;
    EACH { asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(v) : "r"(mine) : "memory"); sum += v; NEXT; }
    MEET;
    if (sum == 0x5eed5eed) *x = 1;
}
OF(2) peer_add(ARGUMENTS) {
    WORDS;
    MEET;
    EACH { asm volatile("red.relaxed.cluster.shared::cluster.add.u32 [%0], %1;" :: "r"(mine), "r"(i) : "memory"); NEXT; }
    MEET;
}
OF(2) peer_send(ARGUMENTS) {
    __shared__ u64 full;
    WORDS;
    FIRST { init(&full, 1); SHOW; expect(&full, 4 * blockDim.x * count); }
    MEET;
    EACH { send(mine, i, peer(&full, rank() ^ 1)); NEXT; }
    FIRST wait_for(&full, 0);
    MEET;
}
// A block's `count` boxes: they begin `shift` bytes into a row, and `apart` rows from each other.
#define MAP const __grid_constant__ CUtensorMap map, ARGUMENTS
COUNTED box_load(MAP) {
    filled(bytes * count, [&](u64 *b) {
        EACH asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                          " [%0], [%1, {%3, %4}], [%2];"
                          :: "r"(at(near_(i, bytes, 0))), "l"(&map), "r"(at(b)), "r"(shift / 4),
                             "r"((int)(blockIdx.x * count + i) * apart) : "memory");
    });
}
COUNTED box_store(MAP) {
    emptied(bytes * count, [&] {
        EACH asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];"
                          :: "l"(&map), "r"(at(near_(i, bytes, 0))), "r"(shift / 4),
                             "r"((int)(blockIdx.x * count + i) * apart) : "memory");
    });
}
COUNTED box_add(MAP) {
    emptied(bytes * count, [&] {
        EACH asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%2, %3}], [%1];"
                          :: "l"(&map), "r"(at(near_(i, bytes, 0))), "r"(shift / 4),
                             "r"((int)(blockIdx.x * count + i) * apart) : "memory");
    });
}
// By registers, for comparison: `count` words of each thread.
COUNTED plain_copy(ARGUMENTS) {
    unsigned *words = (unsigned *)x, n = gridDim.x * blockDim.x, t = blockIdx.x * blockDim.x + threadIdx.x;
    EACH words[(count + i) * n + t] = words[i * n + t] + 1;
}
