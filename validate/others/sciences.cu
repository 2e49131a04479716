// Sciences and data: fluids, graphs, points, numbers, text, sorted lists.

// One step of a fluid on an n x n torus with nine velocities (D2Q9), each in a plane of its own.
__global__ void fluid(const float *f, float *g, float omega, int n) {
    const int dx[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1}, dy[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    size_t plane = (size_t)n * n;
    float in[9], density = 0, u = 0, v = 0;
#pragma unroll
    for (int k = 0; k < 9; k++) {
        int from = ((y - dy[k] + n) & (n - 1)) * n + ((x - dx[k] + n) & (n - 1));
        in[k] = f[k * plane + from];
        density += in[k];
        u += dx[k] * in[k];
        v += dy[k] * in[k];
    }
    u /= density, v /= density;
#pragma unroll
    for (int k = 0; k < 9; k++) {
        float weight = k == 0 ? 4.0f / 9 : k < 5 ? 1.0f / 9 : 1.0f / 36;
        float along = 3 * (dx[k] * u + dy[k] * v);
        float rest = weight * density * (1 + along + 0.5f * along * along - 1.5f * (u * u + v * v));
        g[k * plane + y * n + x] = in[k] + omega * (rest - in[k]);
    }
}

// Heat on an n x n plate, a block's part with its rim in shared memory.
__global__ void heat_tile(const float *x, float *y, int n) {
    __shared__ float tile[18][34];
    int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
    for (int k = threadIdx.y * 32 + threadIdx.x; k < 18 * 34; k += 512) {
        int r = min(max((int)blockIdx.y * 16 + k / 34 - 1, 0), n - 1);
        int c = min(max((int)blockIdx.x * 32 + k % 34 - 1, 0), n - 1);
        tile[k / 34][k % 34] = x[(size_t)r * n + c];
    }
    __syncthreads();
    int i = threadIdx.y + 1, j = threadIdx.x + 1;
    float around = tile[i - 1][j] + tile[i + 1][j] + tile[i][j - 1] + tile[i][j + 1];
    y[(size_t)row * n + column] = tile[i][j] + 0.2f * (around - 4 * tile[i][j]);
}

// Ways through a graph of n nodes that may lead by node k.
__global__ void shorter_ways(float *ways, int k, int n) {
    int to = blockIdx.x * blockDim.x + threadIdx.x, from = blockIdx.y;
    float by = ways[(size_t)from * n + k] + ways[(size_t)k * n + to];
    if (by < ways[(size_t)from * n + to]) ways[(size_t)from * n + to] = by;
}

// Ranks of pages from those that link to them.
__global__ void page_rank(const int *begins, const int *sources, const float *given, float *ranks, int n) {
    int page = blockIdx.x * blockDim.x + threadIdx.x;
    if (page >= n) return;
    float sum = 0;
    for (int k = begins[page], end = begins[page + 1]; k < end; k++) sum += given[sources[k]];
    ranks[page] = 0.15f / n + 0.85f * sum;
}

// Nodes one step further from the start than those of the last step.
__global__ void next_level(const int *begins, const int *targets, int *levels, int level, int n) {
    int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node >= n || levels[node] != level) return;
    for (int k = begins[node]; k < begins[node + 1]; k++)
        if (levels[targets[k]] < 0) levels[targets[k]] = level + 1;
}

// The nearest of 64 centres in 8 dimensions; points lie by dimension.
__global__ void nearest(const float *points, const float *centres, int *y, int n) {
    __shared__ float c[64][8];
    for (int k = threadIdx.x; k < 512; k += blockDim.x) c[k / 8][k % 8] = centres[k];
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x, found = 0;
    if (i >= n) return;
    float p[8], least = 1e30f;
    for (int d = 0; d < 8; d++) p[d] = points[(size_t)d * n + i];
    for (int k = 0; k < 64; k++) {
        float far = 0;
        for (int d = 0; d < 8; d++) far += (p[d] - c[k][d]) * (p[d] - c[k][d]);
        if (far < least) least = far, found = k;
    }
    y[i] = found;
}

// How many steps a number takes to 1.
__global__ void collatz(int *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long value = i + 1;
    int steps = 0;
    for (; value != 1; steps++) value = value % 2 ? 3 * value + 1 : value / 2;
    y[i] = steps;
}

// Points within the circle, of `rounds` for each thread; a block adds once.
__global__ void circle_by_blocks(unsigned *inside, int rounds) {
    __shared__ unsigned count;
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    unsigned state = (blockIdx.x * blockDim.x + threadIdx.x) * 2654435761u + 1, found = 0;
    for (int k = 0; k < rounds; k++) {
        state ^= state << 13, state ^= state >> 17, state ^= state << 5;
        float x = (state & 0xffff) / 65536.0f, y = (state >> 16) / 65536.0f;
        found += x * x + y * y < 1;
    }
    found = __reduce_add_sync(0xffffffffu, found);
    if (threadIdx.x % 32 == 0) atomicAdd(&count, found);
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(inside, count);
}

// A stage of a Fourier transform: pairs of complex numbers `stride` apart.
__global__ void butterflies(float2 *x, int stride, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n / 2) return;
    int k = i & (stride - 1), low = 2 * i - k;
    float s, c;
    __sincosf(-3.14159265f * k / stride, &s, &c);
    float2 a = x[low], b = x[low + stride];
    float2 t = make_float2(b.x * c - b.y * s, b.x * s + b.y * c);
    x[low] = make_float2(a.x + t.x, a.y + t.y);
    x[low + stride] = make_float2(a.x - t.x, a.y - t.y);
}

// Edges of an n x n picture of bytes.
__global__ void edges(const unsigned char *x, unsigned char *y, int n) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
    if (c < 1 || r < 1 || c >= n - 1 || r >= n - 1) return;
    const unsigned char *p = x + (size_t)r * n + c;
    int across = p[1 - n] + 2 * p[1] + p[1 + n] - p[-1 - n] - 2 * p[-1] - p[n - 1];
    int down = p[n - 1] + 2 * p[n] + p[n + 1] - p[-n - 1] - 2 * p[-n] - p[1 - n];
    y[(size_t)r * n + c] = min(255, abs(across) + abs(down));
}

// Bytes as text of two hexadecimal digits each.
__global__ void hexadecimal(const unsigned char *x, uchar2 *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned char high = x[i] >> 4, low = x[i] & 15;
    y[i] = make_uchar2(high + (high < 10 ? '0' : 'a' - 10), low + (low < 10 ? '0' : 'a' - 10));
}

// A checksum (CRC-32) of each of n records of 64 bytes, by a table in shared memory.
__global__ void checksums(const unsigned *records, const unsigned *table, unsigned *y, int n) {
    __shared__ unsigned t[256];
    t[threadIdx.x] = table[threadIdx.x];
    __syncthreads();
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n) return;
    unsigned crc = ~0u;
    for (int k = 0; k < 16; k++) {
        unsigned word = records[(size_t)i * 16 + k];
        for (int b = 0; b < 4; b++) crc = t[(crc ^ word >> 8 * b) & 255] ^ crc >> 8;
    }
    y[i] = ~crc;
}

// Two sorted lists of n as one: a thread finds where its eight begin (merge path) and makes them.
__global__ void merge(const int *a, const int *b, int *y, int n) {
    int first = 8 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (first >= 2 * n) return;
    int low = max(0, first - n), high = min(first, n);
    while (low < high) {
        int middle = (low + high) / 2;
        if (a[middle] < b[first - 1 - middle])
            low = middle + 1;
        else
            high = middle;
    }
    int i = low, j = first - low;
    for (int k = 0; k < 8; k++) {
        bool takes = j >= n || (i < n && a[i] <= b[j]);
        y[first + k] = takes ? a[i++] : b[j++];
    }
}

// Sums of values by sorted keys: a thread adds what has one key among its sixteen neighbours.
__global__ void sums_by_key(const int *keys, const float *values, float *sums, int n) {
    int first = 16 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (first >= n) return;
    int key = keys[first];
    float sum = 0;
    for (int k = first; k < first + 16; k++) {
        if (keys[k] != key) {
            atomicAdd(&sums[key], sum);
            key = keys[k], sum = 0;
        }
        sum += values[k];
    }
    atomicAdd(&sums[key], sum);
}
