"""Candidates of tune on a GPU: their launches, and how they are measured."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Any

import pytest
from fake_gpu import FakeCompiler, FakeDriver

from gpusim.prediction.sweeps.choices import BLOCKS
from validate.backend import PycudaBackend
from validate.others import data
from validate.others.errors import rows_of
from validate.others.measure import Codes
from validate.others.plans import KERNELS, Launch, three
from validate.tuning import candidates, compare, measure


def test_candidates_of_the_catalogue_vary_what_a_launch_rule_leaves_open() -> None:
    pairs = candidates.of_catalogue("h200")
    assert len(pairs) == len(set(pairs))
    coarse = {(c.block, c.coarse) for k, c in pairs if k.name == "reduce_coarsening_gpu"}
    assert coarse == {(256, None)} | {(b, 2**k) for b in BLOCKS for k in range(6)}
    waves = sorted(
        case.grid
        for kernel, case in pairs
        if kernel.name == "reduce7" and (case.n, case.block) == (2**26, 1024) and case.grid
    )
    assert waves == [2 * 132, 4 * 132, 8 * 132, 16 * 132]  # two blocks of 1,024 threads on an SM


def test_other_kernels_for_any_block_have_no_shared_memory_nor_a_block_of_their_own() -> None:
    launches = {one.kernel.name: one for one in candidates.of_any_block()}
    assert {"copy", "saxpy_stride", "hash_lookup"} <= set(launches)
    assert not {"convolution", "stencil2d", "matrix_product_4x4"} & set(launches)
    assert "sector_by_words" not in launches  # each thread of the grid has its element
    assert candidates.is_grid_stride(KERNELS["saxpy_stride"])
    assert not candidates.is_grid_stride(KERNELS["copy"])


def test_a_launch_in_other_blocks_has_as_many_threads() -> None:
    launch = KERNELS["fill"].at(4096)
    for block in BLOCKS:
        made = candidates.with_block(launch, block)
        assert made is not None
        assert prod(three(made.plan.grid)) * block == 4096
    assert candidates.with_block(launch, 192) is None
    waves = candidates.with_block(launch, 64, grid=7)
    assert waves is not None
    assert (waves.plan.grid, waves.plan.block) == (7, 64)


@pytest.mark.parametrize(
    ("block", "registers", "blocks"), [(64, 16, 32), (256, 32, 8), (1024, 64, 1), (512, 168, 0)]
)
def test_resident_blocks_are_limited_by_threads_blocks_or_registers(
    block: int, registers: int, blocks: int
) -> None:
    assert measure.resident_blocks(block, registers) == blocks


class Simulated(Codes):
    """Kernels of the dialect in place of those that nvcc makes."""

    def function(self, launch: Launch) -> Any:
        driver, python = self._driver, launch.kernel.in_python

        class Function:
            num_regs = 16

            def __call__(self, *arguments: Any, grid: Any, block: Any) -> None:
                driver.now_us += 10 if block[0] > 64 else 5
                given = [
                    driver.bytes_at(value).view(asked.dtype)
                    if isinstance(asked, data.Numbers)
                    else value
                    for value, asked in zip(arguments, launch.plan.arguments, strict=True)
                ]
                if block[0] != 512:  # a block with which the results are wrong
                    python[grid, block](*given)

        return Function()


def test_right_candidates_are_timed_and_wrong_ones_are_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    driver = FakeDriver()
    backend = PycudaBackend(driver, FakeCompiler())
    rows = list(
        measure.timed_candidates(backend, Simulated(driver, Path()), KERNELS["fill"].at(4096))
    )
    assert [row[:5] for row in rows] == [
        ["fill", 4096, block, 4096 // block, 16] for block in (64, 128, 256, 1024)
    ]
    assert [row[5] for row in rows] == ["5.000", *3 * ["10.000"]]
    assert "WRONG ('fill', 4096) 512 8 [0.0] for [6144.0]" in capsys.readouterr().out
    loads = [one for one in driver.memories[2:] if not one.is_free]
    assert not [one for one in loads if len(one.bytes) == 4 * 4096]


def test_the_regret_of_a_choice_is_what_it_costs_over_the_fastest_candidate() -> None:
    made = [
        compare.Candidate("copy", 1, block, 4096 // block, measured, predicted)
        for block, measured, predicted in ((64, 10.0, 9.0), (128, 10.2, 8.0), (256, 11.0, 8.5))
    ]
    choice = compare.Choice(made)
    assert (choice.chosen.block, choice.fastest.block) == (128, 64)
    assert choice.regret == pytest.approx(0.02)
    first, *_ = compare.report([choice, compare.Choice(made[::2])])
    assert first.startswith("Of 2 other kernels, 1 are at most 3% slower")


def test_a_choice_is_among_all_measured_candidates() -> None:
    measured: dict[tuple[str, int], int] = {}
    for row in rows_of(compare.MEASURED):
        key = row["kernel"], int(row["n"])
        measured[key] = measured.get(key, 0) + 1
    found = {(one.chosen.kernel, one.chosen.n): len(one.candidates) for one in compare.choices()}
    assert found.items() <= measured.items()
    assert ("copy", 2**24) in found
