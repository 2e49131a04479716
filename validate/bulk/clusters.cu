// Kernels of clusters and tensor maps, measured on an H200 (clusters.csv): measure_clusters.cu
// launches them.
#include "cluster.cuh"
extern __shared__ __align__(1024) float tile[];
#define CLUSTER(n) extern "C" __global__ void __cluster_dims__(n, 1, 1)
__device__ inline float across(float v, bool most) {
    for (int d = 16; d; d /= 2) {
        float o = __shfl_xor_sync(~0u, v, d);
        v = most ? fmaxf(v, o) : v + o;
    }
    return v;
}
// Of all threads of a cluster: partial results go to each block's shared memory.
template <int C> __device__ float of_cluster(float v, bool most, float *part) {
    int t = threadIdx.x, warps = blockDim.x / 32, lane = t % 32;
    v = across(v, most);
    if (lane < C) {
        unsigned to = peer(&part[rank() * warps + t / 32], lane);
        asm volatile("st.shared::cluster.f32 [%0], %1;" :: "r"(to), "f"(v) : "memory");
    }
    MEET;
    v = lane < C * warps ? part[lane] : most ? -1e30f : 0;
    for (int i = lane + 32; i < C * warps; i += 32) v = most ? fmaxf(v, part[i]) : v + part[i];
    return across(v, most);
}
// Softmax of rows of 4,096 C floats, one a cluster.
template <int C> __device__ void softmax(const float *x, float *y) {
    constexpr int N = 4096;
    __shared__ float most[C * 8], sums[C * 8];
    __shared__ u64 full;
    int t = threadIdx.x;
    if (t == 0) {
        init(&full, 1);
        FENCE;
        expect(&full, 4 * N);
        load(tile, x + (size_t)blockIdx.x * N, 4 * N, &full);
    }
    MEET;
    wait(&full, 0);
    float m = -1e30f, s = 0;
    for (int i = t; i < N; i += 256) m = fmaxf(m, tile[i]);
    m = of_cluster<C>(m, true, most);
    for (int i = t; i < N; i += 256) { float e = __expf(tile[i] - m); tile[i] = e; s += e; }
    s = of_cluster<C>(s, false, sums);
    for (int i = t; i < N; i += 256) y[(size_t)blockIdx.x * N + i] = tile[i] / s;
}
CLUSTER(2) softmax_2(const float *x, float *y, int n) { softmax<2>(x, y); }
CLUSTER(4) softmax_4(const float *x, float *y, int n) { softmax<4>(x, y); }
CLUSTER(8) softmax_8(const float *x, float *y, int n) { softmax<8>(x, y); }
// RMS norm of rows of 16,384 floats over clusters of two.
CLUSTER(2) rms_norm(const float *x, float *y, int n) {
    __shared__ float sums[2 * 16];
    const float4 *row = (const float4 *)(x + (size_t)blockIdx.x * 8192);
    float4 v[4];
    float s = 0;
    for (int i = 0; i < 4; i++) {
        v[i] = row[threadIdx.x + i * 512];
        s += v[i].x * v[i].x + v[i].y * v[i].y + v[i].z * v[i].z + v[i].w * v[i].w;
    }
    MEET;
    s = rsqrtf(of_cluster<2>(s, false, sums) / 16384 + 1e-6f);
    for (int i = 0; i < 4; i++) {
        v[i].x *= s; v[i].y *= s; v[i].z *= s; v[i].w *= s;
        ((float4 *)(y + (size_t)blockIdx.x * 8192))[threadIdx.x + i * 512] = v[i];
    }
}
// Bins over the shared memory of four blocks, by atomics.
CLUSTER(4) histogram(const float *x, float *y, int n) {
    unsigned *bins = (unsigned *)tile;
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) bins[i] = 0;
    MEET;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        unsigned bin = (unsigned)(x[i] * 4096) & 4095;
        asm volatile("red.relaxed.cluster.shared::cluster.add.u32 [%0], %1;"
                     :: "r"(peer(&bins[bin & 1023], bin >> 10)), "r"(1) : "memory");
    }
    MEET;
    for (int i = threadIdx.x; i < 1024; i += blockDim.x)
        if (bins[i]) atomicAdd((unsigned *)y + rank() * 1024 + i, bins[i]);
}
// Tiles of 8 KB that all blocks of a cluster need: each block loads its part for all. With one
// loader, that is the first block.
template <int C, bool one> __device__ void shared_tiles(const float *x, float *y, int n) {
    constexpr int N = 2048, S = 4;
    __shared__ u64 full[S], empty[S];
    int t = threadIdx.x, tiles = n / N, clusters = gridDim.x / C, me = rank(), warp = t / 32;
    int first = blockIdx.x / C, own = (tiles - first + clusters - 1) / clusters;
    if (t == 0)
        for (int s = 0; s < S; s++) { init(&full[s], 1); init(&empty[s], C * 8); }
    SHOW;
    MEET;
    if (warp == 8) {
        if (t % 32 == 0)
            for (int k = 0; k < own; k++) {
                int s = k % S;
                if (k >= S) wait_for(&empty[s], (k / S - 1) % 2);
                expect(&full[s], 4 * N);
                const float *from = x + ((size_t)k * clusters + first) * N;
                constexpr int part = one ? N : N / C;
                int at = one ? 0 : me * part;
                if (!one || me == 0)
                    load_all(tile + s * N + at, from + at, 4 * part, &full[s], (1 << C) - 1);
            }
    } else {
        float sum = 0;
        for (int k = 0; k < own; k++) {
            int s = k % S;
            wait(&full[s], k / S % 2);
            for (int i = t; i < N; i += 256) sum += tile[s * N + i] * (i + me);
            __syncwarp();
            if (t % 32 < C) arrive_at(peer(&empty[s], t % 32));
        }
        sum = across(sum, false);
        if (t % 32 == 0) atomicAdd(&y[blockIdx.x], sum);
    }
    __syncwarp();
    MEET;
}
CLUSTER(2) multicast_2(const float *x, float *y, int n) { shared_tiles<2, false>(x, y, n); }
CLUSTER(4) multicast_4(const float *x, float *y, int n) { shared_tiles<4, false>(x, y, n); }
CLUSTER(2) multicast_one(const float *x, float *y, int n) { shared_tiles<2, true>(x, y, n); }
// Each block sends a sum of its own to all others by st.async, again and again.
CLUSTER(8) exchange(const float *x, float *y, int n) {
    __shared__ float got[2][8];
    __shared__ u64 bar[2];
    int t = threadIdx.x, me = rank();
    if (t == 0) for (int i = 0; i < 2; i++) { init(&bar[i], 1); expect(&bar[i], 32); }
    SHOW;
    MEET;
    float v = x[blockIdx.x * blockDim.x + t];
    for (int k = 0; k < n; k++) {
        int s = k % 2;
        float sum = across(v, false);
        if (t < 8) send(peer(&got[s][me], t), __float_as_uint(sum), peer(&bar[s], t));
        wait_for(&bar[s], k / 2 % 2);
        float all = 0;
        for (int i = 0; i < 8; i++) all += got[s][i];
        v = v * 0.5f + all;
        __syncthreads();
        if (t == 0) expect(&bar[s], 32);
        if (s) MEET;
    }
    y[blockIdx.x * blockDim.x + t] = v;
    MEET;
}
// Blocks hand tiles of 4 KB round by bulk copies between their shared memories.
CLUSTER(4) hand_round(const float *x, float *y, int n) {
    constexpr int N = 1024;
    __shared__ u64 bar[2];
    int t = threadIdx.x, next = (rank() + 1) % 4;
    if (t == 0) { init(&bar[0], 1); init(&bar[1], 1); }
    SHOW;
    for (int i = t; i < N; i += 128) tile[i] = x[blockIdx.x * N + i];
    FENCE;
    MEET;
    float sum = 0;
    for (int k = 0; k < n; k++) {
        float *from = tile + k % 2 * N, *to = tile + (k + 1) % 2 * N;
        if (t == 0) {
            expect(&bar[k % 2], 4 * N);
            copy_to(peer(to, next), from, 4 * N, peer(&bar[k % 2], next));
        }
        wait_for(&bar[k % 2], k / 2 % 2);
        for (int i = t; i < N; i += 128) sum += to[i];
        MEET;
    }
    y[blockIdx.x * 128 + t] = sum;
}
// -- tensor maps ------------------------------------------------------------------------------
#define MAPS const __grid_constant__ CUtensorMap in, const __grid_constant__ CUtensorMap out
__device__ inline void box_in(const CUtensorMap *map, void *to, int c0, int c1, u64 *b) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%3, %4}], [%2];"
                 :: "r"(at(to)), "l"(map), "r"(at(b)), "r"(c0), "r"(c1) : "memory");
}
__device__ inline void box_out(const CUtensorMap *map, void *from, int c0, int c1) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];"
                 :: "l"(map), "r"(at(from)), "r"(c0), "r"(c1) : "memory");
}
// Tiles of 32 by 32 floats, with the swizzle of 128 bytes: no bank is hit twice.
extern "C" __global__ void transpose_box(MAPS, int n) {
    __shared__ u64 full;
    int t = threadIdx.x, x = blockIdx.x * 32, y = blockIdx.y * 32, c = t % 32;
    if (t == 0) {
        init(&full, 1);
        FENCE;
        expect(&full, 4096);
        box_in(&in, tile, x, y, &full);
    }
    __syncthreads();
    wait(&full, 0);
    auto place = [](int r, int c) { return 32 * r + ((c / 4 ^ r % 8) * 4 | c % 4); };
    for (int r = t / 32; r < 32; r += 8) tile[1024 + place(r, c)] = tile[place(c, r)];
    FENCE;
    __syncthreads();
    if (t == 0) { box_out(&out, tile + 1024, y, x); COMMIT; READ(0); }
}
// Boxes of 64 rows of 32 floats through four stages, scaled in place.
extern "C" __global__ void scale_boxes(MAPS, int n) {
    constexpr int S = 4, N = 2048;
    __shared__ u64 full[S];
    int t = threadIdx.x, wide = n / 32, boxes = n / 64 * wide, stride = gridDim.x;
    int own = (boxes - blockIdx.x + stride - 1) / stride;
    auto get = [&](int k) {
        int box = blockIdx.x + k * stride;
        expect(&full[k % S], 4 * N);
        box_in(&in, tile + k % S * N, box % wide * 32, box / wide * 64, &full[k % S]);
    };
    if (t == 0) {
        for (int s = 0; s < S; s++) init(&full[s], 1);
        FENCE;
        for (int k = 0; k < S - 1 && k < own; k++) get(k);
    }
    __syncthreads();
    for (int k = 0; k < own; k++) {
        wait(&full[k % S], k / S % 2);
        for (int i = t; i < N; i += 128) tile[k % S * N + i] *= 2;
        FENCE;
        __syncthreads();
        if (t == 0) {
            int box = blockIdx.x + k * stride;
            box_out(&out, tile + k % S * N, box % wide * 32, box / wide * 64);
            COMMIT;
            READ(1);
            if (k + S - 1 < own) get(k + S - 1);
        }
    }
    if (t == 0) AWAIT(0);
}
// Sums of boxes of 128 bytes a row, read only.
extern "C" __global__ void add_boxes(const __grid_constant__ CUtensorMap in, float *y, int n) {
    constexpr int S = 4, N = 4096;
    __shared__ u64 full[S];
    int t = threadIdx.x, wide = n / 32, boxes = n / 128 * wide, stride = gridDim.x;
    int own = (boxes - blockIdx.x + stride - 1) / stride;
    auto get = [&](int k) {
        int box = blockIdx.x + k * stride;
        expect(&full[k % S], 4 * N);
        box_in(&in, tile + k % S * N, box % wide * 32, box / wide * 128, &full[k % S]);
    };
    if (t == 0) {
        for (int s = 0; s < S; s++) init(&full[s], 1);
        FENCE;
        for (int k = 0; k < S && k < own; k++) get(k);
    }
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < own; k++) {
        wait(&full[k % S], k / S % 2);
        for (int i = t; i < N; i += 256) sum += tile[k % S * N + i];
        __syncthreads();
        if (t == 0 && k + S < own) get(k + S);
    }
    sum = across(sum, false);
    if (t % 32 == 0) atomicAdd(&y[blockIdx.x], sum);
}
