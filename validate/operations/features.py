"""Features of CUDA C++: classes, tables, recursion, cooperative groups, structures, `asm`."""

from __future__ import annotations

from collections.abc import Iterator

from .operation import Operation

GROUPS = "cooperative_groups.h"
REDUCE, SCAN = "cooperative_groups/reduce.h", "cooperative_groups/scan.h"
SHAPES = """struct Shape { int n; __device__ Shape(int v) : n(v) {} __device__ virtual int area() const = 0;
  __device__ virtual int twice() const { return 2 * area(); } };
struct Square : Shape { __device__ Square(int v) : Shape(v) {} __device__ int area() const override { return n * n; } };
struct Strip : Shape { int w; __device__ Strip(int v, int u) : Shape(v), w(u) {}
  __device__ int area() const override { return n * w; } __device__ int twice() const override { return -n; } };"""

# Name, prelude of the kernel, and body: `r` of the operands `a` and `b`.
ROWS: tuple[tuple[str, str, str], ...] = (
    ("virtual_call", SHAPES, "Square s(a & 7); Strip t(a & 7, b & 3); Shape *p = a & 1 ? (Shape *)&s : &t; r = p->area() + p->twice();"),
    ("virtual_table", SHAPES, "Square s(a & 7), u(3); Strip t(b & 7, 5); Shape *p[3] = {&s, &t, &u}; r = 0; for (int k = 0; k < 3; k++) r = r * 31 + p[(k + (b & 1)) % 3]->twice();"),
    ("function_table", "__device__ int one(int x) { return x + 1; } __device__ int two(int x) { return x * 3; } __device__ int three(int x) { return x ^ 0x55; }\ntypedef int (*F)(int); __device__ F table[3] = {one, two, three};", "r = table[(unsigned)a % 3](b);"),
    ("constant_function_table", "__device__ __noinline__ int inc(int x) { return x + 7; } __device__ __noinline__ int dec(int x) { return x - 9; }\ntypedef int (*F)(int); __constant__ F table[2] = {inc, dec};", "r = table[a & 1](b) + table[b & 1](a & 255);"),
    ("function_argument", "__device__ __noinline__ int apply(int (*f)(int), int x) { return f(f(x)); } __device__ int less(int x) { return x / 2; } __device__ int more(int x) { return x + 3; }", "r = apply(a & 1 ? less : more, b);"),
    ("pointer_table", "__device__ int x = 5, y = 7, z[3] = {1, 2, 3}; __device__ int *p[4] = {&x, &y, &z[1], z + 2};", "r = *p[a & 3] + *p[b & 3] * 10;"),
    ("constant_pointer_table", "__constant__ int x = 5, y[2] = {7, 11}; __constant__ const int *p[3] = {&x, &y[0], &y[1]};", "r = *p[(unsigned)a % 3];"),
    ("string_table", '__device__ const char *names[3] = {"warp", "lane", "block"};', "const char *s = names[(unsigned)a % 3]; r = 0; while (*s) r = r * 31 + *s++;"),
    ("string_local", "__device__ int length(const char *s) { int n = 0; while (s[n]) n++; return n; }", 'const char *s = a & 1 ? "odd" : "even numbers"; r = length(s) * 100 + s[b & 1];'),
    ("switch_dense", "", "switch (a & 15) { case 0: r = b; break; case 1: r = b + 1; break; case 2: r = b * 3; break; case 3: r = ~b; break; case 4: r = b >> 2; break; case 5: r = b ^ 99; break; case 6: r = 6; case 7: r = b - 7; break; case 8: r = -b; break; case 9: r = b / 3; break; default: r = 1000; }"),
    ("switch_sparse", "", "switch (a) { case -100: r = 1; break; case 0: r = b; break; case 1000: case 1 << 20: r = 3; break; case 0x7fffffff: r = 4; break; default: r = a; }"),
    ("switch_calls", "__device__ __noinline__ int f(int x) { return x * 5; } __device__ __noinline__ int g(int x) { return x - 5; }", "switch (a & 3) { case 0: r = f(b); break; case 1: r = g(b); break; case 2: r = f(g(b)); break; default: r = g(f(b)); }"),
    ("factorial", "__device__ __noinline__ unsigned f(unsigned n) { return n < 2 ? 1 : n * f(n - 1); }", "r = f(a & 7);"),
    ("fibonacci", "__device__ __noinline__ int f(int n) { return n < 2 ? n : f(n - 1) + f(n - 2); }", "r = f(a & 7);"),
    ("ackermann", "__device__ __noinline__ int f(int m, int n) { return m == 0 ? n + 1 : n == 0 ? f(m - 1, 1) : f(m - 1, f(m, n - 1)); }", "r = f(a & 1, b & 3) + f(1 + (b & 1), a & 1);"),
    ("mutual_recursion", "__device__ int odd(int n); __device__ __noinline__ int even(int n) { return n == 0 ? 1 : odd(n - 1); } __device__ __noinline__ int odd(int n) { return n == 0 ? 0 : even(n - 1); }", "r = even(a & 15) + 2 * odd(b & 7);"),
    ("hanoi", "__device__ __noinline__ int f(int n, int x, int y) { if (!n) return 0; int z = 3 - x - y; return f(n - 1, x, z) + (x * 3 + y) + f(n - 1, z, y); }", "r = f(a & 3, 0, 2);"),
    ("quicksort", "__device__ __noinline__ void sort(int *v, int lo, int hi) { if (lo >= hi) return; int p = v[hi], k = lo; for (int j = lo; j < hi; j++) if (v[j] < p) { int t = v[j]; v[j] = v[k]; v[k++] = t; } v[hi] = v[k]; v[k] = p; sort(v, lo, k - 1); sort(v, k + 1, hi); }", "int v[8]; for (int k = 0; k < 8; k++) v[k] = (a * 7 + b * k * 13) % 101; sort(v, 0, 7); r = 0; for (int k = 0; k < 8; k++) r = r * 31 + v[k];"),
    ("permutations", "__device__ __noinline__ int f(int used, int left, int last) { if (!left) return last; int s = 0; for (int k = 0; k < 4; k++) if (!(used >> k & 1)) s += f(used | 1 << k, left - 1, last * 3 + k); return s; }", "r = f(a & 3, 2, b & 1);"),
    ("noinline_stack", "__device__ __noinline__ int f(int *v, int n) { int s = 0; for (int k = 0; k < n; k++) { s += v[k]; v[k] = s; } return s; }", "int v[6]; for (int k = 0; k < 6; k++) v[k] = a + k * b; r = f(v, 6) ^ v[b & 3];"),
    ("noinline_many", "__device__ __noinline__ int f(int x, int y, int z, int u, int v, int w, long long q, double d) { return x - 2 * y + 3 * z - 4 * u + 5 * v - 6 * w + (int)q + (int)d; }", "r = f(a, b, a & 15, b & 15, 5, 6, (long long)a * b & 0xffff, (a & 255) * 0.5);"),
    ("struct_return", "struct P { int x, y, z, u, v; }; __device__ __noinline__ P f(P p) { P q = {p.v, p.u, p.z, p.y, p.x}; return q; }", "P p = {a, b, 3, 4, 5}; p = f(p); r = p.x * 7 + p.y - p.u + p.v;"),
    ("struct_shared", "struct P { int x; short y; char z; double d; };", "__shared__ P s[256]; int t = threadIdx.x; s[t].x = a; s[t].y = b; s[t].z = a >> 3; s[t].d = b; __syncthreads(); P q = s[t ^ 9]; r = q.x ^ q.y ^ q.z ^ (int)q.d;"),
    ("struct_constant", "struct P { int n; float w[3]; short k; }; __constant__ P c[2] = {{3, {1.5f, 2.5f, -1.f}, 9}, {-4, {0.f, 8.f, 2.f}, -2}};", "const P &p = c[a & 1]; r = p.n * 100 + (int)(p.w[(unsigned)b % 3] * 4) + p.k;"),
    ("struct_assign", "struct P { int v[7]; char c; };", "P p; for (int k = 0; k < 7; k++) p.v[k] = a ^ k; p.c = b; P q = p; q.v[b & 3] += 1; r = 0; for (int k = 0; k < 7; k++) r = r * 3 + q.v[k] - p.v[6 - k]; r += q.c;"),
    ("union_bits", "union U { float f; unsigned u; struct { unsigned short lo, hi; } h; unsigned char c[4]; };", "U u; u.u = a; u.h.lo ^= u.h.hi; u.c[b & 3] += 1; r = u.u;"),
    ("union_double", "union U { double d; int w[2]; long long q; };", "U u; u.w[0] = a; u.w[1] = b; u.q += 12345; r = u.w[0] ^ u.w[1];"),
    ("bitfields", "struct B { unsigned x : 5; int y : 7; unsigned z : 12; int w : 8; };", "B q; q.x = a; q.y = b; q.z = a * 3; q.w = b >> 3; q.y += 3; r = q.x + q.y * 100 + q.z - q.w;"),
    ("bitfields_long", "struct B { unsigned long long x : 33; long long y : 20; unsigned z : 3; };", "B q; q.x = (unsigned long long)a * 3; q.y = b; q.z = a; r = (int)(q.x >> 3) ^ (int)q.y ^ q.z;"),
    ("dynamic_shared", "extern __shared__ int held[];", "int t = threadIdx.x; held[t] = a; __syncthreads(); r = held[t ^ 5] + held[255 - t];"),
    ("dynamic_shared_parts", "extern __shared__ double pieces[];", "double *d = pieces; short *s = (short *)(pieces + 128); int t = threadIdx.x; if (t < 128) d[t] = a * 0.5; s[t] = b; __syncthreads(); r = (int)d[t >> 1] + s[t ^ 3];"),
    ("static_and_dynamic_shared", "extern __shared__ int tail[];", "__shared__ int head[256]; int t = threadIdx.x; head[t] = a; tail[t] = b; __syncthreads(); r = head[t ^ 1] - tail[t ^ 2];"),
    ("dynamic_smem_size", "extern __shared__ int bytes[];", 'unsigned n; asm volatile("mov.u32 %0, %%dynamic_smem_size;" : "=r"(n)); bytes[threadIdx.x] = a; r = n + bytes[threadIdx.x];'),
    ("total_smem_size", "", '__shared__ int s[256]; unsigned n; asm volatile("mov.u32 %0, %%total_smem_size;" : "=r"(n)); s[threadIdx.x] = a; __syncthreads(); r = n + s[threadIdx.x ^ 1];'),
    ("templates", "template <int N, typename T> struct Sum { static __device__ T f(T x) { return x + Sum<N - 1, T>::f(x * 2); } }; template <typename T> struct Sum<0, T> { static __device__ T f(T x) { return x; } };", "r = Sum<5, int>::f(a) ^ (int)Sum<3, unsigned char>::f(b);"),
    ("variadic", "template <typename T> __device__ T add(T x) { return x; } template <typename T, typename... R> __device__ T add(T x, R... y) { return x * 2 + add(y...); }", "r = add(a, b, 3, a & 7, 5);"),
    ("fold", "template <typename... T> __device__ int most(T... v) { int m = -1000000; ((m = v > m ? v : m), ...); return m; }", "r = most(a % 1000, b % 1000, 17);"),
    ("if_constexpr", "template <int N> __device__ int f(int x) { if constexpr (N % 2) return x * N; else return x - N; }", "r = f<3>(a) + f<4>(b);"),
    ("lambda", "", "auto f = [=](int x) { return x * 3 + a; }; auto g = [&](auto h, int x) { return h(h(x)); }; r = g(f, b);"),
    ("lambda_table", "", "int total = 0; auto add = [&total](int x) { total += x; }; for (int k = 0; k < (a & 7); k++) add(k * b); r = total;"),
    ("operators", "struct V { int x, y; __device__ V operator+(V o) const { return {x + o.x, y + o.y}; } __device__ V &operator*=(int k) { x *= k; y *= k; return *this; } __device__ bool operator<(const V &o) const { return x < o.x; } };", "V v{a, b}, w{b, a}; v *= 3; V u = v + w; r = u < v ? u.x : u.y;"),
    ("inheritance", "struct A { int x; __device__ int f() { return x; } }; struct B { int y; __device__ int g() { return y * 2; } }; struct C : A, B { int z; };", "C c; c.x = a; c.y = b; c.z = 3; B *p = &c; r = c.f() + p->g() + c.z;"),
    ("constructors", "struct R { int *n; __device__ R(int *p) : n(p) { *n += 1; } __device__ ~R() { *n *= 3; } };", "int n = a & 1023; { R one(&n); if (b & 1) { R two(&n); } } r = n;"),
    ("placement_new", "__device__ inline void *operator_place(void *p) { return p; } struct P { int x, y; };", "alignas(P) char room[sizeof(P)]; P *p = (P *)operator_place(room); p->x = a; p->y = b; r = p->x - p->y;"),
    ("static_member", "struct S { static const int N = 4; static constexpr int K = 9; };", "r = S::N * a + S::K;"),
    ("static_local", "", "static __shared__ int s[256]; s[threadIdx.x] = a; __syncthreads(); r = s[255 - threadIdx.x];"),
    ("enums", "enum class C : unsigned char { red = 3, green = 200, blue }; __device__ C next(C c) { return C((unsigned char)c + 1); }", "C c = a & 1 ? C::red : C::green; c = next(c); r = (int)c + (c == C::blue);"),
    ("goto_again", "", "int n = a & 15; r = 0; again: r += n * b; if (--n > 0) goto again; if (r & 1) goto odd; r /= 2; odd: r += 1;"),
    ("do_while", "", "int n = a & 31; r = 0; do { r = r * 3 + n; if (r > 10000) break; } while (--n > 0);"),
    ("nested_breaks", "", "r = 0; for (int x = 0; x < (a & 7); x++) { for (int y = 0; y < 8; y++) { if (y == (b & 7)) break; if ((x ^ y) & 1) continue; r += x * 8 + y; } if (r > 50) break; }"),
    ("collatz", "", "unsigned n = (a & 1023) + 1; r = 0; while (n != 1) { n = n & 1 ? 3 * n + 1 : n / 2; r++; }"),
    ("gcd", "", "int x = a & 0xfffff, y = b & 0xfffff; while (y) { int t = x % y; x = y; y = t; } r = x;"),
    ("early_return", "", "if (a & 1) { r_[i] = 77; return; } for (int k = 0; k < (b & 15); k++) if (k * k > (a & 63)) { r_[i] = k; return; } r = -1;"),
    ("return_before_barrier", "", "__shared__ int s[256]; int t = threadIdx.x; s[t] = a; __syncthreads(); if (t >= 128) { r_[i] = 5; return; } s[t] += b; __syncthreads(); r = s[t ^ 1] + s[t + 128];"),
    ("nested_divergence", "", "r = 0; if (a & 1) { if (b & 1) r = 1; else r = 2; if (a & 4) { r += 10; if (b & 4) r += 100; } } else { if (b & 2) { r = 3; while (r < (a & 63)) r = r * 2 + 1; } else r = 4; }"),
    ("short_circuit", "", "int n = 0; bool p = (a & 1) && (++n, b & 1) || (++n, b & 2); r = n * 2 + p;"),
    ("ternaries", "", "r = a < 0 ? b < 0 ? 1 : 2 : b > a ? a ? 3 : 4 : b == a ? 5 : 6;"),
    ("comma_and_increment", "", "int k = a & 7; int v[10]; for (int j = 0; j < 10; j++) v[j] = j * b; r = v[k++] + v[k] * v[--k & 7]; r += (k++, k);"),
    ("local_array_2d", "", "int m[3][4]; for (int x = 0; x < 3; x++) for (int y = 0; y < 4; y++) m[x][y] = a * x + b * y; r = m[(unsigned)a % 3][b & 3] - m[(unsigned)b % 3][a & 3];"),
    ("local_bytes", "", "unsigned char v[16]; for (int k = 0; k < 16; k++) v[k] = a >> (k & 7); for (int k = 0; k < 16; k++) v[(k * b) & 15] ^= v[k]; r = 0; for (int k = 0; k < 16; k++) r = r * 3 + v[k];"),
    ("insertion_sort", "", "int v[7]; for (int k = 0; k < 7; k++) v[k] = (a ^ (b * (k + 1))) % 97; for (int k = 1; k < 7; k++) { int x = v[k], j = k; while (j > 0 && v[j - 1] > x) { v[j] = v[j - 1]; j--; } v[j] = x; } r = 0; for (int k = 0; k < 7; k++) r = r * 7 + v[k];"),
    ("matrix_inverse", "", "float m[4] = {(a & 15) + 1.0f, (b & 7) * 0.5f, -1.0f, (a & 3) + 2.0f}; float d = m[0] * m[3] - m[1] * m[2]; r = (int)(1000.0f * m[3] / d) ^ (int)(1000.0f * m[1] / d);"),
    ("volatile_shared", "", "volatile __shared__ int s[256]; int t = threadIdx.x; s[t] = a; __syncwarp(); r = s[t ^ 1]; __syncwarp(); s[t] = b; __syncwarp(); r ^= s[t ^ 2];"),
    ("warp_reduce", "", "r = a; for (int o = 16; o; o >>= 1) r += __shfl_down_sync(~0u, r, o); r = __shfl_sync(~0u, r, 0);"),
    ("warp_scan", "", "r = a; for (int o = 1; o < 32; o <<= 1) { int v = __shfl_up_sync(~0u, r, o); if (lane >= o) r += v; }"),
    ("block_reduce", "", "__shared__ int s[256]; int t = threadIdx.x; s[t] = a; for (int o = 128; o; o >>= 1) { __syncthreads(); if (t < o) s[t] += s[t + o]; } __syncthreads(); r = s[0];"),
    ("divergent_shuffle", "", "r = a; if (lane & 1) r = __shfl_sync(0xaaaaaaaau, a, (lane + 2) & 31 | 1); else r = __shfl_sync(0x55555555u, b, (lane + 4) & 30);"),
    ("divergent_syncwarp", "", "__shared__ int s[256]; int t = threadIdx.x; s[t] = 0; __syncwarp(); if (lane < 16) { s[t] = a; __syncwarp(0xffff); r = s[t ^ 1]; } else { s[t] = b; __syncwarp(0xffff0000u); r = s[t ^ 3]; }"),
    ("match_peers", "", "unsigned m = __match_any_sync(~0u, a & 3); r = __popc(m) * 100 + __ffs(m);"),
    ("ballot_compact", "", "unsigned m = __ballot_sync(~0u, a > b); int p = __popc(m & ((1u << lane) - 1)); r = a > b ? p : -1;"),
    ("leader_election", "", "__shared__ int n; if (!threadIdx.x) n = 0; __syncthreads(); unsigned m = __activemask(); if (lane == __ffs(m) - 1) atomicAdd(&n, __popc(m)); __syncthreads(); r = n;"),
    ("threadfence", "__device__ int counter[8];", "r = 0; pa[0] = b; __threadfence(); __syncthreads(); if (!threadIdx.x) { int n = atomicAdd(&counter[blockIdx.x], 1); r = n; } __threadfence_block();"),
    ("named_barriers", "", '__shared__ int s[256]; int t = threadIdx.x; s[t] = a; if (t < 128) asm volatile("bar.sync 1, 128;" ::: "memory"); else asm volatile("bar.sync 2, 128;" ::: "memory"); r = s[t ^ 64]; __syncthreads();'),
    ("barrier_reductions", "", "r = __syncthreads_count(a & 1) * 4 + (__syncthreads_and(a | 1) != 0) * 2 + (__syncthreads_or(b & 0) != 0);"),
    ("nanosleep", "", "if (a & 1) __nanosleep(20); r = a + 1;"),
    ("clock_advances", "", "long long t = clock64(); int s = 0; for (int k = 0; k < 10; k++) s += k * a ^ k; long long u = clock64(); r = (u >= t) + s;"),
    ("asm_predicate", "", 'asm("{ .reg .pred p; setp.lt.s32 p, %1, %2; @p mov.s32 %0, 1; @!p mov.s32 %0, 2; }" : "=r"(r) : "r"(a), "r"(b));'),
    ("asm_loop", "", 'asm("{ .reg .s32 n; .reg .pred p; mov.s32 n, 5; mov.s32 %0, %1; L%=: add.s32 %0, %0, %2; sub.s32 n, n, 1; setp.gt.s32 p, n, 0; @p bra L%=; }" : "=&r"(r) : "r"(a), "r"(b));'),
    ("asm_vector", "", 'int x, y; asm("{ .reg .b64 t; mov.b64 t, {%2, %3}; shr.b64 t, t, 8; mov.b64 {%0, %1}, t; }" : "=r"(x), "=r"(y) : "r"(a), "r"(b)); r = x ^ y;'),
    ("asm_lop3", "", 'asm("lop3.b32 %0, %1, %2, %3, 0xe8;" : "=r"(r) : "r"(a), "r"(b), "r"(0x0f0f3355));'),
    ("asm_isspacep", "", '__shared__ int s; int l = a; unsigned x; asm("{ .reg .pred p; isspacep.shared p, %1; selp.u32 %0, 1, 0, p; }" : "=r"(x) : "l"(a & 1 ? (void *)&s : (void *)&l)); if (!threadIdx.x) s = l; r = x;'),
    ("generic_pointers", "__device__ __noinline__ int get(int *p, int k) { return p[k]; }", "__shared__ int s[256]; int l[4] = {a, b, 3, 4}; int t = threadIdx.x; s[t] = a; __syncthreads(); int *p = a & 1 ? s : a & 2 ? l : b_; r = get(p, b & 3);"),
    ("pointer_arithmetic", "", "int v[8]; for (int k = 0; k < 8; k++) v[k] = a + k; int *p = v + (b & 7), *q = v + (a & 7); r = (int)(p - q) * 100 + *p - *q + (p < q);"),
    ("long_arithmetic", "", "long long x = (long long)a * b, y = x * x + 7; unsigned long long u = (unsigned long long)y >> 5; r = (int)(u % 1000003) ^ (int)(x / 17);"),
    ("modular_power", "", "unsigned long long m = 1, p = (unsigned)a % 1000003; for (unsigned e = b & 255; e; e >>= 1) { if (e & 1) m = m * p % 1000003; p = p * p % 1000003; } r = (int)m;"),
    ("crc32", "", "unsigned c = ~0u; for (int k = 0; k < 4; k++) { c ^= (a >> 8 * k) & 255; for (int j = 0; j < 8; j++) c = c & 1 ? c >> 1 ^ 0xedb88320u : c >> 1; } r = ~c;"),
    ("xorshift", "", "unsigned s = a | 1; for (int k = 0; k < 5; k++) { s ^= s << 13; s ^= s >> 17; s ^= s << 5; } r = s;"),
    ("popcount_by_hand", "", "unsigned v = a; v -= v >> 1 & 0x55555555; v = (v & 0x33333333) + (v >> 2 & 0x33333333); r = ((v + (v >> 4) & 0xf0f0f0f) * 0x1010101) >> 24;"),
    ("byte_swaps", "", "unsigned v = a; r = __byte_perm(v, b, 0x0123) ^ __byte_perm(v, b, 0x7654) ^ (v << 24 | v >> 24);"),
    ("printf_result", "", 'r = a; if (!(i & 1023)) r = printf("%d %f\\n", a & 1, 2.0);'),
    ("assert_true", "", "assert(a == a); r = b;"),
    ("alloca_like", "__device__ __noinline__ int f(int n) { int v[32]; for (int k = 0; k < n; k++) v[k] = k * k; int s = 0; for (int k = 0; k < n; k++) s += v[k] ^ n; return s; }", "r = f(a & 31);"),
    ("large_local", "", "int v[200]; for (int k = 0; k < 200; k++) v[k] = k * a; r = v[(unsigned)b % 200] ^ v[(unsigned)a % 200];"),
    ("half_struct", "struct H { __half h; __half2 p; };", "H q; q.h = __int2half_rn(a & 63); q.p = __floats2half2_rn(b & 31, 2.0f); q.p = __hfma2(q.p, q.p, __half2half2(q.h)); r = (int)__low2float(q.p) + (int)__high2float(q.p);"),
    ("ldg_struct", "struct alignas(16) Q { int x, y, z, w; };", "const int4 *p = (const int4 *)b_ + (i >> 2); int4 q = __ldg(p); r = q.x ^ q.y * 3 ^ q.z * 5 ^ q.w * 7;"),
    ("restrict_alias", "__device__ __noinline__ int f(const int *__restrict__ p, int *q) { q[0] = 5; return p[0] + q[0]; }", "int x = a, y = b; r = f(&x, &y) + y;"),
    ("device_array", "__device__ int squares[16] = {0, 1, 4, 9, 16, 25, 36, 49, 64, 81, 100, 121, 144, 169, 196, 225};", "r = squares[a & 15] - squares[b & 15];"),
    ("constant_array", "__constant__ short c[8] = {1, -2, 3, -4, 5, -6, 7, -8}; __constant__ double d[2] = {0.25, 1e10};", "r = c[a & 7] * 16 + (int)(d[b & 1] * 4 * (b & 1 ? 1e-9 : 1));"),
    ("three_dimensions", "", "r = threadIdx.x + threadIdx.y * 7 + threadIdx.z + blockDim.x * 3 + blockDim.y + blockDim.z + gridDim.x * 5 + gridDim.y + blockIdx.x + blockIdx.y + warpSize + a;"),
    ("sizes", "struct S { char c; double d; short s; }; union U { S s; int v[9]; };", "r = sizeof(S) + 100 * sizeof(U) + 10000 * alignof(S) + a;"),
    ("float_loop", "", "float s = 0, x = (a & 255) * 0.01f; for (int k = 1; k < 10; k++) s += x / k - x * x; r = __float_as_int(s);"),
    ("double_newton", "", "double x = (a & 1023) + 1.0, y = x; for (int k = 0; k < 8; k++) y = 0.5 * (y + x / y); r = (int)(y * 1e6);"),
    ("complex_power", "struct C { float x, y; }; __device__ C mul(C p, C q) { return {p.x * q.x - p.y * q.y, p.x * q.y + p.y * q.x}; }", "C z{(a & 15) * 0.1f, (b & 15) * 0.1f}, w = z; int k = 0; for (; k < 20 && w.x * w.x + w.y * w.y < 4; k++) { w = mul(w, w); w.x += z.x; w.y += z.y; } r = k;"),
    ("histogram_shared", "", "__shared__ unsigned h[16]; int t = threadIdx.x; if (t < 16) h[t] = 0; __syncthreads(); atomicAdd(&h[a & 15], 1); __syncthreads(); r = h[t & 15];"),
    ("spin_lock", "__device__ int lock[2048];", "int v = 0; bool done = false; while (!done) { if (atomicCAS(&lock[i & ~31], 0, 1) == 0) { v = pa[-(int)lane] & 3; __threadfence(); atomicExch(&lock[i & ~31], 0); done = true; } } r = v;"),
    ("atomic_float_max", "__device__ void most(float *p, float v) { int *q = (int *)p, old = *q, seen; do { seen = old; if (__int_as_float(seen) >= v) break; old = atomicCAS(q, seen, __float_as_int(v)); } while (seen != old); }", "__shared__ float m; if (!threadIdx.x) m = -1e30f; __syncthreads(); most(&m, (float)(a & 0xffff)); __syncthreads(); r = (int)m;"),
)  # fmt: skip
DYNAMIC = {"dynamic_shared": 1024, "dynamic_shared_parts": 2048, "static_and_dynamic_shared": 1024,
           "dynamic_smem_size": 1536}  # fmt: skip
# Cooperative groups: a name, and a body after `namespace cg = cooperative_groups`.
GROUP_ROWS: tuple[tuple[str, str], ...] = (
    ("thread_block", "auto g = cg::this_thread_block(); __shared__ int s[256]; s[g.thread_rank()] = a; g.sync(); r = s[255 - g.thread_rank()] + g.size();"),
    *(
        (f"tile_{n}", f"auto g = cg::tiled_partition<{n}>(cg::this_thread_block()); r = g.thread_rank() * 100 + g.meta_group_rank() + g.size(); r ^= g.shfl(a, (b & 3) % {n}); r += g.shfl_xor(a, {max(n // 2, 1) % n}); r ^= g.any(a & 1) * 8 + g.all(a | 1); r += g.ballot(b & 1);")
        for n in (1, 2, 4, 8, 16, 32)
    ),
    ("tile_shuffles", "auto g = cg::tiled_partition<16>(cg::this_thread_block()); r = g.shfl_down(a, 3) ^ g.shfl_up(b, 2) ^ g.match_any(a & 3);"),
    ("tile_dynamic", "auto g = cg::tiled_partition(cg::this_thread_block(), 8); r = g.thread_rank() + 100 * g.size(); __shared__ int s[256]; s[threadIdx.x] = a; g.sync(); r += s[threadIdx.x ^ 5];"),
    ("nested_tiles", "auto g = cg::tiled_partition<32>(cg::this_thread_block()); auto h = cg::tiled_partition<4>(g); r = cg::reduce(h, a & 1023, cg::plus<int>()) + h.meta_group_rank();"),
    ("reduce_tile", "auto g = cg::tiled_partition<32>(cg::this_thread_block()); r = cg::reduce(g, a, cg::plus<int>()) ^ cg::reduce(g, b, cg::greater<int>()) ^ cg::reduce(g, (unsigned)a, cg::bit_xor<unsigned>());"),
    ("reduce_small_tile", "auto g = cg::tiled_partition<8>(cg::this_thread_block()); r = cg::reduce(g, (a & 255) * 0.25f, cg::plus<float>()) * 4;"),
    ("scan_tile", "auto g = cg::tiled_partition<32>(cg::this_thread_block()); r = cg::inclusive_scan(g, a, cg::plus<int>()) ^ cg::exclusive_scan(g, b & 7, cg::plus<int>());"),
    ("coalesced", "r = 0; if (a & 1) { auto g = cg::coalesced_threads(); r = g.size() * 100 + g.thread_rank() + g.shfl(b & 7, 0); }"),
    ("coalesced_reduce", "r = 0; if (a & 1) { auto g = cg::coalesced_threads(); r = cg::reduce(g, b & 1023, cg::plus<int>()); }"),
    ("labeled", "auto w = cg::tiled_partition<32>(cg::this_thread_block()); auto g = cg::labeled_partition(w, a & 3); r = g.size() * 100 + g.thread_rank();"),
    ("binary", "auto w = cg::tiled_partition<32>(cg::this_thread_block()); auto g = cg::binary_partition(w, a > b); r = g.size() * 100 + g.thread_rank() + cg::reduce(g, 1, cg::plus<int>());"),
    ("tile_64", "__shared__ cg::block_tile_memory<256> m; auto t = cg::this_thread_block(m); auto g = cg::tiled_partition<64>(t); r = g.thread_rank() + 100 * g.meta_group_rank(); __shared__ int s[256]; s[threadIdx.x] = a; g.sync(); r += s[threadIdx.x ^ 33]; g.sync();"),
    ("reduce_tile_64", "__shared__ cg::block_tile_memory<256> m; auto t = cg::this_thread_block(m); auto g = cg::tiled_partition<64>(t); r = cg::reduce(g, a, cg::plus<int>());"),
    ("reduce_tile_128", "__shared__ cg::block_tile_memory<256> m; auto t = cg::this_thread_block(m); auto g = cg::tiled_partition<128>(t); r = cg::reduce(g, a & 4095, cg::greater<int>()) + g.shfl(b, 77); g.sync();"),
    ("invoke_one", "auto g = cg::tiled_partition<32>(cg::this_thread_block()); __shared__ int n[8]; if (g.thread_rank() == 0) n[g.meta_group_rank()] = 0; g.sync(); cg::invoke_one(g, [&] { atomicAdd(&n[g.meta_group_rank()], 5); }); g.sync(); r = n[g.meta_group_rank()];"),
    ("block_rank", "auto t = cg::this_thread_block(); r = t.group_index().x * 1000 + t.thread_index().x + t.dim_threads().x;"),
)  # fmt: skip


def operations() -> Iterator[Operation]:
    """Yield the room's operations."""
    for name, prelude, body in ROWS:
        headers = (
            ("cuda_fp16.h",) if "half" in prelude else ("cassert",) if "assert" in body else ()
        )
        yield Operation(
            name, "int", ("int", "int"), body, exact=True, prelude=prelude, headers=headers,
            dynamic_bytes=DYNAMIC.get(name, 0),
        )  # fmt: skip
    for name, body in GROUP_ROWS:
        yield Operation(
            f"groups_{name}", "int", ("int", "int"), f"namespace cg = cooperative_groups; {body}",
            exact=True, headers=(GROUPS, REDUCE, SCAN),
        )  # fmt: skip
