"""Loads and stores: cache operators, vectors, small types, shared, local and constant memory."""

from __future__ import annotations

from collections.abc import Iterator

from .operation import Operation, word

KINDS = ("char", "uchar", "short", "ushort", "int", "ll", "float", "double", "half", "half2", "bf16",
         "bf162", "float2", "double2", "float4", "int2")  # fmt: skip
LOADS = ("__ldg", "__ldcg", "__ldca", "__ldcs", "__ldlu", "__ldcv")
STORES = ("__stwb", "__stcg", "__stcs", "__stwt")


def operations() -> Iterator[Operation]:
    """Yield the room's operations."""
    for kind in KINDS:
        for name in LOADS:
            yield _one(f"{name.strip('_')}_{kind}", kind, f"{name}(pa)")
        for name in STORES:
            yield _one(f"{name.strip('_')}_{kind}", kind, f"{name}(pa, b); r = a;")
        yield _one(f"shared_{kind}", kind, _through("__shared__", kind))
        yield _one(f"volatile_{kind}", kind, _volatile(kind) if kind[-1] not in "24" and "f16" not in kind
                   and kind != "half" else "r = *pb; *pb = a;")  # fmt: skip
        local = f"{word(kind)} t[8]; for (int k = 0; k < 8; k++) t[k] = k & 1 ? a : b; r = t[(i * 5) & 7];"
        yield _one(f"local_{kind}", kind, local)
    for text in ("prefetch.global.L1", "prefetch.global.L2", "prefetchu.L1"):
        body = f'asm volatile("{text} [%0];" :: "l"(pa)); r = a;'
        yield _one("ptx_" + text.replace(".", "_"), "int", body)
    copied = (
        "__shared__ __align__(16) int s[256]; int t = threadIdx.x; "
        "unsigned d = (unsigned)__cvta_generic_to_shared(&s[t]); s[t] = 7; "
        'asm volatile("cp.async.ca.shared.global [%0], [%1], 4{};" :: "r"(d), "l"(pa){} : "memory"); '
        'asm volatile("cp.async.wait_all;" ::: "memory"); __syncthreads(); r = s[t ^ 1];'
    )
    yield _one("cp_async", "int", copied.format("", ""))
    yield _one("cp_async_zfill", "int", copied.format(", %2", ', "r"(i & 4)'))
    spaces = "__isGlobal(pa) | __isShared(pa) << 1 | __isLocal(&r) << 2 | __isConstant(pa) << 3"
    yield _one("address_spaces", "int", spaces)


def _one(name: str, kind: str, body: str) -> Operation:
    return Operation(name, kind, (kind, kind), body, exact=True)


def _through(space: str, kind: str) -> str:
    return (
        f"{space} {word(kind)} s[256]; int t = threadIdx.x; s[t] = a; __syncthreads(); "
        "r = s[t ^ 37]; __syncthreads(); s[255 - t] = b; __syncthreads(); *pb = s[t];"
    )


def _volatile(kind: str) -> str:
    return f"volatile {word(kind)} *p = pa; r = *p; *p = b;"
