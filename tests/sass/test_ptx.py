"""The PTX of a compilation: which instruction each row of machine code became of, and its place."""

from __future__ import annotations

import pytest

from gpusim.launch.grid import ComputeCapability
from gpusim.sass import wheels
from gpusim.sass.kernels import cuda_source
from gpusim.sass.ptx import Ptx, PtxRow

compiles = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)

NESTED = """
template <int N> __device__ float neighbours(float v) {
    return v + __shfl_xor_sync(0xffu, v, N); }
__device__ float both(float v) {
    return neighbours<1>(neighbours<2>(v)); }
__global__ void k(float *x, volatile int *flag) {
    x[threadIdx.x] = both(x[threadIdx.x]);
    flag[threadIdx.x] = 1;
}
"""


def became_of(text: str, mnemonic: str, cc: str = "9.0") -> list[PtxRow]:
    """Return the instructions of PTX behind a kernel's rows of one mnemonic."""
    code = cuda_source(text).code("k", ComputeCapability.parse(cc))
    assert code.ptx is not None
    rows = [row for row in code.section.rows if row.mnemonic == mnemonic]
    return [found for row in rows for found in code.ptx.rows(row.ptx_line)]


@compiles
@pytest.mark.parametrize("cc", ["7.5", "9.0"])
def test_each_row_of_machine_code_names_its_instruction_of_ptx(cc: str) -> None:
    shuffles = became_of(NESTED, "SHFL", cc)
    assert [row.words[:3] for row in shuffles] == [("shfl", "sync", "bfly")] * 2
    assert ["volatile" in row.words for row in became_of(NESTED, "STG", cc)] == [False, True]


@compiles
def test_an_inlined_instruction_has_the_places_of_all_its_calls() -> None:
    first, second = became_of(NESTED, "SHFL")
    assert [place.line for place in first.chain] == [3, 5, 7]
    assert [place.function for place in first.chain] == [
        "_Z10neighboursILi2EEff", "_Z4bothf", "",
    ]  # fmt: skip
    assert second.chain[0].function == "_Z10neighboursILi1EEff"


def test_a_line_of_inline_assembly_may_hold_several_instructions() -> None:
    text = "{ .reg .pred p; setp.ne.s32 p, %r1, 0; @p ld.acquire.gpu.b32 %r2, [%rd1+4]; }"
    comparison, load = Ptx(text).rows(1)
    assert comparison.operands == ("p", "%r1", "0")
    assert (load.guard, load.words) == ("p", ("ld", "acquire", "gpu", "b32"))
    assert load.operands == ("%r2", "[%rd1+4]")


def test_lines_without_an_instruction_have_none() -> None:
    ptx = Ptx(".version 9.5\n$L__BB0_2:\n// st.global.u32 [%rd1], 1;\n\tret;")
    assert [len(ptx.rows(line)) for line in (0, 1, 2, 3, 5)] == [0] * 5
    assert ptx.rows(4)[0].name == "ret"
