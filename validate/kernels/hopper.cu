// Twins of gpusim/kernels/hopper.py: reductions with instructions of Ampere and Hopper, and a scan
// of one pass.
#include "combine.cuh"

constexpr unsigned FULL_MASK = 0xffffffff;
constexpr int STAGES = 4;
typedef unsigned long long Word;

// A thread's four elements, a block apart.
template <typename T, typename Op, unsigned BLOCK>
__device__ T four_apart(const T *values, unsigned n) {
    unsigned i = blockIdx.x * (4 * BLOCK) + threadIdx.x;
    T mine = Op::identity();
    for (int k = 0; k < 4; k++, i += BLOCK) mine = Op::of(mine, i < n ? values[i] : Op::identity());
    return mine;
}

template <typename T, typename Op>
__device__ T warp_total(T mine) {
    for (int offset = 16; offset > 0; offset >>= 1)
        mine = Op::of(mine, __shfl_down_sync(FULL_MASK, mine, offset));
    return mine;
}

// A number of each thread combined, for thread 0.
template <typename T, typename Op, unsigned BLOCK>
__device__ T block_total(T mine, T *totals) {
    unsigned tid = threadIdx.x;
    mine = warp_total<T, Op>(mine);
    if (tid % 32 == 0) totals[tid / 32] = mine;
    __syncthreads();
    if (tid < 32) mine = warp_total<T, Op>(tid < BLOCK / 32 ? totals[tid] : Op::identity());
    return mine;
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800

template <typename Op>
struct InWarp;

template <typename T>
struct InWarp<combine::Sum<T>> {
    static __device__ T of(T mine) { return __reduce_add_sync(FULL_MASK, mine); }
};

template <typename T>
struct InWarp<combine::Max<T>> {
    static __device__ T of(T mine) { return __reduce_max_sync(FULL_MASK, mine); }
};

template <typename T>
struct InWarp<combine::Min<T>> {
    static __device__ T of(T mine) { return __reduce_min_sync(FULL_MASK, mine); }
};

template <typename T, typename Op, unsigned BLOCK, unsigned COARSE>
__global__ void reduce_redux(const T *values, unsigned n, T *partials) {
    __shared__ T totals[32];
    unsigned tid = threadIdx.x;
    T mine = InWarp<Op>::of(four_apart<T, Op, BLOCK>(values, n));
    if (tid % 32 == 0) totals[tid / 32] = mine;
    __syncthreads();

    if (tid < 32) {
        mine = InWarp<Op>::of(tid < BLOCK / 32 ? totals[tid] : Op::identity());
        if (tid == 0) partials[blockIdx.x] = mine;
    }
}

#endif

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

template <typename T, typename Op, unsigned BLOCK, unsigned COARSE>
__cluster_dims__(8, 1, 1)
__global__ void reduce_cluster(const T *values, unsigned n, T *partials) {
    __cluster_barrier_arrive();
    __shared__ T warps[32], blocks[16];
    T mine = block_total<T, Op, BLOCK>(four_apart<T, Op, BLOCK>(values, n), warps);
    unsigned rank = __clusterRelativeBlockRank();
    __cluster_barrier_wait();
    if (threadIdx.x == 0) ((T *)__cluster_map_shared_rank(blocks, 0))[rank] = mine;
    __cluster_barrier_arrive();
    __cluster_barrier_wait();

    if (rank == 0 && threadIdx.x == 0) {
        unsigned size = __clusterSizeInBlocks();
        for (unsigned other = 1; other < size; other++) mine = Op::of(mine, blocks[other]);
        partials[blockIdx.x / size] = mine;
    }
}

__device__ __forceinline__ unsigned in_shared(const void *place) {
    return (unsigned)__cvta_generic_to_shared(place);
}

__device__ __forceinline__ void init(Word *barrier, unsigned count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;"
                 :: "r"(in_shared(barrier)), "r"(count) : "memory");
}

__device__ __forceinline__ void arrive(Word *barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(in_shared(barrier)) : "memory");
}

__device__ __forceinline__ void wait_parity(Word *barrier, unsigned parity) {
    unsigned is_over;
    do {
        asm volatile(
            "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; "
            "selp.u32 %0, 1, 0, p; }"
            : "=r"(is_over) : "r"(in_shared(barrier)), "r"(parity) : "memory");
    } while (!is_over);
}

// A copy of whole units of 16 bytes, which arrives at the mbarrier.
__device__ __forceinline__ void copy_bulk(void *target, const void *source, unsigned bytes,
                                          Word *barrier) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :: "r"(in_shared(barrier)), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];"
                 :: "r"(in_shared(target)), "l"(__cvta_generic_to_global(source)), "r"(bytes),
                    "r"(in_shared(barrier)) : "memory");
}

template <typename T, typename Op, unsigned BLOCK, unsigned COARSE>
__global__ void reduce_bulk(const T *values, T *partials) {
    constexpr int TILE = 4 * BLOCK, TILES = COARSE;
    __shared__ __align__(16) T stages[STAGES][TILE];
    __shared__ Word full[STAGES], empty[STAGES];
    __shared__ T warps[32];
    unsigned tid = threadIdx.x;
    const T *first = values + blockIdx.x * (TILES * TILE);
    if (tid == 0) {
        for (int stage = 0; stage < STAGES; stage++) {
            init(&full[stage], 1);
            init(&empty[stage], BLOCK);
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        for (int tile = 0; tile < STAGES && tile < TILES; tile++)
            copy_bulk(stages[tile], first + tile * TILE, sizeof(stages[tile]), &full[tile]);
    }
    __syncthreads();

    T mine = Op::identity();
    for (int tile = 0; tile < TILES; tile++) {
        int stage = tile % STAGES, parity = tile / STAGES % 2;
        wait_parity(&full[stage], parity);
        for (int k = 0; k < 4; k++) mine = Op::of(mine, stages[stage][k * BLOCK + tid]);
        arrive(&empty[stage]);
        int following = tile + STAGES;
        if (tid == 0 && following < TILES) {
            wait_parity(&empty[stage], parity);
            copy_bulk(stages[stage], first + following * TILE, sizeof(stages[stage]), &full[stage]);
        }
    }

    mine = block_total<T, Op, BLOCK>(mine, warps);
    if (tid == 0) partials[blockIdx.x] = mine;
}

#endif

constexpr Word AGGREGATE = 1ull << 32, PREFIX = 2ull << 32;

template <typename T>
__device__ T warp_scan(T mine, int lane) {
    for (int offset = 1; offset < 32; offset *= 2) {
        T other = __shfl_up_sync(FULL_MASK, mine, offset);
        if (lane >= offset) mine += other;
    }
    return mine;
}

// The sum of all tiles before one: flags of 32 tiles are read at once, until one has all before it.
template <typename T>
__device__ T sum_before(const volatile Word *flags, int tile, int lane) {
    T total = 0;
    int place = tile - 1 - lane;
    unsigned complete = 0;
    while (complete == 0) {
        Word word;
        do word = flags[max(place, 0)];
        while (!__all_sync(FULL_MASK, word != 0));
        complete = __ballot_sync(FULL_MASK, word >= PREFIX);
        int nearest = complete != 0 ? __ffs(complete) - 1 : 31;
        T part = lane <= nearest ? T(word) : T(0);
        for (int offset = 16; offset > 0; offset >>= 1)
            part += __shfl_xor_sync(FULL_MASK, part, offset);
        total += part;
        place -= 32;
    }
    return total;
}

template <typename T>
struct Four {
    T x, y, z, w;
} __attribute__((aligned(16)));

template <typename T, typename Op, unsigned BLOCK, unsigned COARSE>
__global__ void lookback_scan(const T *values, T *sums, Word *flags) {
    constexpr int WARPS = BLOCK / 32;
    __shared__ T totals[32], before;
    int tid = threadIdx.x, tile = blockIdx.x, warp = tid / 32, lane = tid % 32;
    unsigned i = tile * (4 * BLOCK) + 4 * tid;
    Four<T> four = *(const Four<T> *)(values + i);
    T own = four.x + four.y + four.z + four.w;
    T through = warp_scan(own, lane);
    if (lane == 31) totals[warp] = through;
    __syncthreads();

    if (warp == 0) {
        T through_warp = warp_scan(lane < WARPS ? totals[lane] : T(0), lane);
        totals[lane] = through_warp;
        if (lane == 31)
            atomicExch(&flags[tile], (tile > 0 ? AGGREGATE : PREFIX) | (unsigned)through_warp);
        T earlier = 0;
        if (tile > 0) {
            earlier = sum_before<T>(flags, tile, lane);
            if (lane == 31) atomicExch(&flags[tile], PREFIX | (unsigned)(earlier + through_warp));
        }
        if (lane == 0) before = earlier;
    }
    __syncthreads();

    T start = before + through - own;
    if (warp > 0) start += totals[warp - 1];
    *(Four<T> *)(sums + i) = {start, start + four.x, start + four.x + four.y,
                              start + four.x + four.y + four.z};
}
