"""`%gpusim` and `%%gpusim`: the commands of the shell in a notebook."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import gpusim
from gpusim.checking.findings import Findings
from gpusim.cli import magics
from gpusim.prediction.rankings import Ranking
from gpusim.prediction.records import Prediction
from gpusim.prediction.sweeps.sweep import Swept
from gpusim.prediction.sweeps.tuning import Tuned
from gpusim.sass import wheels
from gpusim.tracing.records import Trace


class UsageError(Exception):
    """The error that IPython shows without a traceback."""


@pytest.fixture(autouse=True)
def _ipython(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("IPython", "IPython.core"):
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(version_info=(9, 0)))
    monkeypatch.setitem(sys.modules, "IPython.core.error", SimpleNamespace(UsageError=UsageError))


SCALE = """\
@cuda.jit
def scale(values, factor):
    i = cuda.grid(1)
    values[i] *= np.float32(factor)
"""
TWO = f"{SCALE}\n{SCALE.replace('scale', 'other').replace('*=', '+=')}"
GATHER = """\
__global__ void gather(const float *from, float *to, unsigned step)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    to[i] = from[step * i];
}
"""
LAUNCH = "--grid 4 --block 64 --arg float32[256] --arg 2.0"
COMPILED = pytest.mark.skipif(not wheels.are_there(), reason="needs the extra nvcc")


def test_loading_the_extension_registers_the_magic() -> None:
    registered: list[Any] = []
    shell = SimpleNamespace(register_magic_function=lambda *args: registered.append(args))
    gpusim.load_ipython_extension(shell)
    assert registered == [(magics.magic, "line_cell", "gpusim")]


def test_a_trace_of_a_cell_is_a_result_with_the_lines_of_the_cell() -> None:
    """Line 1 of the cell is the magic's own."""
    found = magics.magic(f"trace {LAUNCH}", SCALE)
    assert isinstance(found, Trace)
    assert {line.line: line.text.strip() for line in found.lines if line.line}[5] == (
        "values[i] *= np.float32(factor)"
    )


def test_a_prediction_of_a_cell_is_of_the_device_that_is_named() -> None:
    found = magics.magic(f"predict --device rtx4090 {LAUNCH}", SCALE)
    assert isinstance(found, Prediction)
    assert (found.kernel, found.device.id) == ("scale", "rtx4090")
    assert found.timeline is not None


@COMPILED
def test_a_cell_of_cuda_is_compiled() -> None:
    words = "trace --grid 4 --block 64 --arg float32[1024] --arg float32[256] --arg 4"
    found = magics.magic(words, GATHER)
    assert found.compiler
    assert [(one.kind, one.line) for one in found.findings] == [("uncoalesced", 5)]


@COMPILED
def test_a_template_is_named_with_its_arguments() -> None:
    cell = """namespace of {
template <typename T, int N> __global__ void fill(T *out) { out[threadIdx.x] = N; }
}"""
    found = magics.magic("trace 'of::fill<float, 3>' --grid 1 --block 32 --arg float32[32]", cell)
    assert found.counters["global_store_sectors"] == 4


def test_a_name_chooses_a_kernel_of_the_cell() -> None:
    assert magics.magic(f"trace other {LAUNCH}", TWO).kernel == "other"
    with pytest.raises(UsageError, match=r"^cell_\d+\.py has 2 kernels"):
        magics.magic(f"trace {LAUNCH}", TWO)


def test_without_a_cell_a_kernel_of_the_catalogue_is_meant() -> None:
    assert magics.magic("trace reduce2 --block 64 -n 128").kernel == "reduce2"
    assert isinstance(magics.magic("check reduce3 --block 64 -n 128"), Findings)


def test_a_ranking_and_its_remarks(capsys: pytest.CaptureFixture[str]) -> None:
    found = magics.magic("rank reduce3 step3 -n 2^12 --block 64")
    assert isinstance(found, Ranking)
    assert capsys.readouterr().err == ""
    found = magics.magic(f"rank scale other {LAUNCH}", TWO)
    ((_, reason),) = found.wrong
    assert "other results" in reason


def test_a_comparison_is_a_table_with_the_agreement_of_results() -> None:
    found = magics.magic("compare reduce1 reduce3 -n 2^10 --block 64")
    assert "<td>reduce1</td><td>reduce3</td>" in found._repr_html_()
    assert "equal" in found._repr_html_()
    assert "duration" in str(found)
    assert repr(found) == "<Comparison of reduce1 and reduce3>"
    if find_spec("pandas") is not None:
        rows = found.to_dataframe()
        assert rows["kernel"].tolist() == ["reduce1", "reduce3"]
        assert (rows["low_us"] < rows["time_us"]).all()


def test_a_sweep_and_a_search_are_tables() -> None:
    found = magics.magic("sweep reduce3 -n 2^12 --block 64,128 --workers 1")
    assert isinstance(found, Swept)
    assert len(found.rows) == 2
    options = "-n 2^12 --block 64,128 --workers 1"
    assert isinstance(magics.magic(f"tune reduce3 {options}"), Tuned)
    several = magics.magic(f"tune reduce3 reduce4 {options}")
    assert [one.kernel for one in several] == ["reduce3", "reduce4"]
    assert several._repr_html_().count("<table>") == 2
    assert str(several).count("best: ") == 2


def test_a_picture_shows_itself() -> None:
    assert "<svg" in magics.magic("plot banks reduce2 --block 64")._repr_svg_()
    with pytest.raises(UsageError, match="the picture"):
        magics.magic("plot tree-house reduce2")


def test_a_report_is_the_page_in_a_frame() -> None:
    assert "reduce2" in magics.magic("report reduce2 --block 64")._repr_html_()


def test_other_commands_and_answers_print(capsys: pytest.CaptureFixture[str]) -> None:
    assert magics.magic("trace reduce2 --block 64 -n 128 --json") is None
    assert '"counters"' in capsys.readouterr().out
    assert magics.magic(f"lower {LAUNCH}", SCALE) is None
    assert "scale" in capsys.readouterr().out
    assert magics.magic("trace --help") is None
    assert "--block" in capsys.readouterr().out


def test_a_file_is_written_where_one_is_named(tmp_path: Path) -> None:
    picture = tmp_path / "banks.svg"
    assert magics.magic(f"plot banks reduce2 --block 64 --out {picture}") is None
    assert picture.exists()


@pytest.mark.parametrize(
    ("line", "cell", "message"),
    [
        ("", None, "needs a command"),
        ("trace reduce99", None, "there is no kernel"),
        ("trace 'reduce2", None, "No closing quotation"),
        ("trace reduce2 --blok 64", None, "did you mean --block"),
        ("devices", SCALE, "takes no cell"),
        (f"trace {LAUNCH}", "x = 1", "has 0 kernels"),
        (f"trace {LAUNCH}", SCALE.replace("cuda.grid(1)", "cuda.gird(1)"), "gird"),
    ],
)
def test_a_mistake_is_a_sentence(line: str, cell: str | None, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        magics.magic(line, cell)
