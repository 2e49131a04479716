"""Atomic operations on global and shared memory: each on its own word, and many on one."""

from __future__ import annotations

from collections.abc import Iterator

from .operation import Operation, word

PLAIN = {
    "Add": (
        "int",
        "uint",
        "ull",
        "float",
        "double",
        "half",
        "half2",
        "bf16",
        "bf162",
        "float2",
        "float4",
    ),
    "Sub": ("int", "uint"),
    "Exch": ("int", "uint", "ull", "float"),
    "Min": ("int", "uint", "ll", "ull"),
    "Max": ("int", "uint", "ll", "ull"),
    "Inc": ("uint",),
    "Dec": ("uint",),
    "And": ("int", "uint", "ull"),
    "Or": ("int", "uint", "ull"),
    "Xor": ("int", "uint", "ull"),
}
SHARED_NOT = ("float2", "float4")
CONTENDED = {"Add": ("int", "uint", "ull"), "Min": ("int", "ll"), "Max": ("uint", "ull"),
             "And": ("uint",), "Or": ("ull",), "Xor": ("int",), "Inc": ("uint",)}  # fmt: skip


def operations() -> Iterator[Operation]:
    """Yield the room's operations."""
    for name, kinds in PLAIN.items():
        for kind in kinds:
            yield from _apart(f"atomic{name}", kind, "b")
    for kind in ("int", "uint", "ull", "ushort"):
        yield from _apart("atomicCAS", kind, "(lane & 1 ? a : b), b")
    for scope in ("block", "system"):
        for name in ("Add", "CAS"):
            given = "a, b" if name == "CAS" else "b"
            yield _one(f"atomic{name}_{scope}", "int", f"atomic{name}_{scope}(pa, {given})")
    for name, kinds in CONTENDED.items():
        for kind in kinds:
            yield from _together(f"atomic{name}", kind)


def _one(name: str, kind: str, body: str) -> Operation:
    return Operation(f"{name}_{kind}", kind, (kind, kind), body, exact=True)


def _apart(name: str, kind: str, given: str) -> Iterator[Operation]:
    """Yield the operation on each thread's own word, with and without the old value."""
    yield _one(f"{name}_global", kind, f"{name}(pa, {given})")
    yield _one(f"{name}_global_unused", kind, f"{name}(pa, {given}); r = b;")
    if kind in SHARED_NOT:
        return
    held = f"__shared__ {word(kind)} s[256]; int t = threadIdx.x; s[t] = a; __syncthreads(); "
    yield _one(f"{name}_shared", kind, f"{held}r = {name}(&s[t], {given}); *pa = s[t];")
    yield _one(f"{name}_shared_unused", kind, f"{held}{name}(&s[t], {given}); r = s[t];")
    generic = f"{held}{word(kind)} *p = lane & 2 ? &s[t] : pa; r = {name}(p, {given}); *pa = *p;"
    yield _one(f"{name}_generic", kind, generic)


def _together(name: str, kind: str) -> Iterator[Operation]:
    """Yield the operation on a word of a warp, and of a block."""
    given = "1000u" if name == "atomicInc" else "b"
    first = f"{word(kind)} *p = pa - lane; __syncwarp(); {name}(p, {given}); __syncwarp(); r = *(volatile {word(kind)} *)p;"
    yield _one(f"{name}_of_warp", kind, first)
    held = f"__shared__ {word(kind)} s; if (!threadIdx.x) s = a; __syncthreads(); "
    yield _one(f"{name}_of_block", kind, f"{held}{name}(&s, {given}); __syncthreads(); r = s;")
