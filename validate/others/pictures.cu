// Pictures, sound and scenes: colours, transforms, votes, rays, skins.

__device__ unsigned char clamp_u8(int v) { return (unsigned char)(v < 0 ? 0 : v > 255 ? 255 : v); }

// Video frames to colours: a plane of brightness, and one of colour at half the resolution.
__global__ void nv12_to_rgba(const unsigned char *__restrict__ luma, const uchar2 *__restrict__ chroma,
                             uchar4 *__restrict__ out, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    int c = 298 * (luma[y * width + x] - 16) + 128;
    uchar2 uv = chroma[(y / 2) * (width / 2) + x / 2];
    int u = uv.x - 128, v = uv.y - 128;
    out[y * width + x] = make_uchar4(clamp_u8((c + 409 * v) >> 8), clamp_u8((c - 100 * u - 208 * v) >> 8),
                                     clamp_u8((c + 516 * u) >> 8), 255);
}

// Row sums of an integral image: a block scans a row, four pixels a thread at a time.
__global__ void integral_rows(const uchar4 *__restrict__ image, uint4 *__restrict__ sums, int quads) {
    __shared__ unsigned warp_sums[8];
    __shared__ unsigned carry;
    const uchar4 *row = image + (size_t)blockIdx.x * quads;
    uint4 *out = sums + (size_t)blockIdx.x * quads;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    if (threadIdx.x == 0) carry = 0;
    __syncthreads();
    for (int base = 0; base < quads; base += blockDim.x) {
        int i = base + threadIdx.x;
        uchar4 p = i < quads ? row[i] : make_uchar4(0, 0, 0, 0);
        unsigned a = p.x, b = a + p.y, c = b + p.z, d = c + p.w;
        unsigned scan = d;
        for (int offset = 1; offset < 32; offset <<= 1) {
            unsigned up = __shfl_up_sync(0xffffffff, scan, offset);
            if (lane >= offset) scan += up;
        }
        if (lane == 31) warp_sums[warp] = scan;
        __syncthreads();
        unsigned before = carry + scan - d;
        for (int w = 0; w < warp; w++) before += warp_sums[w];
        if (i < quads) out[i] = make_uint4(before + a, before + b, before + c, before + d);
        __syncthreads();
        if (threadIdx.x == blockDim.x - 1) carry = before + d;
        __syncthreads();
    }
}

__device__ float3 mix(float4 a, float4 b, float t) {
    return make_float3(a.x + (b.x - a.x) * t, a.y + (b.y - a.y) * t, a.z + (b.z - a.z) * t);
}

__device__ float3 mix(float3 a, float3 b, float t) {
    return make_float3(a.x + (b.x - a.x) * t, a.y + (b.y - a.y) * t, a.z + (b.z - a.z) * t);
}

// Colour grading by a cube of 33 x 33 x 33 colours, between which it interpolates.
__global__ void color_cube(const float4 *__restrict__ lut, const uchar4 *__restrict__ in,
                           uchar4 *__restrict__ out, int n) {
    const int size = 33;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        uchar4 p = in[i];
        float r = p.x * (32.0f / 255.0f), g = p.y * (32.0f / 255.0f), b = p.z * (32.0f / 255.0f);
        int r0 = min((int)r, size - 2), g0 = min((int)g, size - 2), b0 = min((int)b, size - 2);
        const float4 *corner = lut + (b0 * size + g0) * size + r0;
        float fr = r - r0, fg = g - g0, fb = b - b0;
        float3 c00 = mix(corner[0], corner[1], fr);
        float3 c10 = mix(corner[size], corner[size + 1], fr);
        float3 c01 = mix(corner[size * size], corner[size * size + 1], fr);
        float3 c11 = mix(corner[size * size + size], corner[size * size + size + 1], fr);
        float3 c = mix(mix(c00, c10, fg), mix(c01, c11, fg), fb);
        out[i] = make_uchar4((int)(c.x * 255 + 0.5f), (int)(c.y * 255 + 0.5f), (int)(c.z * 255 + 0.5f), p.w);
    }
}

// First pass of a distance transform: how far along its column each pixel is from the object.
__global__ void distance_columns(const unsigned char *mask, int *dist, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= width) return;
    const int far = 1 << 20;
    int d = far;
    for (int y = 0; y < height; y++) {
        d = mask[y * width + x] ? 0 : min(d + 1, far);
        dist[y * width + x] = d;
    }
    d = far;
    for (int y = height - 1; y >= 0; y--) {
        d = min(d + 1, dist[y * width + x]);
        dist[y * width + x] = d;
    }
}

// Hough transform: each edge pixel votes for all lines through it, in fixed point.
__global__ void hough_lines(const unsigned char *edges, const int *cosines, const int *sines,
                            unsigned *votes, int n, int reach) {
    __shared__ int cos_table[180], sin_table[180];
    int tid = threadIdx.y * blockDim.x + threadIdx.x;
    for (int k = tid; k < 180; k += blockDim.x * blockDim.y) {
        cos_table[k] = cosines[k];
        sin_table[k] = sines[k];
    }
    __syncthreads();
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= n || y >= n || !edges[y * n + x]) return;
    for (int theta = 0; theta < 180; theta++) {
        int rho = ((x * cos_table[theta] + y * sin_table[theta] + 4096) >> 13) + reach;
        atomicAdd(&votes[theta * (2 * reach + 1) + rho], 1u);
    }
}

// Takes the radial distortion of a lens out of three planes, bilinearly.
__global__ void undistort(const float *src, float *dst, int n, float focal, float k1, float k2) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= n || y >= n) return;
    float centre = 0.5f * (n - 1);
    float u = (x - centre) / focal, v = (y - centre) / focal;
    float r2 = u * u + v * v;
    float scale = 1.0f + r2 * (k1 + r2 * k2);
    float sx = fminf(fmaxf(u * scale * focal + centre, 0.0f), n - 1.001f);
    float sy = fminf(fmaxf(v * scale * focal + centre, 0.0f), n - 1.001f);
    int x0 = (int)sx, y0 = (int)sy;
    float fx = sx - x0, fy = sy - y0;
    for (int c = 0; c < 3; c++) {
        const float *plane = src + (size_t)c * n * n + y0 * n + x0;
        float top = plane[0] * (1 - fx) + plane[1] * fx;
        float bottom = plane[n] * (1 - fx) + plane[n + 1] * fx;
        dst[(size_t)c * n * n + y * n + x] = top * (1 - fy) + bottom * fy;
    }
}

// Fourier transforms of 256 points by 64 threads each, radix 4 (Stockham).
__global__ void fft256(const float2 *in, float2 *out) {
    __shared__ float re[256], im[256];
    int j = threadIdx.x;
    float2 v[4];
    for (int r = 0; r < 4; r++) v[r] = in[blockIdx.x * 256 + j + r * 64];
    for (int ns = 1; ns < 256; ns *= 4) {
        int k = j % ns;
        float angle = -6.283185307f * k / (ns * 4);
        for (int r = 1; r < 4; r++) {
            float s, c;
            sincosf(r * angle, &s, &c);
            v[r] = make_float2(v[r].x * c - v[r].y * s, v[r].x * s + v[r].y * c);
        }
        float2 a = make_float2(v[0].x + v[2].x, v[0].y + v[2].y), b = make_float2(v[0].x - v[2].x, v[0].y - v[2].y);
        float2 c = make_float2(v[1].x + v[3].x, v[1].y + v[3].y), d = make_float2(v[1].y - v[3].y, v[3].x - v[1].x);
        int to = (j / ns) * ns * 4 + k;
        re[to] = a.x + c.x, im[to] = a.y + c.y;
        re[to + ns] = b.x + d.x, im[to + ns] = b.y + d.y;
        re[to + 2 * ns] = a.x - c.x, im[to + 2 * ns] = a.y - c.y;
        re[to + 3 * ns] = b.x - d.x, im[to + 3 * ns] = b.y - d.y;
        __syncthreads();
        for (int r = 0; r < 4; r++) v[r] = make_float2(re[j + r * 64], im[j + r * 64]);
        __syncthreads();
    }
    for (int r = 0; r < 4; r++) out[blockIdx.x * 256 + j + r * 64] = v[r];
}

// A level of JPEG 2000's reversible wavelet along rows of 1024: low half, high half.
__global__ void wavelet_rows(const short *in, short *out) {
    __shared__ int x[1024], high[512];
    const int half = 512;
    const short2 *row = (const short2 *)(in + (size_t)blockIdx.x * 1024);
    for (int i = threadIdx.x; i < half; i += blockDim.x) {
        short2 pair = row[i];
        x[2 * i] = pair.x;
        x[2 * i + 1] = pair.y;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < half; i += blockDim.x) {
        int right = i + 1 < half ? x[2 * i + 2] : x[2 * i];
        high[i] = x[2 * i + 1] - ((x[2 * i] + right) >> 1);
    }
    __syncthreads();
    short *to = out + (size_t)blockIdx.x * 1024;
    for (int i = threadIdx.x; i < half; i += blockDim.x) {
        int left = i > 0 ? high[i - 1] : high[0];
        to[i] = x[2 * i] + ((left + high[i] + 2) >> 2);
        to[half + i] = high[i];
    }
}

__device__ float3 cross(float3 a, float3 b) {
    return make_float3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}

__device__ float dot(float3 a, float3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }

// The nearest of some triangles (corner and two edges) along each ray of a camera (Moeller, Trumbore).
__global__ void hit_triangles(const float *triangles, int count, float *depth, int *hit, int n) {
    __shared__ float tile[32 * 9];
    int px = blockIdx.x * 16 + threadIdx.x, py = blockIdx.y * 16 + threadIdx.y;
    int tid = threadIdx.y * 16 + threadIdx.x;
    float3 dir = make_float3((2 * px + 1.0f) / n - 1, (2 * py + 1.0f) / n - 1, 1);
    float nearest = 1e30f;
    int which = -1;
    for (int base = 0; base < count; base += 32) {
        for (int k = tid; k < 32 * 9; k += 256) tile[k] = triangles[base * 9 + k];
        __syncthreads();
        for (int t = 0; t < 32; t++) {
            const float *f = tile + t * 9;
            float3 v0 = make_float3(f[0], f[1], f[2]);
            float3 e1 = make_float3(f[3], f[4], f[5]), e2 = make_float3(f[6], f[7], f[8]);
            float3 p = cross(dir, e2);
            float det = dot(e1, p);
            if (fabsf(det) < 1e-8f) continue;
            float inv = 1.0f / det;
            float3 s = make_float3(-v0.x, -v0.y, -v0.z);
            float u = dot(s, p) * inv;
            if (u < 0 || u > 1) continue;
            float3 q = cross(s, e1);
            float v = dot(dir, q) * inv;
            if (v < 0 || u + v > 1) continue;
            float d = dot(e2, q) * inv;
            if (d > 0 && d < nearest) {
                nearest = d;
                which = base + t;
            }
        }
        __syncthreads();
    }
    depth[py * n + px] = which < 0 ? 0 : nearest;
    hit[py * n + px] = which;
}

// Rays through a cloud of 64 x 64 x 64 densities, until hardly any light is left.
__global__ void render_volume(const float *volume, float *image, int n, float tilt, float density) {
    const int size = 64;
    int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px >= n || py >= n) return;
    float x0 = (px + 0.5f) * (size - 2) / n, y0 = (py + 0.5f) * (size - 2) / n;
    float light = 1, colour = 0;
    for (int step = 0; step < 2 * (size - 1); step++) {
        float z = 0.5f * step;
        float x = fminf(x0 + tilt * z, size - 1.01f), y = y0;
        int ix = (int)x, iy = (int)y, iz = (int)z;
        float fx = x - ix, fy = y - iy, fz = z - iz;
        const float *p = volume + (iz * size + iy) * size + ix;
        float v00 = p[0] + (p[1] - p[0]) * fx;
        float v10 = p[size] + (p[size + 1] - p[size]) * fx;
        p += size * size;
        float v01 = p[0] + (p[1] - p[0]) * fx;
        float v11 = p[size] + (p[size + 1] - p[size]) * fx;
        float v0 = v00 + (v10 - v00) * fy, v1 = v01 + (v11 - v01) * fy;
        float value = v0 + (v1 - v0) * fz;
        float alpha = 1 - __expf(-density * value);
        colour += light * alpha * value;
        light *= 1 - alpha;
        if (light < 0.01f) break;
    }
    image[py * n + px] = colour;
}

// Disparities of a stereo pair: which of 32 shifts makes windows of 7 x 7 most alike.
__global__ void stereo_match(const unsigned char *left, const unsigned char *right,
                             unsigned char *disparity, int n) {
    __shared__ unsigned char l[22][22], r[22][22 + 31];
    int x0 = blockIdx.x * 16, y0 = blockIdx.y * 16;
    for (int y = threadIdx.y; y < 22; y += 16) {
        int row = min(max(y0 + y - 3, 0), n - 1) * n;
        for (int x = threadIdx.x; x < 22; x += 16) l[y][x] = left[row + min(max(x0 + x - 3, 0), n - 1)];
        for (int x = threadIdx.x; x < 53; x += 16) r[y][x] = right[row + min(max(x0 + x - 34, 0), n - 1)];
    }
    __syncthreads();
    int best = 1 << 30, found = 0;
    for (int d = 0; d < 32; d++) {
        int sad = 0;
        for (int dy = 0; dy < 7; dy++)
            for (int dx = 0; dx < 7; dx++)
                sad += abs(l[threadIdx.y + dy][threadIdx.x + dx] - r[threadIdx.y + dy][threadIdx.x + dx + 31 - d]);
        if (sad < best) {
            best = sad;
            found = d;
        }
    }
    disparity[(y0 + threadIdx.y) * n + x0 + threadIdx.x] = found;
}

// Vertices of a figure, moved by the four bones (3 x 4 matrices) that each hangs on.
__global__ void skin_vertices(const float4 *bones, const float3 *positions, const uchar4 *ids,
                              const float4 *weights, float3 *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float3 p = positions[i];
    uchar4 id = ids[i];
    float4 w = weights[i];
    int bone[4] = {id.x, id.y, id.z, id.w};
    float weight[4] = {w.x, w.y, w.z, w.w};
    float3 sum = make_float3(0, 0, 0);
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const float4 *m = bones + 3 * bone[k];
        float4 a = m[0], b = m[1], c = m[2];
        sum.x += weight[k] * (a.x * p.x + a.y * p.y + a.z * p.z + a.w);
        sum.y += weight[k] * (b.x * p.x + b.y * p.y + b.z * p.z + b.w);
        sum.z += weight[k] * (c.x * p.x + c.y * p.y + c.z * p.z + c.w);
    }
    out[i] = sum;
}
