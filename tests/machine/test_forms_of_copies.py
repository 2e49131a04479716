"""Forms of copies, stores and reductions between blocks, whose bytes an H200 has given."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from evaluators import INTERPRETED, runs_in
from machine.test_tensor_copies import digest

from gpusim.launch.tensor_maps import TensorMap
from gpusim.sass import wheels
from gpusim.sass.kernels import CodeFile, cuda_source
from validate.table import rows_of

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
BULK = Path(__file__).parents[2] / "validate" / "bulk"
WANTED = {row["form"]: row["digest"] for row in rows_of(BULK / "forms.csv")}
WORDS = 2048
TYPES = {
    "u32": np.uint32, "s32": np.int32, "u64": np.uint64, "s64": np.int64, "f16": np.float16,
    "f32": np.float32, "f64": np.float64,
}  # fmt: skip


@pytest.fixture(autouse=True)
def _without_compiled_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run each kernel once, by NumPy: code for each would be compiled for seconds."""
    runs_in(monkeypatch, INTERPRETED)


@cache
def source() -> CodeFile:
    """Return the file of the kernels."""
    return cuda_source((BULK / "forms.cuh").read_text(), includes=[str(BULK)])


def given() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return bits of all kinds: of every third word those of an ordinary number."""
    number = np.arange(WORDS, dtype=np.uint64)
    x, out = number * 2654435761, (number + 12345) * 2246822519 ^ number << np.uint64(7)
    both = tuple((one & 0xFFFFFFFF).astype(np.uint32) for one in (x, out))
    every = np.arange(0, WORDS, 3).astype(np.float32)
    both[0][::3] = (every * np.float32(0.37) - np.float32(300)).view(np.uint32)
    both[1][::3] = (np.float32(100) - every * np.float32(0.11)).view(np.uint32)
    return both[0], both[1]


@pytest.mark.parametrize("name", [one for one in WANTED if not one.startswith("tensor")])
def test_bytes_between_blocks_are_those_of_an_h200(name: str) -> None:
    """Two clusters of four blocks: NaNs and signed zeros too."""
    x, out = given()
    source()[name][8, 64](x, out)
    assert digest(out.tobytes()) == WANTED[name]


def _of_type(name: str) -> bool:
    return name.startswith("tensor") and name.split("_")[2] in TYPES


@pytest.mark.parametrize("name", [one for one in WANTED if _of_type(one)])
def test_a_box_is_reduced_as_by_an_h200(name: str) -> None:
    """Eight rows of half of a row's bytes, of an array with rows of 128."""
    _, how, kind = name.split("_")
    x, out = given()
    item = np.dtype(TYPES[kind]).itemsize
    array = out[:512].view(TYPES[kind]).reshape(16, -1)
    first = 8 if item == 2 else 4
    source()[f"tensor_{how}"][1, 64](TensorMap(array, (8, 64 // item)), x, first, 2)
    assert digest(out.tobytes()) == WANTED[name]


@pytest.mark.parametrize("mask", [15, 5, 8])
@pytest.mark.parametrize("rank", [0, 3])
def test_a_box_for_several_blocks_is_as_on_an_h200(mask: int, rank: int) -> None:
    """With a swizzle of 64 bytes, also for others than the block that asks for it."""
    x, out = given()
    tensor = TensorMap(x[:512].reshape(16, 32), (8, 16), swizzle=64)
    source()["tensor_all"][8, 64](tensor, out, mask, rank)
    assert digest(out.tobytes()) == WANTED[f"tensor_all_{mask}_{rank}"]
