"""gpusim's counters beside the hardware's: what is equal, what is noise, what misses its bar."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from gpusim.cli.app import main
from gpusim.sass import wheels
from gpusim.tracing.counters import COUNTERS
from validate import files
from validate.counted import Counted, Launch, compare_counters, metrics
from validate.page import section
from validate.records import Case, Counts, Machine, Measurement, Measurements
from validate.report import Report, report

LOADS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"
STORES = "smsp__inst_executed_op_shared_st.sum"
INSTRUCTIONS = "smsp__inst_executed.sum"
SMALL = Case(2**12, 128, "int32")


def measured(kernel: str = "reduce2", **changed: float) -> Counts:
    """What gpusim itself counts, as if the hardware had, with some of it changed."""
    launch = compare_counters(Counts(kernel, SMALL, {m.name: 0.0 for m in metrics()}))
    values = {pair.metric.name: float(pair.predicted) for pair in launch.pairs}
    by_counter = {metric.counter: metric.name for metric in metrics()}
    for counter, more in changed.items():
        values[by_counter[counter]] += more
    return Counts(kernel, SMALL, values)


def held(counts: Counts) -> Counted:
    return Counted((compare_counters(counts),))


def test_every_metric_that_nsight_counts_as_gpusim_does_is_compared() -> None:
    named = {metric.name for metric in metrics()}
    asked = {spec.ncu for spec in COUNTERS.values() if spec.ncu.endswith(".sum")}
    assert asked <= named
    assert {LOADS, CONFLICTS, STORES, INSTRUCTIONS} <= named


def test_counts_that_are_equal_miss_nothing() -> None:
    found = held(measured())
    assert found.misses() == []
    assert found.unequal == found.noise == []
    assert all(row.equal == row.launches == 1 for row in found.agreements)
    assert len(found.agreements) == len(metrics())


def test_a_count_that_differs_by_one_is_missed() -> None:
    found = held(measured(shared_store_instructions=1))
    assert found.misses() == [f"shared_store_instructions ({STORES}): 1 launches are not equal"]
    (pair,) = found.unequal
    assert pair.measured == pair.predicted + 1


def test_instructions_may_be_five_percent_off() -> None:
    """reduce2 issues 15,744 here; 5 % of what is measured are 828 and 829."""
    exact = compare_counters(measured()).pairs[0]
    assert (exact.metric.counter, exact.predicted) == ("instructions", 15_744)
    assert held(measured(instructions=828)).misses() == []
    assert held(measured(instructions=829)).misses() == [
        f"instructions ({INSTRUCTIONS}): 1 launches are not within 5%"
    ]


def test_arbitration_adds_the_same_to_wavefronts_and_to_raw_conflicts() -> None:
    found = held(measured(shared_load_wavefronts=9, shared_load_bank_conflicts=9))
    assert found.misses() == []
    assert [pair.noise for pair in found.noise] == [9]


@pytest.mark.parametrize(
    "changed",
    [
        {"shared_load_wavefronts": 9},
        {"shared_load_bank_conflicts": 9},
        {"shared_load_wavefronts": -9, "shared_load_bank_conflicts": -9},
        {"shared_load_wavefronts": 200, "shared_load_bank_conflicts": 200},
    ],
)
def test_what_arbitration_cannot_explain_is_missed(changed: Mapping[str, float]) -> None:
    """Noise is in both, never below 0, and at most 5 % of the wavefronts, 1,504 here."""
    assert held(measured(**changed)).misses()


def test_kernels_that_are_wrong_are_compared_but_not_held() -> None:
    found = held(measured("reduce5", shared_store_instructions=1))
    assert len(found.unequal) == 1
    assert found.misses() == []


def test_a_launch_that_gpusim_cannot_run_is_told_with_the_reason() -> None:
    one = compare_counters(Counts("kogge_stone_scan", Case(64, 64, "float32"), {}))
    assert isinstance(one, Launch)
    assert "out of bounds" in one.reason
    assert not one.is_held


@pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
def test_with_nvccs_code_every_count_of_an_h200_is_held_equal() -> None:
    """The code that was counted is the code that is run."""
    counts = next(
        one for one in files.load("h200").counters if (one.kernel, one.case.block) == ("step1", 64)
    )
    launch = compare_counters(counts, "nvcc")
    assert {pair.metric.kind for pair in launch.pairs} == {"exact"}
    assert all(pair.metric.is_held_equal and pair.is_equal for pair in launch.pairs)
    more = dict(counts.values) | {INSTRUCTIONS: counts.values[INSTRUCTIONS] + 1}
    found = Counted((compare_counters(Counts("step1", counts.case, more), "nvcc"),), "nvcc")
    assert found.misses() == [
        f"instructions ({INSTRUCTIONS}): 1 launches are not equal, in nvcc's code"
    ]


def told(report: Report) -> str:
    """A report as text, without what aligns the columns of its tables."""
    return re.sub(" +", " ", section(report))


def made(*counts: Counts, times: tuple[Measurement, ...] = ()) -> Report:
    return report(Measurements(Machine("a GPU", "h200", "made"), times, counts), workers=1)


def test_the_page_names_each_count_that_differs_and_the_noise() -> None:
    text = told(
        made(
            measured(shared_store_instructions=1, instructions=1000),
            measured("reduce1", shared_load_wavefronts=3, shared_load_bank_conflicts=3),
        )
    )
    assert "| reduce2 | `shared_store_instructions` | 128: 1,025, 1,024 |" in text
    assert "| reduce2 | `instructions` | 128: 16,744, 15,744 (-6.0%) |" in text
    assert "| reduce1 | 3 (0.2%) |" in text
    assert f"| `{STORES}` | `shared_store_instructions` | model | equal | 1 of 2 |" in text


def test_the_json_names_them_too() -> None:
    found = made(measured(shared_store_instructions=1)).to_dict()["counters"]
    (differs,) = found["unequal"]
    assert (differs["kernel"], differs["block"], differs["metric"]) == ("reduce2", 128, STORES)
    assert (differs["measured"], differs["predicted"]) == (1025, 1024)
    assert sum(row["missed"] for row in found["metrics"]) == 1


# -- kernels that are wrong as published ----------------------------------------------------------


def gave(kernel: str, wrong: int) -> Measurement:
    return Measurement(kernel, SMALL, 10.0, None, None, 15, 32, wrong)


def test_a_kernel_that_is_wrong_as_published_is_told_beside_its_defect() -> None:
    text = told(made(times=(gave("reduce5", 32), gave("reduce3", 0))))
    assert "| reduce5 | 32 of 32 |" in text
    assert "- reduce5: 1 of 1 launches wrong. The last warp adds in plain shared memory" in text
    assert "Corrected: reduce5_fixed." in text
    assert "The other 1 kernels gave right results" in text


def test_a_fault_is_told_as_the_driver_names_it() -> None:
    case, fault = Case(64, 64, "float32"), "an illegal memory access"
    text = told(made(times=(Measurement("kogge_stone_scan", case, fault=fault),)))
    assert "| kogge_stone_scan | an illegal memory access |" in text


@pytest.mark.parametrize(
    ("one", "miss"),
    [
        (gave("reduce5", 0), "reduce5: 0 of 1 launches wrong, and the catalogue knows a defect"),
        (gave("reduce3", 1), "reduce3: 1 of 1 launches wrong, and the catalogue knows no defect"),
    ],
)
def test_a_gpu_that_disagrees_with_the_catalogue_misses_a_bar(one: Measurement, miss: str) -> None:
    assert any(found.startswith(miss) for found in made(times=(one,)).misses())


def test_a_miss_of_counters_makes_exit_code_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "mine.json"
    machine = Machine("a GPU", "h200", "made")
    files.write(mine, Measurements(machine, (), (measured(shared_store_instructions=1),)))
    assert main(["validate", "compare", "--against", str(mine), "--workers", "1"]) == 1
    assert "missed: shared_store_instructions" in capsys.readouterr().out
