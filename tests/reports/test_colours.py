"""Colours: all readers tell them apart, and text is readable on its paper, in both schemes."""

from __future__ import annotations

import re
from importlib import resources
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest

from gpusim.reports.plots.canvas import THEMES
from gpusim.reports.stall_styles import STALL_STYLES

# Linear RGB as dichromats see it: Machado, Oliveira and Fernandes, "A Physiologically-based Model
# for Simulation of Color Vision Deficiency" (2009), severity 1.
VISION = {
    "trichromat": np.eye(3),
    "protanope": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranope": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanope": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
# IEC 61966-2-1 and CIE 15: linear sRGB to XYZ, and its white.
XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
WHITE = XYZ.sum(axis=1)
LEAST_DIFFERENCE = 15  # CIE 1976; 2.3 is just noticeable
LEAST_CONTRAST = 4.5  # WCAG 2, level AA

SETS = {
    "stalls": [style.colour for style in STALL_STYLES.values()],
    "light": list(THEMES["light"].series),
    "dark": list(THEMES["dark"].series),
}


def linear(colour: str) -> Any:
    value = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def lab(light: Any) -> Any:
    x = XYZ @ np.clip(light, 0, 1) / WHITE
    x, y, z = np.where(x > 216 / 24389, np.cbrt(x), (24389 / 27 * x + 16) / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def difference(vision: str, first: str, second: str) -> float:
    matrix = np.asarray(VISION[vision])
    return float(np.linalg.norm(lab(matrix @ linear(first)) - lab(matrix @ linear(second))))


def test_the_difference_of_black_and_white_is_100_and_dichromats_confuse_red_and_green() -> None:
    assert difference("trichromat", "#000000", "#ffffff") == pytest.approx(100)
    seen = [difference(vision, "#d03030", "#707000") for vision in ("deuteranope", "trichromat")]
    assert seen[0] < LEAST_DIFFERENCE < 50 < seen[1]


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("name", SETS)
def test_colours_of_a_picture_are_told_apart(name: str, vision: str) -> None:
    least = min((difference(vision, *pair), pair) for pair in combinations(SETS[name], 2))
    assert least[0] >= LEAST_DIFFERENCE, least


# -- the page ------------------------------------------------------------------------------


def schemes() -> dict[str, dict[str, str]]:
    """The page's colours by name, in the light and the dark scheme."""
    sheet = resources.files("gpusim.reports.page").joinpath("styles/page.css").read_text("utf-8")
    blocks = re.findall(r":root \{(.*?)\}", sheet, re.DOTALL)
    found = [dict(re.findall(r"--([a-z]+): (#[0-9a-f]{6});", block)) for block in blocks]
    return dict(zip(("light", "dark"), found, strict=True))


def contrast(first: Any, second: Any) -> float:
    """The contrast of two colours in linear RGB (WCAG 2)."""
    dark, light = sorted(float(XYZ[1] @ one) for one in (first, second))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_of_the_page_is_readable(scheme: str) -> None:
    colours = schemes()[scheme]
    for text in ("ink", "grey", "link", "warm", "on"):
        for paper in ("paper", "panel"):
            pair = linear(colours[text]), linear(colours[paper])
            assert contrast(*pair) >= LEAST_CONTRAST, (text, paper)
    for mark in ("read", "wrote"):
        assert contrast(linear(colours[mark]), linear("#000000")) >= LEAST_CONTRAST
    assert contrast(linear(colours["warm"]), linear(colours["paper"])) >= LEAST_CONTRAST


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_numbers_are_readable_on_every_heat(scheme: str) -> None:
    """A heat mixes up to 70 % of its colour into the paper, in sRGB."""
    colours = schemes()[scheme]
    ends = [
        np.array([int(colours[name][at : at + 2], 16) for at in (1, 3, 5)])
        for name in ("paper", "heat")
    ]
    heats = [(1 - part) * ends[0] + part * ends[1] for part in np.linspace(0, 0.7, 8)]
    mixed = ["#" + "".join(f"{round(value):02x}" for value in heat) for heat in heats]
    found = [contrast(linear(colours["ink"]), linear(paper)) for paper in mixed]
    assert min(found) >= LEAST_CONTRAST
    assert all(before >= after for before, after in pairwise(found)), "the hotter, the fuller"
