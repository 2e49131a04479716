// Pipelines of bulk copies by depth and size, and tiles that blocks of a cluster share, measured on
// an H200 (pipelines.csv): measure_pipelines.cu launches them.
#include "cluster.cuh"
extern __shared__ __align__(128) float tile[];
// A warp asks for tiles of `words` floats in `stages` stages; eight warps add them up. With `work`
// they multiply and add that often for each word.
extern "C" __global__ void by_depth(const float *x, float *y, int n, int stages, int words, int work) {
    __shared__ u64 full[8], empty[8];
    int t = threadIdx.x, tiles = n / words, stride = gridDim.x;
    int own = (tiles - blockIdx.x + stride - 1) / stride, s = 0, parity = 0;
    if (t == 0)
        for (int i = 0; i < stages; i++) { init(&full[i], 1); init(&empty[i], 8); }
    __syncthreads();
    if (t >= 256) {
        if (t == 256)
            for (int k = 0; k < own; k++) {
                if (k >= stages) wait(&empty[s], parity ^ 1);
                expect(&full[s], 4 * words);
                load(tile + s * words, x + ((size_t)k * stride + blockIdx.x) * words, 4 * words, &full[s]);
                if (++s == stages) s = 0, parity ^= 1;
            }
    } else {
        float sum = 0;
        for (int k = 0; k < own; k++) {
            wait(&full[s], parity);
            for (int i = t; i < words; i += 256) {
                float v = tile[s * words + i];
                for (int j = 0; j < work; j++) v = v * v + 0.5f;
                sum += v;
            }
            __syncwarp();
            if (t % 32 == 0) arrive(&empty[s]);
            if (++s == stages) s = 0, parity ^= 1;
        }
        if (sum == 0x5eed5eed) y[blockIdx.x] = sum;
    }
}
// An arrival that orders nothing between blocks: a consumer that has only read needs no more.
__device__ inline void hand_back(unsigned b) {
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" :: "r"(b) : "memory");
}
// Rounds of tiles in four stages: `common` floats that all blocks of a cluster load, the same for
// each, and `own` floats of the block. With ALL each block loads its part of the common ones for all,
// and with RELEASES each arrival at another block's barrier releases to the cluster.
template <int C, bool ALL, bool RELEASES> __device__ void shared_part(const float *x, float *y, int rounds, int common, int own) {
    constexpr int S = 4;
    __shared__ u64 full[S], empty[S];
    int t = threadIdx.x, clusters = gridDim.x / C, me = rank(), words = common + own;
    if (t == 0)
        for (int i = 0; i < S; i++) { init(&full[i], 1); init(&empty[i], ALL ? C * 8 : 8); }
    SHOW;
    MEET;
    const float *commons = x + (size_t)(blockIdx.x / C) * common, *owns = x + (size_t)rounds * clusters * common;
    if (t >= 256) {
        if (t == 256)
            for (int k = 0; k < rounds; k++) {
                int s = k % S, part = common / C;
                float *to = tile + s * words;
                const float *from = commons + (size_t)k * clusters * common;
                if (k >= S) RELEASES ? wait_for(&empty[s], (k / S - 1) % 2) : wait(&empty[s], (k / S - 1) % 2);
                expect(&full[s], 4 * words);
                if (ALL) load_all(to + me * part, from + me * part, 4 * part, &full[s], (1 << C) - 1);
                else if (common) load(to, from, 4 * common, &full[s]);
                if (own) load(to + common, owns + ((size_t)k * gridDim.x + blockIdx.x) * own, 4 * own, &full[s]);
            }
    } else {
        float sum = 0;
        for (int k = 0; k < rounds; k++) {
            int s = k % S;
            wait(&full[s], k / S % 2);
            for (int i = t; i < words; i += 256) sum += tile[s * words + i];
            __syncwarp();
            if (!ALL && t % 32 == 0) arrive(&empty[s]);
            if (ALL && t % 32 < C) RELEASES ? arrive_at(peer(&empty[s], t % 32)) : hand_back(peer(&empty[s], t % 32));
        }
        if (sum == 0x5eed5eed) y[blockIdx.x] = sum;
    }
    __syncwarp();
    MEET;
}
#define SHARED(C, name, ...) \
    extern "C" __global__ void __cluster_dims__(C, 1, 1) name##_##C(const float *x, float *y, int rounds, int common, int own) { \
        shared_part<C, __VA_ARGS__>(x, y, rounds, common, own); }
#define ALL_OF(C) SHARED(C, plain, false, false) SHARED(C, for_all, true, false) SHARED(C, released, true, true)
ALL_OF(2)
ALL_OF(4)
ALL_OF(8)
