// Tables, columns, graphs, sparse matrices and sequences, as databases and analyses ask of them.

#include <climits>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

const unsigned EMPTY = 0xffffffffu;

// How many different keys there are: each is put into a hash table once.
__global__ void count_distinct(const unsigned *keys, unsigned *table, unsigned mask, int *distinct, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned key = keys[i];
    unsigned slot = (key ^ (key >> 15)) * 0x9e3779b1u & mask;
    while (true) {
        unsigned old = atomicCAS(&table[slot], EMPTY, key);
        if (old == EMPTY) {
            atomicAdd(distinct, 1);
            return;
        }
        if (old == key) return;
        slot = (slot + 1) & mask;
    }
}

// Decimal numbers of a column of text, as whole cents.
__global__ void parse_prices(const char *text, const int *offsets, long long *cents, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int p = offsets[i], end = offsets[i + 1];
    bool negative = text[p] == '-';
    if (negative) p++;
    long long value = 0;
    for (; p < end; p++) {
        char c = text[p];
        if (c != '.') value = value * 10 + (c - '0');
    }
    cents[i] = negative ? -value : value;
}

// Codes of so many bits each, one behind the other, and what a dictionary says of them.
__global__ void unpack_bits(const unsigned *__restrict__ packed, const int *__restrict__ dictionary,
                            int *__restrict__ out, int bits, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        long long bit = (long long)i * bits;
        int word = (int)(bit >> 5), shift = (int)(bit & 31);
        unsigned code = __funnelshift_r(packed[word], packed[word + 1], shift) & ((1u << bits) - 1);
        out[i] = dictionary[code];
    }
}

// Frames of 1024 differences of a byte each, added up from where each frame begins.
__global__ void delta_decode(const char4 *deltas, const long long *bases, longlong2 *out) {
    __shared__ int totals[8];
    int t = threadIdx.x, lane = t & 31, warp = t >> 5;
    char4 d = deltas[blockIdx.x * 256 + t];
    int a = d.x, b = a + d.y, c = b + d.z, sum = c + d.w;
    int scan = sum;
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
        int other = __shfl_up_sync(0xffffffffu, scan, offset);
        if (lane >= offset) scan += other;
    }
    if (lane == 31) totals[warp] = scan;
    __syncthreads();
    if (t < 8) {
        int v = totals[t];
        for (int offset = 1; offset < 8; offset *= 2) {
            int other = __shfl_up_sync(0xffu, v, offset);
            if (t >= offset) v += other;
        }
        totals[t] = v;
    }
    __syncthreads();
    long long before = bases[blockIdx.x] + scan - sum + (warp > 0 ? totals[warp - 1] : 0);
    longlong2 *to = out + ((size_t)blockIdx.x * 256 + t) * 2;
    to[0] = make_longlong2(before + a, before + b);
    to[1] = make_longlong2(before + c, before + sum);
}

// Triangles of a graph: for each edge, what the sorted lists of its two ends have in common.
__global__ void count_triangles(const int *sources, const int *targets, const int *offsets,
                                unsigned long long *count, int edges) {
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    int found = 0;
    if (e < edges) {
        int u = sources[e], v = targets[e];
        int i = offsets[u], iend = offsets[u + 1], j = offsets[v], jend = offsets[v + 1];
        while (i < iend && j < jend) {
            int a = targets[i], b = targets[j];
            if (a == b) {
                found++;
                i++;
                j++;
            } else if (a < b) {
                i++;
            } else {
                j++;
            }
        }
    }
    for (int offset = 16; offset > 0; offset /= 2) found += __shfl_down_sync(0xffffffffu, found, offset);
    if ((threadIdx.x & 31) == 0 && found > 0) atomicAdd(count, (unsigned long long)found);
}

// A round of Bellman and Ford over a list of edges.
__global__ void relax_edges(const int *__restrict__ from, const int *__restrict__ to,
                            const int *__restrict__ weight, const int *__restrict__ dist, int *next, int m) {
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e >= m) return;
    int d = dist[from[e]];
    if (d == INT_MAX) return;
    atomicMin(&next[to[e]], d + weight[e]);
}

// A sparse matrix as a list of its elements, by atomics.
__global__ void coo_product(const int *rows, const int *columns, const double *values, const double *x,
                            double *y, int nnz) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < nnz) atomicAdd(&y[rows[i]], values[i] * x[columns[i]]);
}

// A sparse matrix of blocks of 4 x 4: sixteen threads a row of blocks.
__global__ void bsr_product(const int *offsets, const int *columns, const float *values, const float *x,
                            float *y, int rows) {
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<4>(block);
    int thread = blockIdx.x * blockDim.x + threadIdx.x;
    int row = thread / 16, r = thread % 16 / 4, c = thread % 4;
    float sum = 0;
    if (row < rows)
        for (int b = offsets[row]; b < offsets[row + 1]; b++)
            sum += values[b * 16 + r * 4 + c] * x[columns[b] * 4 + c];
    sum = cg::reduce(tile, sum, cg::plus<float>());
    if (row < rows && tile.thread_rank() == 0) y[row * 4 + r] = sum;
}

// Each block sorts 256 keys of 16 bits, by one bit after the other.
__global__ void split_sort(unsigned short *keys) {
    __shared__ unsigned short sorted[256];
    __shared__ int zeros_of[8];
    int t = threadIdx.x, lane = t & 31, warp = t >> 5;
    unsigned key = keys[blockIdx.x * 256 + t];
    for (int bit = 0; bit < 16; bit++) {
        bool one = key >> bit & 1;
        unsigned votes = __ballot_sync(0xffffffffu, !one);
        if (lane == 0) zeros_of[warp] = __popc(votes);
        __syncthreads();
        int zeros = __popc(votes & ((1u << lane) - 1)), total = 0;
        for (int w = 0; w < 8; w++) {
            if (w < warp) zeros += zeros_of[w];
            total += zeros_of[w];
        }
        sorted[one ? total + t - zeros : zeros] = key;
        __syncthreads();
        key = sorted[t];
    }
    keys[blockIdx.x * 256 + t] = key;
}

// Years, months and days of days since 1970 (Hinnant's civil_from_days).
__global__ void date_parts(const int *days, short *years, unsigned char *months, unsigned char *mdays, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int z = days[i] + 719468;
    int era = (z >= 0 ? z : z - 146096) / 146097;
    unsigned doe = z - era * 146097;
    unsigned yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    unsigned doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    unsigned mp = (5 * doy + 2) / 153;
    unsigned month = mp < 10 ? mp + 3 : mp - 9;
    years[i] = (short)(yoe + era * 400 + (month <= 2));
    months[i] = month;
    mdays[i] = doy - (153 * mp + 2) / 5 + 1;
}

// How often each word of eight letters occurs in a genome; a thread takes eight of them.
__global__ void count_kmers(const unsigned char *genome, unsigned *counts, int n) {
    int first = (blockIdx.x * blockDim.x + threadIdx.x) * 8;
    if (first >= n) return;
    unsigned code = 0;
    for (int k = 0; k < 7; k++) code = code << 2 | (genome[first + k] >> 1 & 3);
    for (int k = 0; k < 8; k++) {
        code = (code << 2 | (genome[first + k + 7] >> 1 & 3)) & 0xffff;
        atomicAdd(&counts[code], 1u);
    }
}

struct Node {
    int keys[16];
};

// Ranks of keys by a tree of sixteen ways, whose nodes have fifteen keys each.
__global__ void btree_lookup(const Node *nodes, const int *wanted, int *ranks, int levels, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int key = wanted[i], node = 0, rank = 0;
    for (int level = 0; level < levels; level++) {
        const Node *at = &nodes[node];
        int way = 0;
        while (way < 15 && at->keys[way] <= key) way++;
        rank = rank * 16 + way;
        node = node * 16 + 1 + way;
    }
    ranks[i] = rank;
}
