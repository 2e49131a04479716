// What textbooks and suites of benchmarks have: grids, panels, searches, filters, passes of transforms.

const int SIDE = 16, STEPS = 2, INNER = SIDE - 2 * STEPS;

// Two steps of a chip's temperature from what it draws; a block's tile shrinks by its rim with each (Rodinia's hotspot).
__global__ void hotspot(const float *power, const float *from, float *to, int rows, int columns, float step, float rx,
                        float ry, float rz, float ambient) {
    __shared__ float now[SIDE][SIDE], drawn[SIDE][SIDE], later[SIDE][SIDE];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row0 = INNER * blockIdx.y - STEPS, column0 = INNER * blockIdx.x - STEPS;
    int row = row0 + ty, column = column0 + tx;
    bool is_inside = row >= 0 && row < rows && column >= 0 && column < columns;
    int index = row * columns + column;
    if (is_inside) {
        now[ty][tx] = from[index];
        drawn[ty][tx] = power[index];
    }
    __syncthreads();

    int top = row0 < 0 ? -row0 : 0, bottom = row0 + SIDE > rows ? rows - 1 - row0 : SIDE - 1;
    int left = column0 < 0 ? -column0 : 0, right = column0 + SIDE > columns ? columns - 1 - column0 : SIDE - 1;
    int north = max(ty - 1, top), south = min(ty + 1, bottom);
    int west = max(tx - 1, left), east = min(tx + 1, right);

    bool is_computed = false;
    for (int i = 0; i < STEPS; i++) {
        is_computed = false;
        if (tx >= i + 1 && tx <= SIDE - i - 2 && ty >= i + 1 && ty <= SIDE - i - 2 && is_inside) {
            is_computed = true;
            float t = now[ty][tx];
            later[ty][tx] = t + step * (drawn[ty][tx] + (now[south][tx] + now[north][tx] - 2.0f * t) * ry +
                                        (now[ty][east] + now[ty][west] - 2.0f * t) * rx + (ambient - t) * rz);
        }
        __syncthreads();
        if (i == STEPS - 1) break;
        if (is_computed) now[ty][tx] = later[ty][tx];
        __syncthreads();
    }
    if (is_computed) to[index] = later[ty][tx];
}

const int PANEL = 16;

// Panels of 128 x 16, column by column, to their factors L and U, in place; a thread a row, which it keeps in registers.
__global__ void __launch_bounds__(128) lu_panel(double *panels) {
    __shared__ double pivots[2][PANEL];
    double *panel = panels + (size_t)blockIdx.x * 128 * PANEL;
    int r = threadIdx.x;
    double row[PANEL];
#pragma unroll
    for (int c = 0; c < PANEL; c++) row[c] = panel[c * 128 + r];
#pragma unroll
    for (int k = 0; k < PANEL; k++) {
        double *pivot = pivots[k % 2];
        if (r == k) {
#pragma unroll
            for (int c = k; c < PANEL; c++) pivot[c] = row[c];
        }
        __syncthreads();
        if (r > k) {
            double factor = row[k] / pivot[k];
            row[k] = factor;
#pragma unroll
            for (int c = k + 1; c < PANEL; c++) row[c] -= factor * pivot[c];
        }
    }
#pragma unroll
    for (int c = 0; c < PANEL; c++) panel[c * 128 + r] = row[c];
}

const int CELLS = 32;

// Tiles of 32 x 32 on a diagonal of a table of alignments (Needleman and Wunsch); a block of one warp a tile.
__global__ void needle(const int *reference, int *scores, int pitch, int penalty) {
    __shared__ int table[CELLS + 1][CELLS + 1];
    __shared__ int similar[CELLS][CELLS];
    int t = threadIdx.x;
    int across = blockIdx.x, down = gridDim.x - 1 - blockIdx.x;
    int corner = pitch * CELLS * down + CELLS * across;
    if (t == 0) table[0][0] = scores[corner];
    for (int k = 0; k < CELLS; k++) similar[k][t] = reference[corner + pitch * (k + 1) + t + 1];
    table[t + 1][0] = scores[corner + pitch * (t + 1)];
    table[0][t + 1] = scores[corner + t + 1];
    __syncthreads();
    for (int m = 0; m < CELLS; m++) {
        if (t <= m) {
            int x = t + 1, y = m - t + 1;
            int best = table[y - 1][x - 1] + similar[y - 1][x - 1];
            best = max(best, table[y][x - 1] - penalty);
            table[y][x] = max(best, table[y - 1][x] - penalty);
        }
        __syncthreads();
    }
    for (int m = CELLS - 2; m >= 0; m--) {
        if (t <= m) {
            int x = t + CELLS - m, y = CELLS - t;
            int best = table[y - 1][x - 1] + similar[y - 1][x - 1];
            best = max(best, table[y][x - 1] - penalty);
            table[y][x] = max(best, table[y - 1][x] - penalty);
        }
        __syncthreads();
    }
    for (int k = 0; k < CELLS; k++) scores[corner + pitch * (k + 1) + t + 1] = table[k + 1][t + 1];
}

__device__ unsigned scattered(unsigned v) {
    v ^= v >> 16;
    v *= 0x7feb352du;
    v ^= v >> 15;
    v *= 0x846ca68bu;
    return v ^ v >> 16;
}

// Cross sections of materials at random energies: a search in one grid for all, then each nuclide's row (XSBench).
__global__ void cross_sections(const double *energies, const int *places, const double *nuclides, const int *begins,
                               const int *members, const double *densities, double *sums, int points, int kinds,
                               int per_kind, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double energy = (scattered(2 * i) + 0.5) / 4294967296.0;
    int material = scattered(2 * i + 1) % 12;
    int low = 0, length = points;
    while (length > 1) {
        int half = length / 2;
        if (energies[low + half] <= energy) low += half;
        length -= half;
    }
    double macro[5] = {0, 0, 0, 0, 0};
    for (int j = begins[material]; j < begins[material + 1]; j++) {
        int kind = members[j];
        double density = densities[j];
        int place = places[low * kinds + kind];
        const double *below = nuclides + ((size_t)kind * per_kind + place) * 6;
        const double *above = below + 6;
        double f = (above[0] - energy) / (above[0] - below[0]);
        for (int k = 0; k < 5; k++) macro[k] += density * (above[k + 1] - f * (above[k + 1] - below[k + 1]));
    }
    for (int k = 0; k < 5; k++) sums[(size_t)i * 5 + k] = macro[k];
}

// How a picture spreads where it has no edges: derivatives and coefficient of each pixel (Rodinia's SRAD).
__global__ void srad_step(const float *image, const int *up, const int *down, const int *left, const int *right,
                          float *dn, float *ds, float *dw, float *de, float *spread, float q0, int rows, int pixels) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= pixels) return;
    int row = i % rows, column = i / rows;
    float center = image[i];
    float n = image[up[row] + rows * column] - center;
    float s = image[down[row] + rows * column] - center;
    float w = image[row + rows * left[column]] - center;
    float e = image[row + rows * right[column]] - center;
    float g2 = (n * n + s * s + w * w + e * e) / (center * center);
    float l = (n + s + w + e) / center;
    float num = 0.5f * g2 - (1.0f / 16.0f) * (l * l);
    float den = 1 + 0.25f * l;
    float q = num / (den * den);
    den = (q - q0) / (q0 * (1 + q0));
    float c = 1.0f / (1.0f + den);
    if (c < 0) c = 0;
    else if (c > 1) c = 1;
    dn[i] = n;
    ds[i] = s;
    dw[i] = w;
    de[i] = e;
    spread[i] = c;
}

// A layer of a network of 16 hidden units: products of inputs and weights, added up by blocks (Rodinia's backprop).
__global__ void layer_forward(const float *input, float *weights, float *partial, int hidden) {
    __shared__ float node[16];
    __shared__ float matrix[16][16];
    int by = blockIdx.y, tx = threadIdx.x, ty = threadIdx.y;
    int index = (hidden + 1) * 16 * by + (hidden + 1) * ty + tx + 1 + (hidden + 1);
    int from = 16 * by + ty + 1;
    if (tx == 0) node[ty] = input[from];
    __syncthreads();
    matrix[ty][tx] = weights[index];
    __syncthreads();
    matrix[ty][tx] = matrix[ty][tx] * node[ty];
    __syncthreads();
    for (int i = 1; i <= __log2f(16); i++) {
        int power_two = __powf(2, i);
        if (ty % power_two == 0) matrix[ty][tx] = matrix[ty][tx] + matrix[ty + power_two / 2][tx];
        __syncthreads();
    }
    weights[index] = matrix[ty][tx];
    __syncthreads();
    if (tx == 0) partial[by * hidden + ty] = matrix[tx][ty];
}

const float GAMMA = 1.4f;

// What flows into the cells of an unstructured grid from four neighbours each (Rodinia's Euler solver in 3D).
__global__ void cfd_flux(int cells, const int *neighbours, const float *normals, const float *variables, float *fluxes,
                         float far_density, float far_energy) {
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    float density = variables[i];
    float mx = variables[i + cells], my = variables[i + 2 * cells], mz = variables[i + 3 * cells];
    float energy = variables[i + 4 * cells];
    float vx = mx / density, vy = my / density, vz = mz / density;
    float squared = vx * vx + vy * vy + vz * vz;
    float pressure = (GAMMA - 1.0f) * (energy - 0.5f * density * squared);
    float sound = sqrtf(GAMMA * pressure / density);
    float speed = sqrtf(squared);
    float flux[5] = {0, 0, 0, 0, 0};
#pragma unroll
    for (int j = 0; j < 4; j++) {
        int other = neighbours[i + j * cells];
        float nx = normals[i + j * cells], ny = normals[i + (j + 4) * cells], nz = normals[i + (j + 8) * cells];
        if (other >= 0) {
            float od = variables[other];
            float ox = variables[other + cells], oy = variables[other + 2 * cells], oz = variables[other + 3 * cells];
            float oe = variables[other + 4 * cells];
            float wx = ox / od, wy = oy / od, wz = oz / od;
            float other_squared = wx * wx + wy * wy + wz * wz;
            float other_pressure = (GAMMA - 1.0f) * (oe - 0.5f * od * other_squared);
            float other_sound = sqrtf(GAMMA * other_pressure / od);
            float factor = -sqrtf(nx * nx + ny * ny + nz * nz) * 0.1f *
                           (speed + sqrtf(other_squared) + sound + other_sound);
            float own = 0.5f * (nx * vx + ny * vy + nz * vz), its = 0.5f * (nx * wx + ny * wy + nz * wz);
            float push = 0.5f * (pressure + other_pressure);
            flux[0] += factor * (density - od) + own * density + its * od;
            flux[1] += factor * (mx - ox) + own * mx + its * ox + push * nx;
            flux[2] += factor * (my - oy) + own * my + its * oy + push * ny;
            flux[3] += factor * (mz - oz) + own * mz + its * oz + push * nz;
            flux[4] += factor * (energy - oe) + own * (energy + pressure) + its * (oe + other_pressure);
        } else if (other == -1) {
            flux[1] += nx * pressure;
            flux[2] += ny * pressure;
            flux[3] += nz * pressure;
        } else {
            float own = 0.5f * (nx * vx + ny * vy + nz * vz);
            flux[0] += own * (density + far_density);
            flux[1] += own * mx;
            flux[2] += own * my;
            flux[3] += own * mz;
            flux[4] += own * (energy + far_energy);
        }
    }
#pragma unroll
    for (int k = 0; k < 5; k++) fluxes[i + k * cells] = flux[k];
}

const int NEAREST = 8;

// The eight nearest of some points to each query, by insertion; the next 256 points are read while these are compared.
__global__ void __launch_bounds__(256) k_nearest(const float4 *__restrict__ points, const float4 *__restrict__ queries,
                                                 float *__restrict__ distances, int *__restrict__ places, int count,
                                                 int n) {
    __shared__ float4 tile[2][256];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    float4 q = queries[i];
    float best[NEAREST];
    int which[NEAREST];
#pragma unroll
    for (int k = 0; k < NEAREST; k++) {
        best[k] = 1e30f;
        which[k] = -1;
    }
    int buffer = 0;
    tile[0][t] = points[t];
    __syncthreads();
    for (int begin = 0; begin < count; begin += 256) {
        float4 next;
        bool is_more = begin + 256 < count;
        if (is_more) next = points[begin + 256 + t];
        for (int j = 0; j < 256; j++) {
            float4 p = tile[buffer][j];
            float x = p.x - q.x, y = p.y - q.y, z = p.z - q.z, w = p.w - q.w;
            float d = x * x + y * y + z * z + w * w;
            if (d < best[NEAREST - 1]) {
                best[NEAREST - 1] = d;
                which[NEAREST - 1] = begin + j;
#pragma unroll
                for (int k = NEAREST - 1; k > 0; k--)
                    if (best[k] < best[k - 1]) {
                        float held = best[k];
                        best[k] = best[k - 1];
                        best[k - 1] = held;
                        int place = which[k];
                        which[k] = which[k - 1];
                        which[k - 1] = place;
                    }
            }
        }
        if (is_more) tile[buffer ^ 1][t] = next;
        __syncthreads();
        buffer ^= 1;
    }
#pragma unroll
    for (int k = 0; k < NEAREST; k++) {
        distances[k * n + i] = best[k];
        places[k * n + i] = which[k];
    }
}

// Where reads of 24 letters stand among the sorted suffixes of a genome, and how many letters agree there.
__global__ void find_in_suffixes(const char *text, const int *suffixes, const char *reads, int *places, int *lengths,
                                 int letters, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const char *read = reads + i * 24;
    int low = 0, high = letters, longest = 0;
    while (low < high) {
        int middle = (low + high) / 2;
        const char *suffix = text + suffixes[middle];
        int k = 0;
        while (k < 24 && suffix[k] == read[k]) k++;
        if (k > longest) longest = k;
        if (k < 24 && suffix[k] < read[k]) low = middle + 1;
        else high = middle;
    }
    places[i] = low;
    lengths[i] = longest;
}

__constant__ float4 trajectory[1024];

// A picture from what a scanner has at points of the space of frequencies (Parboil's MRI-Q).
__global__ void mri_q(const float *x, const float *y, const float *z, float *real, float *imaginary, int samples) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float px = x[i], py = y[i], pz = z[i];
    float re = real[i], im = imaginary[i];
    for (int k = 0; k < samples; k++) {
        float4 at = trajectory[k];
        float angle = 6.2831853071795864769f * (at.x * px + at.y * py + at.z * pz);
        re += at.w * cosf(angle);
        im += at.w * sinf(angle);
    }
    real[i] = re;
    imaginary[i] = im;
}

__device__ float2 times(float2 a, float2 b) {
    return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

__device__ void butterfly(float2 &a, float2 &b) {
    float2 sum = make_float2(a.x + b.x, a.y + b.y);
    b = make_float2(a.x - b.x, a.y - b.y);
    a = sum;
}

// A pass of a long Fourier transform, radix 8 (Stockham): what lies far apart comes together.
__global__ void __launch_bounds__(128) radix8_pass(const float2 *__restrict__ from, float2 *__restrict__ to, int done,
                                                   int eighth) {
    int i = blockIdx.x * 128 + threadIdx.x;
    int k = i & (done - 1);
    float2 v[8];
#pragma unroll
    for (int j = 0; j < 8; j++) v[j] = from[i + j * eighth];
    float sine, cosine;
    sincosf(-6.283185307f * k / (8 * done), &sine, &cosine);
    float2 w = make_float2(cosine, sine), turn = w;
#pragma unroll
    for (int j = 1; j < 8; j++) {
        v[j] = times(v[j], turn);
        turn = times(turn, w);
    }
    const float h = 0.70710678f;
#pragma unroll
    for (int j = 0; j < 4; j++) butterfly(v[j], v[j + 4]);
    v[5] = make_float2(h * (v[5].x + v[5].y), h * (v[5].y - v[5].x));
    v[6] = make_float2(v[6].y, -v[6].x);
    v[7] = make_float2(h * (v[7].y - v[7].x), -h * (v[7].x + v[7].y));
#pragma unroll
    for (int j = 0; j < 8; j += 4) {
        butterfly(v[j], v[j + 2]);
        butterfly(v[j + 1], v[j + 3]);
        v[j + 3] = make_float2(v[j + 3].y, -v[j + 3].x);
        butterfly(v[j], v[j + 1]);
        butterfly(v[j + 2], v[j + 3]);
    }
    float2 *out = to + (i - k) * 8 + k;
    out[0] = v[0];
    out[done] = v[4];
    out[2 * done] = v[2];
    out[3 * done] = v[6];
    out[4 * done] = v[1];
    out[5 * done] = v[5];
    out[6 * done] = v[3];
    out[7 * done] = v[7];
}

struct Track {
    float state[4];
    float covariance[16];
};

// Kalman filters of things that move in a plane, a thread each, over 32 measurements, of which some are missing.
__global__ void kalman_tracks(const float *measured, Track *tracks, float dt, float noise, float blur, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x[4], P[4][4];
    for (int r = 0; r < 4; r++) {
        x[r] = tracks[i].state[r];
        for (int c = 0; c < 4; c++) P[r][c] = tracks[i].covariance[r * 4 + c];
    }
    for (int step = 0; step < 32; step++) {
        x[0] += dt * x[2];
        x[1] += dt * x[3];
        for (int c = 0; c < 4; c++) {
            P[0][c] += dt * P[2][c];
            P[1][c] += dt * P[3][c];
        }
        for (int r = 0; r < 4; r++) {
            P[r][0] += dt * P[r][2];
            P[r][1] += dt * P[r][3];
            P[r][r] += noise;
        }
        float zx = measured[(i * 32 + step) * 2], zy = measured[(i * 32 + step) * 2 + 1];
        if (zx > -1e6f) {
            float a = P[0][0] + blur, b = P[0][1], c = P[1][0], d = P[1][1] + blur;
            float det = a * d - b * c;
            float K[4][2];
            for (int r = 0; r < 4; r++) {
                K[r][0] = (P[r][0] * d - P[r][1] * c) / det;
                K[r][1] = (P[r][1] * a - P[r][0] * b) / det;
            }
            float ex = zx - x[0], ey = zy - x[1];
            float first[4], second[4];
            for (int k = 0; k < 4; k++) {
                first[k] = P[0][k];
                second[k] = P[1][k];
            }
            for (int r = 0; r < 4; r++) {
                x[r] += K[r][0] * ex + K[r][1] * ey;
                for (int k = 0; k < 4; k++) P[r][k] -= K[r][0] * first[k] + K[r][1] * second[k];
            }
        }
    }
    for (int r = 0; r < 4; r++) {
        tracks[i].state[r] = x[r];
        for (int c = 0; c < 4; c++) tracks[i].covariance[r * 4 + c] = P[r][c];
    }
}
