"""Double precision: the CUDA math API's functions, intrinsics with rounding modes, operators."""

from __future__ import annotations

from collections.abc import Iterator

from .operation import Operation, expressions, functions
from .single import MODES


def operations() -> Iterator[Operation]:
    """Yield the room's operations."""
    yield from functions(
        "double(double)",
        "fabs ceil floor trunc rint round nearbyint logb sqrt "
        "__dsqrt_rn __dsqrt_rz __dsqrt_ru __dsqrt_rd __drcp_rn __drcp_rz __drcp_ru __drcp_rd",
        exact=True,
    )
    yield from functions(
        "double(double)",
        "sin cos tan sinpi cospi asin acos atan sinh cosh tanh asinh acosh atanh exp exp2 exp10 "
        "expm1 log log2 log10 log1p cbrt rcbrt rsqrt erf erfc erfinv erfcinv erfcx normcdf "
        "normcdfinv lgamma tgamma j0 j1 y0 y1 cyl_bessel_i0 cyl_bessel_i1",
        ulps=8,
        absolute=2.0**-50,
    )
    yield from functions(
        "double(double,double)",
        "fmod remainder copysign nextafter fdim fmax fmin "
        + " ".join(f"__d{op}_{mode}" for op in ("add", "sub", "mul", "div") for mode in MODES),
        exact=True,
    )
    yield from functions("double(double,double)", "pow atan2 hypot rhypot", ulps=8)
    yield from functions(
        "double(double,double,double)", "fma " + " ".join(f"__fma_{m}" for m in MODES), exact=True
    )
    yield from functions("double(double,double,double)", "norm3d rnorm3d", ulps=8)
    yield from functions("double(double,int)", "ldexp scalbn", exact=True)
    yield from functions("int(double)", "ilogb __double2hiint __double2loint", exact=True)
    yield from functions("ll(double)", "llrint llround lrint lround", exact=True)
    yield from functions("double(int,int)", "__hiloint2double", exact=True)
    yield from expressions("double(double)", [("jn_2", "jn(2, a)"), ("yn_2", "yn(2, a)")], ulps=64)
    yield from expressions(
        "double2(double)",
        [
            ("sincos", "double s, k; sincos(a, &s, &k); r = make_double2(s, k);"),
            ("sincospi", "double s, k; sincospi(a, &s, &k); r = make_double2(s, k);"),
        ],
    )
    yield from expressions(
        "double2(double)",
        [
            ("modf", "double w, f = modf(a, &w); r = make_double2(w, f);"),
            ("frexp", "int e = 0; double f = frexp(a, &e); r = make_double2(f, e);"),
        ],
        exact=True,
    )
    yield from expressions(
        "double2(double,double)",
        [("remquo", "int q; double f = remquo(a, b, &q); r = make_double2(f, q & 7);")],
        exact=True,
    )
    yield from expressions(
        "int(double)",
        [
            ("isnan", "isnan(a)"), ("isinf", "isinf(a)"), ("isfinite", "isfinite(a)"),
            ("signbit", "signbit(a) != 0"), ("not", "!a"),
        ],
        exact=True,
    )  # fmt: skip
    yield from expressions(
        "double(double,double)",
        [
            ("add", "a + b"), ("sub", "a - b"), ("mul", "a * b"), ("div", "a / b"),
            ("select", "a < b ? a : -b"), ("abs_sum", "fabs(a) + fabs(b)"),
            ("negated_product", "-(a * b)"), ("clamp", "fmin(fmax(a, -1.0), b)"),
            ("min_abs", "fmin(fabs(a), -fabs(b))"), ("offset", "(a - 1.25) * b + 0.1"),
        ],
        exact=True,
    )  # fmt: skip
    yield from expressions(
        "int(double,double)",
        [
            ("compare", "(a < b) | (a <= b) << 1 | (a > b) << 2 | (a >= b) << 3 | (a == b) << 4"
             " | (a != b) << 5"),
            ("not_compare", "!(a < b) | !(a <= b) << 1 | !(a > b) << 2 | !(a >= b) << 3"),
        ],
        exact=True,
    )  # fmt: skip
    yield from expressions(
        "double(double,double,double)",
        [("fused", "fma(-a, b, -c)"), ("max3", "fmax(fmax(a, b), c)")],
        exact=True,
    )
