"""Without findings, what was looked at is listed with its largest value of a line."""

from __future__ import annotations

import numpy as np

import gpusim
from gpusim import cuda


@cuda.jit
def reads_in_a_row(x, y):
    i = cuda.threadIdx.x
    y[i] = x[i] + 1


@cuda.jit
def one_conflict_in_much_work(x, y):
    s = cuda.shared.array(256, np.float32)
    i = cuda.threadIdx.x
    s[i * 8] = x[i]
    total = np.float32(0)
    for _ in range(2000):
        total = total * np.float32(0.5) + x[i]
    y[i] = total + s[i * 8]


def said(kernel: object, *arrays: np.ndarray) -> str:
    (only,) = gpusim.trace(kernel, *arrays).findings
    return only.sentence


def test_values_stand_where_nothing_was_found() -> None:
    x, y = np.ones(32, np.float32), np.zeros(32, np.float32)
    sentence = said(reads_in_a_row[1, 32], x, y)
    assert sentence == (
        "No findings with a gain: no bank conflicts; no divergence; global accesses at "
        "most 4.0 sectors a request (line 14)."
    )


def test_a_number_of_the_table_is_not_denied() -> None:
    x, y = np.ones(32, np.float32), np.zeros(32, np.float32)
    sentence = said(one_conflict_in_much_work[1, 32], x, y)
    assert "bank conflicts at most 7 of 8 wavefronts excessive (line " in sentence
