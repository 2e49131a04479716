// Matrices, signals, pictures and lattices, as courses and codes of science have them.

// Ways through a graph by tiles of 32 x 32 (Floyd and Warshall's third phase): those that may lead by
// nodes of tile k.
__global__ void ways_by_tile(float *ways, int k, int n) {
    __shared__ float down[32][32], across[32][32];
    int tx = threadIdx.x, ty = threadIdx.y;
    if ((int)blockIdx.x == k || (int)blockIdx.y == k) return;
    int row = blockIdx.y * 32 + ty, column = blockIdx.x * 32 + tx;
    down[ty][tx] = ways[(size_t)row * n + k * 32 + tx];
    across[ty][tx] = ways[(size_t)(k * 32 + ty) * n + column];
    __syncthreads();
    float least = ways[(size_t)row * n + column];
    for (int j = 0; j < 32; j++) least = fminf(least, down[ty][j] + across[j][tx]);
    ways[(size_t)row * n + column] = least;
}

// Inverses of n matrices of 3 x 3, the nine numbers of each side by side.
__global__ void __launch_bounds__(128) inverses3x3(const double *a, double *b, int n) {
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= n) return;
    const double *m = a + (size_t)9 * i;
    double *made = b + (size_t)9 * i;
    double p = m[4] * m[8] - m[5] * m[7], q = m[5] * m[6] - m[3] * m[8], r = m[3] * m[7] - m[4] * m[6];
    double factor = 1 / (m[0] * p + m[1] * q + m[2] * r);
    made[0] = p * factor;
    made[1] = (m[2] * m[7] - m[1] * m[8]) * factor;
    made[2] = (m[1] * m[5] - m[2] * m[4]) * factor;
    made[3] = q * factor;
    made[4] = (m[0] * m[8] - m[2] * m[6]) * factor;
    made[5] = (m[2] * m[3] - m[0] * m[5]) * factor;
    made[6] = r * factor;
    made[7] = (m[1] * m[6] - m[0] * m[7]) * factor;
    made[8] = (m[0] * m[4] - m[1] * m[3]) * factor;
}

// Factors (Cholesky) of n positive matrices of 32 x 32, in place; a warp a matrix, a lane a row.
__global__ void cholesky_by_warps(float *a, int n) {
    __shared__ float rows[4][32][33];
    int lane = threadIdx.x, matrix = blockIdx.x * 4 + threadIdx.y;
    if (matrix >= n) return;
    float(*m)[33] = rows[threadIdx.y], *given = a + (size_t)matrix * 1024;
    for (int r = 0; r < 32; r++) m[r][lane] = given[r * 32 + lane];
    __syncwarp();
    for (int k = 0; k < 32; k++) {
        float root = sqrtf(m[k][k]);
        __syncwarp();
        if (lane == k) m[k][k] = root;
        if (lane > k) m[lane][k] /= root;
        __syncwarp();
        for (int j = k + 1; j <= lane; j++) m[lane][j] -= m[lane][k] * m[j][k];
        __syncwarp();
    }
    for (int r = 0; r < 32; r++) given[r * 32 + lane] = lane <= r ? m[r][lane] : 0;
}

// Plane rotations (Givens) of a matrix's rows, each with the one below; a thread a column.
__global__ void rotate_rows(float *a, const float2 *turns, int rows, int columns) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= columns) return;
    float upper = a[column];
    for (int r = 1; r < rows; r++) {
        float2 turn = turns[r - 1];
        float lower = a[(size_t)r * columns + column];
        a[(size_t)(r - 1) * columns + column] = turn.x * upper + turn.y * lower;
        upper = turn.x * lower - turn.y * upper;
    }
    a[(size_t)(rows - 1) * columns + column] = upper;
}

// A reflection (Householder) of a matrix's columns, each in one piece; a block a column.
__global__ void reflect_columns(float *a, const float *v, float tau, int rows) {
    __shared__ float parts[16];
    float *column = a + (size_t)blockIdx.x * rows, sum = 0;
    for (int r = threadIdx.x; r < rows; r += blockDim.x) sum += v[r] * column[r];
    for (int o = 16; o > 0; o /= 2) sum += __shfl_down_sync(0xffffffffu, sum, o);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = threadIdx.x < blockDim.x / 32 ? parts[threadIdx.x] : 0;
        for (int o = 16; o > 0; o /= 2) sum += __shfl_down_sync(0xffffffffu, sum, o);
        if (threadIdx.x == 0) parts[0] = tau * sum;
    }
    __syncthreads();
    float factor = parts[0];
    for (int r = threadIdx.x; r < rows; r += blockDim.x) column[r] -= factor * v[r];
}

// A step of Gauss's elimination in an n x n matrix: what is right of and below the pivot at k.
__global__ void eliminate(double *a, int k, int n) {
    int column = k + 1 + blockIdx.x * blockDim.x + threadIdx.x;
    int row = k + 1 + blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= n || column >= n) return;
    double factor = a[(size_t)row * n + k] / a[(size_t)k * n + k];
    a[(size_t)row * n + column] -= factor * a[(size_t)k * n + column];
}

// Cosine transforms of the 8 x 8 squares of an n x n picture, four squares a block, divided as JPEG does.
__global__ void cosines8x8(const unsigned char *x, const float *table, const float *steps, short *y, int n) {
    __shared__ float basis[8][8], square[4][8][9], half[4][8][9];
    int u = threadIdx.x, v = threadIdx.y, z = threadIdx.z;
    int column = (blockIdx.x * 4 + z) * 8 + u, row = blockIdx.y * 8 + v;
    if (z == 0) basis[v][u] = table[v * 8 + u];
    square[z][v][u] = x[(size_t)row * n + column] - 128.0f;
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < 8; k++) sum += square[z][v][k] * basis[u][k];
    half[z][v][u] = sum;
    __syncthreads();
    sum = 0;
    for (int k = 0; k < 8; k++) sum += half[z][k][u] * basis[v][k];
    y[(size_t)row * n + column] = (short)floorf(sum / steps[v * 8 + u] + 0.5f);
}

// Recursive filters of second order of channels that are sampled together; a thread a channel.
__global__ void biquads(const float *x, const float *filters, float *y, int steps, int channels) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= channels) return;
    float b0 = filters[c], b1 = filters[channels + c], b2 = filters[2 * channels + c];
    float a1 = filters[3 * channels + c], a2 = filters[4 * channels + c], first = 0, second = 0;
    for (int t = 0; t < steps; t++) {
        float in = x[(size_t)t * channels + c], out = b0 * in + first;
        first = b1 * in - a1 * out + second;
        second = b2 * in - a2 * out;
        y[(size_t)t * channels + c] = out;
    }
}

// Sound of 44100 samples a second as 48000: 147 become 160, each of eight by a filter for its phase.
__global__ void resample(const float *x, const float *taps, float *y, int n) {
    __shared__ float bank[160 * 8];
    for (int k = threadIdx.x; k < 160 * 8; k += blockDim.x) bank[k] = taps[k];
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        long long place = i * 147LL;
        int first = (int)(place / 160), phase = (int)(place % 160);
        float sum = 0;
        for (int k = 0; k < 8; k++) sum += x[first + k] * bank[phase * 8 + k];
        y[i] = sum;
    }
}

__device__ unsigned hashed(unsigned v) {
    v ^= v >> 16, v *= 0x7feb352du;
    v ^= v >> 15, v *= 0x846ca68bu;
    return v ^ v >> 16;
}

// Spins of an n x n torus (Ising): those of one colour of the chessboard turn if it pays, else by chance.
__global__ void ising(signed char *spins, const unsigned *chances, unsigned seed, int colour, int n) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int column = 2 * (blockIdx.x * blockDim.x + threadIdx.x) + (row + colour) % 2;
    if (row >= n || column >= n) return;
    int above = row == 0 ? n - 1 : row - 1, below = row == n - 1 ? 0 : row + 1;
    int left = column == 0 ? n - 1 : column - 1, right = column == n - 1 ? 0 : column + 1;
    int i = row * n + column;
    int around = spins[above * n + column] + spins[below * n + column] + spins[row * n + left] +
                 spins[row * n + right];
    int cost = spins[i] * around;
    if (cost <= 0 || hashed(seed + i) < chances[cost / 2 - 1]) spins[i] = -spins[i];
}

// How many of 16 places around each pixel of an n x n picture of depths are a little nearer.
__global__ void occlusion(const float *depths, const int2 *offsets, unsigned char *y, int n) {
    __shared__ int2 around[16];
    int tid = threadIdx.y * 16 + threadIdx.x;
    if (tid < 16) around[tid] = offsets[tid];
    __syncthreads();
    int column = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
    unsigned turn = hashed(row * n + column);
    float own = depths[row * n + column];
    int hidden = 0;
    for (int k = 0; k < 16; k++) {
        int2 o = around[k];
        int dx = turn & 1 ? o.y : o.x, dy = turn & 1 ? -o.x : o.y;
        if (turn & 2) dx = -dx, dy = -dy;
        int r = min(max(row + dy, 0), n - 1), c = min(max(column + dx, 0), n - 1);
        float nearer = own - depths[r * n + c];
        if (nearer > 0.02f && nearer < 0.5f) hidden++;
    }
    y[row * n + column] = 255 - 15 * hidden;
}

// Depths of spheres (centre and radius) as one looks along z with n x n rays.
__global__ void spheres(const float4 *balls, int count, float *depths, int n) {
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    float nearest = 10000;
    for (int k = 0; k < count; k++) {
        float4 ball = balls[k];
        float dx = column - ball.x, dy = row - ball.y;
        float rest = ball.w * ball.w - dx * dx - dy * dy;
        if (rest <= 0) continue;
        nearest = fminf(nearest, ball.z - sqrtf(rest));
    }
    depths[(size_t)row * n + column] = nearest;
}
