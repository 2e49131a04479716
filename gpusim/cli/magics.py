"""`%gpusim` and `%%gpusim` in a notebook: commands with a rich display of their results.

`%load_ext gpusim` makes them known. IPython is imported where it calls.
"""

from __future__ import annotations

import importlib
import os
import re
import shlex
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from functools import cache
from io import StringIO
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from gpusim.cli import app
from gpusim.cli.output import complain
from gpusim.errors import GpusimError, InputError

# The first line of a cell's file: the magic's own line, so that lines have the numbers of the cell.
FIRST_LINES = {".py": "import numpy as np; from gpusim import cuda\n", ".cu": "\n"}
WITH_KERNELS = ("trace", "check", "lower", "predict", "rank", "sweep", "tune", "plot", "report",
                "list")  # fmt: skip
# Options with another answer than the result itself.
OTHER_ANSWERS = {
    "trace": ("--json", "--line", "--check", "--perfetto"),
    "predict": ("--json", "--why", "--check", "--perfetto"),
    "check": ("--json", "--sarif", "--format"),
    "rank": ("--json",),
    "compare": ("--json",),
    "sweep": ("--json", "--out", "--plot"),
    "tune": ("--json", "--out"),
    "plot": ("--out",),
    "report": ("--out",),
}


def load_ipython_extension(shell: Any) -> None:
    """Make `%gpusim` and `%%gpusim` known to a notebook or to IPython."""
    shell.register_magic_function(magic, "line_cell", "gpusim")


def magic(line: str, cell: str | None = None) -> Any:
    """Run a command; with a cell, on the kernels in it: CUDA C++, or Python of the dialect.

    `%gpusim trace reduce2 --block 128` is the command of the shell. `%%gpusim predict --device h200
    --grid 64 --block 256 --arg ...` is about the kernel of the cell; a name after the command
    chooses one of several. Python cells need no imports for `cuda` and `np`. The result shows
    itself: a Trace, a Prediction, Findings, a picture or the page; other commands print their
    report.
    """
    try:
        words = shlex.split(line)
        if not words:
            raise InputError("%gpusim needs a command: %gpusim trace reduce2 --block 128")
        if cell is not None:
            words = with_cell(words, cell)
        return answer(words)
    except (GpusimError, ValueError) as error:  # a ValueError for quotes without an end
        raise _usage_error(str(error).replace(f"{_folder().name}{os.sep}", "")) from None


def with_cell(words: Sequence[str], cell: str) -> list[str]:
    """Return a command's words with the kernels of a cell in place of their names."""
    command, *rest = words
    if command not in WITH_KERNELS:
        raise InputError(
            f"%%gpusim {command} takes no cell; commands of kernels are {', '.join(WITH_KERNELS)}"
        )
    names = list(takewhile(lambda word: not word.startswith("-"), rest))
    options = rest[len(names) :]
    first = [command, *names[: command == "plot"]]
    path = _kept(cell)
    chosen = [_in_cell(name, path, cell) for name in names[command == "plot" :]]
    return [*first, *(chosen or [str(path)]), *options]


def _in_cell(name: str, path: Path, cell: str) -> str:
    """Return a name as a kernel of the cell's file; others are of the catalogue, or files."""
    plain = name.partition("<")[0].rpartition("::")[2]  # space::kernel<float, 128>
    return f"{path}:{name}" if re.search(rf"\b{re.escape(plain)}\b", cell) else name


def _kept(cell: str) -> Path:
    """Return a file with the text of a cell; its lines are numbered as the cell's are."""
    suffix = ".cu" if "__global__" in cell else ".py"
    folder = Path(_folder().name)
    texts = {path: path.read_text(encoding="utf-8") for path in folder.glob(f"*{suffix}")}
    text = FIRST_LINES[suffix] + cell
    for path, kept in texts.items():
        if kept == text:
            return path
    path = folder / f"cell_{len(texts) + 1}{suffix}"
    path.write_text(text, encoding="utf-8")
    return path


@cache
def _folder() -> TemporaryDirectory[str]:
    """Return the folder of the cells' files, removed when the process ends."""
    return TemporaryDirectory(prefix="gpusim-cells-")


def answer(words: Sequence[str]) -> Any:
    """Return a command's result, None where it prints its report; raises GpusimError."""
    others = {"-h", "--help", *OTHER_ANSWERS.get(words[0], ())}
    shown = RESULTS.get(words[0])
    if shown is None or any(word.partition("=")[0] in others for word in words):
        app.run(words)
        return None
    return shown(words)


def _traced(words: Sequence[str]) -> Any:
    from gpusim.cli.trace import answered

    made, remark = answered(app.chosen_of(words))
    if remark:
        complain(remark)
    return made


def _predicted(words: Sequence[str]) -> Any:
    """Return the prediction of the first launch; of several a remark says their time."""
    from gpusim.cli.predict import forecast, job_of
    from gpusim.cli.timing import device_of, removals_of
    from gpusim.reports.quantities import duration

    chosen = app.chosen_of(words)
    mechanisms, removals = removals_of(chosen.without)
    device = device_of(chosen.device, mechanisms, chosen.changed)
    made = forecast(chosen, job_of(chosen), device, timeline=True, removals=removals)
    if len(made.predictions) > 1:
        complain(f"the first of {len(made.predictions)} launches, {duration(made.time_us)} in all")
    return made.first


def _checked(words: Sequence[str]) -> Any:
    from gpusim.cli.check import checked

    return checked(app.chosen_of(words))


def _ranked(words: Sequence[str]) -> Any:
    from gpusim.cli.rank import ranked

    ranking, remarks = ranked(app.chosen_of(words))
    for remark in remarks:
        complain(remark)
    return ranking


def _compared(words: Sequence[str]) -> Any:
    from gpusim.cli.compare import compared

    return compared(app.chosen_of(words))


def _swept(words: Sequence[str]) -> Any:
    from gpusim.cli.sweep import swept

    return swept(app.chosen_of(words))


def _tuned(words: Sequence[str]) -> Any:
    """Return the candidates of a launch; of several launches a table each."""
    from gpusim.cli.tune import tuned
    from gpusim.reports.notebook.elements import Several

    found = tuned(app.chosen_of(words))
    return found[0] if len(found) == 1 else Several(found)


def _drawn(words: Sequence[str]) -> Any:
    from gpusim.cli.plot import PICTURES
    from gpusim.cli.timing import one_of

    chosen = app.chosen_of(words)
    one_of(chosen.picture, tuple(PICTURES), "the picture")
    return PICTURES[chosen.picture].draw(chosen)


def _page(words: Sequence[str]) -> Any:
    """Return the page of a report in a frame."""
    from gpusim.reports.notebook.page import Framed

    with TemporaryDirectory(prefix="gpusim-page-") as folder:
        path = Path(folder) / "report.html"
        with redirect_stdout(StringIO()):  # the name of the page
            app.run([*words, "--out", str(path)])
        return Framed("gpusim report", path.read_text(encoding="utf-8"))


RESULTS: dict[str, Callable[[Sequence[str]], Any]] = {
    "trace": _traced,
    "predict": _predicted,
    "check": _checked,
    "rank": _ranked,
    "compare": _compared,
    "sweep": _swept,
    "tune": _tuned,
    "plot": _drawn,
    "report": _page,
}


def _usage_error(message: str) -> Exception:
    """Return an error that a notebook shows as a sentence, without a traceback."""
    made: Exception = importlib.import_module("IPython.core.error").UsageError(message)
    return made
