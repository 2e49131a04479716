"""Copies by tensor maps (`cp.async.bulk.tensor`): boxes, swizzles, places outside, reductions."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from evaluators import EVALUATORS, runs_in

import gpusim
from gpusim.cli.arguments import argument, bound
from gpusim.errors import InputError
from gpusim.launch.tensor_maps import TensorMap
from gpusim.sass import wheels
from gpusim.sass.kernels import CodeFile, cuda_source
from validate.table import rows_of

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
BULK = Path(__file__).parents[2] / "validate" / "bulk"
KERNELS = (BULK / "tensors.cuh").read_text()

MEASURED = [dict(row) for row in rows_of(BULK / "tensors.csv")]


@cache
def source() -> CodeFile:
    """Return the file of the kernels."""
    return cuda_source(KERNELS, includes=[str(BULK)])


def moved(name: str, tensor: TensorMap, given: np.ndarray[Any, Any], *first: int) -> None:
    """Run a kernel with the bytes of an array, and coordinates from the last axis on."""
    rest = (0,) * (5 - len(first))
    source()[name][1, 32](tensor, given.view(np.uint32), given.nbytes, *first, *rest)


@pytest.mark.parametrize("evaluator", EVALUATORS)
@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_a_box_is_loaded_of_each_number_of_dimensions(
    rank: int, evaluator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows lie one after the other, the last axis first in the coordinates."""
    runs_in(monkeypatch, evaluator)
    shape, box, first = (3, 4, 5, 6, 16)[-rank:], (2, 2, 3, 2, 8)[-rank:], (1, 2, 1, 3, 4)[-rank:]
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    out = np.zeros(box, np.float32)
    moved(f"load_{rank}", TensorMap(x, box), out, *first[::-1])
    wanted = x[tuple(slice(at, at + size) for at, size in zip(first, box, strict=True))]
    np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize("swizzle", [32, 64, 128])
def test_a_swizzle_exchanges_units_of_a_row(swizzle: int) -> None:
    """Bits 4 to 6 of an address, as many as the swizzle has, by bits 7 to 9."""
    columns = swizzle // 4
    x = np.arange(16 * columns, dtype=np.uint32).reshape(16, columns)
    out = np.zeros_like(x)
    moved("load_2", TensorMap(x, x.shape, swizzle=swizzle), out, 0, 0)
    at = 4 * np.arange(x.size)
    places = at ^ (at >> 7 & swizzle // 16 - 1) << 4
    np.testing.assert_array_equal(out.reshape(-1)[places // 4], x.reshape(-1))
    back = np.zeros_like(x)
    moved("store_2", TensorMap(back, x.shape, swizzle=swizzle), out, 0, 0)
    np.testing.assert_array_equal(back, x)


@pytest.mark.parametrize("fill", ["zero", "nan"])
def test_what_lies_outside_is_filled_and_not_stored(fill: str) -> None:
    """A box of 8 by 8 at row -2 and column 4 of an array of as many."""
    x = np.arange(1, 65, dtype=np.float32).reshape(8, 8)
    out = np.zeros((8, 8), np.float32)
    moved("load_2", TensorMap(x, (8, 8), fill=fill), out, 4, -2)
    inside = np.zeros((8, 8), bool)
    inside[2:, :4] = True
    np.testing.assert_array_equal(out[2:, :4], x[:6, 4:])
    assert (np.isnan(out[~inside]) if fill == "nan" else out[~inside] == 0).all()
    target = np.zeros((8, 8), np.float32)
    moved("store_2", TensorMap(target, (8, 8)), x, 4, 2)
    np.testing.assert_array_equal(target[2:, 4:], x[:6, :4])
    assert target.sum() == x[:6, :4].sum()


def test_a_store_at_a_negative_coordinate_is_an_error() -> None:
    """An H200 ends such a kernel with an illegal instruction."""
    x = np.zeros((8, 8), np.float32)
    with pytest.raises(InputError, match="negative coordinate"):
        moved("store_2", TensorMap(x, (8, 8)), x.copy(), 0, -1)


def test_a_box_is_added_to_what_is_there() -> None:
    """In the type of the map."""
    x = np.ones((8, 8), np.int32)
    moved("add_2", TensorMap(x, (4, 4)), np.arange(16, dtype=np.int32), 4, 2)
    np.testing.assert_array_equal(x[2:6, 4:], 1 + np.arange(16).reshape(4, 4))
    assert x.sum() == 64 + 120


def test_a_check_of_a_tensor_copy_finds_nothing() -> None:
    """Loads and stores with their waits and fences."""
    x, given = np.ones((8, 8), np.float32), np.zeros(64, np.uint32)
    for name in ("load_2", "store_2"):
        arguments = TensorMap(x, (8, 8)), given, 256, 0, 0, 0, 0, 0
        assert not gpusim.check(source()[name][1, 32], *arguments).errors


@pytest.mark.parametrize(
    ("shape", "box", "options", "sentence"),
    [
        ((8, 8), (8,), {}, "a box as many as its array"),
        ((8, 8), (8, 512), {}, "1 to 256 elements"),
        ((8, 8), (8, 2), {}, "a multiple of 16 bytes"),
        ((8, 64), (8, 64), {"swizzle": 128}, "with a swizzle, its bytes"),
        ((8, 64), (8, 16), {"swizzle": 128}, "with a swizzle, its bytes"),
        ((8, 8), (8, 8), {"swizzle": 16}, "swizzle 0, 32, 64 or 128"),
        ((8, 7), (8, 4), {}, "a row of a tensor map's array"),
    ],
)
def test_a_map_that_cuda_refuses_is_refused(
    shape: tuple[int, ...], box: tuple[int, ...], options: dict[str, Any], sentence: str
) -> None:
    """In a sentence that names the rule."""
    with pytest.raises(InputError, match=sentence):
        TensorMap(np.zeros(shape, np.float32), box, **options)


def test_the_command_line_describes_a_tensor_map() -> None:
    """With an array of its own, or one that is another argument."""
    own = argument("map=tensor(float32[8,16]=ones, 4x16, swizzle=64, fill=nan)").value
    assert (own.box, own.swizzle, own.fill) == ((4, 16), 64, "nan")
    assert own.array.sum() == 128
    both = [argument("map=tensor(x, 4x16)"), argument("x=float32[8,16]=ones")]
    found, x = bound(both, ("map", "x"), "kernel")
    assert found.array is x
    with pytest.raises(InputError, match=r"tensor\(y, \.\.\.\) needs an array"):
        bound([argument("map=tensor(y, 4x16)"), both[1]], ("map", "x"), "kernel")


def digest(data: bytes) -> str:
    """Return FNV-1a of some bytes."""
    found = 1469598103934665603
    for byte in data:
        found = (found ^ byte) * 1099511628211 % 2**64
    return f"{found:016x}"


@pytest.mark.parametrize("row", MEASURED, ids=lambda row: row["case"])
def test_bytes_are_those_of_an_h200(row: dict[str, str]) -> None:
    """Shared memory behind a load, the array behind a store: validate/bulk/tensors.csv."""
    shape, box, first = (tuple(map(int, row[one].split())) for one in ("shape", "box", "first"))
    kind = np.dtype(row["type"])
    seed = (1000, 77) if kind == np.float32 else None
    x, out = (
        (np.arange(1 << 13) % most).astype(np.float32).view(np.uint32)
        if seed
        else (np.arange(1 << 13) * factor % 2**32).astype(np.uint32)
        for most, factor in zip(seed or (0, 0), (2654435761, 40503), strict=True)
    )
    array = x.view(kind)[: np.prod(shape)].reshape(shape[::-1])
    given = out[: np.prod(box) * kind.itemsize // 4]
    options: dict[str, Any] = {"swizzle": int(row["swizzle"]), "fill": row["fill"]}
    moved(row["kernel"], TensorMap(array, box[::-1], **options), given, *first)
    assert digest((given if "load" in row["kernel"] else array).tobytes()) == row["digest"]
