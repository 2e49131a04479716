"""A launch without a mechanism of one line: as fast as a kernel that never had it."""

from __future__ import annotations

import numpy as np
import pytest

import gpusim
from gpusim import cuda
from gpusim.gpu.device import DeviceError
from gpusim.launch.removal import Removal
from gpusim.prediction.records import Prediction
from gpusim.prediction.removals import REMOVALS, parse, replay


def kernel_at(stride: int) -> Prediction:
    """Loads of shared memory at a stride, 64 for each thread."""

    @cuda.jit
    def strided(out, at):
        shared = cuda.shared.array(8192, np.float32)
        t = cuda.threadIdx.x
        total = np.float32(0)
        for step in range(64):
            total += shared[at * t + step]
        out[cuda.grid(1)] = total

    out = gpusim.array_spec(2**16, "float32")
    return gpusim.predict(strided[512, 128], out, np.int32(stride), code="lowering")


def line_of(prediction: Prediction) -> int:
    """The line of the loads."""
    rows = prediction.prepared.program.instructions
    return next(row.line for row in rows if row.op == "LDS")


def test_without_its_bank_conflicts_a_line_takes_as_long_as_one_without_conflicts() -> None:
    slow, fast = kernel_at(32), kernel_at(1)
    found = replay(slow, Removal("bank-conflicts", (line_of(slow),)))
    assert found.time_us == pytest.approx(fast.time_us, rel=0.02)
    assert found.speedup == pytest.approx(slow.time_us / found.time_us)
    assert found.speedup > 3


def test_another_line_gains_nothing() -> None:
    slow = kernel_at(32)
    found = replay(slow, Removal("bank-conflicts", (line_of(slow) + 1,)))
    assert found.time_us == pytest.approx(slow.time_us)


def test_a_prediction_without_a_mechanism_of_a_line_is_its_replay() -> None:
    slow = kernel_at(32)
    removal = Removal("bank-conflicts", (line_of(slow),))
    from gpusim.prediction.predict import predict_prepared

    again = predict_prepared(slow.prepared, slow.device, removals=[removal])
    assert again.time_us == pytest.approx(replay(slow, removal).time_us)


def test_a_prediction_without_small_blocks_starts_blocks_in_no_time() -> None:
    """The removal changes the device, which the clock then has."""

    @cuda.jit
    def stored(out):
        out[cuda.grid(1)] = 1.0

    from gpusim.prediction.predict import predict_prepared

    out = gpusim.array_spec(32 * 2**15, "float32")
    whole = gpusim.predict(stored[2**15, 32], out, code="lowering")
    removal = Removal("small-blocks")
    again = predict_prepared(whole.prepared, whole.device, removals=[removal])
    assert again.time_us == pytest.approx(replay(whole, removal).time_us)
    assert again.time_us < 0.7 * whole.time_us


def test_removals_are_named_by_mechanism_and_line() -> None:
    assert parse("bank-conflicts@81") == Removal("bank-conflicts", (81,))
    assert str(Removal("barriers", (5,))) == "barriers@5"
    assert parse("tail") == Removal("tail")
    assert parse("bank-conflicts") is None  # of the whole GPU


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bank-conflict@81", "did you mean bank-conflicts?"),
        ("barriers@here", "names no source line"),
        ("tail@7", "unknown mechanism 'tail' of a line"),
    ],
)
def test_what_no_line_can_be_without_is_refused(text: str, message: str) -> None:
    with pytest.raises(DeviceError, match=message.replace("?", r"\?")):
        parse(text)


def test_a_line_without_instructions_is_refused_with_those_that_have_some() -> None:
    slow = kernel_at(1)
    with pytest.raises(DeviceError, match="line 99999 has no instructions in strided; its lines"):
        replay(slow, Removal("barriers", (99999,)))


def test_every_mechanism_says_what_a_launch_is_like_without_it() -> None:
    assert all(one.doc and one.edit for one in REMOVALS.all().values())
