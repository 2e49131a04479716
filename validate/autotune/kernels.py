"""Kernels of Triton with their configurations, as an autotuner is given them.

On Hopper, products of 16 or 32 rows use mma.sync; larger ones use wgmma, which is not simulated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
import triton
import triton.language as tl

Config = Mapping[str, int]


@triton.jit
def scale(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)


@triton.jit
def softmax(x, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    largest = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for begin in range(0, n, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        v = tl.load(x + row + at, mask=at < n, other=float("-inf"))
        both = tl.maximum(largest, v)
        total = total * tl.exp(largest - both) + tl.exp(v - both)
        largest = both
    top = tl.max(largest, axis=0)
    total = tl.sum(total * tl.exp(largest - top), axis=0)
    for begin in range(0, n, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        v = tl.load(x + row + at, mask=at < n)
        tl.store(y + row + at, tl.exp(v - top) / total, mask=at < n)


@triton.jit
def rms_norm(x, w, y, n, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = tl.arange(0, WIDTH)
    place = rows[:, None] * n + at[None, :]
    v = tl.load(x + place, mask=at[None, :] < n, other=0.0)
    scale = 1 / tl.sqrt(tl.sum(v * v, axis=1) / n + 1e-5)
    weight = tl.load(w + at, mask=at < n, other=0.0)
    tl.store(y + place, v * scale[:, None] * weight[None, :], mask=at[None, :] < n)


@triton.jit
def transpose(x, y, rows, columns, TALL: tl.constexpr, WIDE: tl.constexpr):
    r = tl.program_id(0) * TALL + tl.arange(0, TALL)
    c = tl.program_id(1) * WIDE + tl.arange(0, WIDE)
    v = tl.load(x + r[:, None] * columns + c[None, :])
    tl.store(y + c[:, None] * rows + r[None, :], tl.trans(v))


@triton.jit
def column_sums(x, y, rows, columns, TALL: tl.constexpr, WIDE: tl.constexpr):
    c = tl.program_id(0) * WIDE + tl.arange(0, WIDE)
    sums = tl.zeros((TALL, WIDE), tl.float32)
    for begin in range(tl.program_id(1) * TALL, rows, tl.num_programs(1) * TALL):
        r = begin + tl.arange(0, TALL)
        sums += tl.load(x + r[:, None] * columns + c[None, :])
    tl.atomic_add(y + c, tl.sum(sums, axis=0))


@triton.jit
def running_sums(x, y, n, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = tl.arange(0, WIDTH)
    place = rows[:, None] * n + at[None, :]
    tl.store(y + place, tl.cumsum(tl.load(x + place), axis=1))


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for begin in range(0, K, BK):
        k = begin + tl.arange(0, BK)
        left = tl.load(a + m[:, None] * K + k[None, :])
        total = tl.dot(left, tl.load(b + k[:, None] * N + n[None, :]), total)
    tl.store(c + m[:, None] * N + n[None, :], total.to(tl.float16))


@dataclass(frozen=True)
class Search:
    """A kernel, its tensors and sizes, its grid, its configurations, and the expected result."""

    kernel: Any
    arguments: tuple[Any, ...]
    grid: Callable[[Config], tuple[int, ...]]
    space: Mapping[str, tuple[int, ...]]
    expected: Any

    @property
    def configs(self) -> Iterator[dict[str, int]]:
        """The configurations: all combinations."""
        return (dict(zip(self.space, one, strict=True)) for one in product(*self.space.values()))


def searches() -> Iterator[tuple[str, Search]]:
    """Yield each kernel's search by name, with inputs of fixed seeds."""
    torch.manual_seed(0)
    n = 1 << 22
    x = torch.randn(n, device="cuda")
    yield "scale", Search(
        scale, (x, torch.empty_like(x), n), lambda c: (triton.cdiv(n, c["BLOCK"]),),
        {"BLOCK": (256, 512, 1024, 2048, 4096), "num_warps": (2, 4, 8)}, (1, lambda: 2 * x),
    )  # fmt: skip
    rows, n = 2048, 2048
    m = torch.randn(rows, n, device="cuda")
    yield "softmax", Search(
        softmax, (m, torch.empty_like(m), n), lambda c: (rows,),
        {"BLOCK": (256, 512, 1024, 2048), "num_warps": (2, 4, 8)}, (1, lambda: m.softmax(1)),
    )  # fmt: skip
    narrow = torch.randn(4096, 1024, device="cuda")
    w = torch.randn(1024, device="cuda")
    yield "rms_norm", Search(
        rms_norm, (narrow, w, torch.empty_like(narrow), 1024), lambda c: (4096 // c["ROWS"],),
        {"ROWS": (1, 2, 4), "WIDTH": (1024,), "num_warps": (1, 2, 4, 8)},
        (2, lambda: torch.nn.functional.rms_norm(narrow, (1024,), w, 1e-5)),
    )  # fmt: skip
    yield "transpose", Search(
        transpose, (m, torch.empty_like(m), rows, n),
        lambda c: (rows // c["TALL"], n // c["WIDE"]),
        {"TALL": (16, 32, 64), "WIDE": (32, 64), "num_warps": (2, 4)}, (1, lambda: m.t()),
    )  # fmt: skip
    yield "column_sums", Search(
        column_sums, (m, torch.zeros(n, device="cuda"), rows, n),
        lambda c: (n // c["WIDE"], 8),
        {"TALL": (8, 16, 32), "WIDE": (32, 64), "num_warps": (2, 4)}, (1, None),
    )  # fmt: skip
    yield "running_sums", Search(
        running_sums, (narrow, torch.empty_like(narrow), 1024), lambda c: (4096 // c["ROWS"],),
        {"ROWS": (1, 2, 4), "WIDTH": (1024,), "num_warps": (1, 2, 4, 8)},
        (1, lambda: narrow.cumsum(1)),
    )  # fmt: skip
    a = torch.randn(128, 512, device="cuda", dtype=torch.float16)
    b = torch.randn(512, 512, device="cuda", dtype=torch.float16)
    yield "matmul", Search(
        matmul, (a, b, torch.empty(128, 512, device="cuda", dtype=torch.float16), 128, 512, 512),
        lambda c: (128 // c["BM"], 512 // c["BN"]),
        {"BM": (16, 32), "BN": (32, 64, 128), "BK": (32, 64), "num_stages": (2, 4)},
        (2, lambda: (a.float() @ b.float()).half()),
    )  # fmt: skip
    c = torch.randn(256, 512, device="cuda", dtype=torch.float16)
    d = torch.randn(512, 512, device="cuda", dtype=torch.float16)
    yield "matmul_of_warpgroups", Search(
        matmul, (c, d, torch.empty(256, 512, device="cuda", dtype=torch.float16), 256, 512, 512),
        lambda o: (256 // o["BM"], 512 // o["BN"]),
        {"BM": (64, 128), "BN": (64, 128, 256), "BK": (32, 64), "num_stages": (2, 4),
         "num_warps": (4, 8)},
        (2, lambda: (c.float() @ d.float()).half()),
    )  # fmt: skip
