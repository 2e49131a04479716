"""Matrix products of warpgroups: factors placed in shared memory by the PTX ISA's layouts."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from gpusim.errors import OutOfBoundsError
from gpusim.sass import wheels
from gpusim.sass.kernels import CodeFile, cuda_source

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
N, K, WORDS = 16, 16, 8
KERNEL = """
extern "C" __global__ void __launch_bounds__(256) {name}(
    float *out, const uint4 *in, unsigned long long a, unsigned long long b, int adds) {{
  __shared__ __align__(1024) uint4 memory[1024];
  for (int i = threadIdx.x; i < 1024; i += blockDim.x) memory[i] = in[i];
  __syncthreads();
  unsigned long long first = (unsigned)__cvta_generic_to_shared(memory) >> 4;
  float d[8];
  for (int i = 0; i < 8; i++) d[i] = i;
  a += first, b += first;
  asm volatile("fence.proxy.async;\\n wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile("{{.reg .pred p; setp.ne.b32 p, %10, 0;"
    "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 "
    "{{%0,%1,%2,%3,%4,%5,%6,%7}}, %8, %9, p, {signs};}}"
    : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
    : "l"(a), "l"(b), "r"(adds));
  asm volatile("wgmma.commit_group.sync.aligned;\\n wgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int i = 0; i < 8; i++) out[threadIdx.x * 8 + i] = d[i];
}}
"""
SIGNS = {"plain": "1, 1, 0, 0", "transposed": "1, 1, 1, 1", "negated": "-1, 1, 0, 1"}
WIDTHS = {0: 16, 1: 128, 2: 64, 3: 32}  # bytes of a row, by the bits of the swizzle


@functools.cache
def kernels() -> CodeFile:
    return cuda_source("".join(KERNEL.format(name=n, signs=s) for n, s in SIGNS.items()))


def descriptor(first: int, leading: int, stride: int, swizzle: int) -> int:
    return first >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | swizzle << 62


def place(row: int, k: int, leading: int, stride: int, swizzle: int, transposed: bool) -> int:
    """Return the byte of an element, before the address's bits are exchanged."""
    width = WIDTHS[swizzle]
    if not transposed:
        unit = k // 8 * (16 if swizzle else leading)
        return row // 8 * stride + row % 8 * width + unit + k % 8 * 2
    if not swizzle:
        return row // 8 * stride + row % 8 * 2 + k // 8 * leading + k % 8 * 16
    units = width // 16
    beside = row // 8 // units * leading + row // 8 % units * 16
    return beside + row % 8 * 2 + k // 8 * stride + k % 8 * width


def swizzled(address: int, swizzle: int) -> int:
    for bit in range({0: 0, 1: 3, 2: 2, 3: 1}[swizzle]):
        address ^= (address >> 7 + bit & 1) << 4 + bit
    return address


def run(
    name: str, swizzle: int, transposed: tuple[bool, bool], adds: bool = True, threads: int = 128
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the product that a kernel computes, shaped (rows, N), and that of NumPy."""
    random = np.random.default_rng(swizzle)
    factors = [random.integers(-8, 8, (size, K)) for size in (64, N)]
    memory, made = np.zeros(8192, np.float16), []
    for factor, is_transposed, begin in zip(factors, transposed, (0, 8192), strict=True):
        leading, stride = (2048, 1024) if is_transposed == bool(swizzle) else (1024, 2048)
        if swizzle and not is_transposed:
            leading, stride = 16, 8 * WIDTHS[swizzle]
        if not swizzle:
            leading, stride = 128, 256
        for (row, k), value in np.ndenumerate(factor):
            where = place(row, k, leading, stride, swizzle, is_transposed)
            memory[(begin + swizzled(where, swizzle)) // 2] = value
        made.append(descriptor(begin, leading, stride, swizzle))
    out = np.zeros(threads * WORDS, np.float32)
    kernels()[name][1, threads](out, memory.view(np.uint32), *map(np.uint64, made), np.int32(adds))
    found, before = np.zeros((threads // 2, N)), np.zeros((threads // 2, N))
    for thread, words in enumerate(out.reshape(threads, WORDS)):
        warp, group, quad = thread // 32, thread % 32 // 4, thread % 4
        for number, word in enumerate(words):
            row, column = 16 * warp + group + 8 * (number % 4 // 2), number // 4 * 8 + 2 * quad
            found[row, column + number % 2] = word
            before[row, column + number % 2] = number * adds
    product = factors[0] @ factors[1].T * (-1 if name == "negated" else 1)
    return found, before + np.tile(product, (threads // 128, 1))


@pytest.mark.parametrize("swizzle", range(4))
@pytest.mark.parametrize(
    ("name", "transposed"),
    [("plain", (False, False)), ("transposed", (True, True)), ("negated", (False, True))],
)
def test_factors_lie_where_their_descriptors_say(
    name: str, swizzle: int, transposed: tuple[bool, bool]
) -> None:
    found, wanted = run(name, swizzle, transposed)
    assert np.array_equal(found, wanted)


def test_without_its_predicate_a_product_forgets_the_accumulator() -> None:
    found, wanted = run("plain", 1, (False, False), adds=False)
    assert np.array_equal(found, wanted)
    assert not np.array_equal(found, run("plain", 1, (False, False))[0])


def test_each_warpgroup_of_a_block_has_all_64_rows() -> None:
    found, wanted = run("plain", 2, (False, False), threads=256)
    assert np.array_equal(found, wanted)


def test_a_factor_outside_shared_memory_is_named_with_its_address() -> None:
    out, memory = np.zeros(128 * WORDS, np.float32), np.zeros(4096, np.uint32)
    far = np.uint64(descriptor(16384 - 64, 128, 256, 0))
    with pytest.raises(OutOfBoundsError, match=r"line \d+: a matrix of wgmma at address 0x\w+"):
        kernels()["plain"][1, 128](out, memory, far, np.uint64(0), np.int32(1))
