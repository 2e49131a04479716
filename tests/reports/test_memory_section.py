"""The section Memory of a prediction: where each line's bytes come from, array by array."""

from __future__ import annotations

import re
from functools import cache

import pytest

from gpusim import cuda
from gpusim.launch.arguments import array_spec
from gpusim.prediction.sweeps.jobs import Forecast, own_job
from gpusim.prediction.traffic import Fetch
from gpusim.reports.line_fetches import LineFetches, by_line
from gpusim.reports.notebook.results import prediction_html
from gpusim.reports.page.sections import _memory
from gpusim.reports.prediction import MOST_ROWS, Answer, prediction_report
from gpusim.reports.quantities import volume

BLOCKS = 528  # four for each SM of an H200


@cuda.jit
def twice(a, out):
    """Reads a row of 64 words twice, as a softmax does for its largest and then for its sum."""
    i = cuda.grid(1)
    largest = a[i]
    cuda.syncthreads()
    out[i] = largest + a[i ^ 1]


@cuda.jit
def look_up(table, out):
    out[cuda.grid(1)] = table[cuda.threadIdx.x]


@cuda.jit
def many(a, out):
    i = cuda.grid(1)
    total = a[i]
    total += a[i + 64]
    total += a[i + 128]
    total += a[i + 192]
    total += a[i + 256]
    total += a[i + 320]
    total += a[i + 384]
    total += a[i + 448]
    total += a[i + 512]
    total += a[i + 576]
    total += a[i + 640]
    total += a[i + 704]
    total += a[i + 768]
    total += a[i + 832]
    out[i] = total


@cuda.jit
def fill(out):
    out[cuda.grid(1)] = 1


def fetch(
    line: int, array: str, sectors: int, l1: float = 0.0, reuse: float | None = None
) -> Fetch:
    return Fetch(0, line, array, sectors, l1, 0.0, 1.0 - l1, reuse)


@cache
def forecast(kernel: cuda.Kernel, first: int) -> Forecast:
    """Predict `BLOCKS` blocks of 64 threads, on so many int32 and one for each thread."""
    arrays = [array_spec(size, "int32") for size in (first, 64 * BLOCKS) if size]
    return own_job(kernel[BLOCKS, 64], arrays).in_code("lowering").on("h200", l2="cold")


def section(kernel: cuda.Kernel, first: int, *, whole: bool = True) -> list[list[str]]:
    """Return the cells of the section, heading and titles first; none where there is none."""
    answer = Answer(forecast(kernel, first))
    text = "\n".join(line.plain for line in prediction_report(answer, 100, whole=whole))
    parts = [part for part in text.split("\n\n") if part.startswith("Memory")]
    return [re.split(r" {2,}", line.strip()) for part in parts for line in part.splitlines()]


def test_loads_of_one_line_and_array_are_one_row_weighted_with_their_sectors() -> None:
    """300 sectors of which half are in L1 and 100 that all are: (150 + 100) / 400."""
    found = by_line([fetch(7, "a", 300, 0.5), fetch(8, "a", 10), fetch(7, "a", 100, 1.0, 640.0)])
    assert found[0] == LineFetches(7, "a", 32 * 400, 0.625, 0.0, 0.375, None)
    assert [(one.line, one.loaded_bytes) for one in found] == [(7, 12800), (8, 320)]


def test_arrays_of_one_line_have_rows_of_their_own_most_bytes_first() -> None:
    found = by_line([fetch(7, "a", 1), fetch(7, "b", 2), fetch(3, "a", 2)])
    assert [(one.line, one.array) for one in found] == [(3, "a"), (7, "b"), (7, "a")]


@pytest.mark.parametrize(("far", "reuse"), [(99, 64.0), (100, 64.0), (101, None)])
def test_the_reuse_distance_of_a_line_is_that_of_half_of_its_sectors(
    far: int, reuse: float | None
) -> None:
    (found,) = by_line([fetch(7, "a", far), fetch(7, "a", 100, 1.0, 64.0)])
    assert found.reuse_distance_bytes == reuse


def test_sizes_have_three_digits_or_so_and_a_unit() -> None:
    sizes = (0, 640, 999, 1000, 12_800, 135_168, 999_600, 134_217_728, 5e9)
    assert [volume(size) for size in sizes] == [
        "0 bytes", "640 bytes", "999 bytes", "1.0 KB", "12.8 KB", "135 KB", "1.0 MB", "134 MB",
        "5.0 GB",
    ]  # fmt: skip


def test_what_a_block_reads_again_comes_from_l1() -> None:
    """33,792 words are 135,168 bytes: from DRAM the first time, from the SM's L1 the second."""
    heading, titles, *rows = section(twice, 64 * BLOCKS)
    assert heading == ["Memory", "loaded bytes by source, from a sample of 48 sectors per load"]
    assert titles == ["line", "array", "loaded", "L1", "L2", "DRAM", "reuse distance"]
    assert [row[1:6] for row in rows] == [
        ["a", "135 KB", ".", ".", "100.0 %"],
        ["a", "135 KB", "100.0 %", ".", "."],
    ]
    assert int(rows[1][0]) == int(rows[0][0]) + 2
    assert rows[0][6] == "once"


def test_of_a_table_that_all_blocks_read_most_is_found_in_caches() -> None:
    """64 words are 8 sectors; 528 blocks ask for 4,224 of them. DRAM has to bring 8, 0.2 %."""
    (found,) = by_line(forecast(look_up, 64).first.traffic.fetches)
    assert (found.array, found.loaded_bytes) == ("table", 32 * 4224)
    assert found.dram <= 0.05
    assert found.l1 + found.l2 + found.dram == pytest.approx(1)


def test_rows_beyond_the_most_are_counted_and_added_up() -> None:
    """14 lines of 135,168 bytes: the last ten load 1,352 KB."""
    rows = section(many, 64 * BLOCKS + 832, whole=False)
    assert len(rows) == 2 + MOST_ROWS + 1
    assert rows[-1] == ["10 other rows: 1.4 MB together"]
    assert len(section(many, 64 * BLOCKS + 832)) == 2 + 14


def test_a_kernel_that_loads_nothing_has_no_such_section() -> None:
    assert section(fill, 0) == []
    assert _memory(forecast(fill, 0).first.traffic.fetches) == []


def test_notebooks_and_pages_have_the_same_rows() -> None:
    prediction = forecast(twice, 64 * BLOCKS).first
    html = prediction_html(prediction)
    (table,) = _memory(prediction.traffic.fetches)
    for row, one in zip(table.rows, by_line(prediction.traffic.fetches), strict=True):
        assert tuple(cell.text for cell in row) == one.cells
        assert all(f"<td>{text}</td>" in html for text in one.cells[2:])
    assert table.rows[0][-1].value == -1
