// Assignments of courses, and what grew of them: tables, solvers, options, pictures, text, walks.

// Sums of what a table of chains has under each key that is asked for.
__global__ void join_chains(const int *heads, const int *next, const int *keys, const int *amounts,
                            const int *probes, long long *sums, int shift, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int key = probes[i];
    long long sum = 0;
    for (int row = heads[(unsigned)key * 2654435761u >> shift]; row >= 0; row = next[row])
        if (keys[row] == key) sum += amounts[row];
    sums[i] = sum;
}

// Numbers of the rows that two conditions choose, each block's together where the block begins.
__global__ void select_rows(const int *price, const int *quantity, int least, int most,
                            long long *rows, int *counts, int n) {
    __shared__ int begins[16];
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    bool chosen = i < n && price[i] >= least && quantity[i] < most;
    unsigned votes = __ballot_sync(0xffffffffu, chosen);
    if (lane == 0) begins[warp] = __popc(votes);
    __syncthreads();
    if (threadIdx.x == 0) {
        int total = 0;
        for (int k = 0; k < 16; k++) {
            int count = begins[k];
            begins[k] = total;
            total += count;
        }
        counts[blockIdx.x] = total;
    }
    __syncthreads();
    int place = begins[warp] + __popc(votes & ((1u << lane) - 1));
    if (chosen) rows[(long long)blockIdx.x * blockDim.x + place] = i;
}

// Sums and counts of 64 groups: by a block in shared memory first.
__global__ void group_by(const unsigned char *group, const double *amount, double *sums,
                         unsigned *counts, int n) {
    __shared__ double own[64];
    __shared__ unsigned number[64];
    if (threadIdx.x < 64) own[threadIdx.x] = 0, number[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        int g = group[i] & 63;
        atomicAdd(&own[g], amount[i]);
        atomicAdd(&number[g], 1u);
    }
    __syncthreads();
    if (threadIdx.x < 64) {
        atomicAdd(&sums[threadIdx.x], own[threadIdx.x]);
        atomicAdd(&counts[threadIdx.x], number[threadIdx.x]);
    }
}

// Tridiagonal systems of 256 by parallel cyclic reduction, a block each.
__global__ void cyclic_reduction(const float *a, const float *b, const float *c, const float *d,
                                 float *x) {
    __shared__ float as[256], bs[256], cs[256], ds[256];
    int t = threadIdx.x;
    size_t at = (size_t)blockIdx.x * 256 + t;
    as[t] = t > 0 ? a[at] : 0.0f, bs[t] = b[at], cs[t] = t < 255 ? c[at] : 0.0f, ds[t] = d[at];
    __syncthreads();
    for (int step = 1; step < 256; step *= 2) {
        int up = max(t - step, 0), down = min(t + step, 255);
        float alpha = -as[t] / bs[up], gamma = -cs[t] / bs[down];
        float na = alpha * as[up], nc = gamma * cs[down];
        float nb = bs[t] + alpha * cs[up] + gamma * as[down];
        float nd = ds[t] + alpha * ds[up] + gamma * ds[down];
        __syncthreads();
        as[t] = na, bs[t] = nb, cs[t] = nc, ds[t] = nd;
        __syncthreads();
    }
    x[at] = ds[t] / bs[t];
}

// One colour of an n x n grid in double precision, from its neighbours of the other.
__global__ void red_black(double *u, const double *f, double h2, int colour, int n) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int column = 2 * (blockIdx.x * blockDim.x + threadIdx.x) + ((row + colour) & 1);
    if (row == 0 || column == 0 || row >= n - 1 || column >= n - 1) return;
    int i = row * n + column;
    u[i] = 0.25 * (u[i - 1] + u[i + 1] + u[i - n] + u[i + n] - h2 * f[i]);
}

// Asian options: a thread follows one path of 64 days, a block adds up what they pay.
__global__ void asian_option(float *sums, float start, float strike, float drift, float swing) {
    __shared__ float parts[4];
    unsigned state = (blockIdx.x * blockDim.x + threadIdx.x) * 747796405u + 2891336453u;
    float price = start, total = 0;
    for (int day = 0; day < 64; day++) {
        state ^= state << 13, state ^= state >> 17, state ^= state << 5;
        float u = ((state >> 8) + 1) / 16777217.0f;
        state ^= state << 13, state ^= state >> 17, state ^= state << 5;
        float v = (state >> 8) / 16777216.0f;
        float normal = sqrtf(-2.0f * logf(u)) * cosf(6.2831853f * v);
        price *= expf(drift + swing * normal);
        total += price;
    }
    float pay = fmaxf(total / 64 - strike, 0.0f);
    for (int o = 16; o > 0; o >>= 1) pay += __shfl_down_sync(0xffffffffu, pay, o);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = pay;
    __syncthreads();
    if (threadIdx.x == 0) sums[blockIdx.x] = parts[0] + parts[1] + parts[2] + parts[3];
}

// A sparse matrix of up to 16 elements a row, which lie by columns (ELLPACK); -1 is none.
__global__ void ell_product(const int *columns, const double *values, const double *x, double *y,
                            int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n) return;
    double sum = 0;
    for (int k = 0; k < 16; k++) {
        int column = columns[(size_t)k * n + row];
        if (column >= 0) sum += values[(size_t)k * n + row] * x[column];
    }
    y[row] = sum;
}

// Neighbours count by how near they are and how like.
__global__ void bilateral(const float *x, float *y, float space, float range, int n) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
    if (c >= n || r >= n) return;
    float centre = x[r * n + c], sum = 0, norm = 0;
    for (int i = -2; i <= 2; i++)
        for (int j = -2; j <= 2; j++) {
            float v = x[min(max(r + i, 0), n - 1) * n + min(max(c + j, 0), n - 1)];
            float weight = __expf(-(i * i + j * j) * space - (v - centre) * (v - centre) * range);
            sum += weight * v;
            norm += weight;
        }
    y[r * n + c] = sum / norm;
}

__device__ void order(unsigned char &a, unsigned char &b) {
    unsigned char low = min(a, b);
    b = max(a, b), a = low;
}

// The median of 3 x 3 bytes, by Paeth's exchanges.
__global__ void median3x3(const unsigned char *x, unsigned char *y, int n) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
    if (c < 1 || r < 1 || c >= n - 1 || r >= n - 1) return;
    unsigned char v[9];
#pragma unroll
    for (int k = 0; k < 9; k++) v[k] = x[(r + k / 3 - 1) * n + c + k % 3 - 1];
    order(v[1], v[2]), order(v[4], v[5]), order(v[7], v[8]), order(v[0], v[1]), order(v[3], v[4]);
    order(v[6], v[7]), order(v[1], v[2]), order(v[4], v[5]), order(v[7], v[8]), order(v[0], v[3]);
    order(v[5], v[8]), order(v[4], v[7]), order(v[3], v[6]), order(v[1], v[4]), order(v[2], v[5]);
    order(v[4], v[7]), order(v[4], v[2]), order(v[6], v[4]), order(v[4], v[2]);
    y[r * n + c] = v[4];
}

// 32 generations of rule 110 on a ring of n words of cells; 254 words of a block come out right.
__global__ void rule_110(const unsigned *cells, unsigned *later, int n) {
    __shared__ unsigned line[2][256];
    int t = threadIdx.x, i = blockIdx.x * 254 + t - 1;
    unsigned own = cells[(i + n) % n];
    line[0][t] = own;
    for (int k = 0; k < 32; k++) {
        __syncthreads();
        unsigned before = line[k & 1][max(t - 1, 0)], after = line[k & 1][min(t + 1, 255)];
        unsigned left = __funnelshift_l(before, own, 1), right = __funnelshift_r(own, after, 1);
        own = (own | right) & ~(left & own & right);
        line[~k & 1][t] = own;
    }
    if (t >= 1 && t < 255 && i < n) later[i] = own;
}

// Walkers of 16 steps, each to a neighbour by chance.
__global__ void random_walks(const int *begins, const int *targets, int *ends, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned state = i * 2654435761u + 1;
    int node = i;
    for (int step = 0; step < 16; step++) {
        int begin = begins[node], degree = begins[node + 1] - begin;
        state = state * 1664525u + 1013904223u;
        node = targets[begin + (state >> 16) % degree];
    }
    ends[i] = node;
}

__constant__ unsigned char pattern[6];

// How often a text has the pattern, and where first.
__global__ void find_pattern(const unsigned char *text, unsigned *count, int *first, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool found = i <= n - 6;
    for (int k = 0; k < 6 && found; k++) found = text[i + k] == pattern[k];
    unsigned votes = __ballot_sync(0xffffffffu, found);
    if (found) atomicMin(first, i);
    if (threadIdx.x % 32 == 0 && votes) atomicAdd(count, __popc(votes));
}
