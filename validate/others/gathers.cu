// Gathers and scatters: addresses that numbers in memory say.

// The footprint is how much of `x` the places lie in.
__global__ void gather_within(const float *x, const int *places, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[places[i]];
}

__global__ void scatter(const float *x, const int *places, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[places[i]] = x[i];
}

// Rows of 64 floats by the tokens' numbers, a warp a row; few tokens are most of the text.
__global__ void embedding(const float2 *table, const int *tokens, float2 *y, int n) {
    int token = blockIdx.x * 8 + threadIdx.y;
    if (token < n) y[(size_t)token * 32 + threadIdx.x] = table[tokens[token] * 32 + threadIdx.x];
}

// A sparse matrix in CSR, a thread a row.
__global__ void spmv_by_threads(const int *begins, const int *columns, const float *values,
                                const float *x, float *y, int rows) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0;
    for (int k = begins[row]; k < begins[row + 1]; k++) sum = fmaf(values[k], x[columns[k]], sum);
    y[row] = sum;
}

// The same, a warp a row.
__global__ void spmv_by_warps(const int *begins, const int *columns, const float *values,
                              const float *x, float *y, int rows) {
    int row = blockIdx.x * 4 + threadIdx.y, lane = threadIdx.x;
    if (row >= rows) return;
    float sum = 0;
    for (int k = begins[row] + lane; k < begins[row + 1]; k += 32)
        sum = fmaf(values[k], x[columns[k]], sum);
    for (int o = 16; o > 0; o >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, o);
    if (lane == 0) y[row] = sum;
}

// Where each number would stand in a sorted table: all begin at its middle.
__global__ void binary_search(const int *table, const int *wanted, int *y, int size, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int low = 0, high = size, value = wanted[i];
    while (low < high) {
        int middle = (low + high) / 2;
        if (table[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    y[i] = low;
}

// A hash table with linear probing: keys and values beside each other.
__global__ void hash_lookup(const int2 *slots, const int *keys, int *y, int mask, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int key = keys[i], found = -1;
    for (unsigned slot = key * 2654435769u >> 7;; slot++) {
        int2 one = slots[slot & mask];
        if (one.x == key) found = one.y;
        if (one.x == key || one.x < 0) break;
    }
    y[i] = found;
}

// A picture turned by 30 degrees, of four neighbours each.
__global__ void rotate_picture(const float *x, float *y, int n) {
    int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 8 + threadIdx.y;
    float dx = c - 0.5f * n, dy = r - 0.5f * n;
    float u = 0.8660254f * dx - 0.5f * dy + 0.5f * n, v = 0.5f * dx + 0.8660254f * dy + 0.5f * n;
    int left = (int)floorf(u), top = (int)floorf(v);
    float value = 0;
    if (left >= 0 && top >= 0 && left < n - 1 && top < n - 1) {
        float a = u - left, b = v - top;
        const float *at = x + top * n + left;
        value = (1 - b) * ((1 - a) * at[0] + a * at[1]) + b * ((1 - a) * at[n] + a * at[n + 1]);
    }
    y[r * n + c] = value;
}

// Bits in reverse order: reads side by side, writes far apart.
__global__ void bit_reversal(const float *x, float *y, int bits) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    y[__brev(i) >> (32 - bits)] = x[i];
}

__constant__ int curve[256];

// A table in constant memory, at places on which lanes disagree.
__global__ void constant_lookup(const unsigned char *x, int *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = curve[x[i]];
}

__constant__ float coefficients[2048];

// All lanes read the same constants, one after the other, more of them than a cache near by holds.
__global__ void constant_polynomial(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = x[i], sum = 0;
    for (int k = 0; k < 2048; k++) sum = fmaf(sum, v, coefficients[k]);
    y[i] = sum;
}
