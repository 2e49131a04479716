"""Prediction intervals: quantiles, kinds, ties, and the table that follows from the records."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean, median
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim import cuda
from gpusim.catalogue import Request
from gpusim.prediction import uncertainty
from gpusim.prediction.sweeps.jobs import catalogue_job
from gpusim.prediction.uncertainty import (
    GPUS,
    KINDS,
    UNKNOWNS,
    Factor,
    conformal,
    factors,
    quantiles,
)
from validate.residuals.coverage import held
from validate.residuals.derivation import (
    FEWEST,
    cross_validated,
    derived,
    derived_factors,
    pooled,
)
from validate.residuals.records import Residual, residuals

N = 4096


def test_the_conformal_interval_has_the_ranks_of_the_corrected_quantiles() -> None:
    """Of 99 ratios the 5th and the 95th; of 9 the extremes, for none further out is known."""
    assert conformal([float(k) for k in range(99, 0, -1)]) == (5, 95)
    assert conformal([3.0, 1.0, 2.0]) == (1, 3)


@cuda.jit
def scaled(x, y, n):
    i = cuda.grid(1)
    if i < n:
        y[i] = 2 * x[i]


@cuda.jit
def gathered(places, x, y, n):
    i = cuda.grid(1)
    if i < n:
        y[i] = x[places[i]]


@cuda.jit
def counted(places, counts, n):
    i = cuda.grid(1)
    if i < n:
        cuda.atomic.add(counts, places[i], 1)


@cuda.jit
def positive(x, y, n):
    i = cuda.grid(1)
    k = 0
    while x[i] > k:
        k += 1
    y[i] = k


def predicted(kernel: Any, *arrays: Any, blocks: int = 2**14, device: str = "h200") -> Any:
    arguments = *arrays, np.int32(blocks * 64)
    return gpusim.predict(kernel[blocks, 64], *arguments, device=device, code="lowering")


BLOCKS = 2**13
LONG = BLOCKS * 64
PLACES = np.arange(LONG, dtype=np.int32)[::-1].copy()
FLOATS = np.ones(LONG, np.float32)


@pytest.mark.parametrize(
    ("kernel", "arrays", "kind"),
    [
        (scaled, (FLOATS, FLOATS.copy()), "regular"),
        (gathered, (PLACES, FLOATS, FLOATS.copy()), "random access"),
        (counted, (PLACES, PLACES.copy()), "atomics by data"),
        (positive, (FLOATS, FLOATS.copy()), "branches by data"),
    ],
)
def test_a_long_launch_is_of_the_kind_of_its_mechanism(kernel: Any, arrays: Any, kind: str) -> None:
    made = predicted(kernel, *arrays, blocks=BLOCKS)
    assert made.interval.kind == kind
    expected = quantiles()["measured", "lowering", kind]
    low, high = made.interval_us
    assert low == pytest.approx(made.time_us * expected.low)
    assert high == pytest.approx(made.time_us * expected.high)


def test_a_launch_that_is_mostly_overhead_is_short() -> None:
    assert predicted(scaled, FLOATS, FLOATS.copy(), blocks=2).interval.kind == "short"


def test_a_gpu_known_by_its_description_has_wider_intervals() -> None:
    def width(device: str) -> float:
        made = predicted(scaled, FLOATS, FLOATS.copy(), blocks=2, device=device)
        low, high = made.interval_us
        return (high - low) / made.time_us

    assert width("k40m") > width("a100-40gb") > width("h100")
    assert width("h100") == pytest.approx(width("h200"))  # of its generation


def test_the_interval_of_all_passes_is_that_of_their_times_together() -> None:
    made = catalogue_job(Request("reduce3", 2**14, 128, passes="all")).in_code("lowering")
    forecast = made.on("h200")
    low, high = forecast.interval_us
    assert len(forecast.predictions) > 1
    assert forecast.first.interval.kind == "catalogue"
    expected = quantiles()["measured", "lowering", "catalogue"]
    assert low == pytest.approx(forecast.time_us * expected.low)
    assert high == pytest.approx(forecast.time_us * expected.high)
    assert forecast.to_dict()["interval_us"] == [low, high]


def test_the_table_is_what_the_records_give() -> None:
    """`gpusim validate certainty --write` writes it anew."""
    for key, one in derived(residuals()).items():
        held = quantiles()[key]
        assert (held.launches, held.kernels) == (one.launches, one.kernels)
        assert (held.low, held.high) == pytest.approx((one.low, one.high), abs=1e-4)


def test_the_factors_are_what_the_records_give() -> None:
    for name, one in derived_factors(residuals()).items():
        held = factors()[name]
        assert (held.launches, held.kernels) == (one.launches, one.kernels)
        assert held.factor == pytest.approx(one.factor, abs=1e-4)


def test_launches_that_need_a_wider_interval_of_their_kind_give_its_factor() -> None:
    """A hundred ratios within 10 %, and fifty extrapolated ones twice as far."""

    def of(ratio: float, unknown: tuple[str, ...], gpu: str, code: str) -> Residual:
        kind = "regular" if gpu == "measured" else "catalogue"
        return Residual("set", gpu, "kernel", code, kind, 1.0, ratio, unknown)

    near = [0.9 + 0.002 * k for k in range(101)]
    cells = ("measured", "nvcc"), ("measured", "lowering"), ("described", "nvcc")
    some = [of(ratio, (), *cell) for cell in cells for ratio in near]
    far = [of(1 + 2 * (ratio - 1), ("extrapolated",), *cells[0]) for ratio in near[::2]]
    found = derived_factors([*some, *far])
    held = derived([*some, *far])["measured", "nvcc", "regular"]
    wide = held.widened(found["extrapolated"].factor)
    assert found["extrapolated"].factor > 1
    assert fmean(held.low <= one.ratio <= held.high for one in far) < 0.85
    assert 0.85 <= fmean(wide.low <= one.ratio <= wide.high for one in far) <= 0.95
    assert found["supposed elements"].factor == found["extrapolated"].factor  # none of its own


def test_what_is_not_simulated_widens_an_interval_of_the_compilers_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    factor = 1.25
    monkeypatch.setattr(
        uncertainty, "factors", lambda: dict.fromkeys(UNKNOWNS, Factor(40, 1, factor))
    )
    made = predicted(scaled, FLOATS, FLOATS.copy(), blocks=BLOCKS)
    program = replace(made.prepared.program, compiler="nvcc")
    whole = replace(made, prepared=replace(made.prepared, program=program))
    part = replace(whole, extent=replace(made.extent, simulated=1))
    assert whole.unknown == ()
    assert part.unknown == part.interval.unknown == ("extrapolated",)
    assert part.interval_us[0] == pytest.approx(whole.interval_us[0] / factor)
    assert part.interval_us[1] == pytest.approx(whole.interval_us[1] * factor)


def test_every_kind_has_a_row_for_both_generators() -> None:
    keys = {(gpu, code, kind) for gpu in GPUS for code in ("nvcc", "lowering") for kind in KINDS}
    assert keys == set(quantiles())


def test_what_is_less_known_has_wider_intervals() -> None:
    for code in ("nvcc", "lowering"):
        for kind in KINDS:
            measured, generation, described, older = (
                quantiles()[gpu, code, kind].width
                for gpu in ("measured", "generation", "described", "older")
            )
            assert measured <= generation
            assert measured <= described <= older


def test_a_gpu_of_a_measured_generation_is_known_to_a_quarter() -> None:
    for kind in ("catalogue", "short", "regular"):
        assert quantiles()["generation", "nvcc", kind].width <= 0.25
    assert quantiles()["generation", "lowering", "catalogue"].width <= 0.25


def test_launches_of_gpus_that_are_left_out_lie_inside_as_often_as_intended() -> None:
    covered = cross_validated(residuals())
    for gpu in ("generation", "described"):
        mine = [one for key, one in covered.items() if key[0] == gpu]
        count = sum(one.launches for one in mine)
        assert 0.85 <= sum(one.launches * one.inside for one in mine) / count <= 0.95, gpu


def test_sets_that_are_left_out_lie_inside_as_often_as_intended() -> None:
    some = residuals()
    for catalogue in (True, False):
        for code, found in pooled(some, catalogue).items():
            assert 0.85 <= found.inside <= 0.96, (catalogue, code)
    assert pooled(some, False)["nvcc"].width <= 0.18
    assert pooled(some, True)["nvcc"].width <= 0.18


@pytest.mark.parametrize("is_catalogue", [True, False])
def test_launches_measured_after_the_intervals_lie_inside_as_often_as_intended(
    is_catalogue: bool,
) -> None:
    some = [one for one in held() if one.is_catalogue == is_catalogue]
    assert len(some) >= 60
    assert 0.85 <= fmean(one.is_inside for one in some) <= 0.95
    assert median(one.width for one in some) <= 0.18


def test_a_kind_with_few_launches_spans_the_others() -> None:
    def some(kind: str, ratios: list[float]) -> list[Residual]:
        case = "set", "measured", "kernel", "nvcc", kind
        return [Residual(*case, 1.0, ratio) for ratio in ratios]

    many = [1 + k / 1000 for k in range(FEWEST)]
    regular = some("regular", many) + some("regular", [])
    short = some("short", [2 * ratio for ratio in many])
    described = [Residual("gpu", "described", "k", code, "catalogue", 1.0, 1.5) for code in CODES]
    lowering = [Residual("set", "measured", "k", "lowering", "regular", 1.0, r) for r in many]
    found = derived([*regular, *short, *some("atomics", [9.0]), *described, *lowering])
    key = "measured", "nvcc"
    assert found[*key, "atomics"].low == found[*key, "regular"].low
    assert found[*key, "atomics"].high == found[*key, "short"].high
    assert found[*key, "atomics"].launches == 1


CODES = ("nvcc", "lowering")


def test_launches_predicted_before_their_measurement_make_other_kernels_intervals_wider() -> None:
    """Ratios of 1 to 1.1; nine of ten blind ones need up to 1.2 times that, no catalogue's does."""
    case = "set", "measured", "kernel"
    some = [
        Residual(*case, code, kind, 1.0, 1 + k / 1000)
        for code in CODES
        for kind in ("catalogue", "regular")
        for k in range(101)
    ]
    gpu = [Residual("gpu", "described", "k", code, "catalogue", 1.0, 1.5) for code in CODES]
    blind = [
        Residual(*case, "nvcc", "regular", 1.0, 1.095 * 1.2 if k > 5 else 1.05, is_blind=True)
        for k in range(50)
    ]
    narrow, wide = derived([*some, *gpu]), derived([*some, *gpu, *blind])
    cell, catalogue = ("measured", "nvcc", "regular"), ("measured", "nvcc", "catalogue")
    assert wide[cell].high == pytest.approx(1.2 * narrow[cell].high, rel=0.01)
    assert (wide[cell].launches, wide[catalogue]) == (101, narrow[catalogue])


def test_a_group_is_tried_with_the_quantiles_of_the_others() -> None:
    """Of two groups far apart, no launch of one lies in the interval of the other."""
    made = [
        Residual(group, gpu, group, code, kind, 1.0, ratio + k / 1000)
        for gpu, kind in (("measured", "regular"), ("described", "catalogue"))
        for group, ratio in (("a", 1.0), ("b", 3.0))
        for code in CODES
        for k in range(FEWEST)
    ]
    found = cross_validated(made)
    assert {one.inside for key, one in found.items() if key[0] == "measured"} == {0.0}


def test_gpus_that_differ_make_the_interval_of_another_gpu_wider() -> None:
    """GPUs at 1, 2 and 4 times: the outer two need twice what the others' intervals reach."""
    made = [
        Residual(gpu, "described", "k", code, "catalogue", 1.0, ratio)
        for gpu, ratio in (("a", 1.0), ("b", 2.0), ("c", 4.0))
        for code in CODES
        for _ in range(FEWEST)
    ]
    measured = [Residual("set", "measured", "k", one.code, "regular", 1.0, 1.0) for one in made]
    found = derived([*measured, *made])
    for code in CODES:
        assert found["described", code, "catalogue"].low == pytest.approx(1 / 2)
        assert found["described", code, "catalogue"].high == pytest.approx(2 * 4)
