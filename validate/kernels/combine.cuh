// What a reduction does with two elements, and the element that changes nothing.
//
// `onto(place) += value` does what += does for a sum, in the order of +=: what is added comes
// first. The machine code of published kernels depends on it.
//
// No header is included, so that NVRTC needs no directory of them.
#pragma once

namespace combine {

template <typename T>
constexpr bool is_signed = T(-1) < T(0);

// The least and the greatest number of a type; infinities for floating point.
template <typename T>
struct Limits {
    static constexpr T top = T(T(1) << (8 * sizeof(T) - 2));
    static __device__ T greatest() { return is_signed<T> ? T(top - 1 + top) : T(~T(0)); }
    static __device__ T least() { return is_signed<T> ? T(-greatest() - 1) : T(0); }
};

template <>
struct Limits<float> {
    static __device__ float greatest() { return __int_as_float(0x7f800000); }
    static __device__ float least() { return -greatest(); }
};

template <>
struct Limits<double> {
    static __device__ double greatest() { return __longlong_as_double(0x7ff0000000000000LL); }
    static __device__ double least() { return -greatest(); }
};

// A place that += combines something into.
template <typename Op, typename Place>
struct Onto {
    Place &place;
    template <typename T>
    __device__ void operator+=(T value) {
        place = Op::of(place, value);
    }
};

template <typename T>
struct Sum {
    static __device__ T identity() { return T(0); }
    static __device__ T of(T a, T b) { return a + b; }
    template <typename Place>
    static __device__ Onto<Sum, Place> onto(Place &place) {
        return {place};
    }
};

// The overloads of max and min give a number rather than NaN.
template <typename T>
struct Max {
    static __device__ T identity() { return Limits<T>::least(); }
    static __device__ T of(T a, T b) { return max(a, b); }
    template <typename Place>
    static __device__ Onto<Max, Place> onto(Place &place) {
        return {place};
    }
};

template <typename T>
struct Min {
    static __device__ T identity() { return Limits<T>::greatest(); }
    static __device__ T of(T a, T b) { return min(a, b); }
    template <typename Place>
    static __device__ Onto<Min, Place> onto(Place &place) {
        return {place};
    }
};

}  // namespace combine

// The block's dynamic shared memory as an array of T.
template <typename T>
__device__ T *dynamic_shared() {
    extern __shared__ __align__(16) unsigned char dynamic_shared_bytes[];
    return reinterpret_cast<T *>(dynamic_shared_bytes);
}
