"""Functions of the driver that the device runtime (libcudadevrt) calls to synchronise a grid.

`cudaCGGetIntrinsicHandle`, `cudaCGSynchronize` and the like come with the toolkit, for the linker;
what they call is left to the driver. Here it is CUDA C++, compiled for the kernel's GPU: a counter
in the workspace of a cooperative launch, whose highest bit turns when all blocks have arrived.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from gpusim.sass import compiler, cubin, listing
from gpusim.sass.compiler import Options
from gpusim.sass.cubin import KernelCode
from gpusim.sass.listing import Section

PREFIX = "__cuda_syscall_CGS_"
# %envreg1 and 2 hold the workspace's address, 0 in a launch that is not cooperative. With the
# lowest of the flags the caller has synchronised its block and calls from one thread.
_SOURCE = r"""
extern "C" __device__ unsigned long long __cuda_syscall_CGS_get_intrinsic_handle(unsigned) {
    unsigned high, low;
    asm volatile("mov.u32 %0, %%envreg1;" : "=r"(high));
    asm volatile("mov.u32 %0, %%envreg2;" : "=r"(low));
    return (unsigned long long)high << 32 | low;
}
extern "C" __device__ int __cuda_syscall_CGS_sync(unsigned long long handle, unsigned flags) {
    bool is_alone = flags & 1;
    if (!is_alone) __syncthreads();
    if (is_alone || !(threadIdx.x | threadIdx.y | threadIdx.z)) {
        unsigned long long counter = handle + 4;
        bool is_first = !(blockIdx.x | blockIdx.y | blockIdx.z);
        unsigned blocks = gridDim.x * gridDim.y * gridDim.z;
        unsigned added = is_first ? 0x80000000u - (blocks - 1) : 1, before, now;
        __threadfence();
        asm volatile("atom.add.release.gpu.u32 %0, [%1], %2;"
                     : "=r"(before) : "l"(counter), "r"(added) : "memory");
        do
            asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(now) : "l"(counter) : "memory");
        while (!((before ^ now) >> 31));
    }
    if (!is_alone) __syncthreads();
    return 0;
}
extern "C" __device__ int __cuda_syscall_CGS_get_size(
    unsigned* threads, unsigned* grids, unsigned long long) {
    unsigned blocks = gridDim.x * gridDim.y * gridDim.z;
    if (threads) *threads = blocks * (blockDim.x * blockDim.y * blockDim.z);
    if (grids) *grids = 1;
    return 0;
}
extern "C" __device__ int __cuda_syscall_CGS_get_rank(
    unsigned* thread, unsigned* grid, unsigned long long) {
    unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    unsigned within = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    if (thread) *thread = block * (blockDim.x * blockDim.y * blockDim.z) + within;
    if (grid) *grid = 0;
    return 0;
}
"""
_FILE = "the driver's functions"


@cache
def _made(arch: str) -> tuple[cubin.Cubin, str]:
    made = compiler.compiled(_SOURCE, _FILE, [], arch, Options(relocatable=True))
    # Labels are numbered in each listing: these must not be assumed to be the kernel's.
    return cubin.read(made.cubin, _FILE), made.listing.replace(".L_", ".L_driver_")


def function(name: str, arch: int, begin: int) -> tuple[KernelCode, Section] | None:
    """Return the code of one of these functions, at an address; None for other names."""
    if not name.startswith(PREFIX):
        return None
    held, text = _made(f"sm_{arch}")
    code = held.kernels.get(name)
    found = None if code is None else listing.section(text, name, (), code.text, begin)
    if code is None or found is None:
        return None
    # Lines of this text are none of the kernel's.
    rows = [replace(row, place=listing.NOWHERE) for row in found.rows]
    return code, replace(found, rows=rows)
