"""What a check says of kernels that are right, of those published wrong, and how it says it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import ENTRIES

import gpusim
from gpusim import cuda
from gpusim.catalogue import Entry, find, sample
from gpusim.checking.check import check_call
from gpusim.sass import wheels
from validate.others.dialect import basics
from validate.others.plans import KERNELS

RIGHT = [entry for entry in ENTRIES if entry.defect is None]
WRONG = [entry for entry in ENTRIES if entry.defect is not None]


def checked(entry: Entry, n: int, **options: Any) -> gpusim.Findings:
    setup = entry.setup(n, **options)
    return check_call(setup.call(sample(setup.n, setup.dtype)))


def in_short(found: gpusim.Findings) -> list[tuple[str, tuple[int, ...], str]]:
    return [(finding.rule, finding.lines, finding.message) for finding in found]


def most(entry: Entry) -> int:
    return entry.block_rule.most if entry.one_block else 1024 if "naive" in entry.name else 5000


@pytest.mark.parametrize("entry", RIGHT, ids=lambda entry: entry.name)
def test_corrected_kernels_of_the_catalogue_have_no_error(entry: Entry) -> None:
    """Of 1,001 elements; all blocks, operations and types take turns among the kernels."""
    number = RIGHT.index(entry)
    blocks = [b for b in (64, 128, 32, 256, 512) if entry.block_rule.allows(b)]
    found = checked(
        entry,
        min(most(entry), 1001),
        block=None if entry.one_block else blocks[number % len(blocks)],
        operation=entry.operations[number % len(entry.operations)],
        dtype=entry.dtypes[number % len(entry.dtypes)],
    )
    assert in_short(found.errors) == []


@pytest.mark.slow
@pytest.mark.parametrize("entry", RIGHT, ids=lambda entry: entry.name)
@settings(max_examples=1)
@given(st.data())
def test_corrected_kernels_have_no_error_for_any_block_operation_and_type(
    entry: Entry, data: Any
) -> None:
    blocks = [b for b in (2, 32, 64, 128, 256, 512, 1024) if entry.block_rule.allows(b)]
    for block in [None] if entry.one_block else blocks:
        for operation in entry.operations:
            for dtype in entry.dtypes:
                n = data.draw(st.integers(1, most(entry)))
                found = checked(entry, n, block=block, operation=operation, dtype=dtype)
                assert in_short(found.errors) == [], (block, operation, dtype, n)


# Each basic kernel of validate/others at a size at which a check takes some milliseconds.
N = 1024
PLACES = np.arange(N, dtype=np.int32)[::-1].copy()


def floats(count: int) -> np.ndarray:
    return np.arange(count, dtype=np.float32) % 7


def nothing(count: int) -> np.ndarray:
    return np.zeros(count, np.float32)


OTHERS: dict[str, tuple[Any, Any, tuple[Any, ...]]] = {
    "copy": (8, 128, (floats(N), nothing(N), np.int32(N))),
    "saxpy": (8, 128, (np.float32(2), floats(N), nothing(N), np.int32(N))),
    "saxpy_stride": (2, 256, (np.float32(2), floats(N), nothing(N), np.int32(N))),
    "add4": (1, 256, (floats(N), floats(N), nothing(N))),
    "stencil": (8, 128, (floats(N), nothing(N), np.int32(N))),
    "stencil2d": ((2, 8), (32, 8), (floats(64 * 64), nothing(64 * 64), np.int32(64))),
    "convolution": (4, 256, (floats(N), floats(9), nothing(N), np.int32(N))),
    "polynomial": (8, 128, (floats(N), nothing(N), np.int32(N))),
    "gather": (4, 256, (floats(N), PLACES, nothing(N), np.int32(N))),
    "transpose": ((2, 2), (32, 8), (floats(64 * 64), nothing(64 * 64), np.int32(64))),
    "transpose_tile": ((2, 2), (32, 8), (floats(64 * 64), nothing(64 * 64), np.int32(64))),
    "transpose_padded": ((2, 2), (32, 8), (floats(64 * 64), nothing(64 * 64), np.int32(64))),
    "matrix_product": ((2, 2), (16, 16), (floats(N), floats(N), nothing(N), np.int32(32))),
    "matrix_product_plain": ((2, 2), (16, 16), (floats(N), floats(N), nothing(N), np.int32(32))),
    "row_sums": (8, (32, 8), (floats(64 * 64), nothing(64), np.int32(64))),
    "column_sums": (1, 64, (floats(64 * 64), nothing(64), np.int32(64))),
    "dot": (4, 256, (floats(N), floats(N), nothing(4), np.int32(N))),
    "softmax": (4, 256, (floats(4 * N), nothing(4 * N), np.int32(N))),
    "histogram": (2, 256, (PLACES % 256, np.zeros(256, np.int32), np.int32(N))),
    "sum_by_atomics": (4, 256, (floats(N), nothing(1), np.int32(N))),
    "bitonic_sort": (2, 512, (floats(N),)),
    "bodies": (2, 256, (floats(512), floats(512), floats(512), nothing(512), np.int32(512))),
    "mandelbrot": ((2, 2), (16, 16), (np.zeros(N, np.int32), np.int32(32), np.int32(20))),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_kernels_of_others_have_no_error(name: str) -> None:
    grid, block, arguments = OTHERS[name]
    found = gpusim.check(getattr(basics, name)[grid, block], *arguments)
    assert in_short(found.errors) == []


def test_every_basic_kernel_of_others_is_checked() -> None:
    assert set(OTHERS) == {k.name for k in KERNELS.values() if k.file == "basics"}


@pytest.mark.slow
@pytest.mark.parametrize("file", sorted({kernel.file for kernel in KERNELS.values()}))
def test_no_kernel_of_others_has_an_error(file: str) -> None:
    for one in KERNELS.values():
        if one.file == file and one.in_python is not None:
            launch = one.at(one.small)
            kernel = one.in_python[launch.plan.grid, launch.plan.block]
            assert in_short(gpusim.check(kernel, *launch.copied()).errors) == [], one.name


# What is wrong with each published kernel: the rule that says so.
REASONS = {
    "reduction5": "shared-race",
    "reduce5": "warp-race",
    "step5": "warp-race",
    "step2": "left-out",
    "reduce6_published": "left-out",
    "kogge_stone_scan": "bounds",
    "kogge_stone_scan_double": "doubled",
}


def test_kernels_that_are_wrong_as_published_are_found_with_the_reason() -> None:
    assert set(REASONS) == {entry.name for entry in WRONG}
    for name, rule in REASONS.items():
        block = 1024 if name == "reduce6_published" else None
        found = checked(find(name), 256 if find(name).one_block else 4096, block=block)
        assert rule in {finding.rule for finding in found.errors}, name


def test_the_elements_that_a_bound_leaves_out_are_named() -> None:
    # index = 2 * s * t < 8 // s in a block of 8: s = 1 makes all pairs, s = 2 adds the sum of 2 and
    # 3 to that of 0 and 1 alone, s = 4 adds that of 4 and 5; nobody takes that of 6 and 7.
    (finding,) = checked(find("step2"), 8, block=8)
    assert finding.rule == "left-out"
    assert (finding.array, finding.index, finding.count) == ("values", 6, 2)
    assert finding.message.endswith("are missing from the sum: values[6-7]")


def test_before_compute_capability_7_lanes_of_a_warp_run_in_lockstep() -> None:
    call = find("reduce5").setup(512).call(sample(512, "int32"))
    assert gpusim.check(call.configured, *call.arguments, device="h200").errors
    assert not gpusim.check(call.configured, *call.arguments, device="k40m").errors


def test_a_finding_names_lines_threads_and_the_element() -> None:
    @cuda.jit
    def kernel(x, out):
        s = cuda.shared.array(64, np.int32)
        t = cuda.threadIdx.x
        s[t] = x[t]
        out[t] = s[63 - t]

    line = kernel.source.first_line + 4
    out = np.zeros(64, np.int32)
    (finding,) = gpusim.check(kernel[1, 64], np.arange(64, dtype=np.int32), out)
    writes, reads = finding.places
    assert (finding.rule, finding.hazard) == ("shared-race", "read-after-write")
    assert (writes.line, writes.does) == (line, "writes")
    assert (reads.line, reads.does) == (line + 1, "reads")
    assert finding.element == "s[63]"
    assert (reads.thread.block, reads.thread.warp, reads.thread.lane) == (0, 0, 0)
    assert (writes.thread.block, writes.thread.warp, writes.thread.lane) == (0, 1, 31)
    assert finding.count == 64
    assert out.tolist() == list(range(63, -1, -1))  # lucky: right in this order


def test_threads_that_store_the_same_value_are_a_note() -> None:
    @cuda.jit
    def kernel(x, found):
        if x[cuda.grid(1)] == 7:
            found[0] = 1

    (finding,) = gpusim.check(kernel[4, 64], np.full(256, 7, np.int32), np.zeros(1, np.int32))
    assert (finding.rule, finding.severity) == ("same-value", "note")


def test_findings_are_counted_for_all_blocks_alike() -> None:
    @cuda.jit
    def kernel(out):
        s = cuda.shared.array(64, np.int32)
        out[cuda.grid(1)] = s[cuda.threadIdx.x]

    (finding,) = gpusim.check(kernel[5, 64], np.zeros(320, np.int32))
    assert (finding.rule, finding.count) == ("uninitialised", 320)


def test_views_that_overlap_are_one_memory() -> None:
    @cuda.jit
    def kernel(x, y):
        i = cuda.grid(1)
        y[i] = x[i] + 1

    base = np.arange(192, dtype=np.int32)
    (finding,) = gpusim.check(kernel[2, 64], base[:128], base[64:]).errors
    # Block 0 stores to y[0], which is x[64]: block 1 reads it before or behind that.
    assert (finding.rule, finding.element) == ("block-race", "y[0]")
    assert gpusim.check(kernel[2, 32], base[:64], base[64:]).errors == []


def test_a_read_of_global_memory_that_holds_nothing_yet_is_an_error() -> None:
    @cuda.jit
    def kernel(x, scratch, out):
        t = cuda.threadIdx.x
        if t > 0:
            scratch[t] = x[t]
        out[t] = scratch[t]

    def found(*names: str) -> list[tuple[str, str, int]]:
        arrays = [np.zeros(32, np.int32) for _ in range(3)]
        findings = gpusim.check(kernel[1, 32], *arrays, uninitialised=names)
        return [(one.rule, one.element, one.count) for one in findings]

    assert found() == []
    assert found("scratch", "out") == [("uninitialised", "scratch[0]", 1)]
    assert found("x") == [("uninitialised", "x[1]", 31)]  # nobody stores to it
    with pytest.raises(
        gpusim.GpusimError, match=r"'y' is not an array .* its arrays are x, scratch"
    ):
        found("y")


def test_a_barrier_after_a_return_is_undefined_before_compute_capability_7() -> None:
    @cuda.jit
    def kernel(x, out):
        t = cuda.threadIdx.x
        if t >= 40:
            return
        out[t] = x[t]
        cuda.syncthreads()

    def found(device: str) -> list[tuple[str, str]]:
        findings = gpusim.check(kernel[1, 64], floats(64), nothing(64), device=device)
        return [(finding.rule, finding.severity) for finding in findings]

    assert found("h200") == [("barrier-after-return", "warning")]
    assert found("k40m") == [("barrier-missed", "error")]


@cuda.jit
def sums_before(x, out, beyond):
    total = np.float32(0)
    i = 0
    while i < cuda.grid(1) + beyond:
        total += x[i]
        i += 1
    out[cuda.grid(1)] = total


def test_an_index_beyond_the_array_is_found_in_the_last_iteration_of_a_loop() -> None:
    """Of 1024 threads the last two read one element too many, and two."""
    found = gpusim.check(sums_before[4, 256], floats(1024), nothing(1024), np.int32(2))
    assert [(f.rule, f.element, f.count) for f in found] == [("bounds", "x[1024]", 1)]


PREDICATED = """
__global__ void guarded(const int *x, int *out) {
    int t = threadIdx.x, i = blockIdx.x * 32 + t;
    if (x[i]) {
        out[i] = x[i];
        __syncthreads();
    }
    atomicAdd(&out[64], t);
}
"""


@pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
def test_a_barrier_under_a_guard_is_reported_once_for_the_thread_that_does_not_reach_it() -> None:
    """Thread 5 of block 0 and thread 3 of block 1; all blocks run together."""
    x = np.ones(64, np.int32)
    x[5] = x[32 + 3] = 0
    kernel = gpusim.cuda_source(PREDICATED)["guarded"]
    (one,) = gpusim.check(kernel[2, 32], x, np.zeros(65, np.int32)).errors
    assert (one.rule, one.lines, one.count) == ("barrier-missed", (6, 9), 2)
    assert one.message.startswith("thread 3 (block 1, warp 0, lane 3) does not reach the barrier")


@pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
def test_a_tail_in_volatile_memory_is_one_warning_with_its_cure() -> None:
    """Steps of 16, 8, 4, 2 and 1: four of them read what the step before has stored."""
    steps = "".join(f"    if (t < {d}) s[t] += s[t + {d}];\n" for d in (16, 8, 4, 2, 1))
    text = f"""__global__ void k(int *x) {{
    __shared__ volatile int s[32];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncwarp();
{steps}    if (t == 0) x[0] = s[0];
}}"""
    found = gpusim.check(gpusim.cuda_source(text)["k"][1, 32], np.ones(32, np.int32))
    (tail,) = found
    assert (tail.severity, tail.rule, tail.count) == ("warning", "volatile-warp-race", 15)
    assert tail.fix.startswith("put __syncwarp() after each step of the tail")


@pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
def test_a_line_with_a_finding_is_not_one_that_has_not_run() -> None:
    text = """__global__ void k(int *x) {
    x[threadIdx.x] = 1;
    if (threadIdx.x == 40)
        x[1 << 20] = 2;
}"""
    found = gpusim.check(gpusim.cuda_source(text)["k"][1, 64], np.zeros(64, np.int32))
    (bounds,) = found.errors
    assert bounds.rule == "bounds"
    assert not found.coverage.lines_not_run & set(bounds.lines)
