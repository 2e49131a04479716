"""The page in a real browser: no error in its console, and the stepper shows what was simulated."""

from __future__ import annotations

import re
from html import unescape
from itertools import starmap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pages import replayed, subject
from reports.browser import CHROMIUM, opened

import gpusim
from gpusim.isa.ops import OPS
from gpusim.launch.configured import ConfiguredKernel
from gpusim.prediction.sweeps.jobs import own_job
from gpusim.reports.notebook.page import Framed
from gpusim.reports.page import render
from gpusim.reports.page.sections import Subject
from gpusim.reports.page.stepper import stepper_document
from gpusim.sass import wheels
from gpusim.tracing.block_steps import BlockSteps

pytest.importorskip("jinja2", reason="the page needs jinja2, of the extras report and test")

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        CHROMIUM is None, reason="there is no chromium; apt-get install chromium has it"
    ),
]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("page") / "report.html"
    render.write([subject()], made)
    return made


def memory(document: str) -> list[str]:
    """The texts of the words of shared memory, row by row."""
    (table,) = re.findall(r'<table class="memory">.*?</table>', document, re.DOTALL)
    body = table.split("<tbody>")[1]
    return [unescape(text) for text in re.findall(r"<td[^>]*>([^<]*)</td>", body)]


def lanes_on(document: str) -> int:
    (lanes,) = re.findall(r'<ol class="lanes">.*?</ol>', document, re.DOTALL)
    return lanes.count("●")


@pytest.mark.parametrize("where", ["0", "40", "last"])
def test_the_stepper_shows_the_values_of_the_simulation(path: Path, where: str) -> None:
    document, console = opened(path, f"step=0:{where}")
    assert console == ""
    kept = subject().steps.steps
    at = len(kept) - 1 if where == "last" else int(where)
    assert f"step {at + 1} of {len(kept)}, barrier interval {kept[at].interval}: " in document
    assert lanes_on(document) == kept[at].lanes_on
    values = replayed(stepper_document(subject().steps, subject().trace), at)
    assert memory(document) == [values.get(4 * word, "·") for word in range(64)]


def with_script(path: Path, name: str, script: str) -> Path:
    """The page with a script at its end that does what a reader would."""
    made = path.with_name(name)
    text = path.read_text(encoding="utf-8")
    made.write_text(text.replace("</body>", f"<script>{script}</script></body>"), encoding="utf-8")
    return made


def test_keys_go_to_the_end_and_back_and_undo_what_was_written(path: Path) -> None:
    keys = ["End", *["ArrowLeft"] * 3, "ArrowRight"]
    press = "document.querySelector('.stepper').dispatchEvent(new KeyboardEvent('keydown', {key}))"
    script = f"for (const key of {keys}) {press};"
    document, console = opened(with_script(path, "keys.html", script))
    assert console == ""
    kept = subject().steps.steps
    at = len(kept) - 3
    assert f"step {at + 1} of {len(kept)}, " in document
    values = replayed(stepper_document(subject().steps, subject().trace), at)
    assert memory(document) == [values.get(4 * word, "·") for word in range(64)]


def test_going_back_to_the_first_step_leaves_memory_unwritten(path: Path) -> None:
    script = "steppers[0].go(steppers[0].last); steppers[0].go(0);"
    document, console = opened(with_script(path, "back.html", script))
    assert console == ""
    assert memory(document) == ["·"] * 64


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [("used", "1.5"), ("int", "1069547520"), ("hex", "0x3fc00000"), ("float", "1.5")],
)
def test_words_are_shown_in_the_format_that_is_chosen(
    path: Path, chosen: str, expected: str
) -> None:
    """1.5 as a float32 is 0x3fc00000. Data of the page: one step that writes it to word 0."""
    script = f"""
    const one = steppers[0];
    one.go(0);
    one.data.code[one.data.steps[0][0]][2] = "float32";
    one.data.steps[0][3] = [[0, 4, 0x3fc00000]];
    one.at = -1;
    one.go(0);
    one.format.value = "{chosen}";
    one.format.dispatchEvent(new Event("change"));
    """
    document, console = opened(with_script(path, f"{chosen}.html", script))
    assert console == ""
    assert memory(document)[0] == expected


def test_arrow_keys_in_the_choice_of_formats_go_no_step(path: Path) -> None:
    press = "new KeyboardEvent('keydown', {key: 'ArrowRight', bubbles: true})"
    script = f"steppers[0].format.dispatchEvent({press});"
    document, console = opened(with_script(path, "choice.html", script), "step=0:7")
    assert console == ""
    assert "step 8 of " in document


def test_a_table_sorts_by_the_column_that_is_clicked(path: Path) -> None:
    script = """
    const table = [...document.querySelectorAll("table.sortable")]
      .find((one) => one.caption.textContent === "Totals of the launch");
    table.tHead.rows[0].cells[1].querySelector("button").click();
    document.title = [...table.tBodies[0].rows].map((row) => row.cells[1].dataset.value).join(" ");
    """
    document, console = opened(with_script(path, "sorted.html", script))
    assert console == ""
    (title,) = re.findall(r"<title>(.*?)</title>", document)
    values = [int(value) for value in title.split()]
    assert values == sorted(subject().trace.counters.values(), reverse=True)
    assert 'aria-sort="descending"' in document


# -- the screen ----------------------------------------------------------------------------

STENCIL = """
__global__ void stencil(const float *in, float *out, int n)
{
    __shared__ float tile[128 + 2];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int t = threadIdx.x + 1;
    tile[t] = in[i];
    if (threadIdx.x == 0) {
        tile[0] = i > 0 ? in[i - 1] : 0.0f;
        tile[129] = i + 128 < n ? in[i + 128] : 0.0f;
    }
    __syncthreads();
    out[i] = (tile[t - 1] + tile[t] + tile[t + 1]) / 3.0f;
}
"""
TRANSPOSE = """
__global__ void transpose(const float *in, float *out, int n)
{
    __shared__ float tile[32][32];
    int x = blockIdx.x * 32 + threadIdx.x;
    int y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}
"""
EVERY_STEP = """
const wrong = [];
let steps = 0;
const inside = (box, top, bottom) => box.top >= top - 1 && box.bottom <= bottom + 1;
for (const work of works) {
  work.section.querySelector(".screen").scrollIntoView();
  for (let step = 0; step <= work.stepper.last; step++, steps++) {
    work.stepper.go(step);
    const rows = [work.lines, work.instructions].map((pane) => {
      const row = pane.querySelector("tr.here");
      const bottom = Math.min(pane.getBoundingClientRect().bottom, innerHeight);
      const top = pane.querySelector("thead").getBoundingClientRect().bottom;
      return row && inside(row.getBoundingClientRect(), top, bottom);
    });
    const parts = [".controls", ".said", ".lanes", ".memory"].map((name) =>
      inside(work.section.querySelector(name).getBoundingClientRect(), 0, innerHeight));
    if (!rows.concat(parts).every(Boolean)) wrong.push(`${work.number}:${step} ${rows} ${parts}`);
  }
}
const size = `${innerWidth}x${innerHeight}`;
document.title = `${steps} steps, ${size}: ${wrong.join("; ") || "all on the screen"}`;
"""


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with reduce2, a transposition by tiles of 32 x 32, and a stencil."""
    if not wheels.are_there():
        pytest.skip(wheels.INSTALL)
    made = tmp_path_factory.mktemp("three") / "report.html"
    n = 64
    square, row = np.zeros(n * n, np.float32), np.zeros(256, np.float32)
    transpose = gpusim.cuda_source(TRANSPOSE)["transpose"]
    stencil = gpusim.cuda_source(STENCIL)["stencil"]
    launches = [
        (transpose[(2, 2), (32, 8)], (square, square.copy(), n)),
        (stencil[2, 128], (row, row.copy(), 256)),
    ]
    render.write([subject(block=128, device="h200"), *starmap(shown, launches)], made)
    return made


def shown(configured: ConfiguredKernel, arguments: tuple[Any, ...]) -> Subject:
    steps = BlockSteps(0, registers=True)
    trace = gpusim.trace(configured, *arguments, observers=[steps])
    forecast = own_job(configured, list(arguments)).on("h200", timeline=True)
    return Subject(trace, steps, forecast)


def title(document: str) -> str:
    (text,) = re.findall(r"<title>(.*?)</title>", document, re.DOTALL)
    return unescape(text)


AXE = Path(__file__).parents[2] / "node_modules" / "axe-core" / "axe.min.js"
EVERY_VIEW = """
const found = [];
const judge = async (views) => {
  if (!views.length) return;
  for (const work of works) work.view(views[0]);
  const { violations, passes } = await axe.run(document);
  for (const one of violations) found.push(`${views[0]}: ${one.id}, ${one.nodes[0].html}`);
  document.title = `${found.join("; ") || "no violation"} with ${passes.length} rules passed`;
  await judge(views.slice(1));
};
judge(["lanes", "registers", "timeline", "memory"]);
"""


@pytest.mark.slow
@pytest.mark.skipif(
    not AXE.is_file(), reason="there is no axe-core: npm install --no-save axe-core"
)
@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_axe_finds_no_violation(three: Path, scheme: str) -> None:
    script = f"{AXE.read_text(encoding='utf-8')};{EVERY_VIEW}"
    path = with_script(three, f"axe-{scheme}.html", script)
    document, _ = opened(path, width=1400, scheme=scheme, virtual_ms=60000)
    assert re.fullmatch(r"no violation with \d\d rules passed", title(document))


def test_a_click_on_a_bar_of_the_timeline_goes_to_its_step(three: Path) -> None:
    """The bar of the block's last barrier: its step, its line and its instruction are marked."""
    script = """
    const work = works[0], { timeline, stepper } = work;
    work.view("timeline");
    const code = stepper.data.code, warp = timeline.warps[1];
    const span = warp.spans.filter((one) => code[one.pc][1].startsWith("BAR")).at(-1);
    timeline.whole("block");
    const box = timeline.canvas.getBoundingClientRect(), [begin, end] = timeline.view;
    const x = LABELS + ((span.begin + span.end) / 2 - begin) * (box.width - LABELS) / (end - begin);
    timeline.canvas.dispatchEvent(
      new MouseEvent("click", { clientX: box.left + x, clientY: box.top + 1.5 * ROW }));
    const marked = [...work.section.querySelectorAll("tr.here")].map((row) => row.dataset.line);
    document.title = `${stepper.at} ${stepper.step[1]} ${marked} ${timeline.cursor() <= span.end}`;
    """
    document, console = opened(with_script(three, "bar.html", script), width=1400)
    assert console == ""
    kept = subject(block=128, device="h200").steps
    assert kept.program is not None
    codes = [kept.program.instructions[step.pc] for step in kept.steps]
    barriers = [at for at, one in enumerate(codes) if OPS[one.op].is_barrier]
    last = barriers[-1]
    line = codes[last].line
    assert title(document) == f"{last} {kept.steps[last].interval} {line},{line} true"


def test_the_address_holds_the_step_the_warp_and_the_view(three: Path) -> None:
    script = """
    document.title = works.map((work) =>
      [work.stepper.at, work.stepper.choice.value, work.shownView].join(" ")).join("; ");
    """
    path = with_script(three, "address.html", script)
    document, console = opened(path, "step=1:5&warp=3&view=timeline", width=1400)
    assert console == ""
    assert title(document).split("; ")[1] == "5 3 timeline"
    assert "warp 3: 32 of 32 active lanes predicated on" in document


def test_a_line_leads_to_its_worst_access(three: Path) -> None:
    """The transposition reads a column of its tile: all words are of one bank."""
    line = next(
        at for at, text in enumerate(TRANSPOSE.splitlines(), 1) if "tile[threadIdx.x]" in text
    )
    document, console = opened(three, f"line=1:{line}", width=1400)
    assert console == ""
    assert ">32 wavefronts, ideal 1</p>" in document


@pytest.mark.parametrize("width", [1024, 1400])
def test_all_banks_and_the_line_of_the_first_finding_are_in_view(three: Path, width: int) -> None:
    """The transposition opens at the read of a column, all of whose words are of one bank."""
    script = """
    const work = works[1], pane = work.lines.getBoundingClientRect();
    work.section.querySelector(".screen").scrollIntoView();
    const head = work.section.querySelector(".memory:not(.registers) thead tr");
    const cells = [...head.cells].slice(1);
    const right = work.section.querySelector(".stepper").getBoundingClientRect().right;
    const seen = cells.filter((one) => one.getBoundingClientRect().right <= right).length;
    const line = work.lines.querySelector("tr.here").getBoundingClientRect();
    const panes = works.flatMap((one) => [one.lines, one.instructions]);
    const cut = panes.some((one) => one.scrollWidth > one.clientWidth);
    document.title = `${seen} banks, ${inside(line, 0, innerHeight)}, ${cut}`;
    """
    script = "const inside = (box, top, bottom) => box.top >= top && box.bottom <= bottom;" + script
    made = with_script(three, f"banks-{width}.html", script)
    document, console = opened(made, width=width)
    assert console == ""
    assert title(document) == "32 banks, true, false"
    assert ">32 wavefronts, ideal 1</p>" in document


@pytest.mark.parametrize("width", [390, 1024, 1400])
def test_a_word_of_shared_memory_is_shown_whole_or_shortened_to_its_cell(
    three: Path, width: int
) -> None:
    """-153 has its four characters; 31,250 becomes 3e4: each drawn within the cell's width."""
    script = """
    const one = works[0].stepper, type = one.data.code[one.data.steps[0][0]];
    one.go(0);
    type[2] = "int32";
    one.data.steps[0][3] = [7, -39, -153, 31250].map((value, word) => [4 * word, 4, value]);
    one.at = -1;
    one.go(0);
    const cells = one.words.slice(0, 4);
    const text = document.createElement("canvas").getContext("2d");
    const drawn = cells.map((cell) => {
      const after = getComputedStyle(cell, "::after"), own = getComputedStyle(cell);
      const short = cell.dataset.short, style = short ? after : own;
      text.font = `${style.fontSize} ${style.fontFamily}`;
      const narrow = short ? Number(/[\\d.]+/.exec(after.transform)[0]) : 1;
      return text.measureText(short || cell.textContent).width * narrow <= cell.clientWidth;
    });
    document.title = `${cells.map((cell) => cell.dataset.short || cell.textContent)} ${drawn}`;
    """
    document, console = opened(with_script(three, f"cells-{width}.html", script), width=width)
    assert console == ""
    assert title(document) == "7,-39,-153,3e4 true,true,true,true"


@pytest.mark.parametrize(
    ("width", "columns", "shown"), [(1024, 57, "true true"), (1400, 60, "false true")]
)
def test_columns_of_source_have_room(three: Path, width: int, columns: int, shown: str) -> None:
    """Below 1,200 pixels above the stepper; wide panes show the threads that pass a condition."""
    script = """
    const line = document.createElement("pre");
    line.textContent = "x".repeat(COLUMNS);
    line.style.display = "inline-block";
    line.style.whiteSpace = "pre";
    document.body.append(line);
    const least = line.getBoundingClientRect().width;
    const room = (work) => work.lines.querySelector("td.text pre").getBoundingClientRect().width;
    const heads = () => [...works[0].lines.querySelectorAll("thead th")]
      .filter((head) => head.offsetWidth).map((head) => head.textContent);
    const said = works.map((work) => room(work) >= least || room(work) / least * COLUMNS);
    said.push(heads().includes("threads passing"));
    works[0].section.querySelector(".work").style.setProperty("--left", "950px");
    document.title = [...said, heads().includes("threads passing")].join(" ");
    """
    script = script.replace("COLUMNS", str(columns))
    made = with_script(three, f"columns-{width}.html", script)
    assert title(opened(made, width=width)[0]) == f"true true true {shown}"


def test_a_page_of_three_kernels_is_below_2_megabytes(three: Path) -> None:
    assert three.stat().st_size < 2_000_000


def test_each_term_has_its_text_beside_it(three: Path) -> None:
    script = """
    const terms = [...document.querySelectorAll("[data-term]")];
    const box = document.getElementById("explanation");
    const silent = terms.filter((one) => !EXPLAINED[one.dataset.term]?.[0]);
    const names = new Set(terms.map((term) => term.dataset.term));
    const needed = ["executions", "mio_throttle", "bank", "L2", "issue", "shared load wavefronts",
      "again in the far partition", "dirty bytes at the end", "block launch", "90 % interval"];
    const missing = needed.filter((name) => !names.has(name));
    const one = terms.find((term) => term.dataset.term === "excessive");
    one.focus();
    const described = one.getAttribute("aria-describedby") === box.id;
    const said = `${!box.hidden} ${described} ${box.textContent}`;
    dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" }));
    document.title = `${missing} ${silent.length}; ${said}; ${box.hidden}`;
    """
    document, console = opened(with_script(three, "terms.html", script))
    assert console == ""
    said = title(document)
    assert said.startswith(" 0; true true ideal wavefronts, excessive wavefronts: the fewest")
    assert said.endswith("; true")


def test_a_press_on_play_goes_to_the_last_step(three: Path) -> None:
    script = """
    const { stepper } = works[1];
    stepper.go(stepper.last - 3);
    stepper.button.click();
    const playing = stepper.button.textContent;
    setTimeout(() => {
      document.title = `${playing} ${stepper.at === stepper.last} ${stepper.button.textContent}`;
    }, 3000);
    """
    made = with_script(three, "play.html", script)
    document, console = opened(made, virtual_ms=6000)
    assert console == ""
    assert title(document) == "pause true play"


def test_arrow_keys_go_a_step_without_a_focus(three: Path) -> None:
    script = """
    document.getElementById("kernel-1").scrollIntoView();
    const before = works[1].stepper.at, others = works[0].stepper.at;
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowLeft", bubbles: true }));
    document.title = `${works[1].stepper.at - before} ${works[0].stepper.at - others}`;
    """
    made = with_script(three, "arrow.html", script)
    document, console = opened(made, width=1400)
    assert console == ""
    assert title(document) == "-1 0"


def test_a_view_alone_is_an_address(three: Path) -> None:
    made = with_script(three, "view.html", "document.title = works[0].shownView;")
    assert title(opened(made, "view=timeline", width=1400)[0]) == "timeline"


def test_words_are_found_and_the_hottest_line_is_chosen(three: Path) -> None:
    script = """
    const work = works[1], { finder } = work;
    finder.input.value = "bar.sync";
    finder.search();
    finder.next(1);
    const line = work.instructions.querySelector("tr.here .text").textContent.trim();
    const most = Math.max(...finder.hot.map((row) => Number(row.dataset.time)));
    work.section.querySelector(".hottest").click();
    const hot = Number(work.lines.querySelector("tr.here").dataset.time) === most;
    document.title = `${finder.found.textContent}; ${line}; ${hot}`;
    """
    document, console = opened(with_script(three, "find.html", script))
    assert console == ""
    assert re.fullmatch(r"1 of 1; BAR\.SYNC\S* 0x0; true", title(document))


def test_a_kernel_is_copied_as_markdown(three: Path) -> None:
    script = "document.title = works[1].finder.markdown().replaceAll('\\n', '~');"
    document, console = opened(with_script(three, "markdown.html", script))
    assert console == ""
    lines = title(document).split("~")
    assert lines[0] == "## transpose"
    assert any(line.startswith("- bank-conflict: ") for line in lines)
    (head,) = (at for at, line in enumerate(lines) if line.startswith("| line | source"))
    assert all(line.count(" | ") == lines[head].count(" | ") for line in lines[head + 1 : -1])


def test_the_bar_between_the_panes_moves_by_keys(three: Path) -> None:
    script = """
    const { splitter, lines } = works[0], before = lines.offsetWidth;
    splitter.bar.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowLeft" }));
    document.title = `${lines.offsetWidth < before} ${splitter.bar.getAttribute("aria-valuenow")}`;
    """
    made = with_script(three, "splitter.html", script)
    document, console = opened(made, width=1400)
    assert console == ""
    assert re.fullmatch(r"true 5\d", title(document))


def test_warps_that_do_the_same_are_one_row(three: Path) -> None:
    script = """
    works[0].stepper.go(0);
    document.title = [...works[0].section.querySelectorAll(".lanes li")]
      .filter((row) => !row.hidden).map((row) => row.firstChild.textContent).join("; ");
    """
    document, console = opened(with_script(three, "grouped.html", script))
    assert console == ""
    assert title(document) == "warp 0-3"


def test_on_a_phone_the_stepper_takes_a_third_of_the_screen(three: Path) -> None:
    script = """
    const box = document.querySelector(".stepper").getBoundingClientRect();
    document.title = box.height <= innerHeight / 3 + 1;
    """
    made = with_script(three, "phone.html", script)
    assert title(opened(made, width=500)[0]) == "true"


def test_an_arrow_leads_from_each_branch_to_its_target(three: Path) -> None:
    """The loop of reduce2 goes back: its arrow ends above its begin, in the middle of a row."""
    script = """
    const { branches, instructions } = works[0], drawn = instructions.querySelector("svg");
    branches.draw();
    const at = (row) => row.getBoundingClientRect().top - drawn.getBoundingClientRect().top;
    const inside = (row, y) => at(row) < y && y < at(row) + row.offsetHeight;
    document.title = branches.branches.map(({ row, path }) => {
      const [from, to] = path.getAttribute("d").match(/M\\d+ ([\\d.]+) H\\d+ V([\\d.]+)/).slice(1);
      const target = instructions.querySelector(`tr[data-pc="${row.dataset.target}"]`);
      const [y, end] = [Number(from), Number(to)];
      return [end > y, inside(row, y), inside(target, end)].join(" ");
    }).join("; ");
    """
    made = with_script(three, "arrows.html", script)
    document, console = opened(made, width=1400)
    assert console == ""
    program = subject(block=128, device="h200").steps.program
    assert program is not None
    code = enumerate(program.instructions)
    forwards = [row.target > pc for pc, row in code if OPS[row.op].is_branch and row.target >= 0]
    expected = [f"{str(ahead).lower()} true true" for ahead in forwards]
    assert False in forwards
    assert title(document) == "; ".join(expected)


def test_every_step_shows_its_line_and_the_stepper_on_one_screen(three: Path) -> None:
    script = with_script(three, "steps.html", EVERY_STEP)
    document, console = opened(script, width=1400)
    assert console == ""
    assert re.fullmatch(r"\d{3} steps, 1400x\d{3}: all on the screen", title(document))


def test_a_link_leads_to_its_step_in_the_frame_of_a_notebook(path: Path) -> None:
    """There the address is that of the notebook, which the link must not load."""
    script = """addEventListener("load", () => {
      const inside = document.querySelector("iframe").contentDocument;
      inside.querySelector('a[href="#line=0:81"]').click();
      document.title = inside.querySelector(".stepper").textContent;
    });"""
    frame = Framed("page", path.read_text(encoding="utf-8"))._repr_html_()
    made = path.with_name("notebook.html")
    made.write_text(f"<body>{frame}<script>{script}</script></body>", encoding="utf-8")
    document, console = opened(made, virtual_ms=3000)
    assert console == ""
    title = re.search(r"<title>(.*?)</title>", document, re.DOTALL)
    assert title is not None
    assert ": line 81, " in title[1]


def test_registers_of_the_chosen_warp_are_shown_lane_by_lane(path: Path) -> None:
    """Some instruction reads threadIdx.x: 32 to 63 in the lanes of warp 1."""
    script = """
    const { stepper, registers } = works[0];
    works[0].view("registers");
    stepper.chooseWarp("1");
    const wanted = [...Array(32).keys()].map((lane) => String(32 + lane)).join();
    const step = stepper.data.steps.findIndex((_, place) => {
      stepper.go(place);
      return [...registers.rows.values()].some((cells) =>
        cells[0].className === "wrote" && cells.map((cell) => cell.textContent).join() === wanted);
    });
    document.title = stepper.data.code[stepper.data.steps[step][PC]][TEXT];
    """
    document, console = opened(with_script(path, "registers.html", script))
    assert console == ""
    assert re.search(r"TID|threadIdx", title(document), re.IGNORECASE)
