"""Pictures of predictions: bars, points and lines are the numbers that were predicted."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim import cuda
from gpusim.catalogue import Request
from gpusim.cli.app import main
from gpusim.cli.timing import SERIES, corrected
from gpusim.cli.validation import measured_gbps
from gpusim.errors import InputError
from gpusim.gpu import device as devices
from gpusim.prediction.sweeps.jobs import Forecast, catalogue_job
from gpusim.reports.plots.accuracy import Timed, plot_times
from gpusim.reports.plots.bandwidth import Rates, plot_bandwidth
from gpusim.reports.plots.gains import MOST_REASON, fitting
from gpusim.reports.plots.roofline import place, roofs
from gpusim.reports.plots.traffic import PARTS

ELEMENTS = 2**16


@cache
def forecasts() -> list[Forecast]:
    names = ("reduce1", "reduce2", "reduce4")
    return [catalogue_job(Request(name, ELEMENTS, 128)).on("h200") for name in names]


def test_the_gain_is_each_kernels_time_beside_the_one_before() -> None:
    first, *others = (one.first for one in forecasts())
    (axes,) = first.plot_gains(*others).axes
    times = [one.time_us for one in forecasts()]
    assert [bar.get_width() for bar in axes.patches] == times
    said = [text.get_text() for text in axes.texts]
    assert said[1].split()[2] == f"{times[0] / times[1]:.2f}x"
    assert "fewer instructions" in said[1]
    assert axes.get_xlabel() == "predicted time, us"


def test_a_reason_that_has_no_room_is_left_out_whole() -> None:
    assert fitting(["a", "b" * (MOST_REASON - 3)]) == "a; " + "b" * (MOST_REASON - 3)
    assert fitting(["a", "b" * (MOST_REASON - 2), "c"]) == "a"


def test_the_roofs_are_the_peaks_of_the_device() -> None:
    """An H200: 132 SMs of 4 schedulers at 1.98 GHz, 32 threads of a warp; 4,815 GB/s."""
    assert roofs(devices.load("h200")) == pytest.approx((4815, 132 * 4 * 1.98 * 32), rel=1e-3)


def test_points_lie_below_the_roofs_at_operations_over_bytes() -> None:
    """reduce1 reads 2^16 ints of 4 bytes; each lies once in DRAM but for what blocks share."""
    predictions = [one.first for one in forecasts()]
    (axes,) = predictions[0].plot_roofline(*predictions[1:]).axes
    roof, *points = axes.get_lines()
    drawn = [(float(p.get_xdata()[0]), float(p.get_ydata()[0])) for p in points]
    assert drawn == [place(prediction) for prediction in predictions]
    bandwidth, issue = roofs(devices.load("h200"))
    assert all(y <= min(x * bandwidth, issue) for x, y in drawn)
    assert max(roof.get_ydata()) == issue
    first = predictions[0]
    moved = 32 * first.instructions / drawn[0][0]
    assert moved == pytest.approx(4 * ELEMENTS, rel=0.1)
    names = [text.get_text() for text in axes.texts][2:]
    assert sorted(names) == sorted(prediction.kernel for prediction in predictions)
    above, beside = axes.child_axes
    assert (above.get_xlabel(), beside.get_ylabel()) == (
        "warp instructions per sector of DRAM", "warp instructions per ns",
    )  # fmt: skip


def test_a_picture_without_anything_to_show_is_refused() -> None:
    """Of a kernel without global memory there is neither an intensity nor traffic."""

    @cuda.jit
    def idle(numbers: Any) -> None:
        shared = cuda.shared.array(32, np.int32)
        shared[cuda.threadIdx.x] = 1

    made = gpusim.predict(idle[1, 32], np.zeros(32, np.int32), device="h200")
    with pytest.raises(InputError, match="idle moves no byte from or to DRAM"):
        made.plot_roofline()
    with pytest.raises(InputError, match="idle touches no global memory: there is no traffic"):
        made.plot_traffic()
    with pytest.raises(InputError, match="gains compare kernels"):
        made.plot_gains()


def test_bytes_add_up_to_what_is_read_and_written() -> None:
    """2^16 ints of 4 bytes are read; reduce1 leaves one int, of a sector of its own, a block."""
    predictions = [one.first for one in forecasts()]
    (axes,) = predictions[0].plot_traffic(*predictions[1:]).axes
    widths = [bar.get_width() for bar in axes.patches]
    for number, prediction in enumerate(predictions):
        traffic = prediction.traffic
        mine = [width * traffic.compulsory_bytes for width in widths[number :: len(predictions)]]
        sizes = [getattr(traffic, field) for _, field, _ in PARTS]
        assert mine == pytest.approx([size for size in sizes if size])
        assert sum(sizes[:3]) == pytest.approx(4 * ELEMENTS, rel=0.1)
    traffic = predictions[0].traffic
    assert traffic.written_bytes == 32 * ELEMENTS / 128
    assert traffic.compulsory_bytes == 4 * ELEMENTS + 4 * ELEMENTS / 128
    times = (4 * ELEMENTS + traffic.written_bytes) / traffic.compulsory_bytes
    assert axes.texts[0].get_text().startswith(f"{times:.2f}: ")


def test_points_lie_at_measured_and_predicted_times_and_the_band_says_how_far_off() -> None:
    launches = [Timed("a", 10.0, 10.4), Timed("a", 100.0, 80.0), Timed("b", 50.0, 50.0)]
    (axes,) = plot_times(launches, "H200").axes
    diagonal, first, second = axes.get_lines()
    assert list(zip(*first.get_data(), strict=True)) == [(10.0, 10.4), (100.0, 80.0)]
    assert list(zip(*second.get_data(), strict=True)) == [(50.0, 50.0)]
    assert list(diagonal.get_xdata()) == list(diagonal.get_ydata())
    (band,) = axes.collections
    corners = band.get_paths()[0].vertices
    assert {round(float(y / x), 6) for x, y in corners} == {0.9, 1.1}
    assert axes.get_title(loc="left").splitlines() == [
        "H200: predicted against measured",
        "3 launches, mean error 8.0 %, 2 within 10 %, the worst 20.0 % off",
    ]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "within 10 %", "a: 2 launches", "b: 1 launch",
    ]  # fmt: skip


def test_predictions_draw_themselves_against_times_of_ones_own() -> None:
    first, *others = (one.first for one in forecasts())
    (axes,) = first.plot_accuracy(*others, measured_us=[5, 6, 7], theme="dark").axes
    assert [line.get_xdata()[0] for line in axes.get_lines()[1:]] == [5, 6, 7]
    with pytest.raises(InputError, match="3 predictions need as many measured times in us"):
        first.plot_accuracy(*others, measured_us=[5, 6])
    with pytest.raises(InputError, match="above zero; measured_us has 3: 5, 6, 0"):
        first.plot_accuracy(*others, measured_us=[5, 6, 0])


def test_the_command_draws_what_was_measured_of_the_launches_that_are_named(
    tmp_path: Path, capsys: Any
) -> None:
    """reduce1 and reduce4 were measured with 2^20 ints and blocks of 256 on the H200: once each."""
    path = tmp_path / "a.svg"
    words = ["plot", "accuracy", "reduce1", "reduce4", "-n", "2^20", "--out", str(path)]
    assert main([*words, "--block", "256", "--dtype", "int32"]) == 0
    drawn = path.read_text(encoding="utf-8")
    assert "H200, the lowering&#x27;s code: predicted against measured" in drawn.replace(
        "'", "&#x27;"
    )
    assert "2 launches, mean error" in drawn
    assert "reduce4: 1 launch" in drawn
    assert main([*words, "--device", "v100"]) == 2
    assert "none of the selected launches has been measured on v100" in capsys.readouterr().err
    assert main([*words, "--passes", "all", "--device", "k40m"]) == 2
    assert "on k40m; measured there are reduce1, " in capsys.readouterr().err
    assert main([*words, "--without", "barriers"]) == 2
    assert "--without cannot be given here" in capsys.readouterr().err
    assert main(["plot", "accuracy", "mine.cu:own", "--out", str(path)]) == 2
    assert "prediction.plot_accuracy(measured_us=[...])" in capsys.readouterr().err


def test_a_rate_below_one_is_not_written_as_zero() -> None:
    (axes,) = plot_bandwidth([Rates("a", ((1024, 0.02), (4096, 0.3)))], devices.load("h200")).axes
    ticks = axes.yaxis.get_ticklabels()
    assert {"0.1", "1", "1,000"} <= {tick.get_text() for tick in ticks}
    assert "0" not in {tick.get_text() for tick in ticks}


def test_lines_are_predicted_and_points_measured() -> None:
    rates = [
        Rates("reduce1", ((1024, 10.0), (4096, 30.0)), ((1024, 11.0),)),
        Rates("reduce2", ((1024, 20.0), (4096, 60.0))),
    ]
    (axes,) = plot_bandwidth(rates, devices.load("h200"), theme="dark").axes
    first, points, second, peak = axes.get_lines()
    for line, expected in ((first, rates[0].predicted), (second, rates[1].predicted)):
        assert list(zip(*line.get_data(), strict=True)) == list(expected)
    assert list(zip(*points.get_data(), strict=True)) == [(1024, 11.0)]
    assert first.get_color() == points.get_color() != second.get_color()
    assert list(peak.get_ydata()) == [4815, 4815]


def test_measured_points_are_those_of_the_committed_file() -> None:
    """reduce1 of 2^26 ints with blocks of 256 was measured on the H200, and never on a K40m."""
    found = dict(measured_gbps("reduce1", "h200", 256))
    assert found[2**26] == pytest.approx(425, rel=0.1)
    assert list(found) == sorted(found)
    assert measured_gbps("reduce1", "a100", 256) == []


def test_a_kernel_measured_later_has_its_rates_from_the_later_file() -> None:
    """2^24 ints in 18.528 us, of validate/measured/h200-hopper.json."""
    found = dict(measured_gbps("reduce_bulk", "h200", 256))
    assert list(found) == [2**16, 2**20, 2**24]
    assert found[2**24] == pytest.approx(2**26 / 18.528 / 1000)


def test_where_no_kernel_is_named_the_series_is_drawn_as_corrected() -> None:
    assert corrected(SERIES) == [
        "reduce1", "reduce2", "reduce3", "reduce4", "reduce5_fixed", "reduce6", "reduce7",
    ]  # fmt: skip


@pytest.mark.parametrize("picture", ["roofline", "traffic", "timeline"])
def test_the_command_draws_it(picture: str, tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "a.png"
    words = ["reduce2", "-n", "4096", "--block", "64", "--out", str(path)]
    assert main(["plot", picture, *words]) == 0
    assert path.read_bytes().startswith(b"\x89PNG")


def test_a_kernel_of_ones_own_has_a_rate_for_each_size(tmp_path: Path, capsys: Any) -> None:
    file, path = tmp_path / "mine.py", tmp_path / "a.svg"
    file.write_text(
        "from gpusim import cuda\n\n@cuda.jit\ndef double(x):\n"
        "    x[cuda.grid(1)] = x[cuda.grid(1)] * 2\n"
    )
    words = ["plot", "bandwidth", f"{file}:double", "--block", "32", "-n", "2^10,2^12"]
    assert main([*words, "--out", str(path), "--grid", "ceil(n/block)", "--arg", "int32[n]"]) == 0
    assert "nothing measured" in path.read_text(encoding="utf-8")
    assert main([*words, "--out", str(path), "--grid", "32", "--arg", "int32[1024]"]) == 2
    assert "write for example --arg 'float32[n]'" in capsys.readouterr().err


def test_the_command_draws_bandwidth_over_sizes(tmp_path: Path) -> None:
    path = tmp_path / "a.svg"
    words = ["reduce1", "-n", "2^12,2^14", "--block", "256", "--out", str(path)]
    assert main(["plot", "bandwidth", *words]) == 0
    assert "GB/s of useful bytes" in path.read_text(encoding="utf-8")
