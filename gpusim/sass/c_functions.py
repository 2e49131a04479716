"""Functions that written-out kernels call where CUDA C++ has no such operation for every operand.

Integer division by zero sets all bits. Floor division and modulo are NumPy's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

NAMESPACE = "gpusim"

_INLINE = "__device__ __forceinline__"


def _divided(name: str, operation: str, kind: str, suffix: str) -> str:
    """Return a 32-bit division in PTX: machine-defined where C++ leaves it undefined."""
    return (
        f"{_INLINE} {kind} {name}({kind} a, {kind} b) {{ {kind} r; "
        f'asm("{operation}.{suffix} %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)); return r; }} '
    )


def _shifted(name: str, kind: str, suffix: str, letter: str) -> str:
    """Return a shift; PTX takes a count of the width or more for one that shifts all out."""
    return (
        f"{_INLINE} {kind} {name}({kind} a, unsigned n) {{ {kind} r; "
        f'asm("{suffix} %0, %1, %2;" : "={letter}"(r) : "{letter}"(a), "r"(n)); return r; }} '
    )


def _mbarrier(word: str, parameters: str, instruction: str, operands: str) -> str:
    """Return a function of PTX over an mbarrier in shared memory, and numbers of 32 bits."""
    return (
        f"{_INLINE} void {word}(unsigned long long *at{parameters}) "
        f'{{ asm volatile("{instruction}" :: "r"((unsigned)__cvta_generic_to_shared(at))'
        f'{operands} : "memory"); }} '
    )


_WIDE = "long long a, long long b"
_UNSIGNED = "unsigned long long a, unsigned long long b"

FUNCTIONS: Mapping[str, str] = {
    "quotient": _divided("quotient", "div", "int", "s32")
    + _divided("quotient", "div", "unsigned", "u32")
    + f"{_INLINE} long long quotient({_WIDE}) "
    "{ return b + 1ull < 2 ? b ? (long long)(0ull - a) : -1ll : a / b; } "
    f"{_INLINE} unsigned long long quotient({_UNSIGNED}) {{ return b ? a / b : ~0ull; }}",
    "remainder": _divided("remainder", "rem", "int", "s32")
    + _divided("remainder", "rem", "unsigned", "u32")
    + f"{_INLINE} long long remainder({_WIDE}) "
    "{ return b + 1ull < 2 ? b ? 0ll : -1ll : a % b; } "
    f"{_INLINE} unsigned long long remainder({_UNSIGNED}) {{ return b ? a % b : ~0ull; }}",
    "barrier_init": _mbarrier(
        "barrier_init",
        ", unsigned count",
        "mbarrier.init.shared::cta.b64 [%0], %1;",
        ', "r"(count)',
    ),
    "barrier_arrive": _mbarrier(
        "barrier_arrive", "", "mbarrier.arrive.shared::cta.b64 _, [%0];", ""
    ),
    "barrier_arrive_tx": _mbarrier(
        "barrier_arrive_tx",
        ", unsigned count, unsigned bytes",
        "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %2; "
        "mbarrier.arrive.shared::cta.b64 _, [%0], %1;",
        ', "r"(count), "r"(bytes)',
    ),
    "barrier_wait_parity": f"{_INLINE} void barrier_wait_parity(unsigned long long *at, "
    "unsigned parity) { unsigned is_over; do { asm volatile("
    '"{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; '
    'selp.u32 %0, 1, 0, p; }"'
    ' : "=r"(is_over) : "r"((unsigned)__cvta_generic_to_shared(at)), "r"(parity) : "memory"); '
    "} while (!is_over); }",
    "copy_bulk": f"{_INLINE} void copy_bulk(void *target, const void *source, unsigned bytes, "
    'unsigned long long *at) { asm volatile("cp.async.bulk.shared::cluster.global'
    '.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" :: '
    '"r"((unsigned)__cvta_generic_to_shared(target)), "l"(__cvta_generic_to_global(source)), '
    '"r"(bytes), "r"((unsigned)__cvta_generic_to_shared(at)) : "memory"); }',
    "fence_proxy_async": f"{_INLINE} void fence_proxy_async() "
    '{ asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }',
    "left": _shifted("left", "unsigned", "shl.b32", "r")
    + _shifted("left", "unsigned long long", "shl.b64", "l"),
    "right": _shifted("right", "int", "shr.s32", "r")
    + _shifted("right", "unsigned", "shr.u32", "r")
    + _shifted("right", "long long", "shr.s64", "l")
    + _shifted("right", "unsigned long long", "shr.u64", "l"),
    "power": f"template <class T, class U> {_INLINE} T power(T base, T exponent) {{ "
    "if (exponent < 0) return base == 1 ? 1 : base != (T)-1 ? 0 : exponent & 1 ? -1 : 1; "
    "U result = 1, square = base; "
    # Unrolled, its squares keep the compiler busy for minutes.
    '_Pragma("unroll 1") '
    "for (U left = exponent; left; left >>= 1) { if (left & 1) result *= square; "
    "square *= square; } return (T)result; }",
    "floordiv": f"template <class T> {_INLINE} T floordiv(T a, T b) {{ "
    "if (b == 0) return a / b; T rest = fmod(a, b), quotient = (a - rest) / b; "
    "if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1; "
    "if (quotient == 0) return copysign((T)0, a / b); "
    "T whole = floor(quotient); return quotient - whole > (T)0.5 ? whole + 1 : whole; }",
    "floormod": f"template <class T> {_INLINE} T floormod(T a, T b) {{ T rest = fmod(a, b); "
    "if (b == 0) return rest; if (rest == 0) return copysign((T)0, b); "
    "return (b < 0) != (rest < 0) ? rest + b : rest; }",
    "bits": f"{_INLINE} int bits(float a) {{ return __float_as_int(a); }} "
    f"{_INLINE} unsigned long long bits(double a) {{ return __double_as_longlong(a); }}",
    "number": f"{_INLINE} float number(int a) {{ return __int_as_float(a); }} "
    f"{_INLINE} double number(unsigned long long a) {{ return __longlong_as_double(a); }}",
    "swapped": f"template <class T, class F> {_INLINE} T swapped(T *place, F next) {{ "
    "using B = decltype(bits(*place)); B *at = (B *)place; B old = *(volatile B *)at; "
    "for (;;) { T now = number(old); B there = atomicCAS(at, old, bits(next(now))); "
    "if (there == old) return now; old = there; } }",
}
_NEEDS: Mapping[str, tuple[str, ...]] = {"swapped": ("bits", "number")}
_CALL = re.compile(rf"\b{NAMESPACE}::(\w+)")


def definitions(text: str) -> Iterator[str]:
    """Yield the functions called in a text, each after the functions it needs."""
    called = set(_CALL.findall(text))
    called.update(needed for name in sorted(called) for needed in _NEEDS.get(name, ()))
    if called:
        inside = " ".join(text for name, text in FUNCTIONS.items() if name in called)
        yield f"namespace {NAMESPACE} {{ {inside} }}"
