// How long a result takes, and how often a unit accepts an instruction: chains in which each
// instruction needs the one before, and floods in which none does.

// What an operation works on: x goes from step to step; a and b stay.
template <typename Number>
struct Operands {
    Number x, a, b;
};

struct Logic {
    using T = unsigned;
    static __device__ void step(Operands<T> &o) {
        asm volatile("lop3.b32 %0, %0, %1, %2, 0x6a;" : "+r"(o.x) : "r"(o.a), "r"(o.b));
    }
};

struct Shift {
    using T = unsigned;
    static __device__ void step(Operands<T> &o) {
        asm volatile("shf.l.wrap.b32 %0, %0, %1, %2;" : "+r"(o.x) : "r"(o.a), "r"(o.b));
    }
};

struct MultiplyAdd {
    using T = unsigned;
    static __device__ void step(Operands<T> &o) {
        asm volatile("mad.lo.u32 %0, %0, %1, %2;" : "+r"(o.x) : "r"(o.a), "r"(o.b));
    }
};

// The upper half of a product: alone, and added to.
struct MultiplyHigh {
    using T = unsigned;
    static __device__ void step(Operands<T> &o) {
        asm volatile("mul.hi.u32 %0, %0, %1;" : "+r"(o.x) : "r"(o.a));
    }
};

struct MultiplyHighAdd {
    using T = unsigned;
    static __device__ void step(Operands<T> &o) {
        asm volatile("mad.hi.u32 %0, %0, %1, %2;" : "+r"(o.x) : "r"(o.a), "r"(o.b));
    }
};

struct FloatMultiplyAdd {
    using T = float;
    static __device__ void step(Operands<T> &o) {
        asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+f"(o.x) : "f"(o.a), "f"(o.b));
    }
};

struct DoubleMultiplyAdd {
    using T = double;
    static __device__ void step(Operands<T> &o) {
        asm volatile("fma.rn.f64 %0, %0, %1, %2;" : "+d"(o.x) : "d"(o.a), "d"(o.b));
    }
};

struct Exponential {
    using T = float;
    static __device__ void step(Operands<T> &o) {
        asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(o.x));
    }
};

struct Nothing {
    using T = unsigned;
    static __device__ void step(Operands<T> &) {}
};

struct Conversion {
    using T = unsigned;
    static __device__ void step(Operands<T> &o) {
        asm volatile("{.reg .f32 f; cvt.rp.f32.u32 f, %0; mov.b32 %0, f;}" : "+r"(o.x));
    }
};

struct Shuffle {
    using T = unsigned;
    static __device__ void step(Operands<T> &o) {
        asm volatile("shfl.sync.idx.b32 %0, %0, %1, 0x1f, 0xffffffff;" : "+r"(o.x) : "r"(o.a));
    }
};

// A comparison and the choice that its predicate makes.
struct Choice {
    using T = unsigned;
    static __device__ void step(Operands<T> &o) {
        asm volatile(
            "{ .reg .pred p; setp.lt.u32 p, %0, %1; selp.u32 %0, %2, %0, p; }"
            : "+r"(o.x) : "r"(o.a), "r"(o.b));
    }
};

// A comparison and an addition behind its predicate, which holds.
struct Guard {
    using T = unsigned;
    static __device__ void step(Operands<T> &o) {
        asm volatile(
            "{ .reg .pred p; setp.ne.u32 p, %0, 0x5eed5; @p shf.l.wrap.b32 %0, %0, %1, %2; }"
            : "+r"(o.x) : "r"(o.a), "r"(o.b));
    }
};

// A comparison and S2R behind its predicate, which holds.
struct SpecialRegister {
    using T = unsigned;
    static __device__ void step(Operands<T> &o) {
        asm volatile(
            "{ .reg .pred p; setp.ne.u32 p, %0, 0x5eed5; @p mov.u32 %0, %%smid; }" : "+r"(o.x));
    }
};

// A comparison and a vote about it.
struct Vote {
    using T = unsigned;
    static __device__ void step(Operands<T> &o) {
        asm volatile(
            "{ .reg .pred p; setp.lt.u32 p, %0, %1; vote.sync.ballot.b32 %0, p, 0xffffffff; }"
            : "+r"(o.x) : "r"(o.a));
    }
};

// Two operations of one type, one after the other.
template <typename First, typename Second>
struct Then {
    using T = typename First::T;
    static __device__ void step(Operands<T> &o) {
        First::step(o);
        Second::step(o);
    }
};

struct Barrier {
    using T = unsigned;
    static __device__ void step(Operands<T> &) { asm volatile("bar.sync 0;"); }
};

// A lane's part of the sums of a matrix product, and of what is multiplied.
template <typename Number>
struct Fragment {
    Number n[4];
    __device__ Fragment(unsigned seed) : n{Number(seed), Number(seed), Number(seed), Number(seed)} {}
    __device__ Fragment operator+(const Fragment &other) const {
        Fragment sum(0);
        for (int k = 0; k < 4; ++k) sum.n[k] = n[k] + other.n[k];
        return sum;
    }
    __device__ explicit operator long long() const { return (long long)(n[0] + n[1] + n[2] + n[3]); }
};

// Matrix products with four and with two registers of A a lane, summed in single and in half precision,
// and of doubles.
struct ProductOfFour {
    using T = Fragment<unsigned>;
    static __device__ void step(Operands<T> &o) {
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
            "{%0, %1, %2, %3};"
            : "+r"(o.x.n[0]), "+r"(o.x.n[1]), "+r"(o.x.n[2]), "+r"(o.x.n[3])
            : "r"(o.a.n[0]), "r"(o.a.n[1]), "r"(o.a.n[2]), "r"(o.a.n[3]), "r"(o.b.n[0]), "r"(o.b.n[1]));
    }
};

struct ProductOfFourInHalves {
    using T = Fragment<unsigned>;
    static __device__ void step(Operands<T> &o) {
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
            : "+r"(o.x.n[0]), "+r"(o.x.n[1])
            : "r"(o.a.n[0]), "r"(o.a.n[1]), "r"(o.a.n[2]), "r"(o.a.n[3]), "r"(o.b.n[0]), "r"(o.b.n[1]));
    }
};

struct ProductOfTwo {
    using T = Fragment<unsigned>;
    static __device__ void step(Operands<T> &o) {
        asm volatile(
            "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
            : "+r"(o.x.n[0]), "+r"(o.x.n[1]), "+r"(o.x.n[2]), "+r"(o.x.n[3])
            : "r"(o.a.n[0]), "r"(o.a.n[1]), "r"(o.b.n[0]));
    }
};

struct ProductOfDoubles {
    using T = Fragment<double>;
    static __device__ void step(Operands<T> &o) {
        asm volatile(
            "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
            : "+d"(o.x.n[0]), "+d"(o.x.n[1]) : "d"(o.a.n[0]), "d"(o.b.n[0]));
    }
};

template <typename Op>
__device__ Operands<typename Op::T> operands(int seed) {
    using T = typename Op::T;
    return {T(seed + threadIdx.x), T(threadIdx.x ^ 1), T(threadIdx.x + 3)};
}

// Every warp's first and last cycle, and a use of x that never happens.
template <typename T>
__device__ void stamp(long long *stamps, long long begin, long long end, T x) {
    unsigned warp = threadIdx.x / 32;
    if (threadIdx.x % 32 == 0) {
        stamps[2 * warp] = begin;
        stamps[2 * warp + 1] = end;
    }
    if (end == 0) stamps[0] = (long long)x;
}

template <typename Op, int LENGTH>
__global__ void chain(long long *stamps, int iterations, int seed) {
    auto o = operands<Op>(seed);
    __syncthreads();
    long long begin = clock64();
#pragma unroll 1
    for (int r = 0; r < iterations; ++r) {
#pragma unroll
        for (int i = 0; i < LENGTH; ++i) Op::step(o);
    }
    long long end = clock64();
    stamp(stamps, begin, end, o.x);
}

template <typename Op, int LENGTH>
__global__ void flood(long long *stamps, int iterations, int seed) {
    auto o = operands<Op>(seed), p = operands<Op>(seed + 1);
    auto q = operands<Op>(seed + 2), r = operands<Op>(seed + 3);
    __syncthreads();
    long long begin = clock64();
#pragma unroll 1
    for (int iteration = 0; iteration < iterations; ++iteration) {
#pragma unroll
        for (int i = 0; i < LENGTH; ++i) {
            Op::step(o);
            Op::step(p);
            Op::step(q);
            Op::step(r);
        }
    }
    long long end = clock64();
    stamp(stamps, begin, end, o.x + p.x + q.x + r.x);
}

// Floods of an operation with another one behind every 24 of them.
template <typename Op, typename Other, int LENGTH>
__global__ void beside(long long *stamps, int iterations, int seed) {
    Operands<typename Op::T> o[8];
    for (int k = 0; k < 8; ++k) o[k] = operands<Op>(seed + k);
    auto other = operands<Other>(seed);
    __syncthreads();
    long long begin = clock64();
#pragma unroll 1
    for (int iteration = 0; iteration < iterations; ++iteration) {
#pragma unroll
        for (int i = 0; i < LENGTH; ++i) {
            Other::step(other);
#pragma unroll
            for (int k = 0; k < 24; ++k) Op::step(o[k % 8]);
        }
    }
    long long end = clock64();
    auto all = o[0].x + other.x;
    for (int k = 1; k < 8; ++k) all += o[k].x;
    stamp(stamps, begin, end, all);
}

// A chain behind code that was never run: what fetching instructions costs.
template <int LENGTH>
__global__ void straight(long long *stamps, int iterations, int seed) {
    auto o = operands<Shift>(seed);
    long long begin = clock64();
#pragma unroll
    for (int i = 0; i < LENGTH; ++i) Shift::step(o);
    long long end = clock64();
    stamp(stamps, begin, end, o.x);
}

__constant__ unsigned ring_of_constants[64];

// Each constant is the offset of the next; all are zero, so that it is always the first.
template <int LENGTH>
__global__ void constants(long long *stamps, int iterations, int seed) {
    unsigned x = 0;
    long long begin = clock64();
#pragma unroll 1
    for (int r = 0; r < iterations; ++r) {
#pragma unroll
        for (int i = 0; i < LENGTH; ++i) x = ring_of_constants[x];
    }
    long long end = clock64();
    stamp(stamps, begin, end, x);
}
