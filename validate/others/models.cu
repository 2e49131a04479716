// Models of nature and of markets: forces, waves, flows, epidemics, options, hidden states.

// Forces between atoms and the neighbours that are listed for each, in a periodic box (Lennard-Jones).
__global__ void lennard_jones(const float4 *__restrict__ pos, const int *__restrict__ neighbors,
                              const int *__restrict__ counts, float4 *__restrict__ force, float box,
                              float cutoff2, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 pi = pos[i];
    float fx = 0, fy = 0, fz = 0, energy = 0;
    int count = counts[i];
    for (int k = 0; k < count; k++) {
        float4 pj = pos[neighbors[k * n + i]];
        float dx = pi.x - pj.x, dy = pi.y - pj.y, dz = pi.z - pj.z;
        if (dx > 0.5f * box) dx -= box;
        if (dx < -0.5f * box) dx += box;
        if (dy > 0.5f * box) dy -= box;
        if (dy < -0.5f * box) dy += box;
        if (dz > 0.5f * box) dz -= box;
        if (dz < -0.5f * box) dz += box;
        float r2 = dx * dx + dy * dy + dz * dz;
        if (r2 < cutoff2) {
            float inv2 = 1.0f / r2;
            float inv6 = inv2 * inv2 * inv2;
            float f = 24.0f * inv6 * (2.0f * inv6 - 1.0f) * inv2;
            fx += f * dx, fy += f * dy, fz += f * dz;
            energy += 4.0f * inv6 * (inv6 - 1.0f);
        }
    }
    force[i] = make_float4(fx, fy, fz, 0.5f * energy);
}

__constant__ float fd[5];

// Seismic waves, of eighth order in space: a block moves through the depth, the column in registers.
__global__ void seismic(const float *__restrict__ now, float *__restrict__ other,
                        const float *__restrict__ speed, int width, int depth) {
    __shared__ float tile[16][40];
    int x = blockIdx.x * 32 + threadIdx.x + 4, y = blockIdx.y * 8 + threadIdx.y + 4;
    int tx = threadIdx.x + 4, ty = threadIdx.y + 4;
    size_t plane = (size_t)width * width, at = (size_t)y * width + x;
    float column[9];
    for (int k = 1; k < 9; k++) column[k] = now[at + (k - 1) * plane];
    for (int z = 4; z < depth - 4; z++) {
        for (int k = 0; k < 8; k++) column[k] = column[k + 1];
        column[8] = now[at + (z + 4) * plane];
        size_t here = at + z * plane;
        __syncthreads();
        tile[ty][tx] = column[4];
        if (threadIdx.y < 4) {
            tile[ty - 4][tx] = now[here - 4 * width];
            tile[ty + 8][tx] = now[here + 8 * width];
        }
        if (threadIdx.x < 4) {
            tile[ty][tx - 4] = now[here - 4];
            tile[ty][tx + 32] = now[here + 32];
        }
        __syncthreads();
        float sum = 3 * fd[0] * column[4];
        for (int k = 1; k <= 4; k++)
            sum += fd[k] * (tile[ty][tx - k] + tile[ty][tx + k] + tile[ty - k][tx] + tile[ty + k][tx] +
                            column[4 - k] + column[4 + k]);
        other[here] = 2 * column[4] - other[here] + speed[here] * sum;
    }
}

// Electric fields from magnetic ones, half a step of Yee's scheme.
__global__ void update_e(float *ex, float *ey, float *ez, const float *hx, const float *hy, const float *hz,
                         float c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    int k = blockIdx.z * blockDim.z + threadIdx.z;
    if (i < 1 || j < 1 || k < 1 || i >= n || j >= n || k >= n) return;
    int at = (k * n + j) * n + i;
    ex[at] += c * ((hz[at] - hz[at - n]) - (hy[at] - hy[at - n * n]));
    ey[at] += c * ((hx[at] - hx[at - n * n]) - (hz[at] - hz[at - 1]));
    ez[at] += c * ((hy[at] - hy[at - 1]) - (hx[at] - hx[at - n]));
}

struct State {
    float h, hu, hv;
};

__device__ State state_at(const float *h, const float *hu, const float *hv, int i) {
    State s = {h[i], hu[i], hv[i]};
    return s;
}

// Shallow water on a torus (Lax and Friedrichs).
__global__ void shallow_water(const float *h, const float *hu, const float *hv, float *h2, float *hu2,
                              float *hv2, float r, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= n || y >= n) return;
    const float g = 9.81f;
    State e = state_at(h, hu, hv, y * n + (x + 1) % n), w = state_at(h, hu, hv, y * n + (x + n - 1) % n);
    State s = state_at(h, hu, hv, (y + 1) % n * n + x), t = state_at(h, hu, hv, (y + n - 1) % n * n + x);
    float ue = e.hu / e.h, uw = w.hu / w.h, vs = s.hv / s.h, vt = t.hv / t.h;
    int i = y * n + x;
    h2[i] = 0.25f * (e.h + w.h + s.h + t.h) - r * (e.hu - w.hu + s.hv - t.hv);
    hu2[i] = 0.25f * (e.hu + w.hu + s.hu + t.hu) -
             r * (e.hu * ue + 0.5f * g * e.h * e.h - w.hu * uw - 0.5f * g * w.h * w.h + s.hu * vs - t.hu * vt);
    hv2[i] = 0.25f * (e.hv + w.hv + s.hv + t.hv) -
             r * (e.hv * ue - w.hv * uw + s.hv * vs + 0.5f * g * s.h * s.h - t.hv * vt - 0.5f * g * t.h * t.h);
}

// American puts by trees of 255 steps, a block each.
__global__ void american_put(const float *spot, const float *strike, float *value, float up, float p,
                             float discount) {
    __shared__ float v[257];
    int t = threadIdx.x;
    float s = spot[blockIdx.x] * powf(up, 2.0f * t - 255.0f), k = strike[blockIdx.x];
    if (t == 0) v[256] = 0;
    v[t] = fmaxf(k - s, 0.0f);
    for (int step = 255; step > 0; step--) {
        __syncthreads();
        float held = discount * (p * v[t + 1] + (1 - p) * v[t]);
        s *= up;
        __syncthreads();
        if (t < step) v[t] = fmaxf(held, k - s);
    }
    if (t == 0) value[blockIdx.x] = v[0];
}

// Epidemics in villages of 256, each by chance, until nobody is ill.
__global__ void epidemics(const unsigned *seeds, int *recovered, int *peaks, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned state = seeds[i] | 1;
    int healthy = 252, ill = 4, peak = 4;
    while (ill > 0) {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        unsigned infect = 3 * healthy, recover = 2 * 256;
        if (state % (infect + recover) < infect) {
            healthy--;
            ill++;
            if (ill > peak) peak = ill;
        } else {
            ill--;
        }
    }
    recovered[i] = 256 - healthy;
    peaks[i] = peak;
}

__device__ float normal_cdf(float d) {
    float k = 1.0f / (1.0f + 0.2316419f * fabsf(d));
    float c = 0.39894228f * expf(-0.5f * d * d) *
              (k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f)))));
    return d > 0 ? 1.0f - c : c;
}

// Implied volatilities of calls by Newton's method.
__global__ void implied_vol(const float *price, const float *spot, const float *strike, const float *years,
                            float *vol, float rate, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = spot[i], k = strike[i], t = years[i], target = price[i];
    float root = sqrtf(t), discounted = k * expf(-rate * t), moneyness = logf(s / k);
    float sigma = 0.5f;
    for (int it = 0; it < 20; it++) {
        float d1 = (moneyness + (rate + 0.5f * sigma * sigma) * t) / (sigma * root), d2 = d1 - sigma * root;
        float value = s * normal_cdf(d1) - discounted * normal_cdf(d2);
        float vega = s * root * 0.39894228f * expf(-0.5f * d1 * d1);
        float diff = value - target;
        if (fabsf(diff) < 1e-3f) break;
        sigma -= diff / vega;
        sigma = fminf(fmaxf(sigma, 0.01f), 3.0f);
    }
    vol[i] = sigma;
}

__device__ double3 lorenz(double3 p) {
    return make_double3(10.0 * (p.y - p.x), p.x * (28.0 - p.z) - p.y, p.x * p.y - 8.0 / 3.0 * p.z);
}

__device__ double3 along(double3 p, double3 d, double h) {
    return make_double3(p.x + h * d.x, p.y + h * d.y, p.z + h * d.z);
}

// Orbits of Lorenz's equations, by Runge and Kutta.
__global__ void lorenz_rk4(double *x, double *y, double *z, double h, int steps, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double3 p = make_double3(x[i], y[i], z[i]);
    for (int s = 0; s < steps; s++) {
        double3 k1 = lorenz(p), k2 = lorenz(along(p, k1, 0.5 * h));
        double3 k3 = lorenz(along(p, k2, 0.5 * h)), k4 = lorenz(along(p, k3, h));
        p.x += h / 6 * (k1.x + 2 * k2.x + 2 * k3.x + k4.x);
        p.y += h / 6 * (k1.y + 2 * k2.y + 2 * k3.y + k4.y);
        p.z += h / 6 * (k1.z + 2 * k2.z + 2 * k3.z + k4.z);
    }
    x[i] = p.x, y[i] = p.y, z[i] = p.z;
}

// Charges of particles onto the four corners of their cell (cloud in cell).
__global__ void deposit_charge(const float2 *particles, float *grid, float charge, int cells, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float2 p = particles[i];
    int cx = (int)p.x, cy = (int)p.y;
    float fx = p.x - cx, fy = p.y - cy;
    int right = cx + 1 == cells ? 0 : cx + 1, below = cy + 1 == cells ? 0 : cy + 1;
    atomicAdd(&grid[cy * cells + cx], charge * (1 - fx) * (1 - fy));
    atomicAdd(&grid[cy * cells + right], charge * fx * (1 - fy));
    atomicAdd(&grid[below * cells + cx], charge * (1 - fx) * fy);
    atomicAdd(&grid[below * cells + right], charge * fx * fy);
}

// Tridiagonal systems of 64 (Thomas), a thread each, unknown by unknown.
__global__ void thomas(const double *lower, const double *diag, const double *upper, const double *rhs,
                       double *work, double *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double c = upper[i] / diag[i], d = rhs[i] / diag[i];
    work[i] = c;
    x[i] = d;
    for (int k = 1; k < 64; k++) {
        int at = k * n + i;
        double m = 1.0 / (diag[at] - lower[at] * c);
        d = (rhs[at] - lower[at] * d) * m;
        c = upper[at] * m;
        work[at] = c;
        x[at] = d;
    }
    for (int k = 62; k >= 0; k--) {
        d = x[k * n + i] - work[k * n + i] * d;
        x[k * n + i] = d;
    }
}

// The likeliest of 64 hidden states after each other (Viterbi); a block a sequence.
__global__ void viterbi(const float *trans, const float *emit, const unsigned char *seen, unsigned char *back,
                        unsigned char *path, int steps) {
    __shared__ float t[64 * 64], score[2][64];
    int j = threadIdx.x;
    const unsigned char *symbols = seen + blockIdx.x * steps;
    unsigned char *from = back + (size_t)blockIdx.x * steps * 64;
    for (int k = j; k < 64 * 64; k += 64) t[k] = trans[k];
    score[0][j] = emit[symbols[0] * 64 + j];
    __syncthreads();
    for (int s = 1; s < steps; s++) {
        float *last = score[(s - 1) & 1];
        float best = -1e30f;
        int which = 0;
        for (int i = 0; i < 64; i++) {
            float v = last[i] + t[i * 64 + j];
            if (v > best) {
                best = v;
                which = i;
            }
        }
        score[s & 1][j] = best + emit[symbols[s] * 64 + j];
        from[s * 64 + j] = which;
        __syncthreads();
    }
    if (j == 0) {
        float *last = score[(steps - 1) & 1];
        int at = 0;
        for (int i = 1; i < 64; i++)
            if (last[i] > last[at]) at = i;
        for (int s = steps - 1; s > 0; s--) {
            path[blockIdx.x * steps + s] = at;
            at = from[s * 64 + at];
        }
        path[blockIdx.x * steps] = at;
    }
}

// Queens on a board: a thread takes three rows as they are given by its number and tries the others.
__global__ void queens(unsigned long long *found, int size) {
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    if (id >= size * size * size) return;
    unsigned cols[16], left[16], right[16], todo[16];
    unsigned full = (1u << size) - 1, c = 0, l = 0, r = 0;
    for (int row = 0, rest = id; row < 3; row++, rest /= size) {
        unsigned bit = 1u << (rest % size);
        if ((c | l | r) & bit) return;
        c |= bit;
        l = (l | bit) << 1;
        r = (r | bit) >> 1;
    }
    int row = 3, count = 0;
    cols[3] = c, left[3] = l, right[3] = r, todo[3] = full & ~(c | l | r);
    while (row >= 3) {
        unsigned free = todo[row];
        if (free == 0) {
            row--;
            continue;
        }
        unsigned bit = free & -free;
        todo[row] = free ^ bit;
        if (row == size - 1) {
            count++;
            continue;
        }
        c = cols[row] | bit;
        l = (left[row] | bit) << 1;
        r = (right[row] | bit) >> 1;
        row++;
        cols[row] = c, left[row] = l, right[row] = r, todo[row] = full & ~(c | l | r);
    }
    if (count) atomicAdd(found, (unsigned long long)count);
}
