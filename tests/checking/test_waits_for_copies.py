"""Races with an asynchronous copy name the wait that is missing, as the source writes it."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim.sass import wheels

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)

PTX = (
    '#define COPY(s, x) asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: '
    '"r"(unsigned(__cvta_generic_to_shared(s))), "l"(x) : "memory")',
    '#define COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")',
    '#define WAIT(n) asm volatile("cp.async.wait_group %0;" :: "n"(n) : "memory")',
)
PIPELINE = (
    "#include <cuda_pipeline.h>",
    "#define COPY(s, x) __pipeline_memcpy_async(s, x, 4)",
    "#define COMMIT() __pipeline_commit()",
    "#define WAIT(n) __pipeline_wait_prior(n)",
)
# Code from line 10 on, a statement a line.
FORMS = {
    "no wait before a barrier": (
        ["COPY(s + t, x + t);", "COMMIT();", "__syncthreads();", "y[t] = s[127 - t];"],
        "put {}0{} before the barrier in line 12, in the thread that copies",
    ),
    "no wait and no barrier": (
        ["COPY(s + t, x + t);", "COMMIT();", "y[t] = s[127 - t];", "WAIT(0);"],
        "put {}0{}, in the thread that copies, and __syncthreads() before line 12",
    ),
    "no wait for one's own": (
        ["COPY(s + t, x + t);", "COMMIT();", "__syncthreads();", "y[t] = s[t];"],
        "put {}0{} before line 13",
    ),
    "a wait that leaves too many": (
        [
            *("COPY(s + t, x + t);", "COMMIT();", "COPY(r + t, x + t);", "COMMIT();"),
            *("WAIT(2);", "__syncthreads();", "y[t] = s[127 - t];"),
        ],
        "use {}1{} in line 14",
    ),
    "no commit": (
        ["COPY(s + t, x + t);", "WAIT(0);", "__syncthreads();", "y[t] = s[127 - t];"],
        "commit the copy's group (cp.async.commit_group, __pipeline_commit) before the wait in "
        "line 11",
    ),
    "no barrier behind the wait": (
        ["COPY(s + t, x + t);", "COMMIT();", "WAIT(0);", "y[t] = s[127 - t];"],
        "put __syncthreads() after the wait in line 12",
    ),
}


LINES = 12  # of each kernel, the first from line 7 on


@cache
def kernels(head: tuple[str, ...]) -> Any:
    """Return the file with a kernel of each form."""
    lines = [*head, *[""] * (6 - len(head))]
    for number, (body, _) in enumerate(FORMS.values()):
        begin = [
            f"__global__ void k{number}(const int *x, int *y) {{",
            "__shared__ int s[128], r[128];",
        ]
        own = [*begin, "int t = threadIdx.x;", *body, "}"]
        lines += [*own, *[""] * (LINES - len(own))]
    return gpusim.cuda_source("\n".join(lines))


def fix_of(head: tuple[str, ...], form: str) -> str:
    """Return the fix of a form, with its lines as if it were the first."""
    number = list(FORMS).index(form)
    (race,) = checked(kernels(head)[f"k{number}"])
    return re.sub(r"line (\d+)", lambda one: f"line {int(one[1]) - LINES * number}", race.fix)


def checked(kernel: Any) -> Any:
    arrays = np.arange(256, dtype=np.int32), np.zeros(128, np.int32)
    return gpusim.check(kernel[1, 128], *arrays)


@pytest.mark.parametrize("form", FORMS)
def test_the_fix_names_the_wait_of_ptx(form: str) -> None:
    _, fix = FORMS[form]
    assert fix_of(PTX, form) == fix.format("cp.async.wait_group ", "")


@pytest.mark.parametrize("form", FORMS)
def test_the_fix_names_the_wait_of_the_pipeline_functions(form: str) -> None:
    _, fix = FORMS[form]
    assert fix_of(PIPELINE, form) == fix.format("__pipeline_wait_prior(", ")")


def test_the_fix_names_the_wait_of_a_pipeline_object() -> None:
    text = """
    #include <cuda/pipeline>
    __global__ void k(const int *x, int *y) {
        __shared__ int s[128];
        int t = threadIdx.x;
        auto p = cuda::make_pipeline();
        p.producer_acquire();
        cuda::memcpy_async(s + t, x + t, 4, p);
        p.producer_commit();
        y[t] = s[t];
        p.consumer_wait();
        p.consumer_release();
    }
    """
    (race,) = checked(gpusim.cuda_source(text)["k"])
    assert race.fix == "put consumer_wait() before line 10"


def test_the_fix_names_the_wait_of_a_cooperative_group() -> None:
    text = """\
    #define _CG_LIMIT_INCLUDED_DEPENDENCIES
    #include <cooperative_groups/memcpy_async.h>
    __global__ void k(const int *x, int *y) {
        __shared__ __align__(16) int s[128];
        auto block = cooperative_groups::this_thread_block();
        cooperative_groups::memcpy_async(block, s, x, sizeof s);
        block.sync();
        y[threadIdx.x] = s[127 - threadIdx.x];
    }
    """
    (race,) = checked(gpusim.cuda_source(text)["k"])
    assert race.fix == (
        "put wait_prior<0>(group) before the barrier in line 7, in the thread that copies"
    )
