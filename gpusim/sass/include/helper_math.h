// Arithmetic of short vectors, by the names that CUDA's samples have for it.
#pragma once
#define GPUSIM_VECTORS(make)                                                                      \
  make(float2, float, 2) make(float3, float, 3) make(float4, float, 4) make(int2, int, 2)         \
  make(int3, int, 3) make(int4, int, 4) make(uint2, unsigned, 2) make(uint3, unsigned, 3)         \
  make(uint4, unsigned, 4)
#define GPUSIM_OF_BOTH(vector, scalar, n, sign)                                                   \
  inline __host__ __device__ vector operator sign(vector a, vector b) {                                    \
    return vector{GPUSIM_##n(a., b., sign)};                                                      \
  }                                                                                               \
  inline __host__ __device__ vector operator sign(vector a, scalar b) { return vector{GPUSIM_LEFT_##n(a., b, sign)}; } \
  inline __host__ __device__ vector operator sign(scalar a, vector b) { return vector{GPUSIM_RIGHT_##n(a, b., sign)}; } \
  inline __host__ __device__ void operator sign##=(vector& a, vector b) { a = a sign b; }                  \
  inline __host__ __device__ void operator sign##=(vector& a, scalar b) { a = a sign b; }
#define GPUSIM_2(a, b, sign) a x sign b x, a y sign b y
#define GPUSIM_3(a, b, sign) GPUSIM_2(a, b, sign), a z sign b z
#define GPUSIM_4(a, b, sign) GPUSIM_3(a, b, sign), a w sign b w
#define GPUSIM_LEFT_2(a, b, sign) a x sign b, a y sign b
#define GPUSIM_LEFT_3(a, b, sign) GPUSIM_LEFT_2(a, b, sign), a z sign b
#define GPUSIM_LEFT_4(a, b, sign) GPUSIM_LEFT_3(a, b, sign), a w sign b
#define GPUSIM_RIGHT_2(a, b, sign) a sign b x, a sign b y
#define GPUSIM_RIGHT_3(a, b, sign) GPUSIM_RIGHT_2(a, b, sign), a sign b z
#define GPUSIM_RIGHT_4(a, b, sign) GPUSIM_RIGHT_3(a, b, sign), a sign b w
#define GPUSIM_ARITHMETIC(vector, scalar, n)                                                      \
  GPUSIM_OF_BOTH(vector, scalar, n, +)                                                            \
  GPUSIM_OF_BOTH(vector, scalar, n, -)                                                            \
  GPUSIM_OF_BOTH(vector, scalar, n, *)
GPUSIM_VECTORS(GPUSIM_ARITHMETIC)
GPUSIM_OF_BOTH(float2, float, 2, /)
GPUSIM_OF_BOTH(float3, float, 3, /)
GPUSIM_OF_BOTH(float4, float, 4, /)
#undef GPUSIM_ARITHMETIC
#undef GPUSIM_OF_BOTH

#define GPUSIM_FUNCTION(name, call)                                                               \
  inline __host__ __device__ float2 name(float2 a) { return {call(a.x), call(a.y)}; }                      \
  inline __host__ __device__ float3 name(float3 a) { return {call(a.x), call(a.y), call(a.z)}; }           \
  inline __host__ __device__ float4 name(float4 a) { return {call(a.x), call(a.y), call(a.z), call(a.w)}; }
GPUSIM_FUNCTION(operator-, -)
GPUSIM_FUNCTION(fabs, fabsf)
GPUSIM_FUNCTION(floorf, floorf)
inline __host__ __device__ float fracf(float a) { return a - floorf(a); }
GPUSIM_FUNCTION(fracf, fracf)
#undef GPUSIM_FUNCTION
#define GPUSIM_FUNCTION(name, of, call)                                                           \
  inline __host__ __device__ of##2 name(of##2 a, of##2 b) { return {call(a.x, b.x), call(a.y, b.y)}; }     \
  inline __host__ __device__ of##3 name(of##3 a, of##3 b) { return {call(a.x, b.x), call(a.y, b.y), call(a.z, b.z)}; } \
  inline __host__ __device__ of##4 name(of##4 a, of##4 b) {                                                \
    return {call(a.x, b.x), call(a.y, b.y), call(a.z, b.z), call(a.w, b.w)};                      \
  }
GPUSIM_FUNCTION(fminf, float, fminf)
GPUSIM_FUNCTION(fmaxf, float, fmaxf)
GPUSIM_FUNCTION(fmodf, float, fmodf)
GPUSIM_FUNCTION(min, int, min)
GPUSIM_FUNCTION(max, int, max)
GPUSIM_FUNCTION(min, uint, min)
GPUSIM_FUNCTION(max, uint, max)
#undef GPUSIM_FUNCTION

#define GPUSIM_MADE(vector, of, n)                                                                \
  inline __host__ __device__ of##2 make_##of##2(vector s) { return {s, s}; }                               \
  inline __host__ __device__ of##3 make_##of##3(vector s) { return {s, s, s}; }                            \
  inline __host__ __device__ of##4 make_##of##4(vector s) { return {s, s, s, s}; }                         \
  inline __host__ __device__ of##2 make_##of##2(of##3 a) { return {a.x, a.y}; }                            \
  inline __host__ __device__ of##3 make_##of##3(of##4 a) { return {a.x, a.y, a.z}; }                       \
  inline __host__ __device__ of##3 make_##of##3(of##2 a) { return {a.x, a.y, 0}; }                         \
  inline __host__ __device__ of##3 make_##of##3(of##2 a, vector z) { return {a.x, a.y, z}; }               \
  inline __host__ __device__ of##4 make_##of##4(of##3 a) { return {a.x, a.y, a.z, 0}; }                    \
  inline __host__ __device__ of##4 make_##of##4(of##3 a, vector w) { return {a.x, a.y, a.z, w}; }
GPUSIM_MADE(float, float, 0)
GPUSIM_MADE(int, int, 0)
GPUSIM_MADE(unsigned, uint, 0)
#undef GPUSIM_MADE
inline __host__ __device__ float2 make_float2(int2 a) { return {float(a.x), float(a.y)}; }
inline __host__ __device__ float3 make_float3(int3 a) { return {float(a.x), float(a.y), float(a.z)}; }
inline __host__ __device__ float4 make_float4(int4 a) { return {float(a.x), float(a.y), float(a.z), float(a.w)}; }
inline __host__ __device__ int2 make_int2(float2 a) { return {int(a.x), int(a.y)}; }
inline __host__ __device__ int3 make_int3(float3 a) { return {int(a.x), int(a.y), int(a.z)}; }
inline __host__ __device__ int4 make_int4(float4 a) { return {int(a.x), int(a.y), int(a.z), int(a.w)}; }

inline __host__ __device__ float dot(float2 a, float2 b) { return a.x * b.x + a.y * b.y; }
inline __host__ __device__ float dot(float3 a, float3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
inline __host__ __device__ float dot(float4 a, float4 b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }
inline __host__ __device__ float3 cross(float3 a, float3 b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
inline __host__ __device__ float clamp(float f, float a, float b) { return fmaxf(a, fminf(f, b)); }
inline __host__ __device__ int clamp(int f, int a, int b) { return max(a, min(f, b)); }
inline __host__ __device__ unsigned clamp(unsigned f, unsigned a, unsigned b) { return max(a, min(f, b)); }
inline __host__ __device__ float lerp(float a, float b, float t) { return a + t * (b - a); }
inline __host__ __device__ float smoothstep(float a, float b, float x) {
  float y = clamp((x - a) / (b - a), 0.0f, 1.0f);
  return y * y * (3.0f - 2.0f * y);
}
#define GPUSIM_GEOMETRY(vector, scalar, n)                                                        \
  inline __host__ __device__ float length(vector v) { return sqrtf(dot(v, v)); }                           \
  inline __host__ __device__ vector normalize(vector v) { return v * rsqrtf(dot(v, v)); }                  \
  inline __host__ __device__ vector lerp(vector a, vector b, float t) { return a + t * (b - a); }          \
  inline __host__ __device__ vector clamp(vector v, vector a, vector b) { return fmaxf(a, fminf(v, b)); }  \
  inline __host__ __device__ vector clamp(vector v, float a, float b) {                                    \
    return clamp(v, make_##vector(a), make_##vector(b));                                          \
  }
GPUSIM_GEOMETRY(float2, float, 2)
GPUSIM_GEOMETRY(float3, float, 3)
GPUSIM_GEOMETRY(float4, float, 4)
#undef GPUSIM_GEOMETRY
inline __host__ __device__ float3 reflect(float3 i, float3 n) { return i - 2.0f * n * dot(n, i); }
