// Bulk copies, boxes of tensor maps and mbarriers, by one block: the first thread tells the cycles.

using u64 = unsigned long long;
#define FIRST if (threadIdx.x == 0)

__device__ unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void init(u64 *b, int n) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1; fence.proxy.async.shared::cta;"
                 :: "r"(at(b)), "r"(n) : "memory");
}
__device__ void arrive(u64 *b) {
    asm volatile("{.reg .b64 s; mbarrier.arrive.shared.b64 s, [%0];}" :: "r"(at(b)) : "memory");
}
__device__ void expect(u64 *b, int bytes) {
    asm volatile("{.reg .b64 s; mbarrier.arrive.expect_tx.shared.b64 s, [%0], %1;}"
                 :: "r"(at(b)), "r"(bytes) : "memory");
}
__device__ void wait(u64 *b, int parity) {
    asm volatile("{.reg .pred p; L: mbarrier.try_wait.parity.shared.b64 p, [%0], %1;"
                 "@p bra D; bra L; D:}" :: "r"(at(b)), "r"(parity) : "memory");
}
__device__ void finish() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }
__device__ void finish_reading() {
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;" ::: "memory");
}

// Copies of `bytes` to shared memory, in flight together; each round tells its cycles. After PLACES
// rounds they begin where they began before: the latency of the L2 depends on the place.
#define PLACES 16
template <bool ALONE>
__global__ void loads(long long *told, const char *from, int bytes, int count, int rounds) {
    extern __shared__ __align__(1024) char room[];
    __shared__ u64 full;
    init(&full, 1);
    for (int r = 0; r < rounds; ++r) {
        const char *place = from + (r % PLACES) * 135168;
        long long begin = clock64();
        expect(&full, bytes * count);
        for (int i = 0; i < (ALONE ? 1 : count); ++i)
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                         :: "r"(at(room + i * bytes)), "l"(place + (u64)i * bytes), "r"(bytes), "r"(at(&full))
                         : "memory");
        wait(&full, r % 2);
        told[r] = clock64() - begin;
    }
}

// Copies of `bytes` to global memory: cycles until they have been read, and until they are done.
template <bool ALONE>
__global__ void stores(long long *told, char *to, int bytes, int count, int rounds) {
    extern __shared__ __align__(1024) char room[];
    for (int r = 0; r < rounds; ++r) {
        long long begin = clock64();
        for (int i = 0; i < (ALONE ? 1 : count); ++i)
            asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                         :: "l"(to + (u64)i * bytes), "r"(at(room + i * bytes)), "r"(bytes) : "memory");
        finish_reading();
        long long read = clock64();
        finish();
        told[2 * r] = read - begin;
        told[2 * r + 1] = clock64() - begin;
    }
}

// A box of a tensor map to shared memory, and one from there: cycles until it is there, or read.
template <typename T>
__global__ void boxes(T *told, const void *map, int bytes, int rounds, int stores) {
    extern __shared__ __align__(1024) char room[];
    __shared__ u64 full;
    init(&full, 1);
    for (int r = 0; r < rounds; ++r) {
        T begin = clock64();
        if (stores) {
            asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %2}], [%1];"
                         :: "l"(map), "r"(at(room)), "r"(0) : "memory");
            finish_reading();
        } else {
            expect(&full, bytes);
            asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                         " [%0], [%1, {%3, %4}], [%2];"
                         :: "r"(at(room)), "l"(map), "r"(at(&full)), "r"(0), "r"(r % PLACES * 33) : "memory");
            wait(&full, r % 2);
        }
        told[r] = clock64() - begin;
        finish();
    }
}

// All threads of the block arrive at one mbarrier and wait for its phase.
template <typename T>
__global__ void arrivals(T *told, int rounds) {
    __shared__ u64 bar;
    FIRST init(&bar, blockDim.x);
    __syncthreads();
    T begin = clock64();
#pragma unroll 1
    for (int i = 0; i < rounds; ++i) {
        arrive(&bar);
        wait(&bar, i % 2);
    }
    T end = clock64();
    FIRST {
        told[0] = begin;
        told[1] = end;
    }
}
