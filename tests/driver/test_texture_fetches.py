"""Fetches in every mode give an H200's bits (`validate/textures`)."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from driver.host import needs_compilers

from gpusim.cli.app import main
from gpusim.driver import nvcc
from gpusim.errors import InputError

FOLDER = Path(__file__).parents[2] / "validate" / "textures"
# 4 of its 64 numbers differ by one of 32,767 steps: how such elements become 16 bits is not known.
NEARLY = {"signed char fractions"}


def _has_nvcc() -> bool:
    try:
        return nvcc.compiler().is_file()
    except InputError:
        return False


def _digests(lines: list[str]) -> dict[str, str]:
    """Return a digest of each line's numbers, by the words before them."""
    made = {}
    for line in lines:
        words = line.split()
        names = [word for word in words if len(word) != 8 or set(word) - set("0123456789abcdef")]
        numbers = " ".join(words[len(names) :])
        made[" ".join(names)] = hashlib.sha256(numbers.encode()).hexdigest()[:16]
    return made


@pytest.mark.slow
@needs_compilers
@pytest.mark.skipif(not _has_nvcc(), reason=f"needs nvcc: {nvcc.INSTALL}")
def test_fetches_have_the_bits_of_an_h200(capfd: pytest.CaptureFixture[str]) -> None:
    measured = json.loads((FOLDER / "h200.json").read_text())["digests"]
    assert main(["run", str(FOLDER / "fetches.cu")]) == 0
    found = _digests(capfd.readouterr().out.splitlines())
    assert found.keys() == measured.keys()
    assert {name for name in found if found[name] != measured[name]} <= NEARLY
