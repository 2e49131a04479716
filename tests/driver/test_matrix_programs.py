"""Programs for tensor cores give an H200's bits and right products (`validate/matrices`)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from driver.host import needs_compilers

from gpusim.cli.app import main
from gpusim.driver import nvcc
from gpusim.errors import InputError

FOLDER = Path(__file__).parents[2] / "validate" / "matrices"


def _has_nvcc() -> bool:
    try:
        return nvcc.compiler().is_file()
    except InputError:
        return False


needs_nvcc = pytest.mark.skipif(not _has_nvcc(), reason=f"needs nvcc: {nvcc.INSTALL}")


@pytest.mark.slow
@needs_compilers
@needs_nvcc
@pytest.mark.parametrize(
    ("program", "digests"), [("products", "digests"), ("warpgroups", "warpgroup_digests")]
)
def test_products_of_all_types_have_the_bits_of_an_h200(
    capfd: pytest.CaptureFixture[str], program: str, digests: str
) -> None:
    measured = json.loads((FOLDER / "h200.json").read_text(encoding="utf-8"))[digests]
    assert main(["run", str(FOLDER / f"{program}.cu")]) == 0
    lines = [line.rsplit(maxsplit=1) for line in capfd.readouterr().out.splitlines()]
    assert dict(lines) == measured


@pytest.mark.slow
@needs_compilers
@needs_nvcc
def test_three_ways_of_multiplying_matrices_are_right(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(FOLDER / "gemm.cu"), "--", "256", "once"]) == 0
    made = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [(one["kernel"], one["wrong"]) for one in made] == [
        ("direct", 0), ("staged", 0), ("pipelined", 0),
    ]  # fmt: skip
