// Tiles: stencils, products of matrices, sorts and scans, in shared memory and in registers.

// 64 by 64 elements of the product to a block of 256, four by four to a thread.
__global__ void matrix_product_4x4(const float *a, const float *b, float *c, int n) {
    __shared__ float rows[16][64], columns[16][64];
    int t = threadIdx.x, tx = t % 16, ty = t / 16;
    int top = blockIdx.y * 64, left = blockIdx.x * 64;
    float sums[4][4] = {};
    for (int k0 = 0; k0 < n; k0 += 16) {
        for (int j = 0; j < 4; j++) {
            int e = t + 256 * j;
            rows[e % 16][e / 16] = a[(top + e / 16) * n + k0 + e % 16];
            columns[e / 64][e % 64] = b[(k0 + e / 64) * n + left + e % 64];
        }
        __syncthreads();
        for (int k = 0; k < 16; k++)
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++)
                    sums[i][j] = fmaf(rows[k][4 * ty + i], columns[k][4 * tx + j], sums[i][j]);
        __syncthreads();
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) c[(top + 4 * ty + i) * n + left + 4 * tx + j] = sums[i][j];
}

// A matrix with few rows times a large one, as in the last layers of a network.
__global__ void thin_product(const float *a, const float *b, float *c, int n, int k) {
    __shared__ float rows[8 * 128];
    int column = blockIdx.x * 128 + threadIdx.x;
    float sums[8] = {};
    for (int k0 = 0; k0 < k; k0 += 128) {
        for (int r = 0; r < 8; r++) rows[r * 128 + threadIdx.x] = a[r * k + k0 + threadIdx.x];
        __syncthreads();
        for (int j = 0; j < 128; j++) {
            float v = b[(size_t)(k0 + j) * n + column];
            for (int r = 0; r < 8; r++) sums[r] = fmaf(rows[r * 128 + j], v, sums[r]);
        }
        __syncthreads();
    }
    for (int r = 0; r < 8; r++) c[r * n + column] = sums[r];
}

__global__ void stencil3d(const float *x, float *y, int n) {
    int i = blockIdx.x * 32 + threadIdx.x, j = blockIdx.y * 4 + threadIdx.y;
    if (i < 1 || j < 1 || i >= n - 1 || j >= n - 1) return;
    for (int k = 1 + blockIdx.z * 16; k < min(n - 1, 17 + (int)blockIdx.z * 16); k++) {
        size_t at = ((size_t)k * n + j) * n + i;
        y[at] = 0.4f * x[at] + 0.1f * (x[at - 1] + x[at + 1] + x[at - n] + x[at + n] +
                                       x[at - (size_t)n * n] + x[at + (size_t)n * n]);
    }
}

// A picture through a window of 5 by 5: a tile with its rim in shared memory.
__global__ void blur_tile(const float *x, float *y, int n) {
    __shared__ float tile[12][36];
    int tx = threadIdx.x, ty = threadIdx.y, left = blockIdx.x * 32 - 2, top = blockIdx.y * 8 - 2;
    for (int r = ty; r < 12; r += 8)
        for (int c = tx; c < 36; c += 32) {
            int row = min(max(top + r, 0), n - 1), column = min(max(left + c, 0), n - 1);
            tile[r][c] = x[row * n + column];
        }
    __syncthreads();
    float sum = 0;
    for (int r = 0; r < 5; r++)
        for (int c = 0; c < 5; c++) sum += tile[ty + r][tx + c];
    y[(top + 2 + ty) * n + left + 2 + tx] = sum * 0.04f;
}

__constant__ float weights[25];

// The same window with weights, read straight from global memory.
__global__ void convolution_5x5(const float *x, float *y, int n) {
    int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 8 + threadIdx.y;
    if (c < 2 || r < 2 || c >= n - 2 || r >= n - 2) return;
    float sum = 0;
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 5; j++)
            sum = fmaf(weights[5 * i + j], x[(r + i - 2) * n + c + j - 2], sum);
    y[r * n + c] = sum;
}

// Down a picture's columns: neighbours in a window of 17 are rows apart.
__global__ void blur_columns(const float *x, float *y, int n) {
    int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 8 + threadIdx.y;
    float sum = 0;
    for (int k = -8; k <= 8; k++) sum += x[min(max(r + k, 0), n - 1) * n + c];
    y[r * n + c] = sum / 17;
}

__global__ void halve_picture(const float2 *x, float *y, int n) {
    int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 8 + threadIdx.y;
    float2 a = x[2 * r * n + c], b = x[(2 * r + 1) * n + c];
    y[r * n + c] = 0.25f * (a.x + a.y + b.x + b.y);
}

// Conway's game on bytes, on a torus whose side is a power of two.
__global__ void game_of_life(const unsigned char *x, unsigned char *y, int n) {
    int c = blockIdx.x * 64 + threadIdx.x, r = blockIdx.y * 4 + threadIdx.y, alive = 0;
    for (int i = -1; i <= 1; i++)
        for (int j = -1; j <= 1; j++) alive += x[(r + i & n - 1) * n + (c + j & n - 1)];
    unsigned char own = x[r * n + c];
    y[r * n + c] = alive == 3 || (own && alive == 4);
}

__device__ void copied_later(void *shared, const void *global) {
    unsigned place = (unsigned)__cvta_generic_to_shared(shared);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place), "l"(global) : "memory");
}

// Tiles are fetched two ahead of their use, without registers (cp.async).
__global__ void tiles_ahead(const float *x, float *y, int tiles) {
    __shared__ __align__(16) float buffer[3][1024];
    int t = threadIdx.x;
    const float *own = x + (size_t)blockIdx.x * tiles * 1024;
    for (int k = 0; k < 2; k++) {
        if (k < tiles) copied_later(&buffer[k][4 * t], own + k * 1024 + 4 * t);
        asm volatile("cp.async.commit_group;" ::: "memory");
    }
    float sum = 0;
    for (int k = 0; k < tiles; k++) {
        if (k + 2 < tiles) copied_later(&buffer[(k + 2) % 3][4 * t], own + (k + 2) * 1024 + 4 * t);
        asm volatile("cp.async.commit_group;" ::: "memory");
        asm volatile("cp.async.wait_group 2;" ::: "memory");
        __syncthreads();
        for (int j = 0; j < 4; j++) sum += buffer[k % 3][(t + 256 * j + 1) & 1023];
        __syncthreads();
    }
    y[blockIdx.x * 256 + t] = sum;
}

// Bodies of four floats through shared tiles, with a root each.
__global__ void gravity(const float4 *bodies, float4 *forces, int n) {
    __shared__ float4 tile[256];
    int i = blockIdx.x * 256 + threadIdx.x;
    float4 own = bodies[i], force = make_float4(0, 0, 0, 0);
    for (int j = 0; j < n; j += 256) {
        tile[threadIdx.x] = bodies[j + threadIdx.x];
        __syncthreads();
        for (int k = 0; k < 256; k++) {
            float4 other = tile[k];
            float dx = other.x - own.x, dy = other.y - own.y, dz = other.z - own.z;
            float root = rsqrtf(fmaf(dx, dx, fmaf(dy, dy, fmaf(dz, dz, 0.01f))));
            float pull = other.w * root * root * root;
            force.x = fmaf(dx, pull, force.x);
            force.y = fmaf(dy, pull, force.y);
            force.z = fmaf(dz, pull, force.z);
        }
        __syncthreads();
    }
    forces[i] = force;
}

// Sums up to each element of a block of 1024, by shuffles.
__global__ void block_scan(const int *x, int *y, int n) {
    __shared__ int parts[32];
    int i = blockIdx.x * 1024 + threadIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int v = x[i];
    for (int o = 1; o < 32; o *= 2) {
        int before = __shfl_up_sync(0xffffffffu, v, o);
        if (lane >= o) v += before;
    }
    if (lane == 31) parts[warp] = v;
    __syncthreads();
    if (warp == 0) {
        int sum = parts[lane];
        for (int o = 1; o < 32; o *= 2) {
            int before = __shfl_up_sync(0xffffffffu, sum, o);
            if (lane >= o) sum += before;
        }
        parts[lane] = sum;
    }
    __syncthreads();
    y[i] = v + (warp ? parts[warp - 1] : 0);
}

// Up and down a tree in shared memory, as Blelloch does it, with its bank conflicts.
__global__ void tree_scan(const int *x, int *y, int n) {
    __shared__ int tree[512];
    int t = threadIdx.x, base = blockIdx.x * 512, step = 1;
    tree[t] = x[base + t];
    tree[t + 256] = x[base + t + 256];
    for (int d = 256; d > 0; d /= 2, step *= 2) {
        __syncthreads();
        if (t < d) tree[step * (2 * t + 2) - 1] += tree[step * (2 * t + 1) - 1];
    }
    if (t == 0) tree[511] = 0;
    for (int d = 1; d < 512; d *= 2) {
        step /= 2;
        __syncthreads();
        if (t < d) {
            int left = tree[step * (2 * t + 1) - 1];
            tree[step * (2 * t + 1) - 1] = tree[step * (2 * t + 2) - 1];
            tree[step * (2 * t + 2) - 1] += left;
        }
    }
    __syncthreads();
    y[base + t] = tree[t];
    y[base + t + 256] = tree[t + 256];
}

// One step of a bitonic sort of the whole array: partners lie `distance` apart.
__global__ void bitonic_step(const float *x, float *y, int distance, int size) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float own = x[i], other = x[i ^ distance];
    bool is_upper = i & distance, is_down = i & size;
    y[i] = is_upper == is_down ? fminf(own, other) : fmaxf(own, other);
}

// A matrix of bytes, turned by tiles of 64 by 64: words of four go in and out.
__global__ void transpose_bytes(const unsigned *x, unsigned *y, int n) {
    __shared__ unsigned char tile[64][68];
    int tx = threadIdx.x, ty = threadIdx.y, words = n / 4;
    for (int r = ty; r < 64; r += 16)
        *(unsigned *)&tile[r][4 * tx] = x[(blockIdx.y * 64 + r) * words + blockIdx.x * 16 + tx];
    __syncthreads();
    for (int r = ty; r < 64; r += 16) {
        unsigned word = 0;
        for (int k = 0; k < 4; k++) word |= (unsigned)tile[4 * tx + k][r] << 8 * k;
        y[(blockIdx.x * 64 + r) * words + blockIdx.y * 16 + tx] = word;
    }
}

#define ONE(k) v = fmaf(v, 0.75f + 0.0001f * ((k) % 97), 0.125f);
#define FOUR(k) ONE(k) ONE(k + 1) ONE(k + 2) ONE(k + 3)
#define SIXTEEN(k) FOUR(k) FOUR(k + 4) FOUR(k + 8) FOUR(k + 12)
#define ALL64(k) SIXTEEN(k) SIXTEEN(k + 16) SIXTEEN(k + 32) SIXTEEN(k + 48)
#define ALL256(k) ALL64(k) ALL64(k + 64) ALL64(k + 128) ALL64(k + 192)
#define ALL1024(k) ALL256(k) ALL256(k + 256) ALL256(k + 512) ALL256(k + 768)
#define ALL4096(k) ALL1024(k) ALL1024(k + 1024) ALL1024(k + 2048) ALL1024(k + 3072)

// Long straight code: 64 KiB of it, then twice and four times what a cache of instructions holds.
__global__ void straight_code(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = x[i];
    ALL4096(0)
    ALL4096(1)
    ALL4096(2)
    ALL4096(3)
    y[i] = v;
}
