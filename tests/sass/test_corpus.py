"""What kernels of many kinds give, in nvcc's own code, is what NumPy and integers give."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpusim.errors import LaunchError
from gpusim.launch.grid import ComputeCapability
from gpusim.machine import run
from gpusim.prediction.predict import predict
from gpusim.sass import wheels
from gpusim.sass.kernels import CodeFile, cuda_file
from gpusim.typing import Array

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
CORPUS = Path(__file__).parent / "corpus"
I32, U32, I64, U64, F32, F64 = np.int32, np.uint32, np.int64, np.uint64, np.float32, np.float64
LANES = np.arange(32)


@functools.cache
def file(name: str) -> CodeFile:
    return cuda_file(CORPUS / f"{name}.cu")


@pytest.fixture(
    params=[
        "9.0",
        *(pytest.param(cc, marks=pytest.mark.slow) for cc in ("7.5", "8.0", "8.6", "8.9")),
    ]
)
def cc(request: pytest.FixtureRequest) -> str:
    return str(request.param)


# A GPU that runs the same kernels instead, for whoever has one: see hardware.py.
HARDWARE: list[Any] = []


def launched(
    name: str, cc: str, *args: Any, grid: int = 1, block: int = 32, dynamic: int = 0, **held: Any
) -> None:
    """Run a kernel; `held` is what variables of its file hold."""
    if HARDWARE:
        HARDWARE[0].launch(name, args, grid, block, dynamic, held)
        return
    of, _, kernel = name.partition(":")
    for variable, value in held.items():
        file(of).set(variable, value)
    configured = file(of)[kernel][grid, block, 0, dynamic]
    run(configured.kernel.prepare(configured.launch, args, ComputeCapability.parse(cc)))


def ints(low: int = -100, high: int = 100, n: int = 32, kind: Any = I32) -> Array:
    return np.random.default_rng(3).integers(low, high, n).astype(kind)


def twice(kind: Any, *numbers: float) -> Array:
    return np.array(numbers * 2, dtype=kind)


EDGES64 = twice(
    I64, 0, 1, -1, 2, 7, -7, 2**31, -(2**31), 2**32, 2**33 + 5, -(2**40), 2**62, 2**63 - 1,
    -(2**63), 10, 100,
)  # fmt: skip
DIVISORS64 = twice(
    I64, 17, 2**62, -3, 1000, 10, 5, 2, -(2**40), 12345678901, 2**32 + 1, 2**31, -7, 7, 3, -1, 1
)
EDGES32 = twice(
    I32, 0, 1, -1, 2, 3, -3, 7, 10, 100, -100, 2**31 - 1, -(2**31), 2**30, 12345, -54321, 255
)
FLOATS = twice(
    F32, 0.0, -0.0, 1, -1, 0.5, 1.5, 2.5, -2.5, 3.7, -3.7, 1e10, -1e10, 1e-3, 255.4, 1e6, 7.0
)


def signed_quotients(a: Array, b: Array) -> tuple[list[int], list[int]]:
    q = [
        abs(int(x)) // abs(int(y)) * (1 if (x < 0) == (y < 0) else -1)
        for x, y in zip(a, b, strict=True)
    ]
    r = [int(x) - p * int(y) for x, y, p in zip(a, b, q, strict=True)]
    return q, r


def test_quotients_of_64_bits(cc: str) -> None:
    a, b = EDGES64, DIVISORS64
    q, r = np.zeros(32, I64), np.zeros(32, I64)
    launched("wide:div64", cc, a, b, q, r)
    want_q, want_r = signed_quotients(a, b)
    assert [w - (2**64 if w >= 2**63 else 0) for w in want_q] == q.tolist()
    assert want_r == r.tolist()
    ua, ub = a.view(U64), b.view(U64)
    uq, ur = np.zeros(32, U64), np.zeros(32, U64)
    launched("wide:udiv64", cc, ua, ub, uq, ur)
    assert (uq == ua // ub).all()
    assert (ur == ua % ub).all()


def test_shifts_comparisons_and_products_of_64_bits(cc: str) -> None:
    a, b = EDGES64, DIVISORS64
    s = (np.arange(32, dtype=I32) * 2).astype(I32)
    y, z = np.zeros(32, I64), np.zeros(32, U64)
    launched("wide:shifts64", cc, a, s, y, z)
    assert (y == ((a << s.astype(I64)) ^ (a >> s.astype(I64)))).all()
    assert (z == a.view(U64) >> s.astype(U64)).all()
    c = np.zeros(32, I32)
    launched("wide:compare64", cc, a, b, c)
    ua, ub = a.view(U64), b.view(U64)
    assert (c == (a < b) + 2 * (a <= b) + 4 * (a == b) + 8 * (ua > ub) + 16 * (a != b)).all()
    launched("wide:mul64", cc, a, b, y, z)
    assert (y == a * b).all()
    assert z.tolist() == [int(p) * int(q) >> 64 for p, q in zip(ua, ub, strict=True)]
    launched("wide:minmax64", cc, a, b, y)
    assert (y == np.maximum(a, b) - np.minimum(a, b)).all()


def test_quotients_and_roots_of_floats_are_rounded_right(cc: str) -> None:
    rng = np.random.default_rng(5)
    hard = np.array(
        [1e-40, 3e38, 1e-38, np.inf, 0.0, -0.0, 1e38, 1e-45, 5, np.nan, 1, 2, 3, 4, 1e30, 1e-30]
    )
    a = np.concatenate([hard, rng.random(16) * 100]).astype(F32)
    b = np.concatenate([hard[::-1], rng.random(16) + 0.1]).astype(F32)
    y = np.zeros(32, F32)
    with np.errstate(all="ignore"):
        launched("wide:fdiv", cc, a, b, y)
        assert np.array_equal(y, a / b, equal_nan=True)
        launched("wide:fsqrt", cc, np.abs(a), y)
        assert np.array_equal(y, np.sqrt(np.abs(a)), equal_nan=True)
        d, e = a.astype(F64) * 1e-3, b.astype(F64) * 1e7
        z = np.zeros(32, F64)
        launched("wide:ddiv", cc, d, e, z)
        assert np.array_equal(z, d / e, equal_nan=True)
        launched("wide:dsqrt", cc, np.abs(d), z)
        assert np.array_equal(z, np.sqrt(np.abs(d)), equal_nan=True)


def test_functions_of_the_library_are_near_to_numpys(cc: str) -> None:
    a = np.random.default_rng(6).random(32).astype(F32) * 4 + F32(0.1)
    y, d, z = np.zeros(32, F32), a.astype(F64), np.zeros(32, F64)
    launched("wide:fmath", cc, a, y)
    assert np.allclose(y, np.exp(a) + np.log(a) + a ** F32(1.7) + np.tanh(a), rtol=1e-5)
    launched("wide:ftrig", cc, a, y)
    assert np.allclose(y, np.sin(a) + np.cos(a) + np.tan(a), rtol=1e-4, atol=1e-5)
    launched("wide:fastmath", cc, a, y)
    assert np.allclose(y, np.sin(a) + np.cos(a) + np.exp(a) + np.log(a), rtol=1e-4, atol=1e-5)
    launched("wide:frsqrt", cc, a, y)
    assert np.allclose(y, 1 / np.sqrt(a) + 1 / a, rtol=1e-6)
    launched("wide:dexp", cc, d, z)
    assert np.allclose(z, np.exp(d) + np.log(d), rtol=1e-14)


def test_rounding_and_conversions(cc: str) -> None:
    a, y, z = FLOATS, np.zeros(32, F32), np.zeros(32, I32)
    launched("wide:rounds", cc, a, y, z)
    half_away = np.where(np.abs(a) < 1e9, np.trunc(a + np.copysign(F32(0.5), a)), a)
    want = np.floor(a) + np.ceil(a) + np.trunc(a) + np.rint(a) + half_away
    assert np.array_equal(y, want.astype(F32))
    clip = np.clip(np.trunc(a.astype(F64)), -(2**31), 2**31 - 1).astype(I64)
    nearest = np.clip(np.rint(a.astype(F64)), -(2**31), 2**31 - 1).astype(I64)
    assert (z == (clip + nearest).astype(I32)).all()
    b, c, d, e = np.zeros(32, I64), np.zeros(32, U64), np.zeros(32, F64), np.zeros(32, U32)
    launched("wide:converts", cc, a, b, c, d, e)
    assert (b == np.trunc(a.astype(F64)).astype(I64)).all()
    assert (c == np.clip(np.trunc(a.astype(F64)), 0, 2**64 - 1).astype(U64)).all()
    assert (d == a).all()
    assert (e == np.clip(np.trunc(a.astype(F64)), 0, 2**32 - 1).astype(U32)).all()
    f = np.zeros(32, F32)
    long, unsigned = EDGES64, EDGES64.view(U64)
    launched("wide:converts2", cc, long, unsigned, f, d)
    assert (f == long.astype(F32) + unsigned.astype(F32)).all()
    assert (d == long.astype(F64) - unsigned.astype(F64)).all()
    x, i, u = a.astype(F64) * 1.000001, np.zeros(32, I32), np.zeros(32, U32)
    launched("wide:converts3", cc, x, i, b, f, u)
    assert (i == np.clip(np.trunc(x), -(2**31), 2**31 - 1).astype(I32)).all()
    assert (b == np.trunc(x).astype(I64)).all()
    assert (f == x.astype(F32)).all()
    assert (u == np.clip(np.trunc(x), 0, 2**32 - 1).astype(U32)).all()


def test_small_integers(cc: str) -> None:
    a, b = ints(-128, 128, kind=np.int8), ints(0, 256, kind=np.uint8)
    c, d = ints(-(2**15), 2**15, kind=np.int16), ints(0, 2**16, kind=np.uint16)
    y, f = np.zeros(32, I32), np.zeros(32, F32)
    launched("wide:small", cc, a, b, c, d, y, f)
    wide = [v.astype(I32) for v in (a, b, c, d)]
    assert (y == wide[0] + wide[1] * wide[2] - wide[3]).all()
    assert (f == sum(v.astype(F32) for v in wide)).all()
    v, p, q = ints(-(2**31), 2**31), np.zeros(32, np.int8), np.zeros(32, np.uint16)
    launched("wide:storesmall", cc, v, p, q)
    assert (p == v.astype(np.int8)).all()
    assert (q == (v * 3).astype(np.uint16)).all()


def leading(v: int, bits: int) -> int:
    return bits - v.bit_length()


def first_set(v: int) -> int:
    return (v & -v).bit_length()


def reversed_bits(v: int, bits: int) -> int:
    return int(f"{v:0{bits}b}"[::-1], 2)


def wrapped(v: int) -> int:
    return (v + 2**31) % 2**32 - 2**31


def permuted(x: int, y: int, selector: int) -> int:
    both = x | y << 32
    return sum((both >> 8 * (selector >> 4 * k & 7) & 255) << 8 * k for k in range(4))


def test_bits(cc: str) -> None:
    a, y = EDGES32.view(U32), np.zeros(32, I32)
    launched("wide:bits", cc, a, y)
    assert y.tolist() == [
        wrapped(v.bit_count() + 3 * leading(v, 32) + 5 * first_set(v) + (reversed_bits(v, 32) >> 7)
                + permuted(v, v * 3 & 0xFFFFFFFF, 0x5140))
        for v in a.tolist()
    ]  # fmt: skip
    wide = EDGES64.view(U64)
    launched("wide:bits64", cc, wide, y)
    assert y.tolist() == [
        wrapped(v.bit_count() + 3 * leading(v, 64) + 5 * first_set(v)
                + wrapped(reversed_bits(v, 64) >> 17 & 0xFFFFFFFF))
        for v in wide.tolist()
    ]  # fmt: skip


def test_funnel_shifts_wrap_or_clamp(cc: str) -> None:
    a = ints(0, 2**32, 33, U32)
    s = np.arange(32, dtype=U32) * U32(3)
    y = np.zeros(32, U32)
    launched("wide:funnel", cc, a, s, y)

    def both(k: int) -> int:
        return int(a[k]) | int(a[k + 1]) << 32

    want = []
    for k, n in enumerate(s.tolist()):
        left, right = (both(k) << (n & 31)) >> 32, both(k) >> (n & 31)
        left_c, right_c = (both(k) << min(n, 32)) >> 32, both(k) >> min(n, 32)
        want.append((left ^ right ^ left_c ^ right_c) & 0xFFFFFFFF)
    assert y.tolist() == want


def test_products_and_quotients_of_32_bits(cc: str) -> None:
    a, b = EDGES32, np.roll(EDGES32, 3)
    y = np.zeros(32, I32)
    launched("wide:sads", cc, a, b, y)

    def low24(v: int) -> int:
        return ((v & 0xFFFFFF) ^ 0x800000) - 0x800000

    assert y.tolist() == [
        wrapped(abs(p - q) + 3 + (p * q >> 32) + wrapped((p % 2**32) * (q % 2**32) >> 32)
                + (p + q >> 1) + low24(p) * low24(q))
        for p, q in zip(a.tolist(), b.tolist(), strict=True)
    ]  # fmt: skip
    launched("wide:dp", cc, a, b, y)
    parts, others = (
        a.view(np.int8).reshape(-1, 4).astype(I32),
        b.view(np.int8).reshape(-1, 4).astype(I32),
    )
    bare, bare_others = (
        a.view(np.uint8).reshape(-1, 4).astype(I32),
        b.view(np.uint8).reshape(-1, 4).astype(I32),
    )
    assert (y == (parts * others).sum(1) + 7 + (bare * bare_others).sum(1) + 1).all()
    d = np.where(b == 0, I32(9), b)
    q, r = np.zeros(32, I32), np.zeros(32, U32)
    launched("wide:idiv", cc, a, d, q, r)
    want = [
        wrapped(x + y + z)
        for x, y, z in zip(signed_quotients(a, d)[0], signed_quotients(a, np.full(32, 7))[1],
                           signed_quotients(a, np.full(32, 10))[0], strict=True)
    ]  # fmt: skip
    assert q.tolist() == want
    ua, ud = a.view(U32).astype(U64), d.view(U32).astype(U64)
    assert (r == (ua // ud + ua % U64(1000)).astype(U32)).all()


def test_half_precision(cc: str) -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal(64).astype(np.float16)
    y = rng.standard_normal(64).astype(np.float16)
    a = np.float16(1.25)
    want = (x.astype(F64) * float(a) + y.astype(F64)).astype(np.float16)
    launched("half:half_axpy", cc, a, x.view(U32), y.view(U32), 32)
    assert (y == want).all()
    z = np.zeros(32, F32)
    launched("half:half_sum", cc, x, z, 64)
    assert np.allclose(z, x[:32].astype(F32) + x[32:].astype(F32))
    most = np.zeros(32, np.float16)
    launched("half:half_max", cc, x, most, 64)
    raised = (x + np.float16(1.5)).astype(np.float16)
    assert (most == np.maximum(np.maximum(x[:32], raised[:32]), raised[32:])).all()
    c = np.zeros(32, I32)
    launched("half:half_compare", cc, x, c)
    assert (c == np.where(x[:32] > x[1:33], 1, 2)).all()


def test_addresses_that_say_which_memory_they_mean(cc: str) -> None:
    x, y = np.arange(128, dtype=F32), np.zeros(128, F32)
    for n in (2, 5):
        launched("memory:generic", cc, x, y, n, block=128)
        assert (y == x[::-1]).all()
    v, w = ints(n=32), np.zeros(32, I32)
    launched("memory:gl", cc, v, w, 7)
    assert (w == 2 * v[:7].sum() + 7 * LANES).all()
    launched("memory:localmem", cc, v, w, 9)
    assert (w == v[9] * LANES).all()


def test_calls_constants_structures_and_wide_loads(cc: str) -> None:
    x, y = np.arange(33, dtype=F32), np.zeros(32, F32)
    launched("memory:calls", cc, x, y)
    assert (y == 2 * x[:32] + 2 * x[1:]).all()
    weights, table = np.arange(16, dtype=F32), np.arange(16, dtype=F32) * 100
    places = ints(0, 1000)
    launched("memory:constants", cc, places, y, weights=weights, table=table)
    assert (y == weights[places & 15] + weights[3] + table[LANES & 15]).all()
    four = np.random.default_rng(2).random(128).astype(F32)
    launched("memory:ldgs", cc, four, y)
    rows = four.reshape(-1, 4)
    assert np.array_equal(y, rows[:, 0] + rows[:, 1] + rows[:, 2] + rows[:, 3])
    two, z = np.random.default_rng(2).random(64), np.zeros(32)
    launched("memory:structs", cc, two, z)
    assert (z == two[::2] * two[1::2]).all()
    n = np.zeros(32, I32)
    launched("memory:dynamic", cc, n, 32, dynamic=128)
    assert (n == 31 - LANES).all()


def ballot(yes: Array) -> int:
    return sum(1 << int(k) for k in np.flatnonzero(yes))


def test_votes_matches_and_shuffles(cc: str) -> None:
    x, y = ints(0, 100), np.zeros(32, U32)
    launched("warps:votes", cc, x, y)
    want = ballot(x > 50) + int((x > 98).any()) + 2 * int((x >= 0).all()) + 0xFFFFFFFF
    assert (y == want % 2**32).all()
    few = ints(0, 5)
    launched("warps:matches", cc, few, y)
    assert y.tolist() == [(ballot(few == v) + 0xFFFFFFFF + 1) % 2**32 for v in few]
    z = np.zeros(32, I32)
    launched("warps:shuffles", cc, x, z, 5)
    up = x[np.where(LANES >= 3, LANES - 3, LANES)]
    down = x[np.where(LANES % 16 + 5 < 16, LANES + 5, LANES)]
    assert (z == x[5] + up + down + x[LANES ^ 5]).all()


def test_barriers_that_count_and_atomics(cc: str) -> None:
    x, y = ints(0, 100, 64), np.zeros(128, I32)
    launched("warps:counts", cc, x, y[:64], block=64)
    assert (y[:64] == (x > 50).sum() + 1000).all()
    y[:] = [0, 1000, -5, 1, 255, 3, 10, 0, 0] + [0] * 119
    u, long, f = np.array([3, 2] + [0] * 62, U32), np.array([1, 50], U64), np.zeros(1, F32)
    launched("warps:atomics", cc, x[:32], y, u, long, f)
    v = x[:32]
    assert y[:9].tolist() == [
        v.sum(), min(1000, v.min()), max(-5, v.max()), np.bitwise_or.reduce(v) | 1,
        np.bitwise_and.reduce(v) & 255, np.bitwise_xor.reduce(v) ^ 3, 42, 31, 1,
    ]  # fmt: skip
    assert sorted(y[16:48].tolist()) == list(range(10, 42))
    assert u[0] == (3 + 32) % 18
    assert long.tolist() == [1 + v.sum(), max(50, v.max())]
    assert f[0] == 48
    y[:] = 0
    launched("warps:shared_atomics", cc, v, y, f)
    assert y[:3].tolist() == [v.sum(), max(1, v.max()), min(2, v.min())]
    assert (y[3], y[4], y[5], f[0]) == (31, 0, 5 + 64, 16)
    assert y[6] == np.bitwise_xor.reduce(v) ^ 6
    d, e = np.random.default_rng(4).integers(0, 100, 32).astype(F64), np.zeros(2)
    launched("warps:datomics", cc, d, e)
    assert e.tolist() == [d.sum(), d.sum()]


def test_switches_divergence_locks_and_the_last_block(cc: str) -> None:
    x, y = ints(-100, 100), np.zeros(32, I32)
    launched("warps:switches", cc, x, y)
    ways = [lambda v: v * 3, lambda v: v + 7, lambda v: v * v, lambda v: v ^ 0x55, lambda v: -v,
            lambda v: v >> 1, lambda v: v * 5 + 1, lambda v: 0]  # fmt: skip
    assert y.tolist() == [ways[v & 7](v) for v in x.tolist()]
    n = np.arange(1, 33, dtype=I32)
    launched("warps:diverge", cc, n, y)

    def steps(v: int) -> int:
        count = 0
        while v != 1 and count < 50:
            v, count = (3 * v + 1 if v % 2 else v // 2), count + 1
            if count == 40:
                break
        return count

    assert y.tolist() == [steps(v) for v in n.tolist()]
    lock, count = np.zeros(1, I32), np.zeros(1, I32)
    launched("warps:locks", cc, lock, count, grid=2, block=64)
    assert count[0] == 128
    z, v = np.zeros(2, I32), ints(0, 100, 256)
    launched("warps:last_block", cc, v, z, 256, grid=4, block=64)
    assert z.tolist() == [v.sum(), v.sum()]
    launched("warps:volatiles", cc, np.zeros(32, I32), y)
    assert (y == LANES ^ 1).all()


def test_what_begins_with_ampere(cc: str) -> None:
    if cc == "7.5":
        pytest.skip("it has none of it")
    x, y = ints(1, 100), np.zeros(32, I32)
    launched("ampere:reduxes", cc, x, y)
    whole = [f.reduce(x) for f in (np.add, np.maximum, np.minimum, np.bitwise_and)]
    either = np.bitwise_or.reduce(x) ^ np.bitwise_xor.reduce(x)
    assert (y == sum(whole) + either).all()
    a, b = np.arange(512, dtype=I32), np.zeros(512, I32)
    launched("ampere:copies", cc, a, b, block=128)
    assert (b.reshape(-1, 4) == a.reshape(-1, 4)[::-1]).all()
    launched("ampere:some_copies", cc, a, b, 40, block=128)
    kept = np.where(np.arange(512) < 160, a, 7)  # a thread copies four; the other threads do not
    assert (b.reshape(-1, 4) == kept.reshape(-1, 4)[::-1]).all()


def has(*headers: str) -> Iterator[bool]:
    for header in headers:
        yield any((folder / header).exists() for folder in wheels.headers()[:-1])


@pytest.mark.skipif(not all(has("cub/block/block_reduce.cuh")), reason="nvidia-cuda-cccl")
def test_blocks_of_cub(cc: str) -> None:
    x, y = ints(n=512), np.zeros(512, I32)
    launched("cub:block_reduce", cc, x, y, grid=4, block=128)
    assert (y[:4] == x.reshape(4, 128).sum(1)).all()
    launched("cub:block_scan", cc, x, y, grid=4, block=128)
    assert (y.reshape(4, 128) == x.reshape(4, 128).cumsum(1)).all()
    f, g = x.astype(F32), np.zeros(16, F32)
    launched("cub:warp_reduce", cc, f, g, grid=4, block=128)
    assert (g == f.reshape(16, 32).sum(1)).all()
    launched("cub:radix_sort", cc, x, grid=1, block=128)
    assert (np.diff(x) >= 0).all()


has_groups = pytest.mark.skipif(not all(has("cooperative_groups.h")), reason="nvidia-cuda-runtime")


@has_groups
def test_cooperative_groups(cc: str) -> None:
    x, y = ints(0, 100, 256), np.zeros(2, I32)
    launched("groups:group_reduce", cc, x, y, grid=2, block=128)
    assert (y == x.reshape(2, 128).sum(1)).all()
    f, g = x.astype(F32), np.zeros(16, F32)
    launched("groups:group_reduce_float", cc, f, g, grid=2, block=128)
    assert (g == f.reshape(16, 16).sum(1)).all()
    z = np.zeros(1, I32)
    launched("groups:coalesced", cc, x, z, 256, grid=2, block=128)
    assert z[0] == (x > 50).sum()


@has_groups
def test_a_grid_waits_for_all_of_its_blocks(cc: str) -> None:
    x, total = np.ones(512, I32), np.zeros(1, I32)
    launched("groups:whole_grid", cc, x, total, 3, grid=8, block=64)
    assert (x == 15).all()
    assert total[0] == 512 * (3 + 7 + 15)


@has_groups
def test_a_grid_that_waits_for_blocks_that_find_no_room_is_refused() -> None:
    configured = file("groups")["whole_grid"][2000, 1024]
    with pytest.raises(LaunchError, match=r"which has 2,000; .* holds 264 of them at a time"):
        predict(configured, np.ones(512, I32), np.zeros(1, I32), 1, device="h200")


@has_groups
def test_lanes_with_one_label_are_a_group() -> None:
    """Before 9.0 the compiler goes round by a form of R2UR that is not known."""
    x, most = ints(0, 100), np.zeros(32, I32)
    launched("groups:labelled", "9.0", x, most)
    assert most.tolist() == [max(v for v in x.tolist() if (v - one) % 4 == 0) for one in x.tolist()]


def test_the_least_and_the_most_of_doubles_are_no_nan_where_one_is_a_number(cc: str) -> None:
    a = twice(F64, 1, 2, -3, np.nan, 5, np.nan, np.inf, -np.inf, 1e300, 0.0, 7, -7, 1, 2, 3, 4)
    b = twice(F64, 2, 1, -4, 4, np.nan, np.nan, 1, 1, -1e300, 0.0, 7, -7, 4, 3, 2, 1)
    least, most = np.zeros(32), np.zeros(32)
    launched("wide:least_and_most", cc, a, b, least, most)
    assert np.array_equal(least, np.fmin(a, b), equal_nan=True)
    assert np.array_equal(most, np.fmax(a, b), equal_nan=True)


def test_doubles_are_divided_by_numbers_of_the_source(cc: str) -> None:
    x, y = np.linspace(-5, 9, 32), np.zeros(32)
    launched("wide:by_constants", cc, x, y)
    assert (y == x / 10 + x / 3 + np.sqrt(2 + 0 * x) + 7 / x).all()
