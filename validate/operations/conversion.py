"""Conversions between all arithmetic types: casts, and intrinsics with rounding modes."""

from __future__ import annotations

from collections.abc import Iterator

from .operation import Operation, word
from .single import MODES

INTEGERS = ("char", "uchar", "short", "ushort", "int", "uint", "ll", "ull")
FLOATS = ("float", "double")


def operations() -> Iterator[Operation]:
    """Yield the room's operations."""
    for source in (*INTEGERS, *FLOATS, "bool"):
        for target in (*INTEGERS, *FLOATS, "bool"):
            if source != target:
                yield _made(f"cast_{source}_{target}", source, target, f"({word(target)})a")
    yield from _intrinsics()
    for mode in ("rp", "rm", "rz"):
        body = f'unsigned short t; asm("cvt.{mode}.ftz.f16.f32 %0, %1;" : "=h"(t) : "f"(a)); r = t;'
        yield _made(f"half_of_flushed_{mode}", "float", "uint", body)
    widened = 'asm("cvt.ftz.f64.f32 %0, %1;" : "=d"(r) : "f"(a));'
    yield _made("double_of_flushed", "float", "double", widened)
    for one, called in (("half", "half"), ("bf16", "bfloat16")):
        yield from _halves(one, called)
    for target in ("char", "uchar", "short", "ushort"):
        letter = {"char": "s8", "uchar": "u8", "short": "s16", "ushort": "u16"}[target]
        for source, kind, constraint in (("int", "s32", "r"), ("uint", "u32", "r"), ("ll", "s64", "l"),
                                         ("float", "rni", "f"), ("double", "rzi", "d")):  # fmt: skip
            yield _saturating(source, kind, constraint, target, letter)


def _made(name: str, source: str, target: str, body: str) -> Operation:
    return Operation(name, target, (source,), body, exact=True)


def _saturating(source: str, kind: str, constraint: str, target: str, letter: str) -> Operation:
    """Return PTX's conversion that saturates."""
    said = f"rni.sat.{letter}.f32" if kind == "rni" else f"rzi.sat.{letter}.f64"
    said = said if kind in ("rni", "rzi") else f"sat.{letter}.{kind}"
    body = f'int t; asm("cvt.{said} %0, %1;" : "=r"(t) : "{constraint}"(a)); r = ({word(target)})t;'
    return _made(f"saturated_{source}_{target}", source, target, body)


def _intrinsics() -> Iterator[Operation]:
    for mode in MODES:
        for whole in ("int", "uint", "ll", "ull"):
            yield _made(f"float2{whole}_{mode}", "float", whole, f"__float2{whole}_{mode}(a)")
            yield _made(f"double2{whole}_{mode}", "double", whole, f"__double2{whole}_{mode}(a)")
            yield _made(f"{whole}2float_{mode}", whole, "float", f"__{whole}2float_{mode}(a)")
            if whole in ("ll", "ull"):
                yield _made(
                    f"{whole}2double_{mode}", whole, "double", f"__{whole}2double_{mode}(a)"
                )
        yield _made(f"double2float_{mode}", "double", "float", f"__double2float_{mode}(a)")


def _halves(one: str, called: str) -> Iterator[Operation]:
    for mode in MODES:
        yield _made(f"float2{one}_{mode}", "float", one, f"__float2{called}_{mode}(a)")
        for whole in ("short", "ushort", "int", "uint", "ll", "ull"):
            yield _made(f"{one}2{whole}_{mode}", one, whole, f"__{called}2{whole}_{mode}(a)")
            yield _made(f"{whole}2{one}_{mode}", whole, one, f"__{whole}2{called}_{mode}(a)")
    for whole in ("char", "uchar"):
        yield _made(f"{one}2{whole}_rz", one, whole, f"__{called}2{whole}_rz(a)")
    yield _made(f"double2{one}", "double", one, f"__double2{called}(a)")
    yield _made(f"{one}2float", one, "float", f"__{called}2float(a)")
    pair, maker = ("half2", "half2") if one == "half" else ("bf162", "bfloat162")
    yield Operation(
        f"floats2{pair}", pair, ("float", "float"), f"__floats2{maker}_rn(a, b)", exact=True
    )
    widened = "__half22float2" if one == "half" else "__bfloat1622float2"
    yield Operation(f"{pair}_to_float2", "float2", (pair,), f"{widened}(a)", exact=True)
