"""Every word of the dialect is written out as CUDA C++: a new intrinsic needs its row there."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpusim import cuda
from gpusim.codegen.programs import as_cuda
from gpusim.compiler.symbols import Intrinsic, SpecialRegister, SpecialRegister3

SHARED = "s = cuda.shared.array(16, np.int32)"
BARRIERS = "b = cuda.shared.array(2, np.uint64)"

# A statement with each word, and CUDA C++ that it becomes. `x` and `y` are arrays of int32,
# `f` is of float32, `i` an int32.
CALLS = {
    "grid": ("y[i] = cuda.grid(1)", "blockIdx.x"),
    "gridsize": ("y[i] = cuda.gridsize(1)", "gridDim.x"),
    "shared.array": ("s = cuda.shared.array(8, np.int32); s[i] = i", "__shared__"),
    "local.array": ("t = cuda.local.array(8, np.int32); t[i] = i; y[i] = t[x[i]]", "[8]"),
    "volatile": ("v = cuda.volatile(x); y[i] = v[i]", "(volatile int *)"),
    "syncthreads": ("cuda.syncthreads()", "__syncthreads()"),
    "syncthreads_count": ("y[i] = cuda.syncthreads_count(i)", "__syncthreads_count("),
    "syncthreads_and": ("y[i] = cuda.syncthreads_and(i)", "__syncthreads_and("),
    "syncthreads_or": ("y[i] = cuda.syncthreads_or(i)", "__syncthreads_or("),
    "syncwarp": ("cuda.syncwarp()", "__syncwarp("),
    "shfl_sync": ("y[i] = cuda.shfl_sync(-1, x[i], 0)", "__shfl_sync("),
    "shfl_up_sync": ("y[i] = cuda.shfl_up_sync(-1, x[i], 1)", "__shfl_up_sync("),
    "shfl_down_sync": ("y[i] = cuda.shfl_down_sync(-1, x[i], 1)", "__shfl_down_sync("),
    "shfl_xor_sync": ("y[i] = cuda.shfl_xor_sync(-1, x[i], 1)", "__shfl_xor_sync("),
    "all_sync": ("y[i] = cuda.all_sync(-1, i)", "__all_sync("),
    "any_sync": ("y[i] = cuda.any_sync(-1, i)", "__any_sync("),
    "ballot_sync": ("y[i] = cuda.ballot_sync(-1, i)", "__ballot_sync("),
    "match_any_sync": ("y[i] = cuda.match_any_sync(-1, x[i])", "__match_any_sync("),
    "match_all_sync": ("m, p = cuda.match_all_sync(-1, x[i]); y[i] = m", "__match_all_sync("),
    "reduce_add_sync": ("y[i] = cuda.reduce_add_sync(-1, x[i])", "__reduce_add_sync("),
    "reduce_min_sync": ("y[i] = cuda.reduce_min_sync(-1, x[i])", "__reduce_min_sync("),
    "reduce_max_sync": ("y[i] = cuda.reduce_max_sync(-1, x[i])", "__reduce_max_sync("),
    "reduce_and_sync": ("y[i] = cuda.reduce_and_sync(-1, x[i])", "__reduce_and_sync("),
    "reduce_or_sync": ("y[i] = cuda.reduce_or_sync(-1, x[i])", "__reduce_or_sync("),
    "reduce_xor_sync": ("y[i] = cuda.reduce_xor_sync(-1, x[i])", "__reduce_xor_sync("),
    "cluster.block_rank": ("y[i] = cuda.cluster.block_rank()", "__clusterRelativeBlockRank()"),
    "cluster.num_blocks": ("y[i] = cuda.cluster.num_blocks()", "__clusterSizeInBlocks()"),
    "cluster.sync": ("cuda.cluster.sync()", "__cluster_barrier_arrive(); __cluster_barrier_wait()"),
    "cluster.barrier_arrive": ("cuda.cluster.barrier_arrive()", "__cluster_barrier_arrive()"),
    "cluster.barrier_wait": ("cuda.cluster.barrier_wait()", "__cluster_barrier_wait()"),
    "cluster.map_shared_rank": (
        f"{SHARED}; t = cuda.cluster.map_shared_rank(s, 1); y[i] = t[i]",
        "__cluster_map_shared_rank(s, 1)",
    ),
    "barrier.init": (f"{BARRIERS}; cuda.barrier.init(b, 0, 32)", "mbarrier.init"),
    "barrier.arrive": (f"{BARRIERS}; cuda.barrier.arrive(b, 1)", "mbarrier.arrive"),
    "barrier.arrive_tx": (f"{BARRIERS}; cuda.barrier.arrive_tx(b, 1, 1, 64)", "mbarrier.expect_tx"),
    "barrier.wait_parity": (f"{BARRIERS}; cuda.barrier.wait_parity(b, 1, 0)", "try_wait.parity"),
    "memcpy_async_tx": (
        f"{SHARED}; {BARRIERS}; cuda.memcpy_async_tx(s, 0, x, 8, 16, b, 0)",
        "__shared__ __align__(16) int s[16]",
    ),
    "fence_proxy_async": ("cuda.fence_proxy_async()", "fence.proxy.async"),
    "activemask": ("y[i] = cuda.activemask()", "__activemask()"),
    "popc": ("y[i] = cuda.popc(x[i])", "__popc("),
    "ffs": ("y[i] = cuda.ffs(x[i])", "__ffs("),
    "clz": ("y[i] = cuda.clz(x[i])", "__clz("),
    "brev": ("y[i] = cuda.brev(x[i])", "__brev("),
    "fma": ("f[i] = cuda.fma(f[i], f[i], f[i])", "fmaf("),
    "atomic.add": ("cuda.atomic.add(x, 0, i)", "atomicAdd"),
    "atomic.sub": ("cuda.atomic.sub(x, 0, i)", "atomic"),
    "atomic.min": ("cuda.atomic.min(x, 0, i)", "atomicMin"),
    "atomic.max": ("cuda.atomic.max(x, 0, i)", "atomicMax"),
    "atomic.exch": ("y[i] = cuda.atomic.exch(x, 0, i)", "atomicExch"),
    "atomic.cas": ("y[i] = cuda.atomic.cas(x, 0, 1, i)", "atomicCAS"),
    "atomic.and": ("cuda.atomic.and_(x, 0, i)", "atomicAnd"),
    "atomic.or": ("cuda.atomic.or_(x, 0, i)", "atomicOr"),
    "atomic.xor": ("cuda.atomic.xor(x, 0, i)", "atomicXor"),
    "threadfence": ("cuda.threadfence()", "__threadfence()"),
    "threadfence_block": ("cuda.threadfence_block()", "__threadfence_block()"),
    "threadfence_system": ("cuda.threadfence_system()", "__threadfence_system()"),
    "load_vector": ("a, b = cuda.load_vector(x, 0, 2); y[i] = a + b", "int2"),
    "store_vector": ("cuda.store_vector(y, 0, (i, i))", "make_int2("),
    "laneid": ("y[i] = cuda.laneid", "% 32"),
    "threadIdx": ("y[i] = cuda.threadIdx.y", "threadIdx.y"),
    "blockIdx": ("y[i] = cuda.blockIdx.y", "blockIdx.y"),
    "blockDim": ("y[i] = cuda.blockDim.y", "blockDim.y"),
    "gridDim": ("y[i] = cuda.gridDim.y", "gridDim.y"),
}


def words(place: object, prefix: str = "") -> Iterator[str]:
    """The words of the dialect, by the names that intrinsics have for the compiler."""
    for name, found in vars(place).items():
        if isinstance(found, Intrinsic):
            yield found.name
        elif isinstance(found, SpecialRegister | SpecialRegister3):
            yield name
        elif type(found).__module__ == cuda.__name__ and not name.startswith("_"):
            yield from words(found)


def test_every_word_of_the_dialect_has_a_row() -> None:
    assert sorted(set(words(cuda))) == sorted(CALLS)


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A module with a kernel for each word."""
    parts = ["import numpy as np\nfrom gpusim import cuda\n"]
    for name, (statements, _) in CALLS.items():
        body = "".join(f"    {one.strip()}\n" for one in statements.split(";"))
        head = f"\n\n@cuda.jit\ndef {kernel_of(name)}(x, y, f):\n    i = cuda.threadIdx.x\n"
        parts.append(head + body)
    path: Path = tmp_path_factory.mktemp("words") / "words.py"
    path.write_text("".join(parts), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("words", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def kernel_of(word: str) -> str:
    return f"with_{word.replace('.', '_')}"


@pytest.mark.parametrize("word", CALLS)
def test_a_word_is_written_out(word: str, kernels: Any) -> None:
    arrays = np.zeros(64, np.int32), np.zeros(64, np.int32), np.zeros(64, np.float32)
    assert CALLS[word][1] in as_cuda(getattr(kernels, kernel_of(word)), arrays)
