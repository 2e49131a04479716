"""Warp functions: shuffles, votes, matches and reductions of values, whole warps and parts."""

from __future__ import annotations

from collections.abc import Iterator

from .operation import Operation

ALL = "0xffffffffu"
SHUFFLED = ("int", "uint", "ll", "ull", "float", "double", "half", "half2", "bf16", "bf162")
REDUCTIONS = {"int": ("add", "min", "max"), "uint": ("add", "min", "max", "and", "or", "xor")}


def operations() -> Iterator[Operation]:
    """Yield the room's operations."""
    for kind in SHUFFLED:
        yield from _shuffles(kind)
    for kind, names in REDUCTIONS.items():
        for name in names:
            yield _op(f"reduce_{name}_{kind}", kind, f"__reduce_{name}_sync({ALL}, a)")
            part = (
                f"r = 0; if (a & 1) r = __reduce_{name}_sync(__ballot_sync(__activemask(), 1), a);"
            )
            yield _op(f"reduce_{name}_{kind}_of_odd", kind, part)
    for kind in ("int", "uint", "ll", "ull", "float", "double"):
        low = "a" if kind in ("float", "double") else "(a & 3)"
        same = f"unsigned m = __match_any_sync({ALL}, {low}); r = m;"
        yield Operation(f"match_any_{kind}", "uint", (kind,), same, exact=True)
        every = f"int p; unsigned m = __match_all_sync({ALL}, {low}, &p); r = m ^ (p ? 1 : 0);"
        yield Operation(f"match_all_{kind}", "uint", (kind,), every, exact=True)
    for name in ("all", "any", "uni", "ballot"):
        for test, condition in (("odd", "a & 1"), ("small", "a < 100000"), ("zero", "a == 0")):
            body = f"__{name}_sync({ALL}, {condition})"
            yield Operation(f"{name}_{test}", "uint", ("int",), body, exact=True)
    yield Operation(
        "ballot_of_even", "uint", ("int",),
        "r = 7; if (!(a & 1)) r = __ballot_sync(__activemask(), a & 2);", exact=True,
    )  # fmt: skip
    yield Operation(
        "activemask", "uint", ("int",), "r = 0; if (a & 4) r = __activemask();", exact=True
    )
    for name in ("lt", "le", "gt", "ge", "eq"):
        body = f'asm("mov.u32 %0, %%lanemask_{name};" : "=r"(r)); r ^= a;'
        yield Operation(f"lanemask_{name}", "uint", ("uint",), body, exact=True)
    for name in ("laneid", "ntid.x", "ctaid.x", "tid.x", "nctaid.x", "cluster_ctaid.x",
                 "cluster_nctaid.x", "nclusterid.x", "clusterid.x", "cluster_ctarank",
                 "cluster_nctarank", "dynamic_smem_size"):  # fmt: skip
        body = f'asm volatile("mov.u32 %0, %%{name};" : "=r"(r)); r ^= a;'
        yield Operation("read_" + name.replace(".", "_"), "uint", ("uint",), body, exact=True)
    for count, test in (("count", "a & 1"), ("and", "a != 0"), ("or", "a == 0")):
        yield Operation(f"syncthreads_{count}", "int", ("int",), f"__syncthreads_{count}({test})",
                        exact=True)  # fmt: skip


def _op(name: str, kind: str, body: str) -> Operation:
    return Operation(name, kind, (kind,), body, exact=True)


def _shuffles(kind: str) -> Iterator[Operation]:
    rows = {
        "idx": f"__shfl_sync({ALL}, a, b)", "idx_8": f"__shfl_sync({ALL}, a, b, 8)",
        "idx_16": f"__shfl_sync({ALL}, a, lane ^ 21, 16)",
        "up": f"__shfl_up_sync({ALL}, a, 3)", "up_4": f"__shfl_up_sync({ALL}, a, 1, 4)",
        "down": f"__shfl_down_sync({ALL}, a, 5)", "down_16": f"__shfl_down_sync({ALL}, a, b & 15, 16)",
        "xor": f"__shfl_xor_sync({ALL}, a, 9)", "xor_2": f"__shfl_xor_sync({ALL}, a, 3, 2)",
    }  # fmt: skip
    for name, body in rows.items():
        yield Operation(f"shuffle_{name}_{kind}", kind, (kind, "uint"), body, exact=True)
