"""A program for tests: CUDA's driver by ctypes, and what a program and gpusim say of a run."""

from __future__ import annotations

import shutil
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from gpusim.cli.app import main
from gpusim.sass import compiler, wheels

needs_compilers = pytest.mark.skipif(
    sys.platform != "linux" or not wheels.are_there() or shutil.which("cc") is None,
    reason=f"needs Linux, a compiler of C, and {wheels.INSTALL}",
)

KERNELS = """
__constant__ float factor = 3.0f;
__device__ int counter = 5;
extern "C" __global__ void scale(float* out, const float* in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = factor * in[i];
}
extern "C" __global__ void count() { atomicAdd(&counter, 1); }
extern "C" __global__ void beyond(float* out) { out[threadIdx.x + 1000000] = 1; }
extern "C" __global__ void race(int* out) {
    __shared__ int s[64];
    s[threadIdx.x] = 1;
    out[threadIdx.x] = s[63 - threadIdx.x];
}
extern "C" __global__ void conflicts(float* out) {
    __shared__ float s[1024];
    s[32 * threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = s[32 * (threadIdx.x ^ 1)];
}
__device__ int* slots[64];
extern "C" __global__ void makes() {
    slots[threadIdx.x] = (int*)malloc(16);
    slots[threadIdx.x][1] = threadIdx.x;
}
extern "C" __global__ void uses(int* out) { out[threadIdx.x] = 2 * slots[threadIdx.x][1]; }
extern "C" __global__ void drops() { free(slots[threadIdx.x]); }
extern "C" __global__ void prints() { printf("block %d of %d\\n", blockIdx.x, gridDim.x); }
extern "C" __global__ void gathers(float* out, unsigned long long texture) {
    float a, b, c, d;
    asm volatile("tld4.r.2d.v4.f32.f32 {%0, %1, %2, %3}, [%4, {%5, %5}];"
                 : "=f"(a), "=f"(b), "=f"(c), "=f"(d) : "l"(texture), "f"(0.0f));
    *out = a + b + c + d;
}
extern "C" __global__ void samples(float* out, cudaTextureObject_t from, cudaSurfaceObject_t to) {
    float one = tex2D<float>(from, threadIdx.x + 0.75f, 1.5f);
    out[threadIdx.x] = one;
    surf2Dwrite(2 * one, to, threadIdx.x * 4, 0);
}
extern "C" __global__ void depends(int* x, int add) {
    asm volatile("griddepcontrol.launch_dependents;");
    asm volatile("griddepcontrol.wait;" ::: "memory");
    x[threadIdx.x] = 2 * x[threadIdx.x] + add;
}
extern "C" __global__ void ranks(int* out) {
    unsigned rank, blocks;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
    out[blockIdx.x] = 100 * blocks + rank;
}
extern "C" __global__ void asserts(const int* x) {
    printf("before\\n");
    assert(x[threadIdx.x] >= 0);
}
extern "C" __global__ void traps() { if (threadIdx.x == 5) __trap(); }
extern "C" __global__ void times(unsigned long long* out) {
    unsigned long long begin, end;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
    out[0] = clock64(), out[1] = clock();
    out[2] = clock64(), out[3] = clock();
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(end));
    out[4] = begin, out[5] = end;
}
extern "C" __global__ void waits(long long* out, long long ticks) {
    long long begin = clock64(), passed = 0;
    while (passed < ticks) passed = clock64() - begin;
    out[blockIdx.x] = passed;
}
struct Node { Node* next; int value; };
extern "C" __global__ void follow(Node* first, int* sum) {
    for (Node* one = first; one; one = one->next) *sum += one->value;
}
"""

PROLOGUE = """
import ctypes as C, struct, sys
cuda = C.CDLL("libcuda.so.1")
def call(name, *values):
    status = getattr(cuda, name)(*values)
    if status: print(name, status)
    return status
def take(size):
    address = C.c_uint64()
    call("cuMemAlloc_v2", C.byref(address), C.c_size_t(size))
    return address
def to(address, text): return call("cuMemcpyHtoD_v2", address, text, C.c_size_t(len(text)))
def back(address, size):
    held = C.create_string_buffer(size)
    return None if call("cuMemcpyDtoH_v2", held, address, C.c_size_t(size)) else held.raw
def launch(name, grid, block, *values, shared=0, stream=None):
    kernel = C.c_void_p()
    call("cuModuleGetFunction", C.byref(kernel), module, name.encode())
    given = (C.c_void_p * max(len(values), 1))(*(C.cast(C.pointer(v), C.c_void_p) for v in values))
    return call("cuLaunchKernel", kernel, grid, 1, 1, block, 1, 1, shared, stream, given, None)
call("cuInit", 0)
context, module = C.c_void_p(), C.c_void_p()
call("cuDevicePrimaryCtxRetain", C.byref(context), 0)
call("cuCtxSetCurrent", context)
call("cuModuleLoadData", C.byref(module), open(sys.argv[1], "rb").read())
"""


class Ran(NamedTuple):
    """The exit code, the program's lines, and gpusim's on standard error."""

    code: int
    out: list[str]
    err: str


@cache
def cubin() -> bytes:
    """Return the kernels' machine code for an H200."""
    return compiler.compiled(KERNELS, "kernels.cu", [], "sm_90").cubin


class Host:
    """Runs Python programs on a simulated GPU: texts that follow the prologue."""

    def __init__(self, folder: Path, captured: pytest.CaptureFixture[str]) -> None:
        self.folder, self.captured = folder, captured

    def run(self, text: str, *command: str, made: bytes = b"") -> Ran:
        """Run a text; `made` is machine code in place of that of the kernels above."""
        program, code = self.folder / "program.py", self.folder / "kernels.cubin"
        program.write_text(PROLOGUE + text)
        code.write_bytes(made or cubin())
        self.captured.readouterr()
        own = command or ("run",)
        ended = main([*own, "--", sys.executable, "-S", str(program), str(code)])
        printed = self.captured.readouterr()
        return Ran(ended, printed.out.splitlines(), printed.err)
