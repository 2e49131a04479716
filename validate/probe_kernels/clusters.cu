// Thread block clusters: where they fit, what their barriers and the ways to a peer's shared memory take.
// The first thread of the first block tells the cycles.

using u64 = unsigned long long;
#define OF(C) __global__ void __cluster_dims__(C, 1, 1)
#define MEET asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory")
#define TELL(begin, end) if (blockIdx.x == 0 && threadIdx.x == 0) { told[0] = begin; told[1] = end; }

__device__ unsigned rank() {
    unsigned r;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
    return r;
}
__device__ unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ unsigned peer(unsigned p, unsigned r) {
    unsigned a;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(a) : "r"(p), "r"(r));
    return a;
}
__device__ void init(u64 *b, int n) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1; fence.mbarrier_init.release.cluster;"
                 :: "r"(at(b)), "r"(n) : "memory");
}
__device__ void expect(u64 *b, int bytes) {
    asm volatile("{.reg .b64 s; mbarrier.arrive.expect_tx.shared.b64 s, [%0], %1;}"
                 :: "r"(at(b)), "r"(bytes) : "memory");
}
__device__ void wait(u64 *b, int parity) {
    asm volatile("{.reg .pred p; L: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1;"
                 "@p bra D; bra L; D:}" :: "r"(at(b)), "r"(parity) : "memory");
}
__device__ void arrive(unsigned b) {
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: "r"(b) : "memory");
}
__device__ long long nanoseconds() {
    long long t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}

// Blocks that stay for a while: each tells when it begins and when it ends, in ns.
__device__ void stay_for(long long *told, long long cycles) {
    long long first = nanoseconds(), begin = clock64();
    while (clock64() - begin < cycles) {
    }
    if (threadIdx.x == 0) {
        told[2 * blockIdx.x] = first;
        told[2 * blockIdx.x + 1] = nanoseconds();
    }
}

template <int C> OF(C) stay(long long *told, long long cycles) { stay_for(told, cycles); }
template <typename T> __global__ void stay_alone(T *told, T cycles) { stay_for(told, cycles); }

template <int C> OF(C) nothing(long long *) {}

// Barriers in a row, without memory order: of the cluster, or of each block.
template <int C, bool OF_CLUSTER> OF(C) barriers(long long *told, int rounds) {
    MEET;
    long long begin = clock64();
#pragma unroll 1
    for (int i = 0; i < rounds; ++i) {
        if (OF_CLUSTER)
            asm volatile("barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;" ::: "memory");
        else
            __syncthreads();
    }
    long long end = clock64();
    TELL(begin, end)
}

// Loads of the shared memory of the next block, each at the place that the one before tells.
template <int C> OF(C) follow(long long *told, int rounds) {
    __shared__ unsigned words[32];
    words[threadIdx.x] = 4 * threadIdx.x;
    MEET;
    unsigned base = peer(at(words), (rank() + 1) % C), next = 4 * threadIdx.x;
    long long begin = clock64();
#pragma unroll 1
    for (int i = 0; i < rounds; ++i)
        asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(next) : "r"(base + next) : "memory");
    long long end = clock64();
    MEET;
    TELL(begin, end)
    if (next == 0x5eed5eed) told[0] = 0;
}

// Stores of 4 bytes a lane to the next block, by the first block alone, to 32 KB in turn: stores to
// the sectors of the one before are joined with it.
template <int C> OF(C) stores(long long *told, int rounds) {
    extern __shared__ unsigned room[];
    unsigned base = peer(at(room), (rank() + 1) % C), mine = 4 * threadIdx.x;
    MEET;
    long long begin = clock64();
    if (rank() == 0) {
#pragma unroll 4
        for (int i = 0; i < rounds; ++i)
            asm volatile("st.shared::cluster.u32 [%0], %1;"
                         :: "r"(base + (mine + 4 * i * blockDim.x) % 32768), "r"(i) : "memory");
    }
    MEET;
    long long end = clock64();
    TELL(begin, end)
}

// Atomics on words of the next block, by all blocks at once.
template <int C> OF(C) adds(long long *told, int rounds, int apart) {
    __shared__ unsigned words[1024];
    unsigned mine = peer(at(words + threadIdx.x % 32 * apart), (rank() + 1) % C);
    MEET;
    long long begin = clock64();
#pragma unroll 4
    for (int i = 0; i < rounds; ++i)
        asm volatile("red.relaxed.cluster.shared::cluster.add.u32 [%0], %1;" :: "r"(mine), "r"(1) : "memory");
    MEET;
    long long end = clock64();
    TELL(begin, end)
}

__device__ void send(unsigned word, int v, unsigned bar) {
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];"
                 :: "r"(word), "r"(v), "r"(bar) : "memory");
}

// There and back by st.async: a thread of the first block and one of the last let each other go on.
template <int C> OF(C) there_and_back(long long *told, int rounds) {
    __shared__ u64 bar;
    __shared__ unsigned word;
    if (threadIdx.x == 0) {
        init(&bar, 1);
        expect(&bar, 4);
    }
    MEET;
    unsigned other = rank() ? 0 : C - 1, place = peer(at(&word), other), there = peer(at(&bar), other);
    long long begin = clock64();
    if (rank() == 0) {
#pragma unroll 1
        for (int i = 0; i < rounds; ++i) {
            send(place, i, there);
            wait(&bar, i % 2);
            expect(&bar, 4);
        }
    } else if (rank() == C - 1) {
#pragma unroll 1
        for (int i = 0; i < rounds; ++i) {
            wait(&bar, i % 2);
            expect(&bar, 4);
            send(place, i, there);
        }
    }
    long long end = clock64();
    MEET;
    TELL(begin, end)
}

// The same instructions by a thread that counts the bytes itself.
template <typename T> __global__ void by_itself(T *told, int rounds) {
    __shared__ u64 bar;
    init(&bar, 1);
    expect(&bar, 4);
    T begin = clock64();
#pragma unroll 1
    for (int i = 0; i < rounds; ++i) {
        asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], 4;" :: "r"(at(&bar)) : "memory");
        wait(&bar, i % 2);
        expect(&bar, 4);
    }
    T end = clock64();
    TELL(begin, end)
}

// Arrivals there and back, each a release to the cluster.
template <int C> OF(C) arrivals(long long *told, int rounds) {
    __shared__ u64 bar;
    if (threadIdx.x == 0) init(&bar, 1);
    MEET;
    unsigned there = peer(at(&bar), rank() ? 0 : C - 1);
    long long begin = clock64();
    if (rank() == 0) {
#pragma unroll 1
        for (int i = 0; i < rounds; ++i) {
            arrive(there);
            wait(&bar, i % 2);
        }
    } else if (rank() == C - 1) {
#pragma unroll 1
        for (int i = 0; i < rounds; ++i) {
            wait(&bar, i % 2);
            arrive(there);
        }
    }
    long long end = clock64();
    MEET;
    TELL(begin, end)
}

// The first block loads for the blocks of a mask, again and again: cycles from a
// copy to the end of the wait, of the first block and of the last.
template <int C> OF(C) multicast(long long *told, const char *from, int bytes, int rounds, int mask) {
    extern __shared__ __align__(128) char room[];
    __shared__ u64 full;
    if (threadIdx.x == 0) init(&full, 1);
    MEET;
    long long took = 0;
    bool receives = mask >> rank() & 1;
    for (int i = 0; i < rounds; ++i) {
        if (threadIdx.x == 0 && receives) expect(&full, bytes);
        const char *place = from + (i % 16) * 135168;
        MEET;
        for (long long now = clock64(); clock64() - now < 2000;) {  // the barrier's own orders
        }
        long long begin = clock64();
        if (threadIdx.x == 0 && rank() == 0) {
            if (mask == 1)
                asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                             :: "r"(at(room)), "l"(place), "r"(bytes), "r"(at(&full)) : "memory");
            else
                asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
                             " [%0], [%1], %2, [%3], %4;" :: "r"(at(room)), "l"(place), "r"(bytes), "r"(at(&full)),
                             "h"((unsigned short)mask) : "memory");
        }
        if (threadIdx.x == 0 && receives) wait(&full, i % 2);
        took += i < 16 ? 0 : clock64() - begin;
        MEET;
    }
    if (threadIdx.x == 0 && (rank() == 0 || rank() == C - 1)) told[rank() != 0] = took;
}
