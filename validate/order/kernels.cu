// Kernels with three defects each. CURE 0 has all three; 1, 2 and 3 leave one out, that of the
// line marked with the number and the kind of its finding. n is the number of threads, k that of
// repetitions. All blocks are resident at once, so that phases follow each other on every SM.

#define AT int t = threadIdx.x, i = blockIdx.x * blockDim.x + t

template <int CURE> __global__ void columns(const float *x, float *y, int n, int k)
{
    __shared__ float tile[1024];
    AT;
    float v = 0;
    for (int s = 0; s < 16; ++s)
        v += x[s * n + (CURE == 1 ? i : t * gridDim.x + blockIdx.x)]; // <- 1 uncoalesced
    tile[t] = v, tile[t + 256] = v, tile[t + 512] = v, tile[t + 768] = v;
    __syncthreads();
    int step = CURE == 2 ? 1 : 8;
    for (int s = 0; s < k; ++s)
        v += tile[(t * step + s) & 1023]; // <- 2 bank-conflict
    unsigned u = t + 1000000;
    for (int s = 0; s < k / 2; ++s)
        if constexpr (CURE == 3)
            u = (u >> (k & 3)) + s * i;
        else
            u = u / k + s * i; // <- 3 integer-division
    v += u;
    y[i] = v;
}

template <int CURE> __global__ void records(const float *x, float *y, int n, int k)
{
    __shared__ float tile[1024];
    AT;
    float v = 0;
    for (int s = 0; s < 32; ++s)
        v += x[s * n + (CURE == 1 ? i : t * gridDim.x + blockIdx.x)]; // <- 1 uncoalesced
    tile[t] = v, tile[t + 256] = v, tile[t + 512] = v, tile[t + 768] = v;
    __syncthreads();
    int step = CURE == 2 ? 1 : 4;
    for (int s = 0; s < k; ++s)
        v += tile[(t * step + s) & 1023]; // <- 2 bank-conflict
    for (int s = 0; s < k / 3; ++s)
        if constexpr (CURE == 3)
            v = v * 1.0001f + 0.5f;
        else
            v = v * 1.0001 + 0.5; // <- 3 double-precision
    y[i] = v;
}

template <int CURE> __global__ void branches(const float *x, float *y, int n, int k)
{
    __shared__ float tile[1024];
    AT;
    float v = x[i];
    int which = CURE == 1 ? t / 32 % 2 : t % 2;
    if (which) { // <- 1 divergence
        for (int s = 0; s < k; ++s)
            v = v * 1.01f + s * v * v;
    } else {
        for (int s = 0; s < k; ++s)
            v = v * 0.99f - s * (v + 1) * v;
    }
    tile[t] = v, tile[t + 256] = v, tile[t + 512] = v, tile[t + 768] = v;
    __syncthreads();
    int step = CURE == 2 ? 1 : 16;
    for (int s = 0; s < k; ++s)
        v += tile[(t * step + s) & 1023]; // <- 2 bank-conflict
    unsigned u = t + 1000000;
    for (int s = 0; s < k / 2; ++s)
        if constexpr (CURE == 3)
            u = (u >> (k & 3)) + s * i;
        else
            u = u / k + s * i; // <- 3 integer-division
    v += u;
    y[i] = v;
}

template <int CURE> __global__ void waves(const float *x, float *y, int n, int k)
{
    AT;
    float v = x[i];
    float a = v, b = a + 1, c = a + 2, d = a + 3;
    for (int s = 0; s < 2 * k; ++s) {
        if constexpr (CURE == 1) {
            a = a * 0.5f + 0.3f, b = b * 0.5f + 0.3f, c = c * 0.5f + 0.3f, d = d * 0.5f + 0.3f;
        } else {
            a = __sinf(a), b = __sinf(b), c = __sinf(c), d = __sinf(d); // <- 1 special-functions
        }
    }
    v += a + b + c + d;
    unsigned u = t + 1000000;
    for (int s = 0; s < k; ++s)
        if constexpr (CURE == 2)
            u = (u >> (k & 3)) + s * i;
        else
            u = u / k + s * i; // <- 2 integer-division
    v += u;
    for (int s = 0; s < 24; ++s)
        v += x[s * n + (CURE == 3 ? i : t * gridDim.x + blockIdx.x)]; // <- 3 uncoalesced
    y[i] = v;
}

template <int CURE> __global__ void totals(const float *x, float *y, int n, int k)
{
    AT;
    float v = 0;
    for (int s = 0; s < 16; ++s)
        v += x[s * n + (CURE == 1 ? i : t * gridDim.x + blockIdx.x)]; // <- 1 uncoalesced
    unsigned long long w = t | 1ull << 40;
    unsigned q = t;
    for (int s = 0; s < 4 * k; ++s)
        if constexpr (CURE == 2)
            q = q * 1664525u + i;
        else
            w = w * 6364136223846793005ull + i; // <- 2 integers-64
    v += q + (unsigned)(w >> 33);
    unsigned u = t + 1000000;
    for (int s = 0; s < k / 4; ++s)
        if constexpr (CURE == 3)
            u = (u >> (k & 3)) + s * i;
        else
            u = u / k + s * i; // <- 3 integer-division
    v += u;
    y[i] = v;
}

template <int CURE> __global__ void lookups(const float *x, float *y, int n, int k)
{
    __shared__ float tile[1024];
    AT;
    float v = 0;
    for (int s = 0; s < 48; ++s)
        v += x[s * n + (CURE == 1 ? i : t * gridDim.x + blockIdx.x)]; // <- 1 uncoalesced
    tile[t] = v, tile[t + 256] = v, tile[t + 512] = v, tile[t + 768] = v;
    __syncthreads();
    int step = CURE == 2 ? 1 : 32;
    for (int s = 0; s < k / 8; ++s)
        v += tile[(t * step + s) & 1023]; // <- 2 bank-conflict
    int which = CURE == 3 ? t / 32 % 2 : t % 2;
    if (which) { // <- 3 divergence
        for (int s = 0; s < k / 2; ++s)
            v = v * 1.01f + s * v * v;
    } else {
        for (int s = 0; s < k / 2; ++s)
            v = v * 0.99f - s * (v + 1) * v;
    }
    y[i] = v;
}

template <int CURE> __global__ void sums(const float *x, float *y, int n, int k)
{
    AT;
    float v = 0;
    for (int s = 0; s < 24; ++s)
        v += x[s * n + (CURE == 1 ? i : t * gridDim.x + blockIdx.x)]; // <- 1 uncoalesced
    unsigned u = t + 1000000;
    for (int s = 0; s < k; ++s)
        if constexpr (CURE == 2)
            u = (u >> (k & 3)) + s * i;
        else
            u = u / k + s * i; // <- 2 integer-division
    v += u;
    int which = CURE == 3 ? t / 32 % 2 : t % 2;
    if (which) { // <- 3 divergence
        for (int s = 0; s < 2 * k; ++s)
            v = v * 1.01f + s * v * v;
    } else {
        for (int s = 0; s < 2 * k; ++s)
            v = v * 0.99f - s * (v + 1) * v;
    }
    y[i] = v;
}

template <int CURE> __global__ void gathers(const float *x, float *y, int n, int k)
{
    __shared__ float tile[1024];
    AT;
    float v = x[i];
    tile[t] = v, tile[t + 256] = v, tile[t + 512] = v, tile[t + 768] = v;
    __syncthreads();
    int step = CURE == 1 ? 1 : 4;
    for (int s = 0; s < k; ++s)
        v += tile[(t * step + s) & 1023]; // <- 1 bank-conflict
    float a = v, b = a + 1, c = a + 2, d = a + 3;
    for (int s = 0; s < k; ++s) {
        if constexpr (CURE == 2) {
            a = a * 0.5f + 0.3f, b = b * 0.5f + 0.3f, c = c * 0.5f + 0.3f, d = d * 0.5f + 0.3f;
        } else {
            a = __sinf(a), b = __sinf(b), c = __sinf(c), d = __sinf(d); // <- 2 special-functions
        }
    }
    v += a + b + c + d;
    unsigned u = t + 1000000;
    for (int s = 0; s < k / 2; ++s)
        if constexpr (CURE == 3)
            u = (u >> (k & 3)) + s * i;
        else
            u = u / k + s * i; // <- 3 integer-division
    v += u;
    y[i] = v;
}
