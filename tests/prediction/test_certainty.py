"""The order of two predicted launches, and how surely it is the measured one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import gpusim
from gpusim.catalogue import Request
from gpusim.gpu import device
from gpusim.gpu.device import Device
from gpusim.prediction.uncertainty import GPUS, Timed, gpu_kind, judged
from gpusim.prediction.uncertainty.certainty import (
    BLOCK,
    GENERATOR,
    GPU,
    GRID,
    KERNEL,
    Step,
    step_of,
    steps,
)
from gpusim.prediction.uncertainty.kinds import CALIBRATED, MEASURED, MEASURED_HERE, is_measured
from gpusim.reports.prediction import interval_note
from validate.residuals.pairs import (
    FEWEST,
    FEWEST_OF_A_KIND,
    Launch,
    derived_steps,
    launches,
    pairs_of,
    tried,
)

SEVEN = ("reduce1", "reduce2", "reduce3", "reduce4", "reduce5_fixed", "reduce6", "reduce7")
ONE = Timed(10.0, (9.0, 11.0), "h200", "measured", "nvcc", True, ("a", 1024), (128,))


def with_time(time_us: float, **changes: Any) -> Timed:
    return replace(ONE, time_us=time_us, interval_us=(0.5 * time_us, 2 * time_us), **changes)


def test_launches_far_apart_are_in_order_though_each_lies_in_the_others_interval() -> None:
    found = judged(with_time(20.0), with_time(14.0, kernel="b"))
    assert found.ratio == pytest.approx(20 / 14)
    assert not found.is_tie
    assert found.step is not None
    assert found.step.share > 0.99


def test_launches_as_near_as_repeated_measurements_are_a_tie() -> None:
    assert judged(with_time(10.0), with_time(10.1, kernel="b")).is_tie
    assert judged(ONE, ONE).is_tie


def test_the_order_of_two_launches_does_not_matter() -> None:
    slow, fast = with_time(12.0), with_time(11.0, block=(256,))
    assert judged(slow, fast) == judged(fast, slow)


@pytest.mark.parametrize(
    ("changes", "differs"),
    [
        ({"block": (256,), "kernel": "b", "code": "lowering", "device": "v100"}, GPU),
        ({"block": (256,), "kernel": "b", "code": "lowering"}, GENERATOR),
        ({"block": (256,), "kernel": "b"}, KERNEL),
        ({"block": (256,)}, BLOCK),
        ({}, GRID),
    ],
)
def test_the_first_difference_that_applies_decides(changes: dict[str, Any], differs: str) -> None:
    assert judged(ONE, with_time(20.0, **changes)).differs == differs


def test_launches_on_different_gpus_tie_where_each_lies_in_the_others_interval() -> None:
    near, far = with_time(15.0, device="v100"), with_time(30.0, device="v100")
    assert judged(with_time(10.0), near).is_tie
    assert not judged(with_time(10.0), far).is_tie
    assert judged(with_time(10.0), far).step is None


def test_other_kernels_need_to_be_further_apart_than_the_catalogues() -> None:
    def tie(ratio: float, **changes: Any) -> bool:
        return judged(with_time(10, **changes), with_time(10 * ratio, kernel="b", **changes)).is_tie

    assert not tie(1.15)
    assert tie(1.15, is_catalogue=False)
    assert not tie(1.4, is_catalogue=False)
    assert tie(1.4, is_catalogue=False, code="lowering")
    assert not tie(1.6, is_catalogue=False, code="lowering")


TABLE = {
    ("measured", "catalogue", "kernel"): [Step(1, 100, 50, 1), Step(1.1, 100, 96, 1)],
    ("measured", "nvcc", "kernel"): [Step(1, 100, 50, 1), Step(1.1, 100, 80, 1)],
    ("measured", "nvcc", "block"): [Step(1, 100, 50, 1), Step(1.1, 100, 90, 1)],
    ("described", "catalogue", "kernel"): [Step(1, 50, 40, 2), Step(1.2, 50, 49, 2)],
}


@pytest.mark.parametrize(
    ("key", "ratio", "share"),
    [
        (("measured", "catalogue", "kernel"), 1.3, 0.96),
        (("measured", "catalogue", "block"), 1.3, 0.96),  # none of blocks: that of kernels
        (("described", "catalogue", "kernel"), 1.3, 0.96),  # not above the measured GPU's
        (("described", "catalogue", "kernel"), 1.15, 0.8),
        (("described", "nvcc", "block"), 1.3, 0.9),
        (("older", "catalogue", "kernel"), 1.05, 0.5),
    ],
)
def test_pairs_that_were_never_measured_have_the_less_certain_step(
    key: tuple[str, str, str], ratio: float, share: float
) -> None:
    assert step_of(key, ratio, TABLE).share == share


def test_every_kind_of_pair_has_a_step() -> None:
    for gpu in GPUS:
        for kernels in ("catalogue", "nvcc", "lowering"):
            for differs in (GENERATOR, KERNEL, BLOCK, GRID):
                for ratio in (1.0, 1.1, 5.0):
                    assert step_of((gpu, kernels, differs), ratio).pairs >= 1


@pytest.mark.parametrize(
    "name",
    [
        *("k40m", "a100-40gb", "h200"),
        *(pytest.param(one, marks=pytest.mark.slow) for one in ("v100", "gtx1650", "h100")),
    ],
)
def test_steps_of_the_lecture_that_are_far_apart_are_no_ties(name: str) -> None:
    found = gpusim.rank([Request(one, 2**24) for one in SEVEN], device=name, code="lowering")
    places = range(1, len(SEVEN))
    ties = [found.step(place) for place in places if found.judged(place).is_tie]
    assert sum(found.step(place) > 1.1 for place in places) >= 3
    assert all(step < 1.05 for step in ties)


def test_gpus_are_of_the_kind_of_what_is_known_of_them() -> None:
    kinds = {name: gpu_kind(device.load(name)) for name in device.names()}
    assert [name for name, kind in kinds.items() if kind == "measured"] == list(MEASURED_HERE)
    assert kinds["h100"] == kinds["h100-pcie"] == "generation"
    assert kinds["a100-40gb"] == kinds["gtx1650"] == kinds["v100"] == "described"
    assert kinds["k40m"] == kinds["8800gtx"] == "older"


def test_a_file_of_measured_numbers_that_is_not_ours_is_calibrated(tmp_path: Path) -> None:
    """No launch on that GPU was measured: it has the errors of the measured ones, and says so."""
    stock = device.load("h200")
    text = (Path(device.__file__).parent / "devices" / "h200.toml").read_text()
    latency = f"dram = {{ value = {stock.facts['latency_cycles.dram'].value}"
    (tmp_path / "own.toml").write_text(text.replace(latency, "dram = { value = 700"))
    (tmp_path / "copy.toml").write_text(text)
    own, copy = (device.load(tmp_path / name) for name in ("own.toml", "copy.toml"))
    assert (gpu_kind(stock), gpu_kind(own), gpu_kind(copy)) == (MEASURED, CALIBRATED, MEASURED)
    ours, theirs = (
        gpusim.rank([Request("reduce3", 2**16)], device=one, code="lowering").forecasts[0]
        for one in (stock, own)
    )
    assert theirs.first.interval.launches == ours.first.interval.launches
    assert interval_note(ours) == "kind: catalogue kernel"
    assert interval_note(theirs).endswith(
        "; GPU calibrated with microbenchmarks (errors of 1 other GPU)"
    )


def test_a_changed_device_is_not_the_measured_one() -> None:
    h200: Device = device.load("h200")
    assert is_measured(h200)
    assert gpu_kind(h200.having({"latency_cycles.dram": 700})) == "generation"


def launch(kernel: str, predicted: float, measured: float, device: str = "x") -> Launch:
    return Launch(
        device, "measured", device, "catalogue", kernel, "", "", "nvcc", predicted, measured
    )


def test_pairs_are_of_launches_of_a_group_that_are_predicted_apart() -> None:
    some = [launch("a", 10, 5), launch("b", 20, 4), launch("c", 20, 9), launch("d", 1, 1, "y")]
    [(key, found)] = pairs_of(some).items()
    assert key == ("measured", "catalogue", "kernel")
    pairs = zip(found.slow.tolist(), found.fast.tolist(), strict=True)
    assert sorted(pairs) == [(1, 0), (2, 0)]
    assert sorted(found.measured > 0) == [False, True]


def test_the_part_in_order_grows_with_the_ratio() -> None:
    """Of pairs 1.06 and 1.3 times apart half and all are in order; 1.12 times, a fourth."""
    some = []
    for number in range(4 * FEWEST_OF_A_KIND):
        place = number % 4
        near = [
            launch("a", 1, 1, f"n{number}"),
            launch("b", 1.06, 1.1 if place < 2 else 0.9, f"n{number}"),
        ]
        middle = [
            launch("a", 1, 1, f"m{number}"),
            launch("b", 1.12, 1.1 if place < 1 else 0.9, f"m{number}"),
        ]
        far = [launch("a", 1, 1, f"f{number}"), launch("b", 1.35, 1.1, f"f{number}")]
        some += [*near, *middle, *far]
    [found] = derived_steps(some).values()
    assert [(one.ratio, one.share) for one in found] == [(1, 0.375), (1.3, 1.0)]
    assert all(one.pairs >= FEWEST for one in found)


def test_the_table_is_what_the_records_give() -> None:
    """`gpusim validate certainty --write` writes it anew."""
    assert steps() == derived_steps(launches())


@pytest.mark.slow
def test_left_out_pairs_said_to_be_in_order_are_and_few_others_are_called_ties() -> None:
    """Published GPUs are left out one by one, kernels of the H200 in folds."""
    found = tried(launches())
    for key, one in found.items():
        if one.pairs >= FEWEST_OF_A_KIND:
            assert one.right >= 0.93 * one.certain, key
        if key[1] == "catalogue":
            assert one.ties <= 0.1 * one.apart, key
    assert found["described", "catalogue", "kernel"].pairs == 273
