"""The corpus in the dialect: kernels with a defect, each before its cure.

A line that ends with `<-` and a kind is the one to be named.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gpusim import cuda
from gpusim.cuda import Kernel


@cuda.jit
def strided_words(x, y):
    shared = cuda.shared.array(4096, np.float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    shared[t] = x[i]
    cuda.syncthreads()
    total = np.float32(0)
    for step in range(32):
        total += shared[8 * t + step]  # <- bank-conflict
    y[i] = total


@cuda.jit
def neighbouring_words(x, y):
    shared = cuda.shared.array(2048, np.float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    shared[t] = x[i]
    cuda.syncthreads()
    total = np.float32(0)
    for step in range(32):
        total += shared[t + 8 * step]
    y[i] = total


@cuda.jit
def column_of_a_tile(x, y):
    tile = cuda.shared.array((32, 32), np.float32)
    across, down = cuda.threadIdx.x, cuda.threadIdx.y
    tile[down, across] = x[32 * down + across]
    cuda.syncthreads()
    y[32 * down + across] = tile[across, down]  # <- bank-conflict


@cuda.jit
def column_of_a_padded_tile(x, y):
    tile = cuda.shared.array((32, 33), np.float32)
    across, down = cuda.threadIdx.x, cuda.threadIdx.y
    tile[down, across] = x[32 * down + across]
    cuda.syncthreads()
    y[32 * down + across] = tile[across, down]


@cuda.jit
def field_of_records(x, y):
    i = cuda.grid(1)
    y[i] = x[8 * i]  # <- uncoalesced


@cuda.jit
def array_of_a_field(x, y):
    i = cuda.grid(1)
    y[i] = x[i]


@cuda.jit
def sums_of_rows(x, y):
    i = cuda.grid(1)
    total = np.float32(0)
    for step in range(16):
        total += x[16 * i + step]  # <- uncoalesced
    y[i] = total


@cuda.jit
def sums_of_columns(x, y):
    i = cuda.grid(1)
    total = np.float32(0)
    for step in range(16):
        total += x[cuda.gridDim.x * cuda.blockDim.x * step + i]
    y[i] = total


@cuda.jit
def threads_by_parity(x, y):
    shared = cuda.shared.array(256, np.float32)
    t = cuda.threadIdx.x
    shared[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    for step in range(16):
        if (t + step) % 2 == 0:  # <- divergence
            shared[t] += shared[t ^ 1]
        cuda.syncthreads()
    y[cuda.grid(1)] = shared[t]


@cuda.jit
def warps_by_parity(x, y):
    shared = cuda.shared.array(256, np.float32)
    t = cuda.threadIdx.x
    shared[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    for step in range(16):
        if (t // 32 + step) % 2 == 0:
            shared[t] += shared[t ^ 32]
        cuda.syncthreads()
    y[cuda.grid(1)] = shared[t]


@cuda.jit
def tree_with_all_warps(x, y):
    shared = cuda.shared.array(256, np.float32)
    t = cuda.threadIdx.x
    shared[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    stride = 128
    while stride > 0:
        if t < stride:  # <- idle-lanes
            shared[t] += shared[t + stride]
        cuda.syncthreads()
        stride //= 2
    if t == 0:
        y[cuda.blockIdx.x] = shared[0]


@cuda.jit
def tree_of_warps(x, y):
    shared = cuda.shared.array(8, np.float32)
    t = cuda.threadIdx.x
    total = x[cuda.grid(1)]
    for step in range(5):
        total += cuda.shfl_down_sync(0xFFFFFFFF, total, 16 >> step)
    if t % 32 == 0:
        shared[t // 32] = total
    cuda.syncthreads()
    if t == 0:
        total = np.float32(0)
        for warp in range(8):
            total += shared[warp]
        y[cuda.blockIdx.x] = total


@cuda.jit
def total_in_memory(x, y):
    i = cuda.grid(1)
    for step in range(16):
        y[i] += x[step]  # <- repeated-accesses


@cuda.jit
def total_in_a_register(x, y):
    i = cuda.grid(1)
    total = y[i]
    for step in range(16):
        total += x[step]
    y[i] = total


@cuda.jit
def neighbours_from_memory(x, y):
    i = cuda.grid(1)
    total = np.float32(0)
    for step in range(32):
        total += x[i + step]  # <- repeated-accesses
    y[i] = total


@cuda.jit
def neighbours_from_a_tile(x, y):
    tile = cuda.shared.array(288, np.float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    tile[t] = x[i]
    if t < 32:
        tile[256 + t] = x[i + 256]
    cuda.syncthreads()
    total = np.float32(0)
    for step in range(32):
        total += tile[t + step]
    y[i] = total


@cuda.jit
def one_sum(x, y):
    cuda.atomic.add(y, 0, x[cuda.grid(1)])  # <- atomics


@cuda.jit
def many_sums(x, y):
    cuda.atomic.add(y, cuda.grid(1), x[cuda.grid(1)])


@cuda.jit
def few_bins(x, y):
    bins = cuda.shared.array(256, np.float32)
    t = cuda.threadIdx.x
    bins[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    for step in range(16):
        cuda.atomic.add(bins, (t + step) & 3, np.float32(1.5))  # <- atomics
    cuda.syncthreads()
    y[cuda.grid(1)] = bins[t]


@cuda.jit
def bins_of_lanes(x, y):
    bins = cuda.shared.array(256, np.float32)
    t = cuda.threadIdx.x
    bins[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    for step in range(16):
        cuda.atomic.add(bins, (t + 32 * step) & 255, np.float32(1.5))
    cuda.syncthreads()
    y[cuda.grid(1)] = bins[t]


@cuda.jit
def quotients(x, y):
    i = cuda.grid(1)
    total = np.int32(0)
    for step in range(1, 9):
        total += i % (cuda.gridDim.x + step)  # <- integer-division
    y[i] = total


@cuda.jit
def masks(x, y):
    i = cuda.grid(1)
    total = np.int32(0)
    for step in range(1, 9):
        total += i & (cuda.gridDim.x + step)
    y[i] = total


@dataclass(frozen=True)
class PythonPair:
    """A defect of a kind and its cure; `arrays` are the numbers of elements of x and y."""

    kind: str
    defect: Kernel
    cure: Kernel
    block: tuple[int, ...] = (256,)
    grid: int = 4
    sizes: tuple[int, int] = (1 << 14, 1 << 12)

    @property
    def name(self) -> str:
        """The name of a test."""
        return f"{self.defect.__name__}-{self.cure.__name__}"

    def line(self) -> int:
        """Return the line that is marked in the defect."""
        lines = Path(__file__).read_text(encoding="utf-8").splitlines()
        begin = next(n for n, s in enumerate(lines) if s.startswith(f"def {self.defect.__name__}("))
        after = enumerate(lines[begin:], begin + 1)
        return next(n for n, text in after if text.endswith(f"<- {self.kind}"))


PYTHON_PAIRS = (
    PythonPair("bank-conflict", strided_words, neighbouring_words),
    PythonPair("bank-conflict", column_of_a_tile, column_of_a_padded_tile, (32, 32), 1),
    PythonPair("uncoalesced", field_of_records, array_of_a_field),
    PythonPair("uncoalesced", sums_of_rows, sums_of_columns),
    PythonPair("divergence", threads_by_parity, warps_by_parity),
    PythonPair("idle-lanes", tree_with_all_warps, tree_of_warps),
    PythonPair("repeated-accesses", total_in_memory, total_in_a_register),
    PythonPair("repeated-accesses", neighbours_from_memory, neighbours_from_a_tile),
    PythonPair("atomics", one_sum, many_sums),
    PythonPair("atomics", few_bins, bins_of_lanes),
    PythonPair("integer-division", quotients, masks),
)
