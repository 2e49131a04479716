// Simulation and the engineering of data: particles, solvers, grids, bytes, partitions, graphs, pictures.

// Densities of particles from those in the 27 cells around each (smoothed particle hydrodynamics).
__global__ void sph_density(const float4 *pos, const int *cell_start, float *density, float h2, int cells, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 p = pos[i];
    int cx = (int)p.x, cy = (int)p.y, cz = (int)p.z;
    float sum = 0;
    for (int dz = -1; dz <= 1; dz++)
        for (int dy = -1; dy <= 1; dy++)
            for (int dx = -1; dx <= 1; dx++) {
                int x = cx + dx, y = cy + dy, z = cz + dz;
                if (x < 0 || y < 0 || z < 0 || x >= cells || y >= cells || z >= cells) continue;
                int cell = (z * cells + y) * cells + x;
                for (int j = cell_start[cell]; j < cell_start[cell + 1]; j++) {
                    float4 q = pos[j];
                    float ex = p.x - q.x, ey = p.y - q.y, ez = p.z - q.z;
                    float r2 = ex * ex + ey * ey + ez * ez;
                    if (r2 < h2) {
                        float d = h2 - r2;
                        sum += q.w * d * d * d;
                    }
                }
            }
    density[i] = sum;
}

// Particles in a plasma: fields from the four nodes around each, Boris' rotation, a step.
__global__ void push_particles(float *__restrict__ x, float *__restrict__ y, float *__restrict__ vx,
                               float *__restrict__ vy, const float4 *__restrict__ fields, float dt, int cells, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float px = x[i], py = y[i];
        int cx = (int)px, cy = (int)py;
        float fx = px - cx, fy = py - cy;
        int right = (cx + 1) & (cells - 1), below = (cy + 1) & (cells - 1);
        float4 a = fields[cy * cells + cx], b = fields[cy * cells + right];
        float4 c = fields[below * cells + cx], d = fields[below * cells + right];
        float wa = (1 - fx) * (1 - fy), wb = fx * (1 - fy), wc = (1 - fx) * fy, wd = fx * fy;
        float ex = wa * a.x + wb * b.x + wc * c.x + wd * d.x;
        float ey = wa * a.y + wb * b.y + wc * c.y + wd * d.y;
        float bz = wa * a.z + wb * b.z + wc * c.z + wd * d.z;
        float ux = vx[i] + 0.5f * dt * ex, uy = vy[i] + 0.5f * dt * ey;
        float t = 0.5f * dt * bz, s = 2 * t / (1 + t * t);
        float wx = ux + uy * t, wy = uy - ux * t;
        ux += wy * s;
        uy -= wx * s;
        ux += 0.5f * dt * ex;
        uy += 0.5f * dt * ey;
        px += ux * dt;
        py += uy * dt;
        if (px < 0) px += cells;
        if (px >= cells) px -= cells;
        if (py < 0) py += cells;
        if (py >= cells) py -= cells;
        x[i] = px;
        y[i] = py;
        vx[i] = ux;
        vy[i] = uy;
    }
}

// A step of conjugate gradients: the solution, the residual and its square, in one pass.
__global__ void cg_step(double2 *__restrict__ x, double2 *__restrict__ r, const double2 *__restrict__ p,
                        const double2 *__restrict__ q, const double *rr, const double *pq, double *rr_next, int pairs) {
    __shared__ double parts[8];
    double alpha = *rr / *pq, sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < pairs; i += gridDim.x * blockDim.x) {
        double2 xi = x[i], ri = r[i], pi = p[i], qi = q[i];
        xi.x += alpha * pi.x;
        xi.y += alpha * pi.y;
        ri.x -= alpha * qi.x;
        ri.y -= alpha * qi.y;
        x[i] = xi;
        r[i] = ri;
        sum += ri.x * ri.x + ri.y * ri.y;
    }
    for (int offset = 16; offset > 0; offset >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, offset);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 8) {
        sum = parts[threadIdx.x];
        for (int offset = 4; offset > 0; offset >>= 1) sum += __shfl_down_sync(0xffu, sum, offset, 8);
        if (threadIdx.x == 0) atomicAdd(rr_next, sum);
    }
}

// A fine grid of a multigrid method on the next coarser one, by full weighting of 27 nodes.
__global__ void restrict3d(const double *fine, double *coarse, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    int k = blockIdx.z * blockDim.z + threadIdx.z;
    if (i >= m || j >= m || k >= m) return;
    int n = 2 * m;
    double sum = 0;
    for (int dk = -1; dk <= 1; dk++)
        for (int dj = -1; dj <= 1; dj++)
            for (int di = -1; di <= 1; di++) {
                int x = 2 * i + di, y = 2 * j + dj, z = 2 * k + dk;
                if (x < 0 || y < 0 || z < 0) continue;
                double weight = 0.125;
                if (di != 0) weight *= 0.5;
                if (dj != 0) weight *= 0.5;
                if (dk != 0) weight *= 0.5;
                sum += weight * fine[((size_t)z * n + y) * n + x];
            }
    coarse[((size_t)k * m + j) * m + i] = sum;
}

// Where commas and ends of lines stand in a text; each block knows how many there are before its 4096 bytes.
__global__ void index_delimiters(const uint4 *__restrict__ text, const int *__restrict__ before,
                                 int *__restrict__ places) {
    __shared__ int totals[8];
    int t = threadIdx.x, lane = t & 31, warp = t >> 5;
    int piece = blockIdx.x * 256 + t;
    uint4 v = text[piece];
    unsigned words[4] = {v.x, v.y, v.z, v.w}, marks = 0;
#pragma unroll
    for (int w = 0; w < 4; w++) {
        unsigned hits = __vcmpeq4(words[w], 0x2c2c2c2cu) | __vcmpeq4(words[w], 0x0a0a0a0au);
        hits &= 0x08040201u;
        marks |= ((hits | hits >> 8 | hits >> 16 | hits >> 24) & 15) << (4 * w);
    }
    int count = __popc(marks), scan = count;
    for (int offset = 1; offset < 32; offset <<= 1) {
        int other = __shfl_up_sync(0xffffffffu, scan, offset);
        if (lane >= offset) scan += other;
    }
    if (lane == 31) totals[warp] = scan;
    __syncthreads();
    int to = before[blockIdx.x] + scan - count;
    for (int w = 0; w < warp; w++) to += totals[w];
    while (marks != 0) {
        places[to++] = piece * 16 + __ffs(marks) - 1;
        marks &= marks - 1;
    }
}

__device__ unsigned long long finished(unsigned long long h) {
    h ^= h >> 33;
    h *= 0xff51afd7ed558ccdULL;
    h ^= h >> 33;
    h *= 0xc4ceb9fe1a85ec53ULL;
    return h ^ h >> 33;
}

// Which of 256 partitions each row goes to by a hash of two columns, and how many of each block do.
__global__ void partition_rows(const long long *customers, const int *items, unsigned char *partitions,
                               int *counts, int n) {
    __shared__ int own[256];
    if (threadIdx.x < 256) own[threadIdx.x] = 0;
    __syncthreads();
    int begin = blockIdx.x * 4096;
    for (int k = threadIdx.x; k < 4096; k += blockDim.x) {
        int i = begin + k;
        if (i < n) {
            unsigned long long hash = finished(customers[i]);
            hash = finished(hash * 31 + items[i]);
            int partition = hash >> 56;
            partitions[i] = partition;
            atomicAdd(&own[partition], 1);
        }
    }
    __syncthreads();
    if (threadIdx.x < 256) counts[threadIdx.x * gridDim.x + blockIdx.x] = own[threadIdx.x];
}

__device__ unsigned mixed(unsigned v) {
    v ^= v >> 16;
    v *= 0x7feb352du;
    v ^= v >> 15;
    v *= 0x846ca68bu;
    return v ^ v >> 16;
}

// A round of Luby's independent set: nodes whose number is larger than their undecided neighbours'.
__global__ void independent_set(const int *begins, const int *neighbours, const int *states, int *later,
                                unsigned seed, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int state = states[v];
    if (state == 0) {
        unsigned own = mixed(v ^ seed);
        bool is_largest = true;
        for (int k = begins[v]; k < begins[v + 1]; k++) {
            int u = neighbours[k];
            if (u != v && states[u] == 0 && mixed(u ^ seed) > own) {
                is_largest = false;
                break;
            }
        }
        if (is_largest) state = 1;
    }
    later[v] = state;
}

// Rows of a PNG by Paeth's filter: what each byte differs from the nearest of three before it.
__global__ void paeth_filter(const unsigned char *image, unsigned char *out, int width, int height) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
    int bytes = 4 * width;
    if (i >= bytes) return;
    const unsigned char *line = image + (size_t)row * bytes;
    int a = i >= 4 ? line[i - 4] : 0;
    int b = row > 0 ? line[i - bytes] : 0;
    int c = row > 0 && i >= 4 ? line[i - bytes - 4] : 0;
    int p = a + b - c;
    int pa = abs(p - a), pb = abs(p - b), pc = abs(p - c);
    int nearest = pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
    size_t to = (size_t)row * (bytes + 1);
    if (i == 0) out[to] = 4;
    out[to + 1 + i] = line[i] - nearest;
}

__device__ float next_uniform(unsigned &state) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return ((state >> 8) + 0.5f) * (1.0f / 16777216.0f);
}

// Photons through a layer of tissue: free paths, what each leaves in which depth, new directions.
__global__ void photons(float *absorbed, float *escaped, float total, float albedo, float depth, int bins,
                        unsigned seed, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned state = mixed(i ^ seed) | 1;
    float z = 0, direction = 1, weight = 1;
    while (true) {
        z -= logf(next_uniform(state)) / total * direction;
        if (z < 0 || z >= depth) {
            atomicAdd(&escaped[z < 0 ? 0 : 1], weight);
            break;
        }
        atomicAdd(&absorbed[(int)(z / depth * bins)], weight * (1 - albedo));
        weight *= albedo;
        if (weight < 0.05f) break;
        direction = 2 * next_uniform(state) - 1;
    }
}

__device__ int two_digits(const char *s) {
    return (s[0] - '0') * 10 + (s[1] - '0');
}

// Times as text, "2024-03-17 08:45:09" and an end of line, as seconds since 1970; -1 where there is none.
__global__ void parse_dates(const char *text, long long *seconds, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const char *s = text + i * 20;
    if (s[4] != '-' || s[7] != '-') {
        seconds[i] = -1;
        return;
    }
    int year = two_digits(s) * 100 + two_digits(s + 2);
    int month = two_digits(s + 5), day = two_digits(s + 8);
    int hour = two_digits(s + 11), minute = two_digits(s + 14), second = two_digits(s + 17);
    if (month <= 2) year--;
    int era = year / 400;
    int of_era = year - era * 400;
    int of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    int days = era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
    seconds[i] = days * 86400LL + hour * 3600 + minute * 60 + second;
}

// Systems of six equations, a thread each, by elimination with pivots.
__global__ void solve6(const double *matrices, const double *rhs, double *solutions, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double m[6][7];
    for (int r = 0; r < 6; r++) {
        for (int c = 0; c < 6; c++) m[r][c] = matrices[i * 36 + r * 6 + c];
        m[r][6] = rhs[i * 6 + r];
    }
    for (int c = 0; c < 6; c++) {
        int pivot = c;
        for (int r = c + 1; r < 6; r++)
            if (fabs(m[r][c]) > fabs(m[pivot][c])) pivot = r;
        if (pivot != c)
            for (int k = c; k < 7; k++) {
                double held = m[c][k];
                m[c][k] = m[pivot][k];
                m[pivot][k] = held;
            }
        for (int r = c + 1; r < 6; r++) {
            double factor = m[r][c] / m[c][c];
            for (int k = c; k < 7; k++) m[r][k] -= factor * m[c][k];
        }
    }
    for (int r = 5; r >= 0; r--) {
        double sum = m[r][6];
        for (int k = r + 1; k < 6; k++) sum -= m[r][k] * m[k][6];
        m[r][6] = sum / m[r][r];
    }
    for (int r = 0; r < 6; r++) solutions[i * 6 + r] = m[r][6];
}

// Where an automaton of up to 16 states, its table in shared memory, accepts in lines of 64 bytes.
__global__ void match_lines(const unsigned char *text, const uint4 *table, int accepting, int *ends, int n) {
    __shared__ __align__(16) unsigned char next[16 * 256];
    for (int k = threadIdx.x; k < 256; k += blockDim.x) ((uint4 *)next)[k] = table[k];
    __syncthreads();
    int line = blockIdx.x * blockDim.x + threadIdx.x;
    if (line >= n) return;
    int state = 0, end = -1;
    for (int k = 0; k < 64; k++) {
        state = next[state * 256 + text[line * 64 + k]];
        if (state == accepting) {
            end = k;
            break;
        }
    }
    ends[line] = end;
}
