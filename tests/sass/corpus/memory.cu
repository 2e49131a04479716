__device__ __noinline__ float pick(const float *p, int i) { return p[i] * 2.f; }
__global__ void generic(const float *x, float *y, int n) { __shared__ float s[128]; int i = threadIdx.x; s[i] = x[i]; __syncthreads(); const float *p = n > 3 ? s : x; y[i] = p[127 - i]; }
__global__ void localmem(const int *x, int *y, int n) { int a[32]; int i = threadIdx.x; for (int k = 0; k < 32; k++) a[k] = x[k] * i; y[i] = a[n]; }
__global__ void calls(const float *x, float *y) { int i = threadIdx.x; y[i] = pick(x, i) + pick(x, i + 1); }
__constant__ float weights[16]; __device__ float table[16];
__global__ void constants(const int *x, float *y) { int i = threadIdx.x; y[i] = weights[x[i] & 15] + weights[3] + table[i & 15]; }
__global__ void ldgs(const float4 *__restrict__ x, float *y) { int i = threadIdx.x; float4 v = __ldg(x + i); y[i] = v.x + v.y + v.z + v.w; }
__global__ void structs(const double2 *x, double *y) { int i = threadIdx.x; y[i] = x[i].x * x[i].y; }
struct P { int n; float a; const float *x; float *y; };
__global__ void byvalue(P p) { int i = threadIdx.x; if (i < p.n) p.y[i] = p.a * p.x[i]; }
__global__ void dynamic(int *y, int n) { extern __shared__ int s[]; int i = threadIdx.x; for (int k = i; k < n; k += 32) s[k] = k; __syncwarp(); y[i] = s[n - 1 - i]; }
__device__ __noinline__ int total(const int *p, int n) { int s = 0; for (int k = 0; k < n; k++) s += p[k]; return s; }
__global__ void gl(const int *x, int *y, int n) { int a[16]; int i = threadIdx.x; for (int k = 0; k < 16; k++) a[k] = x[k] + i; y[i] = total(a, n) + total(x, n); }
