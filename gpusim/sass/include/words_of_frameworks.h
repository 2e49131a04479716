// What device code of extensions names of PyTorch: types of elements, accessors, loops. The layouts are PyTorch's.
#pragma once
#include <cstdint>
#define C10_HOST_DEVICE __host__ __device__
#define C10_DEVICE __device__
#define C10_HOST __host__
#define C10_WARP_SIZE 32
#define C10_RESTRICT __restrict__
#define C10_ALWAYS_INLINE __forceinline__
#define C10_LAUNCH_BOUNDS_0 __launch_bounds__(256, 4)
#define C10_LAUNCH_BOUNDS_1(threads) __launch_bounds__(threads)
#define C10_LAUNCH_BOUNDS_2(threads, blocks) __launch_bounds__(threads, blocks)
#define C10_UNROLL _Pragma("unroll")
#define C10_LIKELY(condition) (condition)
#define C10_UNLIKELY(condition) (condition)
#define TORCH_CHECK(...)
#define TORCH_INTERNAL_ASSERT(...)
#define CUDA_KERNEL_ASSERT(condition) assert(condition)
#define CUDA_KERNEL_LOOP_TYPE(i, n, type)                                      \
  int64_t _i_n_d_e_x = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;         \
  for (type i = _i_n_d_e_x; _i_n_d_e_x < (n); _i_n_d_e_x += blockDim.x * gridDim.x, i = _i_n_d_e_x)
#define CUDA_KERNEL_LOOP(i, n) CUDA_KERNEL_LOOP_TYPE(i, n, int)

#if __has_include(<cuda_fp16.h>) && __has_include(<cuda_bf16.h>)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
namespace c10 {
#define GPUSIM_SIXTEEN_BITS(name, kept, from_float, to_float)                                          \
  struct alignas(2) name {                                                                             \
    unsigned short x;                                                                                  \
    name() = default;                                                                                  \
    __device__ name(float value) { *reinterpret_cast<kept*>(&x) = from_float(value); }                 \
    __device__ name(const kept& value) { *reinterpret_cast<kept*>(&x) = value; }                       \
    __device__ operator float() const { return to_float(*reinterpret_cast<const kept*>(&x)); }         \
    __device__ name& operator+=(float value) { return *this = name(float(*this) + value); }            \
    __device__ name& operator-=(float value) { return *this = name(float(*this) - value); }            \
    __device__ name& operator*=(float value) { return *this = name(float(*this) * value); }            \
    __device__ name& operator/=(float value) { return *this = name(float(*this) / value); }            \
  };                                                                                                   \
inline __device__ name operator+(const name& a, const name& b) { return name(float(a) + float(b)); } \
  inline __device__ name operator-(const name& a, const name& b) { return name(float(a) - float(b)); } \
  inline __device__ name operator*(const name& a, const name& b) { return name(float(a) * float(b)); } \
  inline __device__ name operator/(const name& a, const name& b) { return name(float(a) / float(b)); } \
  inline __device__ float operator+(const name& a, float b) { return float(a) + b; }                 \
  inline __device__ float operator+(float a, const name& b) { return a + float(b); }                 \
  inline __device__ float operator-(const name& a, float b) { return float(a) - b; }                 \
  inline __device__ float operator-(float a, const name& b) { return a - float(b); }                 \
  inline __device__ float operator*(const name& a, float b) { return float(a) * b; }                 \
  inline __device__ float operator*(float a, const name& b) { return a * float(b); }                 \
  inline __device__ float operator/(const name& a, float b) { return float(a) / b; }                 \
  inline __device__ float operator/(float a, const name& b) { return a / float(b); }                 \
  inline __device__ name operator+(const name& a, int b) { return name(float(a) + b); }              \
  inline __device__ name operator+(int a, const name& b) { return name(a + float(b)); }              \
  inline __device__ name operator-(const name& a, int b) { return name(float(a) - b); }              \
  inline __device__ name operator-(int a, const name& b) { return name(a - float(b)); }              \
  inline __device__ name operator*(const name& a, int b) { return name(float(a) * b); }              \
  inline __device__ name operator*(int a, const name& b) { return name(a * float(b)); }              \
  inline __device__ name operator/(const name& a, int b) { return name(float(a) / b); }              \
  inline __device__ name operator/(int a, const name& b) { return name(a / float(b)); }              \
  inline __device__ name operator-(const name& a) { return name(-float(a)); }
GPUSIM_SIXTEEN_BITS(Half, __half, __float2half_rn, __half2float)
GPUSIM_SIXTEEN_BITS(BFloat16, __nv_bfloat16, __float2bfloat16_rn, __bfloat162float)
#undef GPUSIM_SIXTEEN_BITS
} // namespace c10
namespace at {
using c10::BFloat16;
using c10::Half;
} // namespace at
namespace torch {
using c10::BFloat16;
using c10::Half;
} // namespace torch
#endif

namespace at {
template <typename T> struct OpMathType { using type = T; };
template <typename T, bool is_cuda> struct AccumulateType { using type = T; };
template <> struct AccumulateType<signed char, true> { using type = int64_t; };
template <> struct AccumulateType<unsigned char, true> { using type = int64_t; };
template <> struct AccumulateType<short, true> { using type = int64_t; };
template <> struct AccumulateType<int, true> { using type = int64_t; };
#if __has_include(<cuda_fp16.h>) && __has_include(<cuda_bf16.h>)
template <> struct OpMathType<Half> { using type = float; };
template <> struct OpMathType<BFloat16> { using type = float; };
template <> struct AccumulateType<Half, true> { using type = float; };
template <> struct AccumulateType<BFloat16, true> { using type = float; };
#endif
template <typename T> using opmath_type = typename OpMathType<T>::type;
template <typename T, bool is_cuda> using acc_type = typename AccumulateType<T, is_cuda>::type;

template <typename T> struct DefaultPtrTraits { typedef T* PtrType; };
template <typename T> struct RestrictPtrTraits { typedef T* __restrict__ PtrType; };

// A part of a tensor: its elements, sizes and strides.
template <typename T, int N, template <typename> class Pointer = DefaultPtrTraits, typename Index = int64_t>
struct TensorAccessor {
  typename Pointer<T>::PtrType data_;
  const Index *sizes_, *strides_;
  __device__ TensorAccessor(typename Pointer<T>::PtrType data, const Index* sizes, const Index* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}
  __device__ Index size(Index i) const { return sizes_[i]; }
  __device__ Index stride(Index i) const { return strides_[i]; }
  __device__ typename Pointer<T>::PtrType data() const { return data_; }
  __device__ TensorAccessor<T, N - 1, Pointer, Index> operator[](Index i) const {
    return TensorAccessor<T, N - 1, Pointer, Index>(data_ + strides_[0] * i, sizes_ + 1, strides_ + 1);
  }
};
template <typename T, template <typename> class Pointer, typename Index>
struct TensorAccessor<T, 1, Pointer, Index> {
  typename Pointer<T>::PtrType data_;
  const Index *sizes_, *strides_;
  __device__ TensorAccessor(typename Pointer<T>::PtrType data, const Index* sizes, const Index* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}
  __device__ Index size(Index i) const { return sizes_[i]; }
  __device__ Index stride(Index i) const { return strides_[i]; }
  __device__ T& operator[](Index i) const { return data_[strides_[0] * i]; }
};
// A tensor passed to a kernel by value.
template <typename T, int N, template <typename> class Pointer = DefaultPtrTraits, typename Index = int64_t>
struct GenericPackedTensorAccessor {
  typename Pointer<T>::PtrType data_;
  Index sizes_[N], strides_[N];
  __device__ Index size(Index i) const { return sizes_[i]; }
  __device__ Index stride(Index i) const { return strides_[i]; }
  __device__ typename Pointer<T>::PtrType data() const { return data_; }
  __device__ decltype(auto) operator[](Index i) const {
    return TensorAccessor<T, N, Pointer, Index>(data_, sizes_, strides_)[i];
  }
};
template <typename T, int N, template <typename> class Pointer = DefaultPtrTraits>
using PackedTensorAccessor32 = GenericPackedTensorAccessor<T, N, Pointer, int32_t>;
template <typename T, int N, template <typename> class Pointer = DefaultPtrTraits>
using PackedTensorAccessor64 = GenericPackedTensorAccessor<T, N, Pointer, int64_t>;
template <typename T, int N, template <typename> class Pointer = DefaultPtrTraits, typename Index = int64_t>
using PackedTensorAccessor = GenericPackedTensorAccessor<T, N, Pointer, Index>;
} // namespace at

namespace torch {
using at::DefaultPtrTraits;
using at::PackedTensorAccessor;
using at::PackedTensorAccessor32;
using at::PackedTensorAccessor64;
using at::RestrictPtrTraits;
using at::TensorAccessor;
} // namespace torch

template <typename T> inline __device__ T gpuAtomicAdd(T* address, T value) { return atomicAdd(address, value); }
template <typename T> inline __device__ void gpuAtomicAddNoReturn(T* address, T value) { atomicAdd(address, value); }
#if __has_include(<cuda_fp16.h>) && __has_include(<cuda_bf16.h>)
inline __device__ c10::Half gpuAtomicAdd(c10::Half* address, c10::Half value) {
  return c10::Half(atomicAdd(reinterpret_cast<__half*>(address), __float2half_rn(value)));
}
inline __device__ void gpuAtomicAddNoReturn(c10::Half* address, c10::Half value) { gpuAtomicAdd(address, value); }
#endif
template <typename T> inline __device__ T WARP_SHFL(T value, int lane, int width = 32, unsigned mask = 0xffffffff) {
  return __shfl_sync(mask, value, lane, width);
}
template <typename T> inline __device__ T WARP_SHFL_DOWN(T value, unsigned delta, int width = 32, unsigned mask = 0xffffffff) {
  return __shfl_down_sync(mask, value, delta, width);
}
template <typename T> inline __device__ T WARP_SHFL_XOR(T value, int mask_of_lane, int width = 32, unsigned mask = 0xffffffff) {
  return __shfl_xor_sync(mask, value, mask_of_lane, width);
}
