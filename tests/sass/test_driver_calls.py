"""Functions that only the driver has: what printf, malloc and free give back."""

import struct
from dataclasses import replace

import numpy as np
import pytest

import gpusim
from gpusim import machine
from gpusim.errors import KernelFault, OutOfBoundsError
from gpusim.launch.grid import ComputeCapability, Launch
from gpusim.machine.device_printf import formatted
from gpusim.machine.driver_calls import arguments_of
from gpusim.sass import wheels

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)

CODE = """
#include <cstdio>
__global__ void prints(int *out) {
  int t = threadIdx.x;
  out[t] = t & 1 ? printf("hello %%\\n") : printf("%*d %5.2f %s %lld\\n", 4, t, 1.0, "a", 5LL);
}
__global__ void prints_nothing(int *out) { out[0] = printf((const char *)0, 1); }
__global__ void allocates(int *out) {
  int t = threadIdx.x;
  int *p = (int *)malloc(4 * t + 8), *q = new int[3];
  p[0] = t;
  p[t + 1] = 100;
  q[2] = p[t + 1] + p[0];
  free(p);
  out[t] = q[2];
  delete[] q;
}
__global__ void again(int *out) {
  int found = 0;
  for (int i = 0; i < 100; i++) {
    int *p = (int *)malloc(1 << 20);
    if (p) found++;
    free(p);
  }
  out[threadIdx.x] = found;
}
__global__ void of_blocks(int *out) {
  int *p = (int *)malloc(16);
  *p = blockIdx.x * blockDim.x + threadIdx.x;
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = *p;
  free(p);
}
__global__ void too_much(int *out) { out[threadIdx.x] = malloc(size_t(1) << 30) == nullptr; }
__global__ void twice(int *out) {
  int *p = (int *)malloc(4);
  free(p);
  if (threadIdx.x == 1) free(p);
}
"""


def run(name: str, threads: int = 4, blocks: int = 1) -> list[int]:
    out = np.zeros(blocks * threads, np.int32)
    gpusim.cuda_source(CODE)[name][blocks, threads](out)
    return out.tolist()


def test_printf_gives_the_number_of_arguments_of_its_format() -> None:
    assert run("prints") == [5, 0, 5, 0]
    assert [arguments_of(text) for text in (b"", b"%d", b"%%%", b"%-08.*lf%s%hhd")] == [0, 1, 0, 4]


def test_a_trace_has_what_the_kernel_prints() -> None:
    out = np.zeros(2, np.int32)
    traced = gpusim.trace(gpusim.cuda_source(CODE)["prints"][1, 2], out)
    assert sorted(traced.printed.splitlines()) == [b"   0  1.00 a 5", b"hello %"]


def test_a_null_format_of_printf_is_an_address_out_of_bounds() -> None:
    text = r"line \d+: address 0x0 is out of bounds: the format of printf is null"
    with pytest.raises(OutOfBoundsError, match=text):
        run("prints_nothing")


def test_each_thread_has_memory_of_its_own_from_malloc() -> None:
    assert run("allocates") == [100, 101, 102, 103]


def test_threads_of_all_blocks_have_memory_of_their_own() -> None:
    assert run("of_blocks", blocks=3) == list(range(12))


def test_memory_that_is_freed_is_given_again_and_a_heap_ends() -> None:
    assert run("again") == [100] * 4
    assert run("too_much") == [1] * 4


def test_memory_is_freed_once() -> None:
    with pytest.raises(KernelFault, match=r"free of an address .* \(block 0, thread 1\)"):
        run("twice")


def test_what_kernels_print_is_formatted_as_c_does() -> None:
    text = b"%5.2f|%-4d|%+d|%x|%#o|%s|%c|%p|%lld|%hhu|%%|%*d|%.3s|%u|%e"
    ints = [("d", 3.14159), ("i", 7), ("i", 5), ("I", 255), ("I", 8), ("Q", 64), ("i", 65)]
    ints += [("Q", 4096), ("q", -(2**40)), ("I", 300), ("i", 6), ("i", -1), ("Q", 64)]
    held = bytearray()
    for form, value in [*ints, ("I", 2**32 - 1), ("d", 1234.5)]:
        size = struct.calcsize(form)
        held += bytes(-len(held) % size) + struct.pack(f"<{form}", value)
    made = formatted(text, lambda begin, size: bytes(held[begin : begin + size]), lambda _: b"four")
    wanted = b" 3.14|7   |+5|ff|010|four|A|0x1000|-1099511627776|44|%|    -1|fou|4294967295|"
    assert made == wanted + b"1.234500e+03"


def test_a_kernel_prints_in_the_order_of_blocks_and_threads() -> None:
    out = np.zeros(4, np.int32)
    kernel = gpusim.cuda_source(CODE)["prints"]
    printed: list[bytes] = []
    prepared = kernel.prepare(Launch.of(1, 4), [out], ComputeCapability(9, 0))
    machine.run(replace(prepared, printed=printed))
    lines = b"".join(printed).splitlines()
    assert sorted(lines) == [b"   0  1.00 a 5", b"   2  1.00 a 5", b"hello %", b"hello %"]
