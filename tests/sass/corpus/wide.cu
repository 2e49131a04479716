typedef long long ll; typedef unsigned long long ull;
__global__ void div64(const ll *a, const ll *b, ll *q, ll *r) { int i = threadIdx.x; q[i] = a[i] / b[i]; r[i] = a[i] % b[i]; }
__global__ void udiv64(const ull *a, const ull *b, ull *q, ull *r) { int i = threadIdx.x; q[i] = a[i] / b[i]; r[i] = a[i] % b[i]; }
__global__ void shifts64(const ll *a, const int *s, ll *y, ull *z) { int i = threadIdx.x; y[i] = (a[i] << s[i]) ^ (a[i] >> s[i]); z[i] = (ull)a[i] >> s[i]; }
__global__ void compare64(const ll *a, const ll *b, int *y) { int i = threadIdx.x; y[i] = (a[i] < b[i]) + 2 * (a[i] <= b[i]) + 4 * (a[i] == b[i]) + 8 * ((ull)a[i] > (ull)b[i]) + 16 * (a[i] != b[i]); }
__global__ void mul64(const ll *a, const ll *b, ll *y, ull *hi) { int i = threadIdx.x; y[i] = a[i] * b[i]; hi[i] = __umul64hi(a[i], b[i]); }
__global__ void minmax64(const ll *a, const ll *b, ll *y) { int i = threadIdx.x; y[i] = max(a[i], b[i]) - min(a[i], b[i]); }
__global__ void ddiv(const double *a, const double *b, double *y) { int i = threadIdx.x; y[i] = a[i] / b[i]; }
__global__ void dsqrt(const double *a, double *y) { int i = threadIdx.x; y[i] = sqrt(a[i]); }
__global__ void fdiv(const float *a, const float *b, float *y) { int i = threadIdx.x; y[i] = a[i] / b[i]; }
__global__ void fsqrt(const float *a, float *y) { int i = threadIdx.x; y[i] = sqrtf(a[i]); }
__global__ void frsqrt(const float *a, float *y) { int i = threadIdx.x; y[i] = rsqrtf(a[i]) + __frcp_rn(a[i]); }
__global__ void dexp(const double *a, double *y) { int i = threadIdx.x; y[i] = exp(a[i]) + log(a[i]); }
__global__ void fmath(const float *a, float *y) { int i = threadIdx.x; y[i] = expf(a[i]) + logf(a[i]) + powf(a[i], 1.7f) + tanhf(a[i]); }
__global__ void ftrig(const float *a, float *y) { int i = threadIdx.x; y[i] = sinf(a[i]) + cosf(a[i]) + tanf(a[i]); }
__global__ void fastmath(const float *a, float *y) { int i = threadIdx.x; y[i] = __sinf(a[i]) + __cosf(a[i]) + __expf(a[i]) + __logf(a[i]); }
__global__ void rounds(const float *a, float *y, int *z) { int i = threadIdx.x; y[i] = floorf(a[i]) + ceilf(a[i]) + truncf(a[i]) + rintf(a[i]) + roundf(a[i]); z[i] = (int)a[i] + __float2int_rn(a[i]); }
__global__ void converts(const float *a, ll *b, ull *c, double *d, unsigned *e) { int i = threadIdx.x; b[i] = (ll)a[i]; c[i] = (ull)a[i]; d[i] = a[i]; e[i] = (unsigned)a[i]; }
__global__ void converts2(const ll *a, const ull *u, float *f, double *d) { int i = threadIdx.x; f[i] = (float)a[i] + (float)u[i]; d[i] = (double)a[i] - (double)u[i]; }
__global__ void converts3(const double *a, int *b, ll *c, float *f, unsigned *u) { int i = threadIdx.x; b[i] = (int)a[i]; c[i] = (ll)a[i]; f[i] = (float)a[i]; u[i] = (unsigned)a[i]; }
__global__ void small(const signed char *a, const unsigned char *b, const short *c, const unsigned short *d, int *y, float *f) { int i = threadIdx.x; y[i] = a[i] + b[i] * c[i] - d[i]; f[i] = (float)a[i] + (float)b[i] + (float)c[i] + (float)d[i]; }
__global__ void storesmall(const int *a, signed char *b, unsigned short *c) { int i = threadIdx.x; b[i] = a[i]; c[i] = a[i] * 3; }
__global__ void bits(const unsigned *a, int *y) { int i = threadIdx.x; unsigned v = a[i]; y[i] = __popc(v) + 3 * __clz(v) + 5 * __ffs(v) + (__brev(v) >> 7) + __byte_perm(v, v * 3, 0x5140); }
__global__ void bits64(const ull *a, int *y) { int i = threadIdx.x; ull v = a[i]; y[i] = __popcll(v) + 3 * __clzll(v) + 5 * __ffsll(v) + (int)(__brevll(v) >> 17); }
__global__ void funnel(const unsigned *a, const unsigned *s, unsigned *y) { int i = threadIdx.x; y[i] = __funnelshift_l(a[i], a[i+1], s[i]) ^ __funnelshift_r(a[i], a[i+1], s[i]) ^ __funnelshift_lc(a[i], a[i+1], s[i]) ^ __funnelshift_rc(a[i],a[i+1],s[i]); }
__global__ void sads(const int *a, const int *b, int *y) { int i = threadIdx.x; y[i] = __sad(a[i], b[i], 3) + __mulhi(a[i], b[i]) + __umulhi(a[i], b[i]) + __hadd(a[i], b[i]) + __mul24(a[i], b[i]); }
__global__ void dp(const int *a, const int *b, int *y) { int i = threadIdx.x; y[i] = __dp4a(a[i], b[i], 7) + (int)__dp4a((unsigned)a[i], (unsigned)b[i], 1u); }
__global__ void idiv(const int *a, const int *b, int *q, unsigned *r) { int i = threadIdx.x; q[i] = a[i] / b[i] + a[i] % 7 + a[i] / 10; r[i] = (unsigned)a[i] / (unsigned)b[i] + (unsigned)a[i] % 1000u; }

__global__ void least_and_most(const double *a, const double *b, double *least, double *most) {
  least[threadIdx.x] = fmin(a[threadIdx.x], b[threadIdx.x]);
  most[threadIdx.x] = fmax(a[threadIdx.x], b[threadIdx.x]);
}

__global__ void by_constants(const double *x, double *y) {
  double v = x[threadIdx.x];
  y[threadIdx.x] = v / 10 + v / 3 + sqrt(2.0 + 0 * v) + 7 / v;
}
