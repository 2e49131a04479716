"""The page about a kernel: all of it inside, text as text, and shown is what was counted."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pages import replayed, subject

import gpusim
from gpusim import catalogue, cuda
from gpusim.advice.records import Advice
from gpusim.cli.app import main
from gpusim.host.installation import install
from gpusim.isa.ops import Instruction
from gpusim.prediction.removals import Replay, parse
from gpusim.reports.page import render
from gpusim.reports.page.hierarchy import levels
from gpusim.reports.page.pairing import beside
from gpusim.reports.page.sections import Remark, SourceRow, Subject
from gpusim.reports.page.stepper import _encoded, result_names, stepper_document
from gpusim.reports.page.tables import CountColumns, Counts, counted
from gpusim.sass import wheels
from gpusim.tracing.block_steps import BlockSteps

pytest.importorskip("jinja2", reason="the page needs jinja2, of the extras report and test")

needs_compiler = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)
MOST_BYTES = 1_000_000  # of a page of one kernel of the catalogue
PARTS = ("of loads", "again in the far partition", "code, constants, parameters")
EVIL = "<script>alert('a & b')</script>"


class Read(HTMLParser):
    """What a browser would find: elements that are open or were, text by element, addresses."""

    VOID = ("meta", "link", "img", "source", "input", "br")

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[tuple[str, int]] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.pieces: dict[tuple[str, int], str] = {}
        self.feed(page)
        self.close()
        assert self.open == [], "every element is closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append((tag, len(self.tags)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        """Add text to the element that it stands in; colours and terms are no elements here."""
        whose = next((one for one in reversed(self.open) if one[0] not in ("i", "span")), ("", 0))
        self.pieces[whose] = self.pieces.get(whose, "") + data

    @property
    def texts(self) -> list[tuple[str, str]]:
        return [(tag, text.strip()) for (tag, _), text in self.pieces.items() if text.strip()]

    def text_of(self, *tags: str) -> list[str]:
        return [text for tag, text in self.texts if tag in tags]

    @property
    def addresses(self) -> list[str]:
        names = ("src", "href", "srcset", "action", "data", "poster")
        return [value or "" for _, attrs in self.tags for n, value in attrs.items() if n in names]


@cache
def page() -> str:
    return plain(subject(device="h200"))


def plain(*subjects: Subject) -> str:
    return render.page(subjects)


def test_a_page_asks_nothing_of_the_network() -> None:
    whole = page()
    read = Read(whole)
    assert read.addresses
    assert all(address.startswith(("data:", "#line=0:", "#pc=0:")) for address in read.addresses)
    assert "@import" not in whole
    assert "url(" not in whole
    assert not re.search(r"fetch\(|XMLHttpRequest|WebSocket|import\(|eval\(", whole)
    assert len(whole.encode()) < MOST_BYTES


def test_a_page_shows_the_counts_of_every_line_and_its_machine_code() -> None:
    about, read = subject(device="h200"), Read(page())
    cells = read.text_of("td", "th", "pre", "a")
    for line in about.trace.lines:
        if line.line:
            assert line.text.strip() in cells
            assert f"{line.executions:,}" in cells
    code = read.text_of("code")
    assert sum(text.startswith(("@", "LD", "ST", "BAR", "IS", "U")) for text in code) > 20
    assert any("LDS" in text for text in code)


def test_a_page_shows_totals_warps_bounds_and_stalls() -> None:
    about, read = subject(device="h200"), Read(page())
    rows = read.text_of("td", "th")
    for name, value in about.trace.counters.items():
        assert rows[rows.index(name) + 1] == f"{value:,}"
    assert about.forecast is not None
    assert set(about.forecast.first.stalls) <= set(rows)
    captions = read.text_of("caption")
    assert "Totals of the launch" in captions
    assert "Warps of block 0" in captions
    assert any(caption.startswith("Lower bounds") for caption in captions)


def test_findings_stand_on_the_page_with_those_of_other_analyses_first() -> None:
    remark = Remark("data-race", 81, "two threads write the same element", "error")
    whole = plain(replace(subject(), remarks=(remark,)))
    read = Read(whole)
    assert first_severity(read) == "error"
    kinds = read.text_of("strong")
    assert kinds == ["data-race", *(f.kind for f in subject().trace.findings)]


def test_a_finding_has_its_gain_before_its_sentence() -> None:
    trace = replace(subject().trace)
    gain = Replay(parse("bank-conflicts@81"), 8.0, 0.5)
    vars(trace)["findings"] = [Advice("bank-conflict", 81, "line 81: stride 4.", gain=gain)]
    item = plain(replace(subject(), trace=trace)).partition('<li class="note">')[2]
    words = re.sub(r"<[^>]*>", " ", item.partition("</li>")[0]).split()
    assert " ".join(words) == "bank-conflict fixing it: 8.00 us (2.0x faster) line 81: stride 4."


def first_severity(read: Read) -> str | None:
    names = (attrs.get("class") for tag, attrs in read.tags if tag == "li")
    return next(name for name in names if name in ("error", "warning", "note"))


def test_text_of_a_user_is_text() -> None:
    @cuda.jit
    def mine(numbers: Any) -> None:
        numbers[cuda.threadIdx.x] = 1  # <script>alert('a & b')</script>

    steps = BlockSteps(0)
    trace = gpusim.trace(mine[1, 32], np.zeros(32, np.int32), observers=[steps])
    about = Subject(replace(trace, kernel=EVIL), steps, remarks=(Remark(EVIL, 1, EVIL, "error"),))
    read = Read(plain(about, about))
    scripts = [attrs for tag, attrs in read.tags if tag == "script"]
    steps_of = {"type": "application/json", "class": "steps"}
    assert scripts == [steps_of] * 2 + [{"type": "application/json", "id": "explanations"}, {}]
    assert all("alert" not in text for tag, text in read.texts if tag == "script")
    assert any(EVIL in text for text in read.text_of("pre"))
    assert read.text_of("h2") == ["Side by side", EVIL, EVIL]
    assert read.text_of("strong")[0] == EVIL


def test_data_for_the_script_cannot_end_its_element() -> None:
    text = str(render._embedded({"code": EVIL}))
    assert not set("<>&") & set(text)
    assert json.loads(text) == {"code": EVIL}


def embedded(whole: str, name: str) -> dict[str, Any]:
    """The first document of a kind in a page."""
    mark = f'<script type="application/json" class="{name}">'
    document: dict[str, Any] = json.loads(whole.split(mark)[1].split("</script>")[0])
    return document


# -- the stepper ---------------------------------------------------------------------------


def test_the_steps_on_a_page_are_those_of_the_block() -> None:
    about = subject()
    document = embedded(page(), "steps")
    assert document["whole"] is True
    assert document["words"] == 64
    assert len(document["steps"]) == len(about.steps.steps)
    for step, kept in zip(document["steps"], about.steps.steps, strict=True):
        assert step[:2] == [kept.pc, kept.interval]
        shown = sum(bin(on).count("1") * (last - first + 1) for first, last, _, on, *_ in step[2])
        assert shown == kept.lanes_on
    total = sum(catalogue.sample(128, "int32")[:64].tolist())
    assert replayed(document, len(document["steps"]))[0] == str(total)


@needs_compiler
@pytest.mark.parametrize("dtype", ["int32", "float32", "float64", "int64"])
def test_words_of_machine_code_have_the_type_that_its_instructions_use(dtype: str) -> None:
    """Code of nvcc stores bits; the sum of a block is what the data's type makes of them."""
    about = subject(dtype=dtype, code="nvcc")
    document = stepper_document(about.steps, about.trace)
    assert document["types"] == [dtype]
    assert not document["is_typed"]
    total = catalogue.sample(128, dtype)[:64].sum().item()
    assert float(replayed(document, len(document["steps"]))[0]) == pytest.approx(total, rel=1e-5)


def test_words_of_a_kernel_with_types_have_those() -> None:
    document = stepper_document(subject(dtype="float64").steps, subject(dtype="float64").trace)
    assert (document["types"], document["is_typed"]) == (["float64"], True)
    total = catalogue.sample(128, "float64")[:64].sum()
    assert float(replayed(document, len(document["steps"]))[0]) == pytest.approx(total, rel=1e-5)


@needs_compiler
def test_words_that_are_only_moved_have_the_type_of_their_array(tmp_path: Path) -> None:
    """Nothing adds what this kernel turns around: a float, because the array is one of floats."""
    file = tmp_path / "turn.cu"
    file.write_text(
        "__global__ void turn(const float *x, float *y) {\n"
        "    __shared__ float tile[32];\n"
        "    tile[threadIdx.x] = x[threadIdx.x];\n"
        "    __syncthreads();\n"
        "    y[threadIdx.x] = tile[31 - threadIdx.x];\n"
        "}\n"
    )
    turn = gpusim.cuda_file(file)["turn"]
    steps, x = BlockSteps(0), np.arange(32, dtype=np.float32) / 8
    trace = gpusim.trace(turn[1, 32], x, np.zeros_like(x), observers=[steps])
    document = stepper_document(steps, trace)
    assert document["types"] == ["float32"]
    assert replayed(document, len(document["steps"]))[4 * 5] == "0.625"


@needs_compiler
def test_a_type_is_passed_on_by_shuffles() -> None:
    """The word comes from a shuffle, and what the shuffle took was multiplied as a float."""
    source = """
__global__ void spread(const int *x, int *y) {
    __shared__ float tile[32];
    float half = 0.5f * x[threadIdx.x];
    tile[threadIdx.x] = __shfl_xor_sync(~0u, half, 1);
    __syncthreads();
    y[threadIdx.x] = __float_as_int(tile[31 - threadIdx.x]);
}
"""
    spread = gpusim.cuda_source(source)["spread"]
    steps, x = BlockSteps(0), np.arange(32, dtype=np.int32)
    trace = gpusim.trace(spread[1, 32], x, np.zeros_like(x), observers=[steps])
    document = stepper_document(steps, trace)
    stored = next(kind for _, text, kind, *_ in document["code"] if text.startswith("STS"))
    assert stored == "float32"
    assert replayed(document, len(document["steps"]))[4 * 6] == "3.5"


@needs_compiler
def test_machine_code_is_shown_as_the_disassembler_writes_it() -> None:
    code = Read(plain(subject(code="nvcc"))).text_of("code")
    assert "BAR.SYNC.DEFER_BLOCKING 0x0" in code
    assert not any(text.startswith((".", "bits.")) for text in code)


def test_warps_that_do_the_same_are_one_entry() -> None:
    document = stepper_document(subject().steps, subject().trace)
    first = document["steps"][0]
    assert first[2] == [[0, 1, 2**32 - 1, 2**32 - 1, None, None, 0, 0]]


def test_steps_are_cut_at_a_size_and_the_page_says_so() -> None:
    cut = stepper_document(subject().steps, subject().trace, most=2000)
    assert 0 < len(cut["steps"]) < len(subject().steps.steps)
    assert cut["whole"] is False
    whole = plain(replace(subject(), steps=short()))
    assert "Cut after 5 steps of the block" in whole


def short() -> BlockSteps:
    call = catalogue.find("reduce2").call(catalogue.sample(128, "int32"), block=64)
    kept = BlockSteps(0, most=5)
    gpusim.trace(call.configured, *call.arguments, observers=[kept])
    return kept


# -- the command ---------------------------------------------------------------------------


def test_several_kernels_stand_side_by_side(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "two.html"
    words = ["reduce1", "reduce2", "-n", "256", "--block", "64", "--out", str(path)]
    assert main(["report", *words]) == 0
    assert capsys.readouterr().out == f"{path}\n"
    read = Read(path.read_text(encoding="utf-8"))
    assert read.text_of("h2") == ["Side by side", "reduce1", "reduce2"]
    cells = read.text_of("td", "th")
    conflicts = cells.index("shared_store_bank_conflicts")
    assert cells[conflicts + 1] != ""
    assert path.stat().st_size < MOST_BYTES


def test_two_launches_of_a_kernel_stand_side_by_side_line_by_line(tmp_path: Path) -> None:
    """Each side has options of its own, which are its name; its lines are those of the other."""
    path = tmp_path / "two.html"
    words = ["reduce2 --block 64", "reduce2 --block 32", "-n", "256", "--code", "lowering"]
    assert main(["report", *words, "--out", str(path)]) == 0
    read = Read(path.read_text(encoding="utf-8"))
    assert read.text_of("h2")[1:] == ["reduce2 --block 64", "reduce2 --block 32"]
    cells = read.text_of("td", "th")
    instructions = cells.index("instructions")
    first, second, ratio = (float(text.replace(",", "")) for text in cells[instructions + 1 :][:3])
    assert ratio == pytest.approx(second / first, abs=0.005)
    assert not any(attrs.get("class") == "different" for _, attrs in read.tags)


def rows(*texts: str) -> list[SourceRow]:
    return [SourceRow(number, text, None, (), False) for number, text in enumerate(texts, 1)]


def test_lines_that_match_stand_in_one_row() -> None:
    found = beside([rows("a", "  b", "c", "d"), rows("a", "b", "x", "y", "d")])
    numbers = [tuple(half and half.number for half in row.halves) for row in found]
    assert numbers == [(1, 1), (2, 2), (3, 3), (None, 4), (4, 5)]
    assert [row.is_same for row in found] == [True, True, False, False, True]


def test_lines_of_three_kernels_match_through_the_one_before() -> None:
    found = beside([rows("a", "b"), rows("a", "x", "b"), rows("x", "b", "c")])
    numbers = [tuple(half and half.number for half in row.halves) for row in found]
    assert numbers == [(1, 1, None), (None, 2, 1), (2, 3, 2), (None, None, 3)]
    assert [row.is_same for row in found] == [False, False, True, False]


def test_each_step_of_several_kernels_has_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "steps.html"
    words = ["report", "reduce1", "reduce2", "reduce3", "-n", "4096", "--out", str(path)]
    assert main(words) == 0
    text = path.read_text(encoding="utf-8")
    assert re.search(r"reduce2 takes 0\.\d\d times as long as reduce1: \d+ % fewer instr", text)
    assert re.search(r"reduce3 takes \d\.\d\d times as long as reduce2: ", text)


def test_a_count_that_is_the_same_for_all_lines_has_no_column() -> None:
    cells = counted([32, 32, 0])
    columns = CountColumns.of(
        [Counts("executions", cells, is_of_all=True), Counts("sectors", cells)], "each line"
    )
    assert [one.name for one in columns.columns] == ["sectors"]
    assert columns.same == "each line: 32 executions"


def test_sectors_that_the_l2_reads_are_the_sum_of_their_parts() -> None:
    one = subject(device="h200")
    assert one.forecast is not None
    main_levels, _ = levels(one.trace, one.forecast.first.traffic)
    figures = {name: value for name, value, _ in main_levels[1].figures}
    counts = [int(figures[name].replace(",", "")) for name in figures if name in PARTS]
    assert sum(counts) == pytest.approx(int(figures["sectors read"].replace(",", "")), abs=2)
    assert len(counts) >= 2


@pytest.mark.parametrize(
    ("words", "sizes"),
    [
        ((), "Counted for n 65,536: accesses of L1 and of shared memory. "
             "Predicted for n 16,777,216: hit rates, L2 and DRAM."),
        (("-n", "65536"), ""),
    ],
)  # fmt: skip
def test_the_memory_hierarchy_names_the_sizes_of_its_numbers(
    tmp_path: Path, words: tuple[str, ...], sizes: str
) -> None:
    path = tmp_path / "sizes.html"
    assert main(["report", "reduce3", *words, "--out", str(path)]) == 0
    found = [text for text in Read(path.read_text("utf-8")).text_of("p") if "Counted" in text]
    assert found == ([sizes] if sizes else [])


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("-O0",), "code of -O0 is not predicted"),
        (("--cc", "7.0"), "H200 does not run code for 7.0; --device names a GPU"),
    ],
)
def test_where_nothing_is_predicted_the_page_says_why(
    tmp_path: Path, words: tuple[str, ...], reason: str
) -> None:
    path = tmp_path / "plain.html"
    launch = ["reduce2", "-n", "256", "--block", "64", "--code", "lowering"]
    assert main(["report", *launch, *words, "--out", str(path)]) == 0
    read = Read(path.read_text(encoding="utf-8"))
    assert any(text.endswith(f"No times: {reason}") for text in read.text_of("p"))
    assert "duration" not in read.text_of("dt")
    assert "Timeline" not in read.text_of("button"), "no control without a use"


def test_a_kernel_in_a_file_has_a_page(tmp_path: Path) -> None:
    file, path = tmp_path / "mine.py", tmp_path / "mine.html"
    file.write_text(
        "from gpusim import cuda\n\n@cuda.jit\ndef double(x):\n"
        "    x[cuda.grid(1)] = x[cuda.grid(1)] * 2  # </pre><script>\n"
    )
    words = [f"{file}:double", "--grid", "2", "--block", "32", "--arg", "int32[64]=arange"]
    assert main(["report", *words, "--device", "h200", "--out", str(path)]) == 0
    read = Read(path.read_text(encoding="utf-8"))
    assert any("</pre><script>" in text for text in read.text_of("pre"))
    assert any(text.startswith("H200, model; 90 %: ") for text in read.text_of("dd"))


def test_what_a_check_finds_stands_on_the_page(tmp_path: Path) -> None:
    """reduction5 lacks a barrier between the load and the first addition."""
    path = tmp_path / "a.html"
    words = ["reduction5", "-n", "1024", "--block", "128", "--device", "h200"]
    assert main(["report", *words, "--out", str(path)]) == 0
    read = Read(path.read_text(encoding="utf-8"))
    assert (first_severity(read), read.text_of("strong")[0]) == ("error", "shared-race")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["reduce2", "--out", "a.txt"], "a report is a file that ends in .html, not a.txt"),
        (["reduce2", "--out", "nowhere/a.html"], "there is no directory nowhere for a.html"),
        ([], "gpusim report needs the name of at least one kernel"),
    ],
)
def test_what_cannot_be_written_is_said(words: list[str], complaint: str, capsys: Any) -> None:
    assert main(["report", *words]) == 2
    assert complaint in capsys.readouterr().err


def test_without_jinja2_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert main(["report", "reduce2"]) == 2
    told = capsys.readouterr().err
    assert told == f"gpusim: a report needs jinja2: {install('report')}\n"


# -- registers -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "are_predicates", "names"),
    [
        ("IMAD R5, R6, R7, R8", [False], ["R5"]),
        ("@!P0 LDC.64 R2, c[0x0][0x210]", [False, False], ["R2", "R3"]),
        ("ISETP.GE.U32.AND P0, PT, R5, UR4, PT", [True], ["P0"]),
        ("ULDC.64 UR6, c[0x0][0x208]", [False, False], ["UR6", "UR7"]),
        ("IADD3 R4, P1, PT, R2, R8, RZ", [False, True], ["R4", "P1"]),
        ("SHFL.DOWN PT, R9, R5, 0x10, 0x1f", [False], ["R9"]),
        ("SHFL.DOWN P2, R9, R5, 0x10, 0x1f", [False, True], ["R9", "P2"]),
    ],
)
def test_results_have_the_names_of_the_disassembler(
    text: str, are_predicates: list[bool], names: list[str]
) -> None:
    one = Instruction("bits.IMAD", tuple(range(len(names))), text=text)
    assert result_names(one, are_predicates) == names


@pytest.mark.parametrize(
    ("values", "encoded"),
    [
        (np.full(32, 7, np.int32), 7),
        (np.arange(0, 128, 4, dtype=np.uint32), [0, 4]),
        (np.arange(32) % 3 == 0, [int(lane % 3 == 0) for lane in range(32)]),
        (np.full(32, 1.5, np.float32), 0x3FC00000),
        (np.full(32, 2**53 + 1, np.int64), [str(2**53 + 1)] * 32),
    ],
)
def test_a_register_is_as_short_as_its_lanes_allow(values: Any, encoded: Any) -> None:
    assert _encoded(values) == encoded


@pytest.mark.parametrize("code", ["lowering", pytest.param("nvcc", marks=needs_compiler)])
def test_registers_on_a_page_have_what_was_computed(tmp_path: Path, code: str) -> None:
    """The loaded elements are a permutation of 0 to 31; one lane in four is off at the store."""
    file, path = tmp_path / "mine.py", tmp_path / "a.html"
    file.write_text(
        "from gpusim import cuda\n\n@cuda.jit\ndef turn(x, y):\n"
        "    i = cuda.grid(1)\n    if i % 4:\n        y[i] = x[31 - i] * 3\n"
    )
    words = [f"{file}:turn", "--grid", "1", "--block", "32", "--arg", "int32[32]=arange"]
    more = ["--arg", "int32[32]", "--code", code, "--out", str(path)]
    assert main(["report", *words, *more]) == 0
    document = embedded(path.read_text(encoding="utf-8"), "steps")
    tripled = [3 * (31 - lane) for lane in range(32)]
    found = [
        decoded(value) for step in document["steps"] for _, *values in step[5] for value in values
    ]
    on = [lane for lane in range(32) if lane % 4]
    assert any([lanes[lane] for lane in on] == [tripled[lane] for lane in on] for lanes in found)
    assert all(len(step[5]) in (0, 1) for step in document["steps"])


def decoded(value: Any) -> list[int]:
    if not isinstance(value, list):
        return [value] * 32
    first, step = value[:2]
    return [first + lane * step for lane in range(32)] if len(value) == 2 else value
