"""Masks of warp operations: those that machine code drops are judged by the PTX behind it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from one_file import kernels

import gpusim
from gpusim.checking.coverage import MASKS
from gpusim.host import fast
from gpusim.machine.compiled import examination
from gpusim.sass import wheels

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)

# Without headers of the standard library, which take a second.
GROUPS = "#define _CG_LIMIT_INCLUDED_DEPENDENCIES\n#include <cooperative_groups.h>"
# Bodies with `v`, the lane's number, and `t`, the thread's: each stores a result to y[t].
WRONG = {
    "a shuffle by lanes that its mask lacks": "y[t] = __shfl_sync(0xffffu, v, 0);",
    "a shuffle down among half the lanes": "y[t] = __shfl_down_sync(0xffffu, v, 1, 16);",
    "a ballot of all lanes in a branch":
        "int b = 0; if (v < 8) b = __ballot_sync(~0u, v < 4); y[t] = b;",
    "a ballot by lanes that its mask lacks": "y[t] = __ballot_sync(0xffu, v > 3);",
    "a vote by lanes that its mask lacks": "y[t] = __any_sync(0xfffu, v > 30);",
    "a sum by lanes that its mask lacks": "y[t] = __reduce_add_sync(0x3fu, v);",
    "a match by lanes that its mask lacks": "y[t] = __match_any_sync(0x7fu, v & 3);",
    "an exchange among present lanes of a full mask":
        "if (v < 16) v = __shfl_xor_sync(~0u, v, 8); y[t] = v;",
    "a mask at run time without its caller":
        "unsigned m = ~(1u << v); if (v < 16) v = __shfl_sync(m & 0xffff, v, 1); y[t] = v;",
    "a barrier of fewer lanes than come": "__syncwarp(0xffffu); y[t] = v;",
    "a shuffle by a mask of a parameter": "y[t] = __shfl_sync(255u * n, v, 0);",
    "shuffles by a mask at run time":
        "unsigned m = (1u << (7 + n)) - 1;"
        "for (int o = 4; o; o /= 2) v += __shfl_down_sync(m, v, o); y[t] = v;",
    "a ballot by a mask of a parameter": "y[t] = __ballot_sync(3u << n, v & 1);",
    "a sum by a mask of a parameter": "y[t] = __reduce_add_sync(15u >> n, v);",
    "a match by a mask of a parameter": "y[t] = __match_any_sync(255u * n, v & 3);",
    "a barrier by a mask of a parameter": "__syncwarp(255u * n); y[t] = v;",
}  # fmt: skip
RIGHT = {
    "full masks": "y[t] = __shfl_xor_sync(~0u, v, 8) + __ballot_sync(~0u, v < 4);",
    "half the lanes with half a mask": "if (v < 16) v = __shfl_xor_sync(0xffffu, v, 8); y[t] = v;",
    "two halves with a mask each":
        "unsigned m = v < 16 ? 0xffffu : 0xffff0000u; y[t] = __shfl_xor_sync(m, v, 8);",
    "the lanes that are active": "unsigned m = __activemask(); y[t] = __ballot_sync(m, v < 4);",
    "the lanes of a ballot before the branch":
        "unsigned m = __ballot_sync(~0u, v < 9); if (v < 9) v = __shfl_sync(m, v, 8); y[t] = v;",
    "lanes that are active in a branch":
        "if (v < 9) { unsigned m = __activemask(); v = __reduce_add_sync(m, v); } y[t] = v;",
    "an early return of the others": "if (v > 15) return; y[t] = __shfl_xor_sync(~0u, v, 8);",
    "a mask of a parameter, by its lanes":
        "unsigned m = 255u * n; if (m >> v & 1) { v = __shfl_xor_sync(m, v, 1); __syncwarp(m);"
        "v += __ballot_sync(m, v & 1) + __match_any_sync(m, v & 3); } y[t] = v;",
    "one atomic of all active lanes":
        "if (v % 5) { unsigned m = __activemask(); int lead = __ffs(m) - 1, base = 0;"
        "if (v == lead) base = __popc(m); v = __shfl_sync(m, base, lead); } y[t] = v;",
    "a barrier of half the lanes, by these": "if (v < 16) { __syncwarp(0xffffu); } y[t] = v;",
}  # fmt: skip
TEXT = """
__global__ void k(int *y, int n) {
    int t = threadIdx.x, v = t % 32;
    {BODY}
}
"""


LINE_4 = "y[t] = __shfl_sync(0x0000ffff, v, 0);"
COALESCED = (
    "if (v % 4) { auto g = cooperative_groups::coalesced_threads();"
    "for (int o = g.size() / 2; o; o /= 2) v += g.shfl_down(v, o); v += g.ballot(v & 1); }"
    "y[t] = v;"
)
OF_A_PARAMETER = "y[t] = __shfl_sync(n, v, 0) + __shfl_sync(~0u, v, 0);"
# With several shuffles nvcc collects the lanes before each of them, off the usual path.
HALF_OF_THE_LANES = "if (v < 16) for (int j = 8; j; j /= 2) v += __shfl_down_sync(~0u, v, j, 16);"
ORDERED = "__shared__ int s[64]; s[t] = v; __syncwarp(0xffffu); y[t] = s[t ^ 16];"
LOW = "__shared__ int s[64]; if (v < 16) { s[t] = v; __syncwarp(0xffffu); y[t] = s[t ^ 8]; }"
OTHER_MASKS = (
    "__shared__ int s[64]; int x; "
    "if (v < 16) { s[t] = v; __syncwarp(0xffffu); x = s[t + 16]; } "
    "else { s[t] = 2 * v; __syncwarp(0xffff0000u); x = s[t - 16] + 1; } y[t] = x;"
)
PARTNERS = {
    form: f"__shared__ int s[64]; int x = v; {body} y[t] = x;"
    for form, body in {
    "for the first warp alone":
        "if (t < 16) { s[t] = v; __syncwarp(); x = s[t + 16]; } "
        "else if (t < 32) { s[t] = 2 * v; __syncwarp(); x = s[t - 16] + 1; }",
    "for the last warp alone":
        "if (t >= 48) { s[t] = v; __syncwarp(); x = s[t - 16]; } "
        "else if (t >= 32) { s[t] = 2 * v; __syncwarp(); x = s[t + 16] + 1; }",
    "for every warp":
        "if (v < 16) { s[t] = v; __syncwarp(); x = s[t + 16]; } "
        "else { s[t] = 2 * v; __syncwarp(); x = s[t - 16] + 1; }",
    "in three sides":
        "if (v < 8) { s[t] = v; __syncwarp(); x = s[t + 16]; } "
        "else if (v < 16) { s[t] = 5 * v; __syncwarp(); x = s[t + 16] * 3; } "
        "else { s[t] = 2 * v; __syncwarp(); x = s[t - 16] + 1; }",
    "in a loop":
        "for (int i = 0; i < n + 2; i++) { "
        "if (v < 16) { s[t] = x; __syncwarp(); x = s[t + 16]; } "
        "else { s[t] = x + 1; __syncwarp(); x = s[t - 16] + 3; } __syncwarp(); }",
    "with a mask for each pair of lanes":
        "unsigned m = v & 8 ? 0xff00ff00u : 0x00ff00ffu; "
        "if (v < 16) { s[t] = v; __syncwarp(m); x = s[t + 16]; } "
        "else { s[t] = 2 * v; __syncwarp(m); x = s[t - 16] + 1; }",
    }.items()
}  # fmt: skip
BODIES = (
    *WRONG.values(), *RIGHT.values(), OF_A_PARAMETER, ORDERED, LOW, OTHER_MASKS,
    *PARTNERS.values(), "y[t] = v;",
)  # fmt: skip


def checked(body: str, *, block: int = 64, device: str = "h200") -> gpusim.Findings:
    bodies = BODIES if body in BODIES else (body,)
    head = GROUPS if body == COALESCED else ""
    kernel = kernels(TEXT, bodies, head)[body]
    return gpusim.check(kernel[2, block], np.zeros(64, np.int32), np.int32(1), device=device)


@pytest.fixture(params=["numpy", "compiled"], autouse=True)
def evaluator(request: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """Check by NumPy alone, and with a launch in compiled code before."""
    monkeypatch.setenv(fast.SWITCH, fast.ON if request.param == "compiled" else fast.OFF)
    examination.forget()
    return str(request.param)


@pytest.mark.parametrize("form", WRONG)
def test_wrong_masks_are_errors(form: str) -> None:
    assert [one.rule for one in checked(WRONG[form]).errors if one.rule != "same-value"] == ["mask"]


@pytest.mark.parametrize("form", RIGHT)
@pytest.mark.parametrize("block", [64, 48])
def test_right_masks_have_no_finding(form: str, block: int) -> None:
    body = RIGHT[form] if block == 64 or "~0u" not in RIGHT[form] else "y[t] = v;"
    assert [one.rule for one in checked(body, block=block).errors] == []


# Machine code of compute capability 8.0 to 8.9 has no register for this mask.
LOST = "a sum by a mask of a parameter"


@pytest.mark.parametrize("device", ["a100-80gb", "rtx3080"])
def test_masks_are_judged_alike_before_compute_capability_9(device: str) -> None:
    """A mask that machine code lacks is counted as not comparable."""
    for form, body in {**WRONG, **RIGHT}.items():
        found = checked(body, device=device)
        rules = [one.rule for one in found.errors if one.rule != "same-value"]
        assert (form, rules) == (form, ["mask"] if form in WRONG and form != LOST else [])
        if form == LOST:
            assert found.coverage.not_compared[MASKS] == 1


@pytest.mark.parametrize("device", ["gtx1650", "a100-80gb", "rtx4090"])
def test_masks_are_known_for_every_generation(device: str) -> None:
    found = checked(LINE_4, device=device)
    (mask,) = found.errors
    assert mask.message == (
        "the mask 0x0000ffff of thread 16 (block 0, warp 0, lane 16) in line 4 does not name the "
        "calling lane"
    )
    assert mask.count == 64  # half of the lanes of four warps


@pytest.mark.parametrize("device", ["gtx1650", "h200"])
def test_coalesced_groups_are_right_in_every_generation(device: str) -> None:
    """The compiler's own functions for a group share code whose line of PTX is another call's."""
    assert checked(COALESCED, device=device).errors == []


def test_lost_masks_are_said_to_be_so() -> None:
    """Before compute capability 9.0, a mask that is a parameter is in no register."""
    found = checked(OF_A_PARAMETER, device="a100-80gb")
    assert found.coverage.not_compared == {"masks": 1}
    assert checked(OF_A_PARAMETER).errors[0].rule == "mask"


def test_a_barrier_of_some_lanes_orders_these_alone() -> None:
    """Lanes 16 to 31 read what lanes 0 to 15 have stored, and the other way round."""
    assert {one.rule for one in checked(ORDERED).errors} == {"mask", "warp-race"}
    assert checked(LOW).errors == []


@pytest.mark.parametrize("form", PARTNERS)
def test_barriers_in_several_sides_of_a_branch_order_the_lanes_of_all(form: str) -> None:
    assert checked(PARTNERS[form]).errors == []


def test_barriers_of_other_masks_in_both_sides_of_a_branch_do_not_order_them() -> None:
    assert {one.rule for one in checked(OTHER_MASKS).errors} == {"warp-race"}


def test_a_mask_with_absent_lanes_counts_each_call_once() -> None:
    """16 lanes make 4 shuffles each."""
    (mask,) = checked(f"{HALF_OF_THE_LANES} y[t] = v;", block=32).errors
    assert "names lane 16, but that lane does not arrive" in mask.message
    assert mask.count == 2 * 16 * 4
