"""How surely launches are in order, in the tables of sweeps, of tune and of rank."""

from __future__ import annotations

from gpusim.prediction.sweeps.tables import COLUMNS, Row
from gpusim.prediction.sweeps.tuning import Tuned
from gpusim.prediction.uncertainty import Judgement
from gpusim.prediction.uncertainty.certainty import KERNEL, Step
from gpusim.reports.certainty import in_order, order_legend, spread
from gpusim.reports.sweeps import sweep_table
from gpusim.reports.tuning import tuning_report


def row(kernel: str, time_us: float, device: str = "h200", block: int = 256, **more: object) -> Row:
    times = {"time_us": time_us, "low_us": 0.9 * time_us, "high_us": 1.1 * time_us}
    numbers = {"gbps": 1.0, "peak_fraction": 0.5, "occupancy": 1.0, "registers": 16, "grid": 4}
    words = {"generator": "gpusim 1", "operation": "sum", "limiter": "DRAM"}
    empty = {"without": "", "set": "", "choices": f"block={block}"}
    about = {"kernel": kernel, "device": device, "n": 1024, "block": block}
    return dict.fromkeys(COLUMNS) | times | numbers | words | empty | about | more


def shown(*rows: Row) -> str:
    return "\n".join(" ".join(line.plain.split()) for line in sweep_table(rows, 200))


def test_rows_of_a_sweep_are_compared_with_the_fastest_of_their_gpu_and_size() -> None:
    text = shown(row("a", 20), row("b", 10), row("c", 10.1), row("a", 40, "k40m"))
    assert "2.00x 100 %" in text
    assert "1.01x tie, " in text
    assert text.count("x ") == 2
    assert "in the predicted order, with another kernel or size" in text


def test_wrong_rows_of_a_sweep_are_no_measure_of_the_others() -> None:
    text = shown(row("a", 20), row("b", 1, wrong="it leaves other numbers"), row("c", 10))
    assert "2.00x 100 %" in text
    assert "20.00x" not in text


def test_a_sweep_of_one_launch_for_each_gpu_compares_nothing() -> None:
    assert "in order" not in shown(row("a", 20), row("a", 10, "k40m"))


def test_a_sweep_of_one_gpu_names_it_and_its_interval_once() -> None:
    lines = shown(row("a", 20), row("a", 10, block=128)).splitlines()
    assert lines[0] == "h200: 90 % interval of each time -10 to +10 %"
    assert not any("h200" in line for line in lines[1:])


def test_a_sweep_is_complete_in_80_columns() -> None:
    """Columns fold in place of being cut, and a reason follows below, once."""
    cannot = "a needs a block that is a power of two from 2 to 1024, not 2048; try 1024"
    rows = [
        row("reduce3", 20, n=2**20, limiter="block launch"),
        row("reduce4", 20.3, n=2**20, limiter="block launch"),
        row("reduce3", 90, "k40m", n=2**22, limiter="block launch"),
        row("reduce4", 40, "k40m", n=2**22, reason=cannot),
        row("reduce5", 40, "k40m", n=2**22, reason=cannot),
    ]
    lines = [line.plain for line in sweep_table(rows, 80)]
    text = " ".join(" ".join(lines).split())
    assert max(map(len, lines)) <= 80
    assert sum(line.endswith("launch") for line in lines) == 3
    assert text.count(cannot) == 1


def test_candidates_of_tune_have_their_interval_once_in_the_heading() -> None:
    rows = [row("a", 10, block=256), row("a", 10.3, block=128), row("a", 15, block=64)]
    lines = [line.plain for line in tuning_report([Tuned("a", "h200", 1024, rows, [])], 10, 120)]
    assert sum("90 % interval of each time -10 to +10 %" in line for line in lines) == 1
    assert any("a tie with another, take either" in line for line in lines)
    assert any("1.50x" in line and line.count("100 %") == 1 for line in lines)


def test_intervals_of_different_widths_have_the_widest_ends() -> None:
    found = spread([(10, (9, 12)), (100, (95, 105))])
    assert found == "90 % interval of all times within -10 to +20 %"


def test_cells_and_legend_tell_the_measured_pairs() -> None:
    sure = Judgement(1.3, KERNEL, Step(1.3, 812, 796, 2), False)
    tie = Judgement(1.01, KERNEL, Step(1, 40, 24, 1), True)
    assert [in_order(one) for one in (sure, tie)] == ["98 %", "tie, 60 %"]
    assert str(sure) == "1.30 times; of pairs predicted this far apart 98 % were in this order"
    legend = "".join(line.plain for line in order_legend([sure], 200))
    assert "another kernel or size" in legend
    assert "812 pairs or more, of 2 GPUs" in legend
