"""Predicted times in programs: benchmarks, events, and searches over configurations."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pytorch.programs import IS_TRITON_3_6, Programs, needs_torch

from gpusim.cli import program_modes
from gpusim.launch.prepared import Prepared
from gpusim.prediction.records import Prediction

pytestmark = needs_torch

SEARCHES = """
configs = [triton.Config({"BLOCK": b}, num_warps=w) for b, w in ((64, 1), (1024, 4))]
@triton.autotune(configs=configs, key=["n"])
@triton.jit
def scale(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)
x = torch.rand(1 << 16, device="cuda")
y = torch.empty_like(x)
def call():
    scale[lambda m: (triton.cdiv(x.numel(), m["BLOCK"]),)](x, y, x.numel())
call()
torch.testing.assert_close(y, 2 * x)
print(scale.best_config.kwargs["BLOCK"])
print(triton.testing.do_bench(call), triton.testing.do_bench(call, quantiles=[0.5, 0.2]))
print(triton.testing.do_bench(lambda: 2 * x))
"""


@pytest.fixture
def programs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Programs:
    return Programs(tmp_path, capfd)


def test_a_search_takes_the_least_predicted_time_and_is_a_table(programs: Programs) -> None:
    ran = programs.run(SEARCHES, "predict")
    assert ran.code == 0
    best, times, of_torch = ran.out
    assert best == "1024"
    one, *more = times.replace("[", "").replace("]", "").replace(",", "").split()
    assert more == [one, one]
    tried = [one for one in ran.launches if "configuration" in one]
    assert [one["configuration"] for one in tried] == [
        "BLOCK: 64, num_warps: 1, num_stages: 3",
        "BLOCK: 1024, num_warps: 4, num_stages: 3",
    ]
    assert {one["search"] for one in tried} == {1}
    assert float(one) == pytest.approx(1e-3 * ran.launches[-1]["time_us"], rel=1e-3)
    assert "scale: 2 configurations by predicted time" in ran.err
    assert of_torch == "nan"
    assert "it has PyTorch's own operations in it, such as mul" in ran.err


def test_times_that_no_command_predicts_are_nan_with_a_remark(programs: Programs) -> None:
    ran = programs.run(SEARCHES)
    assert ran.out == ["64", "nan [nan, nan]", "nan"]
    assert ran.err.count("times are NaN: gpusim run does not predict; gpusim predict does") == 1


RATES = """
@triton.jit
def step(x, n, rate, seed, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + at, mask=at < n)
    tl.store(x + at, v - rate / (1 + v) * tl.rand(seed, at), mask=at < n)
for rate, seed, n in ((0.25, 7, 500), (0.3, 7, 500), (0.25, 9, 500), (0.25, 7, 300)):
    step[(4,)](torch.zeros(500, device="cuda"), n, rate, seed, B=128)
"""


def test_numbers_that_decide_no_access_need_no_prediction_of_their_own(
    programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    predict, predicted = program_modes.predict_prepared, []

    def counted(prepared: Prepared, *args: Any, **options: Any) -> Prediction:
        predicted.append(prepared.kernel)
        return predict(prepared, *args, **options)

    monkeypatch.setattr(program_modes, "predict_prepared", counted)
    ran = programs.run(RATES, "predict")
    assert ran.code == 0
    assert predicted == ["step", "step"]
    one, *equal, _ = (launch["time_us"] for launch in ran.launches)
    assert equal == [one, one]


def test_the_lesson_on_softmax_has_its_race_its_times_and_its_results(programs: Programs) -> None:
    """Fewer rows and columns than on the page; the first softmax is right with an atomic."""
    page = (Path(__file__).parents[2] / "docs" / "triton.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"^```py softmax.py\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    text = text.replace("512, 8192", "4, 2048").replace("(512, 2048)", "(512, 1024)")
    ran = programs.run(text, "predict")
    assert ran.code == 0
    assert ran.out == ["naive True", "fused True", "online True"]
    assert "online: 4 configurations by predicted time" in ran.err
    assert programs.run(text, "check").code == 1
    (line,) = re.findall(r"^ *tl\.store\(sums.*$", text, re.MULTILINE)
    mended = text.replace(line, "    tl.atomic_add(sums + row, tl.sum(e))")
    assert programs.run(mended, "check").code == 0


REFUSED = """
configs = [triton.Config({"B": b}, num_warps=4) for b in (64, 16)]
SPARSE = (
    "{ .reg .b64 none; mov.b64 none, 0;"
    " wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {$0, $1, $2, $3}, none, none, $4,"
    " 0, 1, 1, 1, 0, 0; }"
)
@triton.autotune(configs=configs, key=[])
@triton.jit
def square(x, y, B: tl.constexpr, sparse: tl.constexpr):
    i = tl.arange(0, B)
    place = i[:, None] * 64 + tl.arange(0, 64)[None, :]
    v = tl.load(x + place)
    w = tl.load(x + tl.arange(0, 64)[:, None] * 64 + tl.arange(0, 64)[None, :])
    tl.store(y + place, tl.dot(v, w))
    if B != 16:
        p, q, r, s = tl.inline_asm_elementwise(
            sparse, "=f,=f,=f,=f,r", [i], dtype=(tl.float32, tl.float32, tl.float32, tl.float32),
            is_pure=False, pack=1)
        tl.store(y + i, p + q + r + s)
x = torch.randn(64, 64, device="cuda", dtype=torch.float16)
y = torch.zeros(64, 64, device="cuda")
square[(1,)](x, y, sparse=SPARSE)
torch.testing.assert_close(y[:16], (x.float() @ x.float())[:16], rtol=1e-2, atol=1e-2)
print(square.best_config.kwargs)
"""


@pytest.mark.skipif(IS_TRITON_3_6, reason="its ptxas leaves out a wgmma without a wait")
@pytest.mark.parametrize("command", ["run", "predict", "check"])
def test_a_search_goes_on_behind_a_refused_launch(programs: Programs, command: str) -> None:
    ran = programs.run(REFUSED, command)
    assert ran.out == ["{'B': 16}"]
    assert ran.code == 0
    assert "(wgmma) in this form are not simulated" in ran.err
    assert "--device a100-40gb" in ran.err


def test_a_search_without_a_simulated_configuration_fails(programs: Programs) -> None:
    """The chosen configuration is launched once more, and Triton raises its error."""
    ran = programs.run(REFUSED.replace("(64, 16)", "(64, 128)"), "run")
    assert ran.code == 1


PRODUCT = """
@triton.jit
def product(x, y, B: tl.constexpr):
    i = tl.arange(0, B)
    place = i[:, None] * B + i[None, :]
    v = tl.load(x + place)
    tl.store(y + place, tl.dot(v, v))
x = torch.randn(64, 64, device="cuda", dtype=torch.float16)
y = torch.empty(64, 64, device="cuda")
product[(1,)](x, y, 64)
torch.testing.assert_close(y, x.float() @ x.float(), rtol=1e-2, atol=1e-2)
print("wgmma" in product.device_caches[0][0].popitem()[1].asm["ptx"])
"""


@pytest.mark.parametrize("command", ["run", "predict", "check"])
def test_products_of_64_rows_run_as_those_of_warpgroups(programs: Programs, command: str) -> None:
    ran = programs.run(PRODUCT, command)
    assert (ran.out, ran.code) == (["True"], 0)
