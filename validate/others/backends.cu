// Backends of services: tables, filters, ciphers, checksums, mixtures, waves, sparse rows, searches, sets, draws.

// Each token's sum of the rows of two experts, weighted; rows of 1024.
__global__ void mix_experts(const float4 *__restrict__ rows, const int *__restrict__ chosen,
                            const float *__restrict__ weights, float4 *__restrict__ out) {
    int token = blockIdx.x, t = threadIdx.x;
    float4 a = rows[chosen[2 * token] * 256 + t], b = rows[chosen[2 * token + 1] * 256 + t];
    float u = weights[2 * token], v = weights[2 * token + 1];
    out[token * 256 + t] =
        make_float4(u * a.x + v * b.x, u * a.y + v * b.y, u * a.z + v * b.z, u * a.w + v * b.w);
}

// Groups of 128 numbers as bytes and a scale each; a warp a group.
__global__ void quantise_groups(const float4 *__restrict__ x, char4 *__restrict__ q, float *__restrict__ scales,
                                int groups) {
    int group = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, lane = threadIdx.x & 31;
    if (group >= groups) return;
    float4 v = x[group * 32 + lane];
    float most = fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w)));
    for (int offset = 16; offset; offset >>= 1) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, offset));
    float scale = most * (1.0f / 127.0f), back = 127.0f / most;
    q[group * 32 + lane] = make_char4(__float2int_rn(v.x * back), __float2int_rn(v.y * back),
                                      __float2int_rn(v.z * back), __float2int_rn(v.w * back));
    if (lane == 0) scales[group] = scale;
}

// The logarithm of the sum of exponentials of each row of 4096, in two passes over it.
__global__ void row_logsumexp(const float *__restrict__ x, float *__restrict__ out) {
    __shared__ float parts[8];
    const float *row = x + (size_t)blockIdx.x * 4096;
    int t = threadIdx.x;
    float most = -1e30f;
    for (int k = t; k < 4096; k += 256) most = fmaxf(most, row[k]);
    for (int offset = 16; offset; offset >>= 1) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, offset));
    if (t % 32 == 0) parts[t / 32] = most;
    __syncthreads();
    for (int k = 0; k < 8; k++) most = fmaxf(most, parts[k]);
    __syncthreads();
    float sum = 0;
    for (int k = t; k < 4096; k += 256) sum += expf(row[k] - most);
    for (int offset = 16; offset; offset >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    if (t % 32 == 0) parts[t / 32] = sum;
    __syncthreads();
    if (t == 0) {
        float whole = 0;
        for (int k = 0; k < 8; k++) whole += parts[k];
        out[blockIdx.x] = most + logf(whole);
    }
}

// Cross products of vectors that lie as three floats each.
__global__ void cross_products(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c,
                               int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float ax = a[3 * i], ay = a[3 * i + 1], az = a[3 * i + 2];
    float bx = b[3 * i], by = b[3 * i + 1], bz = b[3 * i + 2];
    c[3 * i] = ay * bz - az * by;
    c[3 * i + 1] = az * bx - ax * bz;
    c[3 * i + 2] = ax * by - ay * bx;
}

// Ten rounds of substitution by four tables in shared memory, four words a thread.
__global__ void table_rounds(const uint4 *__restrict__ text, const unsigned *__restrict__ tables,
                             uint4 *__restrict__ out, int n) {
    __shared__ unsigned table[4][256];
    for (int k = threadIdx.x; k < 1024; k += blockDim.x) table[k >> 8][k & 255] = tables[k];
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    uint4 s = text[i];
    for (int round = 0; round < 10; round++) {
        uint4 m;
        m.x = table[0][s.x >> 24] ^ table[1][s.y >> 16 & 255] ^ table[2][s.z >> 8 & 255] ^ table[3][s.w & 255];
        m.y = table[0][s.y >> 24] ^ table[1][s.z >> 16 & 255] ^ table[2][s.w >> 8 & 255] ^ table[3][s.x & 255];
        m.z = table[0][s.z >> 24] ^ table[1][s.w >> 16 & 255] ^ table[2][s.x >> 8 & 255] ^ table[3][s.y & 255];
        m.w = table[0][s.w >> 24] ^ table[1][s.x >> 16 & 255] ^ table[2][s.y >> 8 & 255] ^ table[3][s.z & 255];
        s = m;
    }
    out[i] = s;
}

// Adler's checksum of each piece of 1024 bytes; a warp a piece.
__global__ void adler(const uchar4 *__restrict__ bytes, unsigned *__restrict__ sums, int pieces) {
    int piece = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, lane = threadIdx.x & 31;
    if (piece >= pieces) return;
    unsigned a = 0, b = 0;
    for (int k = 0; k < 8; k++) {
        int place = k * 32 + lane;
        uchar4 v = bytes[piece * 256 + place];
        unsigned left = 1024 - 4 * place;
        a += v.x + v.y + v.z + v.w;
        b += left * v.x + (left - 1) * v.y + (left - 2) * v.z + (left - 3) * v.w;
    }
    for (int offset = 16; offset; offset >>= 1) {
        a += __shfl_xor_sync(0xffffffffu, a, offset);
        b += __shfl_xor_sync(0xffffffffu, b, offset);
    }
    if (lane == 0) sums[piece] = (b + 1024) % 65521 << 16 | (a + 1) % 65521;
}

// A step of the wave equation on a plane, of fourth order in space.
__global__ void wave_step(const float *__restrict__ now, const float *__restrict__ before, float *__restrict__ after,
                          int width) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    if (x < 2 || y < 2 || x >= width - 2 || y >= width - 2) return;
    int i = y * width + x;
    float c = now[i];
    float near = now[i - 1] + now[i + 1] + now[i - width] + now[i + width];
    float far = now[i - 2] + now[i + 2] + now[i - 2 * width] + now[i + 2 * width];
    after[i] = 2 * c - before[i] + 0.1f * ((4.0f / 3) * near - (1.0f / 12) * far - 5 * c);
}

// A sparse matrix of doubles in rows times a vector; a thread a row.
__global__ void sparse_rows(const int *__restrict__ begins, const int *__restrict__ columns,
                            const double *__restrict__ values, const double *__restrict__ x, double *__restrict__ y,
                            int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n) return;
    double sum = 0;
    for (int k = begins[row]; k < begins[row + 1]; k++) sum += values[k] * x[columns[k]];
    y[row] = sum;
}

// How many of a sorted list of 65536 are not beyond each key.
__global__ void upper_bounds(const unsigned *__restrict__ sorted, const unsigned *__restrict__ keys,
                             int *__restrict__ found, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned key = keys[i];
    int low = 0, high = 65536;
    while (low < high) {
        int middle = (low + high) >> 1;
        if (sorted[middle] <= key) low = middle + 1;
        else high = middle;
    }
    found[i] = low;
}

// How many of each block's numbers lie under a limit, and these numbers side by side at the block's place.
__global__ void filter_blocks(const float *__restrict__ x, float *__restrict__ y, int *__restrict__ counts,
                              float limit) {
    __shared__ int sums[8];
    int t = threadIdx.x, warp = t >> 5, lane = t & 31;
    float v = x[blockIdx.x * 256 + t];
    bool kept = v < limit;
    unsigned mask = __ballot_sync(0xffffffffu, kept);
    if (lane == 0) sums[warp] = __popc(mask);
    __syncthreads();
    int place = __popc(mask & ((1u << lane) - 1)), whole = 0;
    for (int k = 0; k < 8; k++) {
        if (k < warp) place += sums[k];
        whole += sums[k];
    }
    if (kept) y[blockIdx.x * 256 + place] = v;
    if (t == 0) counts[blockIdx.x] = whole;
}

// How much two sets have in common, of all pairs of sets of 512 bits; a thread a pair.
__global__ void set_overlaps(const unsigned long long *__restrict__ sets, float *__restrict__ out, int n) {
    __shared__ unsigned long long rows[16][9], columns[16][9];
    int x = threadIdx.x, y = threadIdx.y;
    if (x < 8) {
        rows[y][x] = sets[(blockIdx.y * 16 + y) * 8 + x];
        columns[y][x] = sets[(blockIdx.x * 16 + y) * 8 + x];
    }
    __syncthreads();
    int both = 0, either = 0;
#pragma unroll
    for (int k = 0; k < 8; k++) {
        unsigned long long a = rows[y][k], b = columns[x][k];
        both += __popcll(a & b);
        either += __popcll(a | b);
    }
    out[(blockIdx.y * 16 + y) * n + blockIdx.x * 16 + x] = (float)both / either;
}

// Draws inside the quarter circle: 64 a thread, by xorshift.
__global__ void draws_inside(unsigned *__restrict__ inside, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned state = (i + 1) * 2654435761u, found = 0;
    for (int k = 0; k < 64; k++) {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        float x = (state & 0xffff) * (1.0f / 65536), y = (state >> 16) * (1.0f / 65536);
        found += x * x + y * y < 1.0f;
    }
    for (int offset = 16; offset; offset >>= 1) found += __shfl_xor_sync(0xffffffffu, found, offset);
    if ((threadIdx.x & 31) == 0) atomicAdd(inside, found);
}
