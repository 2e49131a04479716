// Arithmetic, code, constants: each pair is a defect and its cure. A line marked `<-` is to be named.

__constant__ float table[1024];

__global__ void divide(const int *x, int *y, int n, int k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned sum = x[i];
    for (int step = 0; step < 64; ++step)
        sum = sum / k + step * i; // <- integer-division
    y[i] = sum;
}

__global__ void shift(const int *x, int *y, int n, int k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned sum = x[i];
    for (int step = 0; step < 64; ++step)
        sum = (sum >> k) + step * i;
    y[i] = sum;
}

__global__ void in_double(const float *x, float *y, int n, int k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = x[i];
    for (int step = 0; step < k; ++step)
        value = value * 1.5 + 0.1; // <- double-precision
    y[i] = value;
}

__global__ void in_single(const float *x, float *y, int n, int k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = x[i];
    for (int step = 0; step < k; ++step)
        value = value * 1.5f + 0.1f;
    y[i] = value;
}

__global__ void in_64_bits(const int *x, int *y, int n, int k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned long long state = x[i] | 1ull << 40;
    for (int step = 0; step < k; ++step)
        state = state * 6364136223846793005ull + i; // <- integers-64
    y[i] = (int)(state >> 33);
}

__global__ void in_32_bits(const int *x, int *y, int n, int k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned state = x[i];
    for (int step = 0; step < k; ++step)
        state = state * 1664525u + i;
    y[i] = (int)(state >> 1);
}

__global__ void long_division(const int *x, int *y, int n, int k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned long long sum = x[i] | 1ull << 40;
    for (int step = 0; step < 16; ++step)
        sum = sum / (unsigned long long)k + ((unsigned long long)i << 33); // <- integer-division
    y[i] = (int)sum;
}

__global__ void long_shift(const int *x, int *y, int n, int k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned long long sum = x[i] | 1ull << 40;
    for (int step = 0; step < 16; ++step)
        sum = (sum >> k) + ((unsigned long long)i << 33);
    y[i] = (int)sum;
}

__global__ void sines(const float *x, float *y, int n, int k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float a = x[i], b = a + 1, c = a + 2, d = a + 3;
    for (int step = 0; step < k; ++step) {
        a = __sinf(a), b = __sinf(b), c = __sinf(c), d = __sinf(d); // <- special-functions
    }
    y[i] = a + b + c + d;
}

__global__ void polynomials(const float *x, float *y, int n, int k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float a = x[i], b = a + 1, c = a + 2, d = a + 3;
    for (int step = 0; step < k; ++step) {
        a = (a * 0.5f + 0.3f) * a, b = (b * 0.5f + 0.3f) * b;
        c = (c * 0.5f + 0.3f) * c, d = (d * 0.5f + 0.3f) * d;
    }
    y[i] = a + b + c + d;
}

__global__ void constants_by_lane(const float *x, float *y, int n, int k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = x[i];
    for (int step = 0; step < k; ++step)
        sum += table[(threadIdx.x + step) & 1023]; // <- constants
    y[i] = sum;
}

__global__ void constants_by_step(const float *x, float *y, int n, int k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = x[i];
    for (int step = 0; step < k; ++step)
        sum += table[step & 1023];
    y[i] = sum;
}
