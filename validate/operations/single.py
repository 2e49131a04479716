"""Single precision: the CUDA math API's functions, intrinsics with rounding modes, operators."""

from __future__ import annotations

from collections.abc import Iterator

from .operation import Operation, expressions, functions

MODES = ("rn", "rz", "ru", "rd")


def operations() -> Iterator[Operation]:
    """Yield the room's operations."""
    yield from functions(
        "float(float)",
        "fabsf ceilf floorf truncf rintf roundf nearbyintf logbf sqrtf __saturatef "
        "__fsqrt_rn __fsqrt_rz __fsqrt_ru __fsqrt_rd __frcp_rn __frcp_rz __frcp_ru __frcp_rd "
        "__frsqrt_rn",
        exact=True,
    )
    yield from functions(
        "float(float)",
        "sinf cosf tanf sinpif cospif asinf acosf atanf sinhf coshf tanhf asinhf acoshf atanhf "
        "expf exp2f exp10f expm1f logf log2f log10f log1pf cbrtf rcbrtf rsqrtf erff erfcf erfinvf "
        "erfcinvf erfcxf normcdff normcdfinvf lgammaf tgammaf j0f j1f y0f y1f "
        "cyl_bessel_i0f cyl_bessel_i1f",
        ulps=12,
        absolute=2.0**-20,
    )
    yield from functions(
        "float(float)",
        "__expf __exp10f __logf __log2f __log10f __sinf __cosf",
        ulps=16,
        absolute=2.0**-19,
    )
    yield from functions("float(float)", "__tanhf", absolute=2.0**-10)
    # Quotients of sines by cosines and powers multiply their errors; near poles without bound.
    yield from expressions(
        "float(float)", [("fast_tanf", "__tanf(fminf(fmaxf(a, -1.0f), 1.0f))")], absolute=2.0**-18
    )
    yield from expressions(
        "float(float,float)",
        [("fast_powf", "__powf(a, fminf(fmaxf(b, -4.0f), 4.0f))")],
        ulps=1024,
    )
    yield from functions(
        "float(float,float)",
        "fmodf remainderf copysignf nextafterf fdimf fmaxf fminf "
        + " ".join(f"__f{op}_{mode}" for op in ("add", "sub", "mul", "div") for mode in MODES),
        exact=True,
    )
    yield from functions(
        "float(float,float)",
        "powf atan2f hypotf rhypotf __fdividef fdividef",
        ulps=24,
        absolute=2.0**-126,
    )
    yield from functions(
        "float(float,float,float)", "fmaf " + " ".join(f"__fmaf_{m}" for m in MODES), exact=True
    )
    yield from functions("float(float,float,float)", "norm3df rnorm3df", ulps=8)
    yield from functions("float(float,int)", "ldexpf scalbnf", exact=True)
    yield from functions("int(float)", "ilogbf", exact=True)
    yield from functions("ll(float)", "llrintf llroundf lrintf lroundf", exact=True)
    yield from expressions(
        "float(float)", [("jnf_2", "jnf(2, a)"), ("ynf_2", "ynf(2, a)")], ulps=64
    )
    yield from expressions(
        "float2(float)",
        [
            ("sincosf", "float s, k; sincosf(a, &s, &k); r = make_float2(s, k);"),
            ("sincospif", "float s, k; sincospif(a, &s, &k); r = make_float2(s, k);"),
            ("fast_sincosf", "float s, k; __sincosf(a, &s, &k); r = make_float2(s, k);"),
        ],
        absolute=2.0**-19,
    )
    yield from expressions(
        "float2(float)",
        [
            ("modff", "float w, f = modff(a, &w); r = make_float2(w, f);"),
            ("frexpf", "int e = 0; float f = frexpf(a, &e); r = make_float2(f, e);"),
        ],
        exact=True,
    )
    yield from expressions(
        "float2(float,float)",
        [("remquof", "int q; float f = remquof(a, b, &q); r = make_float2(f, q & 7);")],
        exact=True,
    )
    yield from expressions(
        "int(float)",
        [
            ("isnan", "isnan(a)"), ("isinf", "isinf(a)"), ("isfinite", "isfinite(a)"),
            ("signbit", "signbit(a) != 0"), ("not", "!a"), ("float_as_int", "__float_as_int(a)"),
        ],
        exact=True,
    )  # fmt: skip
    yield from expressions(
        "float(float,float)",
        [
            ("add", "a + b"), ("sub", "a - b"), ("mul", "a * b"), ("div", "a / b"),
            ("select", "a < b ? a : -b"), ("abs_sum", "fabsf(a) + fabsf(b)"),
            ("negated_product", "-(a * b)"), ("clamp", "fminf(fmaxf(a, -1.0f), b)"),
            ("saturated_sum", "__saturatef(a + b)"), ("relu", "a > 0.0f ? a * b : 0.0f"),
            ("min_abs", "fminf(fabsf(a), -fabsf(b))"), ("half_sum", "(a + b) * 0.5f"),
        ],
        exact=True,
    )  # fmt: skip
    yield from expressions(
        "int(float,float)",
        [
            ("compare", "(a < b) | (a <= b) << 1 | (a > b) << 2 | (a >= b) << 3 | (a == b) << 4"
             " | (a != b) << 5"),
            ("not_compare", "!(a < b) | !(a <= b) << 1 | !(a > b) << 2 | !(a >= b) << 3"),
        ],
        exact=True,
    )  # fmt: skip
    yield from expressions(
        "float(float,float,float)",
        [
            ("fused", "fmaf(-a, b, -c)"), ("polynomial", "fmaf(fmaf(a, b, c), b, 1.0f)"),
            ("max3", "fmaxf(fmaxf(a, b), c)"), ("min3", "fminf(a, fminf(b, c))"),
            ("quotient_sum", "a / b + c"),
        ],
        exact=True,
    )  # fmt: skip
    for mode in ("ftz", "rn.ftz", "sat", "rz.ftz.sat"):
        name, said = mode.replace(".", "_"), f".{mode}"
        for op in ("add", "mul"):
            body = f'asm("{op}{said}.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));'
            yield Operation(f"ptx_{op}_{name}", "float", ("float", "float"), body, exact=True)
    for text in ("fma.rn.ftz.f32", "fma.rz.ftz.sat.f32", "fma.rm.ftz.f32"):
        body = f'asm("{text} %0, %1, %2, %3;" : "=f"(r) : "f"(a), "f"(b), "f"(c));'
        yield Operation("ptx_" + text.replace(".", "_"), "float", ("float",) * 3, body, exact=True)
    for text in ("ex2.approx.f32", "ex2.approx.ftz.f32", "lg2.approx.f32", "lg2.approx.ftz.f32",
                 "rcp.approx.f32", "rcp.approx.ftz.f32", "rsqrt.approx.f32",
                 "rsqrt.approx.ftz.f32", "sqrt.approx.f32", "sqrt.approx.ftz.f32",
                 "sin.approx.f32", "sin.approx.ftz.f32", "cos.approx.f32", "cos.approx.ftz.f32",
                 "tanh.approx.f32"):  # fmt: skip
        body = f'asm("{text} %0, %1;" : "=f"(r) : "f"(a));'
        name = "ptx_" + text.replace(".", "_")
        tanh = 2.0**-10 if text.startswith("tanh") else 2.0**-20
        yield Operation(name, "float", ("float",), body, ulps=4, absolute=tanh)
    for text in ("min.f32", "max.f32", "min.ftz.f32", "max.NaN.f32", "min.NaN.f32",
                 "min.xorsign.abs.f32", "copysign.f32", "max.ftz.NaN.f32"):  # fmt: skip
        body = f'asm("{text} %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));'
        yield Operation(
            "ptx_" + text.replace(".", "_"), "float", ("float", "float"), body, exact=True
        )
