"""Texture fetches, with values worked out by hand from the CUDA C++ programming guide."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpusim.launch.textures import BORDER, CLAMP, MIRROR, WRAP, Texture
from gpusim.machine.textures import Access, Fetch, _bytes_of, _sampled, _weights
from gpusim.typing import Array

LINE = np.array([10, 20, 40, 80], np.float32)


def line(**how: Any) -> Texture:
    return Texture(0, 4, 0, 0, 0, 0, np.dtype(np.float32), 1, **how)


def fetched(texture: Texture, held: Array, *coordinates: float, axes: int = 1) -> list[float]:
    """Return the first channel at coordinates of a first axis, with 0.5 in the others."""
    form = Fetch(axes, False, False, (0,))
    along = np.array(coordinates, np.float32).view(np.uint32)
    others = np.full(len(along), 0.5, np.float32).view(np.uint32)
    bits = _sampled(texture, form, [along, *[others] * (axes - 1)], held.view(np.uint8).ravel())
    return [float(one) for one in bits[:, 0].view(np.float32)]


def test_the_nearest_element_is_that_of_the_coordinate_rounded_down() -> None:
    assert fetched(line(), LINE, 0.0, 0.99, 1.0, 3.99) == [10, 10, 20, 80]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (CLAMP, [10, 80]),
        (BORDER, [7, 7]),
        (WRAP, [80, 10]),  # -1/8 is 7/8 of the next period, 9/8 its 1/8
        (MIRROR, [10, 80]),
    ],
)
def test_a_coordinate_outside_goes_by_the_address_mode(mode: int, expected: list[float]) -> None:
    how = line(modes=(mode, mode, mode), is_normalized=True, border=(7.0, 0, 0, 0))
    assert fetched(how, LINE, -0.125, 1.125) == expected


def test_mirrored_elements_go_back() -> None:
    how = line(modes=(MIRROR,) * 3, is_normalized=True)
    assert fetched(how, LINE, *(1 + (k + 0.5) / 4 for k in range(4))) == [80, 40, 20, 10]


def test_wrapping_without_normalized_coordinates_is_clamping() -> None:
    assert fetched(line(modes=(WRAP,) * 3), LINE, 5.0) == [80]


def test_between_elements_weights_have_8_bits() -> None:
    how = line(is_linear=True)
    assert fetched(how, LINE, 1.0, 1.5, 2.25) == [15, 20, 20 * 0.25 + 40 * 0.75]
    step = 10 / 256
    assert fetched(how, LINE, 0.5 + 1 / 600, 0.5 + 1 / 256, 0.5 + 1 / 200) == [
        10,
        10 + step,
        10 + step,
    ]


def test_a_texture_of_one_axis_has_a_border_along_the_second() -> None:
    how = line(modes=(BORDER,) * 3, is_linear=True, border=(8.0, 0, 0, 0))
    along, zero = (np.array([one], np.float32).view(np.uint32) for one in (1.5, 0.0))
    bits = _sampled(how, Fetch(2, False, False, (0,)), [along, zero], LINE.view(np.uint8))
    assert bits.view(np.float32)[0, 0] == (20 + 8) / 2  # as an H200 has it, of tex1D


def test_weights_of_a_plane_are_whole_and_add_up() -> None:
    seconds = [np.array([100.0]), np.array([50.0])]
    weights = {corner: int(weight[0]) for corner, weight in _weights(seconds)}
    assert weights == {(1, 1): 20, (1, 0): 80, (0, 1): 30, (0, 0): 126}  # 100 * 50 / 256 = 19.5
    volume = dict(_weights([*seconds, np.array([200.0])]))
    assert sum(int(weight[0]) for weight in volume.values()) == 256
    assert sum(int(w[0]) for (_, _, z), w in volume.items() if z) == 200


def test_a_border_of_whole_numbers_has_the_bits_of_the_colour() -> None:
    held = np.arange(4, dtype=np.int32)
    how = Texture(0, 4, 0, 0, 0, 0, held.dtype, 1, modes=(BORDER,) * 3, border=(7.5, 0, 0, 0))
    place = np.array([9.0], np.float32).view(np.uint32)
    bits = _sampled(how, Fetch(1, False, False, (0,)), [place], held.view(np.uint8))
    assert bits.view(np.float32)[0, 0] == 7.5


def test_a_plane_interpolates_between_four_elements() -> None:
    held = np.arange(12, dtype=np.float32).reshape(3, 4)
    how = Texture(0, 4, 3, 0, 16, 48, held.dtype, 1, is_linear=True)
    form = Fetch(2, False, False, (0,))
    x, y = (np.array([one], np.float32).view(np.uint32) for one in (1.75, 2.0))
    (value,) = _sampled(how, form, [x, y], held.view(np.uint8).ravel())[:, 0].view(np.float32)
    assert value == (5 + 9) / 2 + 0.25  # halfway between two rows, a quarter behind an element


def test_integers_are_fractions_of_the_largest_or_have_a_sign() -> None:
    held = np.array([-128, -127, 0, 127], np.int8)
    how = Texture(0, 4, 0, 0, 0, 0, held.dtype, 1, reads_fractions=True)
    assert fetched(how, held, 0.5, 1.5, 2.5, 3.5) == [-1, -1, 0, 1]
    plain = Texture(0, 4, 0, 0, 0, 0, held.dtype, 1)
    bits = _sampled(
        plain, Fetch(1, False, False, (0,)), [np.zeros(1, np.uint32)], held.view(np.uint8)
    )
    assert bits.view(np.int32).tolist() == [[-128]]


def test_an_index_outside_of_linear_memory_reads_zero() -> None:
    index = np.array([-1, 0, 3, 4], np.int32).view(np.uint32)
    bits = _sampled(line(), Fetch(1, False, True, (0,)), [index], LINE.view(np.uint8))
    assert bits.view(np.float32)[:, 0].tolist() == [0, 10, 80, 0]


def test_a_layer_is_chosen_by_a_whole_number_within_the_layers() -> None:
    held = np.arange(8, dtype=np.float32).reshape(2, 1, 4)
    how = Texture(0, 4, 1, 2, 16, 16, held.dtype, 1, is_layered=True)
    layer, zero = np.array([0, 1, 9], np.uint32), np.zeros(3, np.uint32)
    bits = _sampled(
        how, Fetch(2, True, False, (0,)), [layer, zero, zero], held.view(np.uint8).ravel()
    )
    assert bits.view(np.float32)[:, 0].tolist() == [0, 4, 4]


@pytest.mark.parametrize(
    ("boundary", "index", "inside"),
    [("zero", [-4, 0, 12, 16], [False, True, True, False]), ("clamp", [0, 0, 12, 12], [True] * 4)],
)
def test_a_surfaces_first_coordinate_counts_bytes(
    boundary: str, index: list[int], inside: list[bool]
) -> None:
    at = np.array([-4, 0, 12, 16], np.int32).view(np.uint32)
    found, good = _bytes_of(line(), Access(1, False, 4, boundary), [at])
    assert (found.tolist(), good.tolist()) == (index, inside)
