"""torch.compile: Inductor's kernels run on the simulated device, forward."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytorch.programs import Programs, needs_torch

pytestmark = needs_torch


@pytest.fixture
def programs(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Programs:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))
    return Programs(tmp_path, capfd)


FORWARD = """
def norm(x, w):
    return torch.nn.functional.gelu(torch.nn.functional.layer_norm(x, (x.shape[1],), w)) + 1
x, w = torch.randn(6, 200, device="cuda"), torch.rand(200, device="cuda")
y = torch.compile(norm)(x, w)
torch.testing.assert_close(y, norm(x, w))
print(y.device)
"""
BACKWARD = """
layer = torch.nn.Linear(8, 4).cuda()
try:
    torch.compile(layer)(torch.randn(6, 8, device="cuda"))
except NotImplementedError as error:
    print(error)
"""


@pytest.mark.slow
def test_a_compiled_function_is_one_kernel_with_a_time_and_without_hazards(
    programs: Programs,
) -> None:
    ran = programs.run(FORWARD, "predict")
    assert ran.out == ["cuda:0"]
    (launch,) = ran.launches
    assert "native_layer_norm" in launch["kernel"]
    assert launch["time_us"] > 0
    ran = programs.run(FORWARD, "check")
    assert (ran.code, ran.out) == (0, ["cuda:0"])
    assert ran.launches[0]["check"]["findings"] == []


@pytest.mark.slow
def test_a_compiled_backward_pass_is_refused_in_a_sentence(programs: Programs) -> None:
    (said,) = programs.run(BACKWARD).out
    assert said.startswith("torch.compile is simulated without a backward pass")


AUTOTUNED = """
a, b = (torch.randn(64, 64, device="cuda", dtype=torch.float16) for _ in range(2))
product = torch.compile(lambda a, b: torch.relu(a @ b), mode="max-autotune-no-cudagraphs")
torch.testing.assert_close(product(a, b), torch.relu(a @ b), rtol=1e-2, atol=1e-1)
print("equal")
"""


@pytest.mark.slow
def test_candidates_of_max_autotune_are_ranked_by_predicted_times(programs: Programs) -> None:
    ran = programs.run(AUTOTUNED, "predict", "--device", "a100-40gb")
    assert ran.out[-1] == "equal"
    products = [one for one in ran.launches if one["kernel"].startswith("triton_mm")]
    assert len({one["time_us"] for one in products}) > 3
